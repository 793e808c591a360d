// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each, and some that look wrong but are not, for tests/golden/dsl_errors:
// barriers and operations of a warp.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// Locations are shown as lines, so each mistake has its own line.
// clang-format off

const auto divergent_barrier = kernel("divergent_barrier", params("x", "n"), [](InOut<float> x, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] {
        x[i] = 1;
        sync_block();
    });
    sync_block();
});

const auto barrier_after_return = kernel("barrier_after_return", params("x", "n"), [](InOut<float> x, u32 n) {
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

/// What a thread loads from an array of its own differs if all that it stores there does.
const auto barrier_after_own_array = kernel("barrier_after_own_array", params("n"), [](u32 n) {
    Local<std::uint32_t, 4> own, twice;
    own[0] = thread_id().x;
    own[n % 4] = thread_id().x * 2;
    if_(own[0] > 2, [&] { sync_block(); });
    twice[1] = own[1];
    for (auto k : range(n)) twice[k % 4] = twice[1] + k;
    if_(twice[0] > 3, [&] { sync_block(); });
    Local<std::uint32_t, 4> never;
    if_(never[0] + thread_id().x > 4, [&] { sync_block(); });
    Local<std::uint32_t, 4> alike;
    alike[0] = n;
    if_(alike[thread_id().x % 4] > 5, [&] { sync_block(); });
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
    Local<std::uint32_t, 2> elements;
    elements[0] = t;
    elements[1] = n;
    if_(elements[1] > 3, [&] { sync_block(); });  // this element
    Local<std::uint32_t, 1> overwritten;
    for (auto k : range(n)) {
        overwritten[0] = k;
        if_(overwritten[0] > 3, [&] { sync_block(); });
        overwritten[0] = t;
        y[overwritten[0]] = v;
    }
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

const auto divergent_row = kernel("divergent_row", params("A", "y"), [](In<float, 2> A, Out<float> y) {
    auto row = A[thread_id().x], same = A[block_id().x];
    if_(same[0] > 0, [&] { sync_block(); });
    if_(row[0] > 0, [&] { sync_block(); });
    y[0] = 1;
});

#define ENTRY(kernel) {#kernel, kernel}
const KernelRegistration errors_in_threads[] = {
    ENTRY(divergent_barrier), ENTRY(barrier_after_return), ENTRY(barrier_in_loops), ENTRY(barrier_after_own_array),
    ENTRY(divergent_warp), ENTRY(uniform_enough), ENTRY(one_warp), ENTRY(two_warps), ENTRY(barrier_in_function),
    ENTRY(divergent_row),
};
#undef ENTRY

// clang-format on

}  // namespace
}  // namespace ikat::tests
