// SPDX-License-Identifier: Apache-2.0
// Expressions of several lanes: each operation is the scalar one on each lane, bit for bit; reads happen where they are
// written; and the PTX is that of the lanes written out by hand.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>
#include <limits>
#include <string>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/pipeline/compile.hpp"
#include "tests/catch.hpp"
#include "tests/unit/dsl/nodes.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

constexpr std::uint32_t count = 64;

template <class T>
std::vector<T> numbers(int seed) {
    std::vector<T> out(count);
    std::uint64_t state = std::uint64_t(seed) * 0x9e3779b97f4a7c15u + 1;
    for (T& v : out) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t bits = state >> 20;
        if constexpr (std::is_integral_v<T>)
            v = T(bits);
        else if constexpr (is_pair<T>)
            v = {typename T::lane_type(float(int(bits % 64)) / 8 - 4),
                 typename T::lane_type(float(int(bits / 64 % 64)) / 8 - 4)};
        else
            v = T(float(int(bits % 4096)) / 128 - 16);
    }
    if constexpr (std::is_floating_point_v<T>) out[3] = -T(0), out[5] = std::numeric_limits<T>::infinity();
    return out;
}

template <class T>
bool equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// f applied to three vectors of N elements, and to three elements.
template <class T, class R, int N, class F>
void check_lanes(const char* name, const F& f) {
    const auto lanes = kernel("lanes", [f](In<T> a, In<T> b, In<T> c, Out<R> y) {
        u32 i = global_id().x;
        y.template vec<N>(i) = f(a.template vec<N>(i), b.template vec<N>(i), c.template vec<N>(i));
    });
    const auto registers = kernel("registers", [f](In<T> a, In<T> b, In<T> c, Out<R> y) {
        u32 i = global_id().x;
        const Regs<T, N> u = a.template vec<N>(i), v = b.template vec<N>(i), w = c.template vec<N>(i);
        Regs<R, N> result;
        result = f(u, v, w);
        y.template vec<N>(i) = result;
    });
    const auto elements = kernel("elements", [f](In<T> a, In<T> b, In<T> c, Out<R> y) {
        u32 i = global_id().x;
        y[i] = f(a[i], b[i], c[i]);
    });
    const Device device = emulator();
    Buffer<T> a = device.upload(numbers<T>(1)), b = device.upload(numbers<T>(2)), c = device.upload(numbers<T>(3));
    Buffer<R> y = device.buffer<R>(count), expected = device.buffer<R>(count);
    device.launch(elements, grid(count, 32), a, b, c, expected);
    INFO(name << " of " << sizeof(T) << " bytes, " << N << " lanes");
    device.launch(lanes, Grid{.blocks = {1}, .threads = {count / N}}, a, b, c, y);
    CHECK(equal_bits(y.download(), expected.download()));
    Buffer<R> again = device.buffer<R>(count);
    device.launch(registers, Grid{.blocks = {1}, .threads = {count / N}}, a, b, c, again);
    CHECK(equal_bits(again.download(), expected.download()));
}

// A function of a, b and c, which are vectors or numbers.
#define IKAT_CHECK(T, R, N, ...)                                                         \
    check_lanes<T, R, N>(#__VA_ARGS__, [](const auto& a, const auto& b, const auto& c) { \
        (void)a, (void)b, (void)c;                                                       \
        return __VA_ARGS__;                                                              \
    })

template <class T, int N>
void check_arithmetic() {
    IKAT_CHECK(T, T, N, a + b * c - a);
    IKAT_CHECK(T, T, N, fma(a, b, c));
    IKAT_CHECK(T, T, N, max(min(a, b), c));
    IKAT_CHECK(T, T, N, 3 - a * 2);
}
template <class T, int N>
void check_integers() {
    check_arithmetic<T, N>();
    IKAT_CHECK(T, T, N, (a & b) | (~c ^ a));
    IKAT_CHECK(T, T, N, (a << 3) + (b >> 2));
    IKAT_CHECK(T, T, N, a / (b | 1) + c % (b | 1));
    IKAT_CHECK(T, T, N, select(a < b, a, select(b == c, b, c)));
    IKAT_CHECK(T, T, N, select(((a <= b) & (b != c)) | ((a > c) ^ !(a >= 7)), c, 1));
}

