// SPDX-License-Identifier: Apache-2.0
// The examples of docs/language.md and the pages of docs/language, compiled and captured; those of threads that work
// together are in threads_examples.cpp. tests/unit/docs compares the pages with these files.
#include <ikat/ikat.hpp>
#include <ikat/layout.hpp>

#include <vector>

#include "tests/catch.hpp"

// clang-format off
namespace ikat {
namespace {

const auto saxpy = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
});

const auto variables = kernel("variables", [](InOut<float> x) {
    f32 sum = 0;
    u32 i = thread_id().x, k;  // k is declared and not assigned yet
    k = i + 1;
    Var product = sum * x[k];  // an f32
    sum += product;
    auto square = value(sum * sum);
    x[0] = square;
});

const auto numbers = kernel("numbers", [](Out<float> y, Out<std::uint32_t> u) {
    f32 a = 1, b = 0.1;          // the double is rounded to f32
    u32 n = cast<u32>(a * 255);  // toward zero, as in C++
    f32 c = cast<f32>(n) / 3;
    i32 nearest = cast<i32>(b, Rounding::Nearest);
    f16 low = cast<f16>(c, Rounding::Down);
    u8 byte = cast<u8>(n);       // wraps to 8 bits
    u32 bits = bit_cast<u32>(a);
    y[0] = cast<f32>(low) + cast<f32>(nearest);
    u[0] = cast<u32>(byte) + bits;
});

const auto bytes = kernel("bytes", [](InOut<std::uint8_t> bytes, u32 i) {
    u32 total = cast<u32>(bytes[i]) + cast<u32>(bytes[i + 1]);
    bytes[i] = cast<u8>(total / 2);
});

const auto small_floats = kernel("small_floats", [](f32 a, f32 b, f16 half_x, f16 half_y, u32 i, Out<e4m3> small,
                                                    Out<e4m3x2> small_pairs, Out<bfloat16> brains) {
    f16x2 both = pack(half_x, half_y);                 // half_x in lane 0
    both = fma(both, pack<f16x2>(a, b), 1);            // on both lanes; a and b are f32
    f32 sum = cast<f32>(both[0]) + cast<f32>(both[1]);
    small[i] = cast<e4m3>(sum);
    small_pairs[i] = cast<e4m3x2>(both);
    bf16 brain = cast<bf16>(sum) * 2;
    brains[i] = brain;
});

const auto snapshots = kernel("snapshots", [](f32 a, InOut<float> y) {
    auto before = y[0] + a;  // y[0] and a as they are here
    a = 3;
    y[0] = a;
    y[1] = before;  // the old ones
});

const auto bits = kernel("bits", [](Out<std::uint32_t> y, u32 q, u32 mask, i32 weights) {
    u32 nibbles = byte_permute(q, q >> 4, 0x5140) & 0x0f0f0f0f;
    i32 sum = dp4a(nibbles, weights, 0);  // u32 and i32: unsigned bytes times signed ones
    u32 scale = bit_extract(q, 12, 6);
    u32 chosen = lop3<(0xf0 & 0xcc) | (~0xf0 & 0xaa & 0xff)>(mask, nibbles, scale);
    auto low = add_carry(nibbles, mask);         // a sum of 64 bits in two registers
    auto high = add_carry(scale, 0, low.carry);
    chosen += high.value ^ low.value;
    y[0] = cast<u32>(sum) + chosen;
});

const auto horner = device_fn("horner", params("x", "y"), [](f32 x, f32 y) { return fma(x, fma(x, y, 2), 1); });
const auto twice = kernel("twice", [](InOut<float> x) { x[0] = horner(x[0], 3) + horner(x[1], x[2]); });

const DeviceFunction<std::uint32_t, u32> factorial = device_fn("factorial", params("n"), [](u32 n) -> u32 {
    u32 product = 1;
    if_(n > 1, [&] { product = n * factorial(n - 1); });
    return product;
});
const auto factorials = kernel("factorials", [](InOut<std::uint32_t> x) { x[0] = factorial(x[0]); });

