// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Kernels with one mistake each, and some that look wrong but are not, for tests/golden/dsl_errors.
#include <algorithm>
#include <optional>
#include <vector>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// Locations are shown as lines, so each mistake has its own line.
// clang-format off

// ---- values

const auto unassigned = kernel("unassigned", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s;
    if_(n > 3, [&] { s = 1; });
    y[0] = s;
    y[1] = s;
});

const auto unassigned_in_loop = kernel("unassigned_in_loop", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s;
    for (auto i : range(n)) s = cast<f32>(i);
    y[0] = s;
});

const auto unassigned_on_one_way = kernel("unassigned_on_one_way", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s, t;
    if_(n > 3, [&] { y[0] = 1; }).else_([&] { s = 1; });
    y[1] = s;
    while_([&] { return n > 0; }, [&] { t = 1; n -= 1; });
    y[2] = t;
});

const auto assigned_on_all_ways = kernel("assigned_on_all_ways", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s, t;
    if_(n > 3, [&] { s = 1; }).else_([&] { s = 2; });
    y[0] = s;
    while_(
        [&] {
            t = 1;
            return n > 0;
        },
        [&] { n -= 1; });
    y[1] = t;
    if_(n > 4, [&] { return_(); }).else_([&] { t = 2; });
});

const auto numbers =
    kernel("numbers", params("i", "u", "f"), [](Out<std::int32_t> i, Out<std::uint32_t> u, Out<float> f) {
        i[0] = 3000000000;
        u[0] = -1;
        f[0] = 16777217;
        f[1] = 1e300;
        u[1] = 1u << 31;
    });

std::optional<f32> kept;
const auto keeps = kernel("keeps", params("x"), [](InOut<float> x) {
    kept.emplace(x[0]);
    x[1] = *kept;
});
const auto kept_value = kernel("kept_value", params("y"), [](Out<float> y) {
    keeps.ast();
    y[0] = *kept + 1;
});

const auto moved_from = kernel("moved_from", params("y"), [](Out<float> y) {
    f32 a = 1;
    f32 b = std::move(a);
    y[0] = b;
    y[1] = a;
    f32 c = 2;
    std::swap(b, c);
});

const auto leaves_region = kernel("leaves_region", params("x", "y"), [](In<float> x, Out<float> y) {
    std::optional<Leaf<float>> inner;
    if_(x[0] > 0, [&] { inner.emplace(value(x[1] * 2)); });
    y[0] = *inner;
});

const auto register_index = kernel("register_index", params("y"), [](Out<float> y) {
    Regs<f32, 4> r(0);
    y[0] = r[4];
    y[1] = r[-1];
});

// ---- order within an expression

const auto two_effects = kernel("two_effects", params("c", "y"), [](InOut<std::uint32_t> c, Out<std::uint32_t> y) {
    y[0] = atomic_add(c[0], 1) - atomic_add(c[1], 1);
    y[1] = shuffle_xor(c[2], 1) + ballot(c[3] > 0);
    y[2] = 2 * atomic_add(c[0], 1) + shuffle_xor(c[2], 1) * 3;
    auto named = atomic_add(c[0], 1);
    y[3] = named + atomic_add(c[0], 1);
    y[4] = shuffle_xor(atomic_add(c[0], 1), 1);
});

const auto atomic_and_load =
    kernel("atomic_and_load", params("c", "y"), [](InOut<std::uint32_t> c, Out<std::uint32_t> y) {
        y[0] = c[0] + atomic_add(c[0], 1);
        y[1] = (atomic_add(c[0], c[1]) ^ 1) - c[2] * 2;
        y[2] = atomic_add(c[0], c[1]);
        auto before = c[0];
        y[3] = before + atomic_add(c[0], 1);
    });

const auto select_load = kernel("select_load", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    y[0] = select(n < 4, x[n] * 2, 0);
    if_((n < 4) & (x[n] > 0), [&] { y[1] = 1; });
    if_((n >= 4) | (x[n + 1] > 0), [&] { y[1] = 1; });
    auto named = x[0];
    y[2] = select(n < 4, named, 0);
    y[3] = select(n < 4, x.load_if(n < 4, n, 0), 1);
});