TEST_CASE("lanes: arithmetic, choice and bits, of all widths") {
    check_arithmetic<float, 2>();
    check_arithmetic<float, 4>();
    check_arithmetic<double, 2>();
    check_arithmetic<half, 8>();
    check_arithmetic<half2, 4>();
    check_integers<std::uint8_t, 16>();
    check_integers<std::int8_t, 4>();
    check_integers<std::int16_t, 8>();
    check_integers<std::uint32_t, 4>();
    check_integers<std::int64_t, 2>();
}

TEST_CASE("lanes: functions of floats") {
    IKAT_CHECK(float, float, 4, sqrt(abs(a)) / rcp(b) - -c);
    IKAT_CHECK(float, float, 4, copysign(a, b) + saturate(c));
    IKAT_CHECK(float, float, 4,
               select(is_nan(a / b) | is_infinite(a) | !is_finite(b), c, select(is_normal(a), 1.0f, 2.0f)));
    IKAT_CHECK(float, float, 4, select(is_subnormal(a), b, c));
    IKAT_CHECK(float, float, 4, approx::sqrt(abs(a)) + approx::rcp(b) + approx::div(a, c) + approx::rsqrt(abs(c)));
    IKAT_CHECK(float, float, 4,
               approx::exp2(a) + approx::log2(abs(b)) + approx::sin(c) * approx::cos(a) + approx::tanh(b));
    IKAT_CHECK(half2, half2, 4,
               lanes_less(a, b) + lanes_less_equal(a, c) + lanes_equal(b, c) + lanes_not_equal(a, c) +
                   lanes_greater(b, c) + lanes_greater_equal(b, a));
    IKAT_CHECK(float, float, 4, stdlib::exp(a * 0.125f) + stdlib::pow(abs(b), c * 0.25f) + stdlib::sin(b));
    IKAT_CHECK(float, float, 4,
               approx::exp(a * 0.125f) + approx::pow(abs(b), 2) + approx::sigmoid(c) + approx::gelu_tanh(a));
}

TEST_CASE("lanes: conversions") {
    IKAT_CHECK(float, std::int32_t, 4, cast<i32>(a * 3, Rounding::Nearest) + cast<i32>(b));
    IKAT_CHECK(float, half, 4, cast<f16>(a, Rounding::Zero));
    IKAT_CHECK(float, std::uint32_t, 4, bit_cast<u32>(a) ^ bit_cast<u32>(b * 2));
    IKAT_CHECK(std::int32_t, std::int8_t, 4, saturate_cast<i8>(a >> 20));
    IKAT_CHECK(std::uint8_t, float, 4, cast<f32>(a) * 0.5f + cast<f32>(a < b));
    IKAT_CHECK(half, half2, 4, pack(a, b));
    IKAT_CHECK(float, half2, 4, pack<f16x2>(a, b * 2));
}

TEST_CASE("lanes: bits, bytes and packed integers") {
    IKAT_CHECK(std::uint32_t, std::uint32_t, 4,
               popcount(a) + leading_zeros(b) + ffs(c) + highest_bit(a) + highest_bit_shift(b));
    IKAT_CHECK(std::uint64_t, std::uint32_t, 2, popcount(a) + leading_zeros(b));
    IKAT_CHECK(std::uint32_t, std::uint32_t, 4, bit_reverse(a) ^ bit_extract(b, 3, 9) ^ bit_insert(a, c, 5, 7));
    IKAT_CHECK(std::uint32_t, std::uint32_t, 4, byte_permute(a, b, c, Permute::F4e) + byte_permute(a, b, 0x5140));
    IKAT_CHECK(std::uint32_t, std::uint32_t, 4,
               lop3<0xe8>(a, b, c) ^ funnel_left(a, b, 7) ^ funnel_right(a, b, c, Funnel::Clamp));
    IKAT_CHECK(std::int32_t, std::int32_t, 4, dp4a(a, b, c) + dp2a_low(a, b, 1) + dp2a_high(a, b, c));
    IKAT_CHECK(std::int32_t, std::int32_t, 4,
               add_sat(a, b) ^ sub_sat(b, c) ^ mul24(a, c) ^ mul24_hi(a, b) ^ mul_hi(a, b));
    IKAT_CHECK(std::uint32_t, std::uint32_t, 4, sad(a, b, c));
    IKAT_CHECK(std::uint32_t, std::uint32_t, 4, cast<u32>((mul_wide(a, b) ^ mad_wide(b, c, 5u)) >> 16));
}