const auto texts = kernel("texts", [](Out<std::uint32_t> y, u32 a, u32 b) {
    u32 d, low, high;
    inline_ptx("lop3.b32 {0}, {1}, {2}, {3}, 0xEA;", out(d), in(a), in(b), in(7u));
    inline_ptx("mul.lo.u32 {0}, {2}, {3};\nmul.hi.u32 {1}, {2}, {3};", out(low), out(high), in(a), in(d));
    inline_ptx("{\n.reg .pred p;\nsetp.gt.u32 p, {1}, 9;\n@p add.u32 {0}, {0}, 1;\n}", inout(d), in(low));
    inline_ptx("mov.u32 {0}, %envreg3;", out(d));       // for special registers that have no function
    y[0] = d + high;
});

const auto effects = kernel("effects", [](InOut<std::uint32_t> counters, Out<float> y) {
    auto old = atomic_add(counters[0], 1);
    y[old] = cast<f32>(old + atomic_add(counters[1], 1));
});

const auto swaps = kernel("swaps", [](InOut<float> s, u32 i, u32 j) {
    auto t = s[i];
    s[i] = s[j];
    s[j] = t;
});

const auto several_lanes = kernel("several_lanes", [](In<float> x, InOut<float> y, In<half> half_x, Out<half> half_y, f32 a,
                                                      u32 i, u32 n) {
    y.vec<4>(i) = a * x.vec<4>(i) + y.vec<4>(i);
    Regs<f32, 4> sums(0);
    for (auto k : range(n)) sums = fma(x[k], y.vec<4>(k), sums);
    y.vec<4>(i) = select(sums < 0, 0, sums).reversed();
    y.vec<4>(n) += sqrt(sums) / 2;
    half_y.vec<8>(i) = cast<f16>(max(cast<f32>(half_x.vec<8>(i)) * a, 0));
    Regs<Vec<float, 4>, 2> rows(0);
    rows[1] = x.vec<4>(i) * 2;
    Regs scaled = rows * a;  // deduced, as Var is
    y.vec<4>(1) = scaled[1];
});

const auto own_lanes = kernel("own_lanes", [](In<float> x, Out<float> y, f32 a, u32 i) {
    const auto clipped = [](const auto& v, const auto& limit) {
        f32 out = v;
        if_(v > limit, [&] { out = limit; });
        return out;
    };
    y.vec<4>(i) = each_lane(clipped, x.vec<4>(i), a);
});

const auto vectors = kernel("vectors", [](In<float> x, Out<float> y, In<half> half_x, Out<half> half_y, f32 a, u32 i, u32 n) {
    auto v = x.vec<4>(i);
    y.vec<4>(i) = v * 2;
    y.vec<4>(i) = {v[1], v[0], v[3], a};
    half_y.vec<8>(i) = half_x.vec<8>(i);  // 16 bytes
    f32 last = x.load_if(i < n, i, 0);
    auto two = x.load_if<2>(i < n, i, 0);
    y.store_if(i < n, i, last + two[1]);
});

const auto arrays = kernel("arrays", [](In<float> x, Out<float> y, u32 i, u32 n) {
    Shared<float, 16, 17> tile;
    auto window = dynamic_shared<float>(n);
    Local<std::uint32_t, 8> histogram;
    Regs<f32, 4> sums(0);  // all 0; without an argument, not assigned
    const auto t = thread_id();
    tile[t.y, t.x] = x[i];
    window[t.x] = x[i];
    histogram[n % 8] = 1;
    for (int k = 0; k < 4; ++k) sums[k] += x[i + k];
    sync_block();
    y[i] = tile[t.x, t.y] + window[0] + cast<f32>(histogram[0]) + sums[3];
});

