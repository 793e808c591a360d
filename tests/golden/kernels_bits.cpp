// SPDX-License-Identifier: Apache-2.0
// Kernels for tests/golden/ast: bits, bytes, packed integers, tests of floats.
#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto bits = kernel("bits", params("y", "a", "b", "i", "w"), [](Out<std::uint32_t> y, u32 a, u32 b, i32 i, u64 w) {
    y[0] = popcount(a) + leading_zeros(w) + highest_bit(i) + highest_bit_shift(b);
    y[1] = bit_reverse(a) + bit_extract(b, 4, a) + bit_insert(a, b, b, 8);
    y[2] = byte_permute(a, b, 0x5140) + byte_permute(a, 7, b, Permute::Rc16);
    y[3] = lop3<0xea>(a, b, 3) + funnel_left(a, b, 3) + funnel_right(0, a, b, Funnel::Clamp);
    y[4] = cast<u32>(mad_wide(a, b, mul_wide(a, 3) + w));
});

const auto packed =
    kernel("packed", params("y", "z", "a", "b"), [](Out<std::int32_t> y, Out<std::uint32_t> z, i32 a, u32 b) {
        y[0] = dp4a(a, b, dp4a(b, a, dp4a(a, a, 1)));
        z[0] = dp4a(b, b, 1) + dp2a_low(b, b, 0);
        y[1] = dp2a_high(a, b, 0) + dp2a_low(b, a, a);
        y[2] = sad(a, 5, a) + add_sat(a, 1) - sub_sat(3, a);
        y[3] = mul24(a, a) + mul24_hi(a, 7) + cast<i32>(saturate_cast<i8>(a));
    });

const auto float_bits = kernel("float_bits", params("y", "a", "d"), [](Out<float> y, f32 a, f64 d) {
    y[0] = copysign(a, -1) + saturate(a) + approx::sin(a) * approx::cos(a) - approx::tanh(a);
    pred odd = is_nan(a) | is_infinite(d) | is_subnormal(a);
    y[1] = select(odd & is_finite(a) & is_normal(d), a, 0);
});

const KernelRegistration bits_kernels[] = {{"bits", bits}, {"packed", packed}, {"float_bits", float_bits}};

}  // namespace
}  // namespace ikat::tests