/// The contents of y after the kernel; initially y holds the 16 numbers 0, 1, 2 ... and x 10, 11, 12 ...
template <class Body>
std::vector<float> run(const Body& body) {
    const auto k = kernel("k", params("x", "y"), body);
    const Device device = emulator();
    std::vector<float> x(16), y(16);
    for (int i = 0; i < 16; ++i) x[std::size_t(i)] = float(10 + i), y[std::size_t(i)] = float(i);
    Buffer<float> in = device.upload(x), out = device.upload(y);
    device.launch(k, grid(1, 1), in, out);
    return out.download();
}
std::vector<float> part(const std::vector<float>& all, int first, int n = 4) {
    return {all.begin() + first, all.begin() + first + n};
}
using Floats = std::vector<float>;

TEST_CASE("lanes: all are read before one is written") {
    const auto y = run([](In<float>, InOut<float> y) {
        y.vec<4>(0) = y.vec<4>(0).reversed();
        Regs<f32, 4> r = y.vec<4>(1);
        r = r.reversed() * 10 + r;
        y.vec<4>(1) = r;
        Regs<f32, 4> s = y.vec<4>(2);
        s -= s.reversed();
        y.vec<4>(2) = s;
        y.vec<4>(3) = (y.vec<4>(3) + 1).reversed().reversed();
    });
    CHECK(part(y, 0) == Floats{3, 2, 1, 0});
    CHECK(part(y, 4) == Floats{74, 65, 56, 47});
    CHECK(part(y, 8) == Floats{-3, -1, 1, 3});
    CHECK(part(y, 12) == Floats{13, 14, 15, 16});
}

TEST_CASE("lanes: reads happen where they are written") {
    const auto y = run([](In<float> x, InOut<float> y) {
        f32 a = 2;
        Regs<f32, 4> r = x.vec<4>(0);
        auto kept = a * y.vec<4>(0) + r;
        a = 100;
        r = 0;
        y.vec<4>(0) = -1;
        y.vec<4>(1) = kept;
        y.vec<4>(2) = kept.reversed() + kept[0];
        auto swapped = y.vec<4>(3);
        y.vec<4>(3) = x.vec<4>(3);
        y.vec<4>(0) = swapped;
    });
    CHECK(part(y, 0) == Floats{12, 13, 14, 15});
    CHECK(part(y, 4) == Floats{10, 13, 16, 19});
    CHECK(part(y, 8) == Floats{29, 26, 23, 20});
    CHECK(part(y, 12) == Floats{22, 23, 24, 25});
}

TEST_CASE("lanes: a tree holds the values of its operands, not references") {
    const auto y = run([](In<float> x, InOut<float> y) {
        const auto made = [&] {
            Regs<f32, 4> local = x.vec<4>(0);
            f32 factor = 2;
            int host = 3;
            return factor * local + host;  // all three end here
        };
        auto kept = made();
        auto again = made() * kept;
        y.vec<4>(0) = again - kept;
    });
    CHECK(part(y, 0) == Floats{23 * 22, 25 * 24, 27 * 26, 29 * 28});
}

TEST_CASE("lanes: compound assignments") {
    const auto y = run([](In<float> x, InOut<float> y) {
        y.vec<4>(0) += x.vec<4>(0) * 2;
        y.vec<4>(1) *= 3;
        Regs<f32, 4> r(1);
        r += x.vec<4>(0);
        r -= 1, r *= r, r /= 2;
        y.vec<4>(2) = r;
        Regs<u32, 4> bits(0xff);
        bits <<= 4, bits >>= 2, bits &= 0xf0, bits |= 3, bits ^= bits.reversed() << 1, bits %= 1000;
        y.vec<4>(3) = cast<f32>(bits);
    });
    CHECK(part(y, 0) == Floats{20, 23, 26, 29});
    CHECK(part(y, 4) == Floats{12, 15, 18, 21});
    CHECK(part(y, 8) == Floats{50, 60.5, 72, 84.5});
    const float bits = float((0xf3 ^ (0xf3 << 1)) % 1000);
    CHECK(part(y, 12) == Floats{bits, bits, bits, bits});
}