const std::vector<float> host_curves(256);
const auto constants = kernel("constants", [](Out<float> y, u32 i, u32 n) {
    Constant<float, 4> levels{0, 0.25f, 0.5f, 1};
    Constant<float, 2, 128> curves(host_curves);  // a vector, array or span with as many elements
    y[i] = levels[n % 4] * curves[n % 2, i];
});

const auto slices = kernel("slices", [](In<float> x, Out<float> y, u32 r, u32 columns) {
    f32 sum = 0;
    auto row = x.slice(r * columns);
    for (auto j : range(columns)) sum += row[j];
    y[r] = sum;
});

const auto retyped = kernel("retyped", [](In<std::uint8_t> bytes, Out<std::uint32_t> y, u32 i) {
    auto words = bytes.as<std::uint32_t>();
    u32 four = words[i], twelve = words.vec<4>(i)[3];
    y[i] = four + twelve;
});

const auto row_sums = kernel("row_sums", params("A", "y"), [](In<float, 2> A, InOut<float> y) {
    u32 i = block_id().x;
    f32 sum = 0;
    auto row = A[i];
    for (auto j : range(thread_id().x, A.extent(1), block_dim().x)) sum += row[j];
    atomic_add(y[i], sum);
});

struct Params {
    BOOST_HANA_DEFINE_STRUCT(Params, (float, scale), (std::uint32_t, n));
};
const auto scale_by = kernel("scale_by", params("p", "x"), [](Struct<Params> p, InOut<float> x) {
    for (auto i : grid_stride(p[&Params::n])) x[i] *= p[&Params::scale];
});

struct Body {
    BOOST_HANA_DEFINE_STRUCT(Body, (float, x), (float, speed), (std::uint32_t, hits));
};
const auto advance = kernel("advance", params("bodies", "time", "n"), [](InOut<Body> bodies, f32 time, u32 n) {
    u32 i = global_id().x;
    return_if(i >= n);
    Var<Body> mine = bodies[i];                // three variables
    mine[&Body::x] += mine[&Body::speed] * time;
    if_(mine[&Body::x] > 1, [&] { mine = Body{0, 1, 0}; });
    bodies[i] = mine;                          // three stores
    bodies[i][&Body::hits] += 1;               // an element as any other
});

struct Inputs {
    BOOST_HANA_DEFINE_STRUCT(Inputs, (BufferSlice<const float>, x), (BufferSlice<float>, y), (std::uint32_t, n));
};
const auto doubled = kernel("doubled", params("p"), [](Struct<Inputs> p) {
    auto x = p[&Inputs::x];  // an In<float>
    auto y = p[&Inputs::y];  // an InOut<float>
    for (auto i : grid_stride(p[&Inputs::n])) y[i] = x[i] * 2;
});