const auto shared_select_load = kernel("shared_select_load", params("y", "n"), [](Out<float> y, u32 n) {
    Shared<float, 8> s;
    y[0] = select(n < 8, s[n], 0);
});

// ---- control flow

const auto empty_regions = kernel("empty_regions", params("y", "n"), [](Out<float> y, u32 n) {
    if_(n > 3, [&] { return; });
    if_(n > 4, [&] { y[0] = 1; }).else_([&] {});
    for (auto i : range(n)) { (void)i; }
    while_([&] { return n > 0; }, [&] {});
});

const auto native_break = kernel("native_break", params("y", "n"), [](Out<float> y, u32 n) {
    for (auto i : range(n)) {
        y[i] = 1;
        break;
    }
    y[0] = 2;
});

const auto native_return = kernel("native_return", params("y", "n"), [](Out<float> y, u32 n) {
    for (auto i : range(n))
        for (auto k : range(i)) {
            y[k] = 1;
            return;
        }
});

const auto behind_jumps = kernel("behind_jumps", params("y", "n"), [](Out<float> y, u32 n) {
    for (auto i : range(n)) {
        break_();
        y[i] = 1;
    }
    for (auto i : range(n)) {
        if_(i > 3, [&] { continue_(); }).else_([&] { return_(); });
        y[i] = 2;
    }
    return_();
    y[0] = 3;
});

const auto jumps_outside = kernel("jumps_outside", params("y"), [](Out<float> y) {
    y[0] = 1;
    break_();
    continue_();
});

const auto constant_condition = kernel("constant_condition", params("y", "n"), [](Out<float> y, u32 n) {
    auto outside = n > 0;
    while_([&] { return outside; },
           [&] {
               y[0] = 1;
               n -= 1;
           });
});

const auto host_state = kernel("host_state", params("y", "n"), [](Out<float> y, u32 n) {
    int k = 0;
    if_(n > 3, [&] {
        y[0] = 1;
        y[k++] = 2;
    });
    for (auto i : range(n)) { y[i] = k++; }
});

const auto host_state_of_templates = kernel("host_state_of_templates", params("y", "n"), [](Out<float> y, u32 n) {
    for (int k = 0; k < 3; ++k) if_(n > 3, [&] { y[k] = k; });
});

const auto host_state_shorter = kernel("host_state_shorter", params("y", "n"), [](Out<float> y, u32 n) {
    bool first = true;
    if_(n > 3, [&] {
        y[0] = 1;
        if (first) if_(n > 4, [&] { y[1] = 2; }).else_([&] { y[2] = 3; });
        first = false;
    });
    int rounds = 0;
    while_([&] { return ++rounds < 2 ? n > 3 : n > 4; }, [&] { n -= 1; });
    y[3] = 4;
});

const auto host_variables = kernel("host_variables", params("y", "n"), [](Out<float> y, u32 n) {
    int index = 0, other = 0, third = 0, fourth = 0;
    std::vector<int> list;
    if_(n > 3, [&] { index = 5; y[0] = 1; });
    if_(n > 3, [&] { y[0] = 1; }).else_([&] { other = 1; y[0] = 2; });
    if_(n > 3, [&] { y[0] = 1; }).else_if([&] { third = 1; return n > 2; }, [&] { y[0] = 2; });
    while_([&] { return n > 3; }, [&] { fourth = 7; n -= 1; });
    for (auto k : range(n))
        if_(k > 3, [&] { if_(k > 4, [&] { list = {1, 2}; y[k] = 1; }); });
    y[index + other + third + fourth + int(list.size())] = 2;
});

const auto own_host_variables = kernel("own_host_variables", params("y", "n"), [](Out<float> y, u32 n) {
    int depth = 0;
    if_(n > 3, [&] {
        int k = 0;
        for (; k < 4; ++k) y[k] = k;
        ++depth;
        if_(n > 4, [&] { y[k + depth] = 1; });
        --depth;
        f32 sum = 0;
        Regs<f32, 4> sums(0);
        sum += sums[1];
        y[k] = sum;
    });
});

const auto late_else = kernel("late_else", params("y", "n"), [](Out<float> y, u32 n) {
    auto branch = if_(n > 3, [&] { y[0] = 1; });
    y[1] = 2;
    std::move(branch).else_([&] { y[0] = 3; });
});