TEST_CASE("lanes: registers of vectors") {
    const auto y = run([](In<float> x, InOut<float> y) {
        Regs<Vec<float, 4>, 2> rows(0);
        for (int k = 0; k < 2; ++k) rows[k] = x.vec<4>(k);
        rows = rows * 2 + rows;
        rows[1][3] = 7;
        rows[0] += rows[1];
        auto kept = rows - 1;
        rows = 0;
        y.vec<4>(0) = kept[0];
        y.vec<4>(1) = kept[1].reversed();
        Regs copy = kept;
        Regs one = kept[0];
        copy[0] += one;
        y.vec<4>(2) = copy[0];
        y.vec<4>(3) = rows[1];
    });
    CHECK(part(y, 0) == Floats{71, 77, 83, 45});
    CHECK(part(y, 4) == Floats{6, 47, 44, 41});
    CHECK(part(y, 8) == Floats{142, 154, 166, 90});
    CHECK(part(y, 12) == Floats{0, 0, 0, 0});
}

TEST_CASE("lanes: masked accesses, reductions, functions that record statements") {
    const auto y = run([](In<float> x, InOut<float> y) {
        y.store_if(x[0] > 0, 0, x.vec<4>(0) * 2);
        y.store_if(x[0] < 0, 0, x.vec<4>(0) * 3);
        y.vec<4>(1) = x.load_if<4>(x[0] < 0, 0, x.vec<4>(1) + 1) + x.load_if<4>(x[0] > 0, 0, 0);
        reduce_add(y.vec<4>(2), x.vec<4>(0) - 10);
        const auto turned = [](const auto& v, const auto& limit) {
            f32 out = v;
            if_(v > limit, [&] { out = -v; });
            return out;
        };
        y.vec<4>(3) = each_lane(turned, y.vec<4>(3), 13);
    });
    CHECK(part(y, 0) == Floats{20, 22, 24, 26});
    CHECK(part(y, 4) == Floats{25, 27, 29, 31});
    CHECK(part(y, 8) == Floats{8, 10, 12, 14});
    CHECK(part(y, 12) == Floats{12, 13, -14, -15});
}

TEST_CASE("lanes: regions that are recorded twice, and trees that are used in several") {
    const auto y = run([](In<float> x, InOut<float> y) {
        auto t = x.vec<4>(0) * 2;
        Regs<f32, 4> sums(0);
        for (auto i : range(3u)) sums = sums + t * cast<f32>(i);
        if_(x[0] > 0, [&] { y.vec<4>(0) = t + sums; }).else_([&] { y.vec<4>(0) = t; });
        y.vec<4>(1) = t;
    });
    CHECK(part(y, 0) == Floats{80, 88, 96, 104});
    CHECK(part(y, 4) == Floats{20, 22, 24, 26});
}

// ---- what is recorded

/// The number of f32 nodes with this op.
std::size_t count_of(const ast::KernelTree& kernel, ir::Op op) {
    return std::size_t(std::ranges::count_if(test::nodes_in_order(kernel), [&](const ast::NodeInfo& node) {
        return node.kind == ast::Kind::Operation && node.op == op && node.type == ir::Type::F32;
    }));
}
std::size_t count_of(const ast::KernelTree& kernel, ast::Kind kind) {
    return std::size_t(std::ranges::count(test::nodes_in_order(kernel), kind, &ast::NodeInfo::kind));
}
std::size_t occurrences(const std::string& text, const std::string& word) {
    std::size_t out = 0;
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++out;
    return out;
}

TEST_CASE("lanes: a scalar operand is evaluated once") {
    const auto k = kernel("k", [](In<float> x, InOut<float> y) { y.vec<4>(0) = sqrt(x[0] + x[1]) * y.vec<4>(0); });
    CHECK(count_of(k.ast(), ir::Op::Sqrt) == 1);
    CHECK(count_of(k.ast(), ir::Op::Add) == 1);
    CHECK(count_of(k.ast(), ast::Kind::Load) == 3);
    CHECK(count_of(k.ast(), ir::Op::Mul) == 4);
}