struct Complex {
    f32 re, im;
};
Complex operator*(const Complex& a, const Complex& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
const auto squares = kernel("squares", [](InOut<float> y) {
    Regs<Complex, 2> r(Complex{y[0], y[1]});
    r[1] = r[0] * r[1];
    y[0] = r[1].re;
});

const auto root = inline_fn([](f32 x) {
    if_(x < 0, [&] { return_value(0); });
    for (auto k : range(10)) {
        if_(x < cast<f32>(k * k), [&] { return_value(cast<f32>(k)); });
    }
    return sqrt(x);
});
const auto roots = kernel("roots", [](InOut<float> y) { y[0] = root(y[0]); });

const auto axpby = kernel("axpby", [](In<float> x, InOut<float> y, f32 a, f32 b) {
                       u32 i = global_id().x;
                       contract([&] { y[i] = a * x[i] + b * y[i]; });      // a product and an fma
                       auto error = contract([&] { return x[i] * a - b; });  // an fma
                       exact([&] { y[i] += error * b; });                  // two roundings, in any kernel
                   }).contract();                                          // everything else in it

const auto control = kernel("control", [](In<float> x, Out<float> y, u32 n) {
    u32 i = global_id().x;
    f32 sum = 0;
    if_(i < n, [&] { y[i] = 1; }).else_if([&] { return i < 2 * n; }, [&] { y[i] = 2; }).else_([&] { y[i] = 3; });
    for (auto k : range(n)) sum += x[k];                     // 0 … n-1
    for (auto k : range(4, n, 2).unroll(4)) sum += x[k];     // 4, 6 …; unrolled by four
    for (auto k : grid_stride(n)) y[k] = x[k];               // one thread of the grid per element, along x
    while_([&] { return sum > 1; }, [&] { sum = sum / 2; });
    for (auto k : range(n)) {
        if_(x[k] < 0, [&] { continue_(); });
        if_(x[k] > 9, [&] { break_(); });
        sum += x[k];
    }
    return_if(i >= n);
    for (int k = 0; k < 4; ++k) sum += x[i + k];             // a host loop: four loads
    y[i] = sum;
});

const auto threads = kernel("threads", [](In<float> x, InOut<std::uint32_t> counters, Out<float> y, u32 n) {
    u32 i = global_id().x;
    f32 v = x[i];
    for (int distance = 16; distance > 0; distance /= 2) v += shuffle_down(v, distance);
    u32 lanes = ballot(i < n);
    if_(i < n, [&] { v += shuffle_idx(v, 0, lanes); });
    atomic_add(counters[0], 1);
    atomic_add(counters[1], 1, Order::AcquireRelease, Scope::Sys);
    atomic_store(counters[2], n, Order::Release);
    while_([&] { return atomic_load(counters[3], Order::Acquire) == 0; }, [&] { volatile_store(counters[4], lanes); });
    y[i] = v;
    print("x[{}] = {}, {{{}}}\n", i, x[i], n);  // {} is the next value, {{ and }} are braces
    print("{:5.2f} {:#x}\n", x[i], n);
    check(n < 1000, "n is at most 999");
    check(i < n, "{} is not below {}", i, n);
});

template <Value<f32> V>
auto relu(const V& v) {
    return max(v, 0);
}
f32 lerp(const f32& a, const f32& b, const f32& t) { return fma(t, b - a, a); }

const auto functions = kernel("functions", [](In<float> x, Out<float> y) {
    y[0] = lerp(x[0], x[1], 0.5) + relu(x[2] * 2);
});

auto with_bias(bool has_bias) {
    return kernel("with_bias", params("x", only_if(has_bias, "bias"), "y"), [](In<float> x, Optional<In<float>> bias, Out<float> y) {
        u32 i = global_id().x;
        f32 v = x[i];
        if (bias) v += (*bias)[i];
        y[i] = v;
    });
}
const auto use_map = kernel("use_map", params("map", "y"), [](Bytes<128, 64> map, Out<float> y) {
    y[0] = map.read<float>(12) * cast<f32>(map.read<std::uint8_t>(127));
    u32 word;
    inline_ptx("ld.u32 {0}, [{1}+16];", out(word), in(map.address()));
    y[1] = cast<f32>(word);
});

const auto scale = kernel("scale", params("x", "n"), [](InOut<float> x, u32 n) {
                       for (auto i : grid_stride(n / 4)) x.vec<4>(i) *= 2;
                   })
                       .require(multiple_of<4>("n"), aligned<16>("x"))
                       .launch_bounds(256, 2)
                       .max_registers(64);

TEST_CASE("the layouts of docs/language are right") {
    const Layout tile({8, 8}, {8, 1});                         // (8,8):(8,1), by rows
    const auto swizzled = compose(Swizzle(3, 0, 3), tile);     // Sw<3,0,3> o (8,8):(8,1)
    const Layout left = compose(tile, Layout({8, 4}, {1, 8})); // columns 0 to 3: (8,4):(8,1)
    const bool in_other_banks = swizzled(1, 0) % 8 != swizzled(0, 0) % 8;
    const std::string table = swizzled.drawn();                // a table of the offsets
    CHECK(tile.text() == "(8,8):(8,1)");
    CHECK(swizzled.text() == "Sw<3,0,3> o (8,8):(8,1)");
    CHECK(left.text() == "(8,4):(8,1)");
    CHECK(in_other_banks);
    CHECK(table.substr(0, 48) == " 0  1  2  3  4  5  6  7\n 9  8 11 10 13 12 15 14\n");
}

TEST_CASE("a kernel of docs/language has elements at the places of a layout") {
    const SwizzledLayout rows = compose(Swizzle(3, 2, 3), Layout({8, 32}, {32, 1}));
    const auto turned = kernel("turned", params("x", "y"), [rows](In<float> x, Out<float> y) {
        Shared<float, 256> s;
        u32 t = thread_id().x;
        s[rows(t / 32, t % 32)] = x[t];
        sync_block();
        y[t] = s[rows(t % 8, t / 8)];
    });
    std::vector<float> numbers, right;
    for (int i = 0; i < 256; ++i) numbers.push_back(float(i));
    for (int i = 0; i < 256; ++i) right.push_back(float(i % 8 * 32 + i / 8));
    const auto device = Device::open({.device = "emulator", .check = "races"});
    const auto x = device.upload(numbers, "x");
    auto y = device.buffer<float>(256, "y");
    device.launch(turned, Grid{{1}, {256}}, x, y);
    CHECK(y.download() == right);
}

TEST_CASE("the layout algebra of docs/language is right") {
    const Layout pairs(4, 2);                                  // (4):(2): 0, 2, 4, 6
    const Layout between = complement(pairs, 24);              // (2,3):(1,8): 0 or 1, and 0, 8 or 16, further
    const Layout tiled = logical_divide(Layout(24), pairs);    // (4,(2,3)):(2,(1,8)): six tiles
    const Layout again = logical_product(pairs, Layout(6));    // the same
    const Layout second = parse_layout("(4,1):(2,1)").layout;  // pairs as text, with a mode more
    CHECK(pairs.text() == "(4):(2)");
    CHECK(between.text() == "(2,3):(1,8)");
    CHECK(tiled.text() == "(4,(2,3)):(2,(1,8))");
    CHECK(again == tiled);
    CHECK(second.coalesced() == pairs);
}

TEST_CASE("the examples of docs/language are right") {
    CHECK_NOTHROW(saxpy.check());
    CHECK_NOTHROW(bytes.check());
    CHECK_NOTHROW(small_floats.check());
    CHECK_NOTHROW(variables.check());
    CHECK_NOTHROW(numbers.check());
    CHECK_NOTHROW(snapshots.check());
    CHECK_NOTHROW(effects.check());
    CHECK_NOTHROW(swaps.check());
    CHECK_NOTHROW(vectors.check());
    CHECK_NOTHROW(several_lanes.check());
    CHECK_NOTHROW(own_lanes.check());
    CHECK_NOTHROW(arrays.check());
    CHECK_NOTHROW(constants.check());
    CHECK_NOTHROW(slices.check());
    CHECK_NOTHROW(retyped.check());
    CHECK_NOTHROW(row_sums.check());
    CHECK_NOTHROW(scale_by.check());
    CHECK_NOTHROW(advance.check());
    CHECK_NOTHROW(doubled.check());
    CHECK_NOTHROW(squares.check());
    CHECK_NOTHROW(roots.check());
    CHECK_NOTHROW(axpby.check());
    CHECK_NOTHROW(control.check());
    CHECK_NOTHROW(factorials.check());
    CHECK_NOTHROW(texts.check());
    CHECK_NOTHROW(threads.check());
    CHECK_NOTHROW(functions.check());
    CHECK_NOTHROW(scale.check());
    CHECK_NOTHROW(use_map.check());
    CHECK_NOTHROW(with_bias(true).check());
    CHECK_NOTHROW(with_bias(false).check());
}

}  // namespace
}  // namespace ikat
