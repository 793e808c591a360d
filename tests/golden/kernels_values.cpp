// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/golden/ast: variables, expressions, numbers, conversions.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto saxpy = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
    u32 i = global_id().x;
    if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
});

const auto variables = kernel("variables", params("y"), [](Out<std::uint32_t> y) {
    u32 a = 1, b;
    b = a;      // copy assignment is recorded
    u32 c = b;  // a separate variable
    c += 2;
    ++c;
    y[0] = c++;
    Var d = a * c;  // the type is deduced
    y[1] = d - b;
});

u32 clamped(const u32& v, const u32& limit) {
    u32 out = v;
    if_(out > limit, [&] { out = limit; });
    return out;
}
const auto functions = kernel("functions", params("y", "n"), [](Out<std::uint32_t> y, u32 n) {
    const u32 limit = 7;
    u32 a = clamped(n, limit);
    y[0] = a;
});

const auto snapshots = kernel("snapshots", params("y", "a"), [](InOut<float> y, f32 a) {
    auto before = a + y[0];  // a and y[0] as they are here
    a = 3;
    y[0] = a;
    y[1] = before;
});

const auto squarings = kernel("squarings", params("y"), [](InOut<float> y) {
    auto a = y[0];
    auto a2 = a * a;
    auto a4 = a2 * a2;
    auto a8 = a4 * a4;
    y[1] = a8 * a8;
});

const auto sharing = kernel("sharing", params("y", "n"), [](InOut<std::uint32_t> y, u32 n) {
    auto shared = n * n;
    auto inner = n + 3;
    y[0] = shared;                               // committed here: it dominates what follows
    if_(n > 4, [&] { y[1] = shared + inner; });  // inner is committed in the region ...
    y[2] = inner;                                // ... and once more here
    y[3] = value(n - 1) + 1;
});

const auto operand_order =
    kernel("operand_order", params("x", "y", "z", "n"), [](In<float> x, In<float> y, InOut<float> z, u32 n) {
        z[n] = x[n] * y[n + 1] + (x[n + 2] - y[n + 3]) * cast<f32>(n);
        atomic_add(z.slice(n)[n * 4], x[n + 5]);
        atomic_store(z.slice(n)[n * 6], x[n + 7]);
    });

template <Value A, Value B>
auto ratio(A a, B b) {
    return a / b;
}
const auto generic_helper = kernel("generic_helper", params("x", "y"), [](In<float> x, Out<float> y) {
    y[0] = ratio(x[0], x[1]);
    y[1] = ratio(x[2] + 1, 2.0f * x[3]);
});

const auto literals = kernel("literals", params("f", "h", "d", "i", "u", "w", "p"),
                             [](Out<float> f, Out<half> h, Out<double> d, Out<std::int32_t> i, Out<std::uint32_t> u,
                                Out<std::uint64_t> w, u32 p) {
                                 f[0] = 0.1;  // a floating-point number rounds to the device's type
                                 f[1] = 16777216;
                                 h[0] = half(0.5);
                                 h[1] = 2048;
                                 d[0] = 0.1f;
                                 i[0] = -1;
                                 u[0] = 4294967295;
                                 w[0] = 0x123456789abcdef0;
                                 u[1] = p * 3 + 1u - 'a';
                             });

const auto integers = kernel("integers", params("y", "a", "b"), [](Out<std::int32_t> y, i32 a, i32 b) {
    y[0] = (a + b) * (a - b) / (a % b);
    y[1] = (a & b) | (a ^ ~b);
    y[2] = (a << 3) >> cast<u32>(b);
    y[6] = cast<i32>(1u << lane_id()) - select(a > 0, 1, 2) + cast<i32>(1ll << cast<u32>(a));
    y[3] = min(a, b) + max(a, -b) + abs(a);
    y[4] = mul_hi(a, b) + fma(a, b, 7);
    y[5] = select(a == b, a, select((a < b) ^ (a != 0), b, 3));
});

const auto floats = kernel("floats", params("y", "a", "b"), [](Out<float> y, f32 a, f32 b) {
    y[0] = fma(a, b, 1) / (a - b);
    y[1] = sqrt(a) + rcp(b) + abs(-a);
    y[2] = approx::sqrt(a) + approx::rcp(b) + approx::rsqrt(a) + approx::div(a, b);
    y[3] = approx::exp2(a) * approx::log2(b);
    y[4] = min(a, 0.0f) + max(b, 1);
    pred close = ((a <= b) & !(a >= 4)) | (a > 2);
    y[5] = select(close, a, b);
});

const auto conversions =
    kernel("conversions", params("y", "h", "x", "n"), [](Out<std::int32_t> y, Out<half> h, f32 x, u64 n) {
        y[0] = cast<i32>(x);                     // toward zero
        y[1] = cast<i32>(x, Rounding::Nearest);  // to nearest even
        y[2] = cast<i32>(cast<u8>(x));
        y[3] = cast<i32>(x > 0);
        y[4] = bit_cast<i32>(x);
        y[5] = cast<i32>(cast<f64>(n), Rounding::Down);
        y[6] = cast<i32>(cast<i32>(x));  // nothing to do
        y[7] = cast<i32>(cast<pred>(n));
        h[0] = cast<f16>(x, Rounding::Zero) * 2;
    });

const KernelRegistration values_kernels[] = {
    {"saxpy", saxpy},
    {"variables", variables},
    {"functions", functions},
    {"snapshots", snapshots},
    {"squarings", squarings},
    {"sharing", sharing},
    {"operand_order", operand_order},
    {"generic_helper", generic_helper},
    {"literals", literals},
    {"integers", integers},
    {"floats", floats},
    {"conversions", conversions},
};

}  // namespace
}  // namespace ikat::tests
