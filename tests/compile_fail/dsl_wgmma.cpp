// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Products by a warpgroup: shapes, types, fragments and matrices in shared memory.
// expect: Wgmma: of half and bfloat16 there is 64, n, 16, with n a multiple of 8 up to 256, and accumulators of float, of half also half
// expect: Wgmma: of tf32 there is 64, n, 8, with n a multiple of 8 up to 256, and accumulators of float
// expect: Wgmma: of std::int8_t and std::uint8_t there is 64, n, 32, with n 8, 24 or a multiple of 16 up to 256, and accumulators of std::int32_t
// expect: Wgmma: matrices are of half, bfloat16, tf32, e4m3, e5m2, std::int8_t, std::uint8_t or b1
// expect: wgmma(accumulators, a, b): accumulators are a W::C of a Wgmma, b a k_major<>(s[i]) or mn_major<>(s[i]), and a one of these, or a W::A
// expect: wgmma(accumulators, a, b): accumulators are a W::C
// expect: wgmma(accumulators, a, b): the fragments are of different products
// expect: wgmma(accumulators, a, b): only matrices of 16-bit elements can be mn_major
// expect: wgmma(accumulators, a, b): matrices of 16-bit elements and of floats have signs, and accumulators of integers saturate
// expect: wgmma_wait<N>: N is how many groups may be unfinished, 0 to 7
// expect: matrices are swizzled within 32, 64 or 128 bytes, or with 0 not at all
// expect: k_major<swizzle>(s[i]), mn_major<swizzle>(s[i]): a place is an element of a Shared array
// errors: 13
#include <ikat/mma.hpp>
using namespace ikat;

using W = Wgmma<64, 8, 16, bfloat16, float>;
using V = Wgmma<64, 16, 16, bfloat16, float>;
using I = Wgmma<64, 8, 32, std::int8_t, std::int32_t>;

Wgmma<64, 8, 8, half, float> wrong_depth;
Wgmma<64, 12, 8, tf32, float> wrong_columns;
Wgmma<64, 40, 32, std::int8_t, std::int32_t> wrong_columns_of_integers;
Wgmma<64, 8, 4, double, double> wrong_type;

void misuse(W::A& a, W::C& c, V::A& other, I::C& integers, Shared<bfloat16, 64, 64>& s, Regs<f32, 4>& values) {
    const auto b = k_major<128>(s[0, 0]);
    wgmma(values, b, b);
    wgmma(a, b, b);
    wgmma(c, other, b);
    wgmma(integers, b, mn_major<128>(s[0, 0], 0));
    wgmma_saturating(c, b, b);
    wgmma(integers, -b, b);
    wgmma_wait<8>();
    k_major<16>(s[0, 0]);
    k_major<128>(values);
}