const auto steps = kernel("steps", params("y", "n"), [](InOut<float> y, u32 n) {
    for (auto i : range(0, n, 0)) y[i] = 1;
    f32 v = shuffle_down(y[0], 1, all_lanes, 12);
    y[1] = v;
});

// ---- threads

const auto divergent_barrier = kernel("divergent_barrier", params("x", "n"), [](InOut<float> x, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] {
        x[i] = 1;
        sync_block();
    });
    sync_block();
});

const auto barrier_behind_return = kernel("barrier_behind_return", params("x", "n"), [](InOut<float> x, u32 n) {
    u32 i = global_id().x;
    return_if(i >= n);
    x[i] = 1;
    sync_block();
});

const auto barrier_in_loops = kernel("barrier_in_loops", params("x", "n"), [](InOut<float> x, u32 n) {
    for (auto i : range(thread_id().x, n, block_dim().x)) {
        x[i] = 1;
        sync_block();
    }
    for (auto k : range(n)) {
        if_(x[thread_id().x] > 3, [&] { break_(); });
        x[k] = 2;
        sync_block();
    }
    for (auto k : range(n)) {
        if_(x[thread_id().x] > 4, [&] { continue_(); });
        x[k] = 3;
        sync_block();
    }
    u32 steps = 0;
    while_([&] { return steps < n; }, [&] {
        steps = steps + thread_id().x;
        sync_block();
    });
    u32 later = 0;
    for (auto k : range(n)) {
        if_(later > k, [&] { sync_block(); });
        later = thread_id().x;
    }
    u32 after_two = 0, after_one = 0;
    for (auto k : range(n)) {
        if_(after_two > k, [&] { sync_block(); });
        after_two = after_one;
        after_one = thread_id().x;
    }
    f32 v = x[0];
    while_([&] { auto other = shuffle_down(v, 1); return other > 3; }, [&] { v -= 1; });
});

/// What a thread has stored in an array of its own differs as its variables do.
const auto barrier_behind_own_array = kernel("barrier_behind_own_array", params("n"), [](u32 n) {
    Local<std::uint32_t, 4> own, alike, places, some;
    alike[0] = n;
    own[0] = n;
    places[thread_id().x % 4] = n;
    some[0] = n;
    if_(own[0] > 1, [&] { sync_block(); });
    if_(thread_id().x < n, [&] { some[0] = 5; });
    own[1] = thread_id().x;
    if_(own[0] > 2, [&] { sync_block(); });
    if_(alike[0] > 3, [&] { sync_block(); });
    if_(places[0] > 4, [&] { sync_block(); });
    if_(some[0] > 5, [&] { sync_block(); });
    for (auto k : range(n)) {
        if_(alike[0] > k, [&] { sync_block(); });
        alike[1] = thread_id().x;
    }
});

const auto divergent_warp = kernel("divergent_warp", params("x", "n"), [](InOut<float> x, u32 n) {
    u32 t = thread_id().x;
    f32 v = x[t];
    if_(t < n, [&] { v += shuffle_down(v, 1); });
    if_(t % 2 == 0, [&] { sync_warp(); });
    if_(t < 33, [&] { sync_warp(); });
    if_((t + 1) / 32 == 0, [&] { sync_warp(); });
    if_((t >> 4) == 0, [&] { sync_warp(); });
    if_(v > 0, [&] { x[0] = select(any(v > 1), 1.0f, 2.0f); });
    x[t] = v;
});

