// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Products of matrices: shapes, types and fragments.
// expect: Mma: of half there are 8, 8, 4, 16, 8, 8 and 16, 8, 16, with accumulators of half or float
// expect: Mma: of bfloat16 there are 16, 8, 8 and 16, 8, 16, with accumulators of float
// expect: Mma: matrices are of half, bfloat16, tf32, double, std::int8_t, std::uint8_t, s4, u4, b1, e4m3 or e5m2
// expect: mma(a, b, c): a and b are fragments, M::A and M::B of an Mma
// expect: mma(a, b, c): a is an M::A and b an M::B
// expect: mma(a, b, c): the fragments are of different products
// expect: mma_saturating: for products of integers
// expect: mma_and: for products of b1
// expect: load_matrix<N>, store_matrix<N>: one, two or four matrices of 8 x 8 are loaded or stored together
// expect: load_matrix<N>(s[i]), store_matrix<N>(s[i], v): a place is an element of a Shared array
// expect: transpose_matrix: of half2 or bfloat16x2
// expect: load_matrix<N>(s[i]), store_matrix<N>(s[i], v): elements have at most 32 bits
// expect: load_matrix_transposed<N>(s[i]), store_matrix_transposed<N>(s[i], v): elements have 16 bits; s.as<half>() takes others by halves
// errors: 14
#include <ikat/mma.hpp>
using namespace ikat;

using M = Mma<16, 8, 16, bfloat16, float>;
using N = Mma<16, 8, 8, bfloat16, float>;

Mma<16, 8, 4, half, float> wrong_shape;
Mma<8, 8, 4, bfloat16, float> wrong_quad_pairs;
Mma<16, 8, 16, bfloat16, bfloat16> wrong_sum;
Mma<16, 8, 16, float, float> wrong_type;

void misuse(M::A& a, M::B& b, M::C& c, N::B& other, Regs<f32, 4>& values, Shared<half, 64>& s, Shared<double, 64>& d, Shared<float, 64>& f) {
    mma(values, b, c);
    mma(b, a, c);
    mma(a, other, c);
    mma_saturating(a, b, c);
    mma_and(a, b, c);
    load_matrix<3>(s[0]);
    load_matrix<1>(values);
    transpose_matrix(values[0]);
    load_matrix<1>(d[0]);
    load_matrix_transposed<1>(f[0]);
    mma_saturating(values, b, c);
}