TEST_CASE("lanes: trees do not double where they are used twice, nor do their types") {
    const auto k = kernel("k", [](InOut<float> y) {
        const auto square = [](const auto& v) { return v * v; };
        y.vec<4>(0) = square(square(square(square(square(square(square(square(square(y.vec<4>(0))))))))));
    });
    CHECK(count_of(k.ast(), ir::Op::Mul) <= 4 * 2 * 9);
    CHECK(occurrences(compile(k.ast(), {}).ptx, "mul.") == 4 * 9);
}

TEST_CASE("lanes: unused expressions are dropped") {
    const auto k = kernel("k", [](In<float> x, InOut<float> y) {
        auto unused = x.vec<4>(0) * 2;
        Regs<f32, 4> r;
        r[0] = 1;
        auto t = r * x.vec<4>(1);  // three of r are never assigned
        y[0] = t[0];
        (void)unused;
    });
    CHECK(count_of(k.ast(), ast::Kind::Load) == 1);
    CHECK(count_of(k.ast(), ir::Op::Mul) == 1);
}

TEST_CASE("lanes: contraction is decided where an operation is written") {
    const auto fused = kernel("k", [](In<float> x, InOut<float> y) {
        auto sum = contract([&] { return x.vec<4>(0) * x.vec<4>(1) + y.vec<4>(0); });
        y.vec<4>(0) = sum;
    });
    CHECK(occurrences(compile(fused.ast(), {}).ptx, "fma.rn.f32") == 4);
    const auto exactly = kernel("k", [](In<float> x, InOut<float> y) {
                             auto sum = exact([&] { return x.vec<4>(0) * x.vec<4>(1) + y.vec<4>(0); });
                             y.vec<4>(0) = sum;
                         }).contract();
    CHECK(occurrences(compile(exactly.ast(), {}).ptx, "fma.rn.f32") == 0);
}

// ---- the result

template <class A, class B>
void same_ptx(const A& lanes, const B& written_out) {
    for (const char* arch : {"sm_75", "sm_80", "sm_90"}) {
        INFO(arch);
        CHECK(compile(lanes.ast(), {.target = arch}).ptx == compile(written_out.ast(), {.target = arch}).ptx);
    }
}

TEST_CASE("lanes: the PTX is that of the lanes written out by hand") {
    same_ptx(
        kernel("k", [](f32 a, In<float> x, InOut<float> y, u32 i) { y.vec<4>(i) = a * x.vec<4>(i) + y.vec<4>(i); }),
        kernel("k", [](f32 a, In<float> x, InOut<float> y, u32 i) {
            auto v = x.vec<4>(i);
            auto w = y.vec<4>(i);
            y.vec<4>(i) = {a * v[0] + w[0], a * v[1] + w[1], a * v[2] + w[2], a * v[3] + w[3]};
        }));
    same_ptx(kernel("k",
                    [](In<float> x, In<float> w, Out<float> y, u32 n) {
                        Regs<f32, 4> sums(0);
                        for (auto i : range(n)) sums = fma(w[i], x.vec<4>(i), sums);
                        y.vec<4>(0) = select(sums < 0, 0, sums);
                    }),
             kernel("k", [](In<float> x, In<float> w, Out<float> y, u32 n) {
                 Regs<f32, 4> sums(0);
                 for (auto i : range(n)) {
                     auto p = w[i];
                     auto row = x.vec<4>(i);
                     for (int k = 0; k < 4; ++k) sums[k] = fma(p, row[k], sums[k]);
                 }
                 y.vec<4>(0) = {select(sums[0] < 0, 0, sums[0]), select(sums[1] < 0, 0, sums[1]),
                                select(sums[2] < 0, 0, sums[2]), select(sums[3] < 0, 0, sums[3])};
             }));
    same_ptx(kernel("k", [](In<half> x, InOut<half> y,
                            u32 i) { y.vec<8>(i) = cast<f16>(max(cast<f32>(x.vec<8>(i)) * 0.5f, 0)); }),
             kernel("k", [](In<half> x, InOut<half> y, u32 i) {
                 auto v = x.vec<8>(i);
                 const auto each = [&](int k) { return cast<f16>(max(cast<f32>(v[k]) * 0.5f, 0)); };
                 y.vec<8>(i) = {each(0), each(1), each(2), each(3), each(4), each(5), each(6), each(7)};
             }));
}

}  // namespace
}  // namespace ikat::tests