/// None of these diverges where it matters.
const auto uniform_enough = kernel("uniform_enough", params("x", "y", "n"), [](InOut<float> x, Out<float> y, u32 n) {
    Shared<float, 32> s;
    u32 t = thread_id().x;
    f32 v = x[t];
    if_(n > 3, [&] { sync_block(); });     // a parameter
    if_(x[0] > 3, [&] { sync_block(); });  // one address
    if_(block_id().x == 0, [&] { sync_block(); });
    if_(t < 64, [&] { v += shuffle_down(v, 1); });  // whole warps
    if_(warp_id() == 0, [&] { v += shuffle_down(v, 1); });
    if_(global_id().x / 32 < n, [&] { v += shuffle_down(v, 1); });
    if_(fma(block_id().x, block_dim().x, t) / 64 == n, [&] { v += shuffle_down(v, 1); });
    if_((t >> 5) == n, [&] { v += shuffle_down(v, 1); });
    if_((t & ~31u) >= n, [&] { v += shuffle_down(v, 1); });
    if_(t <= 63, [&] { v += shuffle_down(v, 1); });
    if_(shuffle_idx(v, 0) > 3, [&] { v += shuffle_down(v, 1); });
    if_(any(v > 3), [&] { v += shuffle_down(v, 1); });
    for (int k = 16; k > 0; k /= 2) v += shuffle_xor(v, k);
    if_(v > 3, [&] { sync_block(); });                          // a reduction's result
    for (auto i : range(lane_id(), 128, 32)) v += shuffle_down(x[i], 1);
    u32 lanes = ballot(t < n);
    if_(t < n, [&] { v += shuffle_down(v, 1, lanes); });  // with its lanes as the mask
    u32 reused = t;
    y[reused] = v;
    reused = n;
    if_(reused > 3, [&] { sync_block(); });  // a variable has the uniformity of its last value
    Local<std::uint32_t, 4> own;
    for (auto k : range(n)) own[k % 4] = n;
    if_(own[n % 4] > 3, [&] { sync_block(); });  // the same in each thread's array
    for (auto k : range(n)) {
        s[t % 32] = v;
        sync_block();
        y[k] = s[0];
        sync_block();
    }
});

const auto one_warp = kernel("one_warp", params("x"), [](InOut<float> x) {
    if_(warp_id() == 0, [&] { sync_block(); x[0] = 1; });
}).launch_bounds(32);

const auto two_warps = kernel("two_warps", params("x"), [](InOut<float> x) {
    if_(warp_id() == 0, [&] { sync_block(); x[0] = 1; });
}).launch_bounds(64);

// ---- names, contracts, texts

const auto name_of_cuda = device_fn("vprintf", params("$n"), [](u32 n) { return n + 1; });
const auto bad_names = kernel("bad names", params("x", "x", "3", "_"), [](InOut<float> x, u32 a, u32 b, u32 c) {
    x[a] = 0;
    x[b] = 1;
    x[name_of_cuda(c)] = 2;
});
const auto bad_contracts = kernel("bad_contracts", params("x", "n"), [](InOut<float> x, u32 n) {
                               x[n] = 0;
                           }).require(multiple_of<8>("x"), aligned<16>("n"), aligned<16>("z"), multiple_of<4>(2));

const auto bad_texts = kernel("bad_texts", params("n"), [](u32 n) {
    print("{} {}\n", n);
    print("{\n");
    print("{{}}\n");
    check(n > 0, "n is {}");
    print("{:5.2f} {:x}\n", n, cast<f32>(n));
    print("{:#x} {:<8.3f} {:+}\n", n, cast<f32>(n), cast<i32>(n));
    check(n > 0, "n is {}, not {}", n);
});

const auto several = kernel("several", params("y", "n"), [](Out<float> y, u32 n) {
    y[0] = 1e300;
    if_(n > 3, [&] {});
    break_();
});

const auto taken_else = kernel("taken_else", params("y", "n"), [](Out<float> y, u32 n) {
    auto branch = if_(n > 3, [&] { y[0] = 1; });
    std::move(branch).else_if([&] { return n > 2; }, [&] { y[0] = 2; });
    std::move(branch).else_([&] { y[0] = 3; });
    std::move(branch).else_if([&] { return n > 1; }, [&] { y[0] = 4; });
});

const auto view_dimension = kernel("view_dimension", params("A", "y"), [](In<float, 2> A, Out<std::uint32_t> y) {
    y[0] = A.extent(2);
    y[1] = A.extent(-1);
    y[2] = A.pitch(1);
});

const auto view_names = kernel("view_names", params("A", "A_pitch"), [](InOut<float, 2> A, u32 n) { A[n, n] = 1; });

const auto view_directions = kernel("view_directions", params("i", "A", "n", "T"), [](u32 i, Out<float, 2> A, u32 n, InOut<float, 3> T) {
    A[i, n] = 1;
    T[i, n, i] = 1;
}).require(multiple_of<4>("A_pitch"), aligned<16>("A_pitch"), multiple_of<2>(3), aligned<16>(3));

const auto constant_counts = kernel("constant_counts", params("y"), [](Out<float> y) {
    Constant<float, 4> few{1, 2};
    Constant<float, 2> many(std::vector<float>{1, 2, 3});
    y[0] = few[0] + many[0];
});

const auto constant_bytes = kernel("constant_bytes", params("y"), [](Out<float> y) {
    Constant<float, 10000> first(std::vector<float>(10000, 1.0f));
    Constant<float, 6384> second(std::vector<float>(6384, 2.0f));
    Constant<std::uint8_t, 1> third{1};
    y[0] = first[0] + second[0];
});

const auto shared_bytes = kernel("shared_bytes", params("y"), [](Out<float> y) {
    Shared<float, 12000> first;
    Shared<float, 289> second;
    first[0] = 1;
    second[0] = 2;
    y[0] = first[0] + second[0];
});

struct Params {
    BOOST_HANA_DEFINE_STRUCT(Params, (float, scale));
    float other = 0;
};
const auto no_field = kernel("no_field", params("p", "y"), [](Struct<Params> p, Out<float> y) {
    y[0] = p[&Params::scale];
    y[1] = p[&Params::other];
});

struct Point {
    BOOST_HANA_DEFINE_STRUCT(Point, (float, x), (float, y));
    float hidden = 0;
};
const auto no_field_of_variable = kernel("no_field_of_variable", params("p", "y"), [](In<Point> p, Out<float> y) {
    Var<Point> mine = p[0];
    y[0] = mine[&Point::hidden];
});

const auto unassigned_struct = kernel("unassigned_struct", params("p", "n"), [](InOut<Point> p, u32 n) {
    Var<Point> mine;
    mine[&Point::x] = 1;
    if_(n > 3, [&] { mine[&Point::y] = 1; });
    p[0] = mine;
});

const auto endless = kernel("endless", params("y"), [](InOut<float> y) {
    for (;;)
        y[0] += 1;
});

// ---- mistakes in functions that kernels call

f32 unassigned_in_helper(const f32& a) {
    f32 s;
    return s + a;
}
void stores_too_much(Out<float> y, const u32& n) {
    y[n] = 1e300;
}
const auto mistakes_in_helpers = kernel("mistakes_in_helpers", params("y"), [](Out<float> y) {
    f32 v = 1;
    y[0] = unassigned_in_helper(v);
    y[1] = unassigned_in_helper(v + 1);
});
const auto numbers_in_helpers = kernel("numbers_in_helpers", params("y", "n"), [](Out<float> y, u32 n) {
    u32 k = n + 1;
    stores_too_much(y, k);
    y[1] = 2;
    stores_too_much(y, k + 1);
});
const auto in_the_library = kernel("in_the_library", params("y"), [](Out<float> y) {
    Regs<i8, 4> r;
    std::fill(r.begin(), r.end(), 300);
    y[0] = cast<f32>(r[0]);
});

// ---- functions with return_value()

const auto no_function = kernel("no_function", params("y", "n"), [](Out<float> y, u32 n) {
    if_(n > 3, [&] { return_value(1); });
    y[0] = 1;
});

const auto other_results = kernel("other_results", params("y", "n"), [](Out<float> y, u32 n) {
    y[0] = inline_fn([&] {
        if_(n > 3, [&] { return_value(n); });
        if_(n > 2, [&] { return_value(); });
        if_(n > 1, [&] { return_value(true); });
        if_(n > 0, [&] { return_value(1e300); });
        return 1.0f;
    })();
    inline_fn([&] {
        if_(n > 3, [&] { return_value(2); });
        y[1] = 1;
    })();
});

const auto behind_return_value = kernel("behind_return_value", params("y", "n"), [](Out<float> y, u32 n) {
    y[0] = inline_fn([&] {
        if_(n > 3, [&] { return_value(1); y[1] = 2; });
        return cast<f32>(n);
    })();
    y[1] = inline_fn([&] {
        if_(n > 3, [&] { return_value(1); }).else_([&] { return_value(2); });
        return cast<f32>(n * 2);  // C++ requires it
    })();
    y[2] = inline_fn([&] {
        if_(n > 3, [&] { return_value(1); }).else_([&] { return_value(2); });
        y[3] = 2;
        return cast<f32>(n * 2);
    })();
});

const auto unassigned_behind_function = kernel("unassigned_behind_function", params("y", "n"), [](Out<float> y, u32 n) {
    f32 s, t;
    inline_fn([&] {
        if_(n > 3, [&] { t = 1; return_value(); });
        s = t = 1;
    })();
    y[0] = t;
    y[1] = s;
});

const auto barrier_in_function = kernel("barrier_in_function", params("y", "n"), [](Out<float> y, u32 n) {
    inline_fn([&] {
        if_(thread_id().x > n, [&] { return_value(); });
        sync_block();
        for (auto i : range(n)) {
            if_(thread_id().x > i, [&] { return_value(); });
        }
    })();
    sync_block();
    y[0] = 1;
});

const auto loop_around_function = kernel("loop_around_function", params("y", "n"), [](Out<float> y, u32 n) {
    for (auto i : range(n)) {
        inline_fn([&] {
            if_(n > i, [&] { break_(); });
            y[i] = 1;
        })();
    }
});

const auto divergent_row = kernel("divergent_row", params("A", "y"), [](In<float, 2> A, Out<float> y) {
    auto row = A[thread_id().x], same = A[block_id().x];
    if_(same[0] > 0, [&] { sync_block(); });
    if_(row[0] > 0, [&] { sync_block(); });
    y[0] = 1;
});

const auto kept_slice = kernel("kept_slice", params("x", "y", "n"), [](In<float, 2> x, InOut<float> y, u32 n) {
    std::optional<In<float>> row;
    if_(n > 1, [&] {
        row.emplace(x[n]);
        y[0] = (*row)[1];
    });
    y[1] = (*row)[2];
});

const auto bad_bounds = kernel("bad_bounds", params("y"), [](Out<float> y) { y[0] = 1; }).launch_bounds(1025);
const auto no_bounds = kernel("no_bounds", params("y"), [](Out<float> y) { y[0] = 1; }).launch_bounds(0, 2);

// clang-format on

#define ENTRY(kernel) \
    { #kernel, kernel }
const KernelRegistration errors_kernels[] = {
    ENTRY(unassigned),
    ENTRY(unassigned_in_loop),
    ENTRY(unassigned_on_one_way),
    ENTRY(assigned_on_all_ways),
    ENTRY(numbers),
    ENTRY(kept_value),
    ENTRY(moved_from),
    ENTRY(leaves_region),
    ENTRY(register_index),
    ENTRY(two_effects),
    ENTRY(atomic_and_load),
    ENTRY(select_load),
    ENTRY(shared_select_load),
    ENTRY(empty_regions),
    ENTRY(native_break),
    ENTRY(native_return),
    ENTRY(behind_jumps),
    ENTRY(jumps_outside),
    ENTRY(constant_condition),
    ENTRY(host_state),
    ENTRY(host_state_of_templates),
    ENTRY(host_state_shorter),
    ENTRY(host_variables),
    ENTRY(own_host_variables),
    ENTRY(late_else),
    ENTRY(steps),
    ENTRY(barrier_behind_own_array),
    ENTRY(divergent_barrier),
    ENTRY(barrier_behind_return),
    ENTRY(barrier_in_loops),
    ENTRY(divergent_warp),
    ENTRY(uniform_enough),
    ENTRY(one_warp),
    ENTRY(two_warps),
    ENTRY(bad_names),
    ENTRY(bad_contracts),
    ENTRY(bad_texts),
    ENTRY(several),
    ENTRY(taken_else),
    ENTRY(view_dimension),
    ENTRY(view_names),
    ENTRY(view_directions),
    ENTRY(kept_slice),
    ENTRY(no_field),
    ENTRY(no_field_of_variable),
    ENTRY(unassigned_struct),
    ENTRY(endless),
    ENTRY(mistakes_in_helpers),
    ENTRY(numbers_in_helpers),
    ENTRY(in_the_library),
    ENTRY(no_function),
    ENTRY(other_results),
    ENTRY(behind_return_value),
    ENTRY(unassigned_behind_function),
    ENTRY(barrier_in_function),
    ENTRY(loop_around_function),
    ENTRY(divergent_row),
    ENTRY(constant_counts),
    ENTRY(constant_bytes),
    ENTRY(shared_bytes),
    ENTRY(bad_bounds),
    ENTRY(no_bounds),
};
#undef ENTRY

}  // namespace
}  // namespace ikat::tests
