// SPDX-License-Identifier: Apache-2.0
// Products of matrices by CuTe (CUTLASS), which knows for itself which element which thread holds: a kernel for each of
// its atoms for mma of dense matrices, named as the form in the IR. Matrices lie in memory without gaps, a and c by rows,
// b by columns.
#include <cute/tensor.hpp>

#include <cute/algorithm/gemm.hpp>
#include <cute/atom/mma_atom.hpp>

namespace {

using namespace cute;

/// c = a b + c by one warp; an atom of fewer threads, so many times in each direction.
template <class Operation, class A, class B, class Sum, int times = 1>
__device__ void multiply(const void* a, const void* b, void* c) {
    using Traits = MMA_Traits<Operation>;
    using Shape_ = typename Traits::Shape_MNK;
    constexpr int m = times * get<0>(Shape_{}), n = times * get<1>(Shape_{}), k = get<2>(Shape_{});
    const auto whole = make_tiled_mma(MMA_Atom<Operation>{}, Layout<Shape<Int<times>, Int<times>, _1>>{});
    const auto left = make_tensor(make_gmem_ptr<A>(a), Layout<Shape<Int<m>, Int<k>>, Stride<Int<k>, _1>>{});
    const auto right = make_tensor(make_gmem_ptr<B>(b), Layout<Shape<Int<n>, Int<k>>, Stride<Int<k>, _1>>{});
    auto sums = make_tensor(make_gmem_ptr<Sum>(c), Layout<Shape<Int<m>, Int<n>>, Stride<Int<n>, _1>>{});
    const auto mine = whole.get_slice(threadIdx.x);
    const auto of_a = mine.partition_A(left);
    const auto of_b = mine.partition_B(right);
    auto of_c = mine.partition_C(sums);
    auto x = mine.make_fragment_A(of_a);
    auto y = mine.make_fragment_B(of_b);
    auto d = mine.make_fragment_C(of_c);
    copy(of_a, x);
    copy(of_b, y);
    copy(of_c, d);
    gemm(whole, x, y, d);
    copy(d, of_c);
}

}  // namespace

#define PRODUCT(name, Operation, A, B, Sum)                                      \
    extern "C" __global__ void name(const void* a, const void* b, void* c) {     \
        multiply<Operation, A, B, Sum>(a, b, c);                                 \
    }
PRODUCT(m16n8k8_f16_f16_f16, SM80_16x8x8_F16F16F16F16_TN, half_t, half_t, half_t)
PRODUCT(m16n8k8_f16_f16_f32, SM80_16x8x8_F32F16F16F32_TN, half_t, half_t, float)
PRODUCT(m16n8k8_bf16_bf16_f32, SM80_16x8x8_F32BF16BF16F32_TN, bfloat16_t, bfloat16_t, float)
PRODUCT(m16n8k16_f16_f16_f16, SM80_16x8x16_F16F16F16F16_TN, half_t, half_t, half_t)
PRODUCT(m16n8k16_f16_f16_f32, SM80_16x8x16_F32F16F16F32_TN, half_t, half_t, float)
PRODUCT(m16n8k16_bf16_bf16_f32, SM80_16x8x16_F32BF16BF16F32_TN, bfloat16_t, bfloat16_t, float)
PRODUCT(m16n8k4_tf32_tf32_f32, SM80_16x8x4_F32TF32TF32F32_TN, tfloat32_t, tfloat32_t, float)
PRODUCT(m16n8k8_tf32_tf32_f32, SM80_16x8x8_F32TF32TF32F32_TN, tfloat32_t, tfloat32_t, float)
PRODUCT(m8n8k4_f64_f64_f64, SM80_8x8x4_F64F64F64F64_TN, double, double, double)
PRODUCT(m16n8k4_f64_f64_f64, SM90_16x8x4_F64F64F64F64_TN, double, double, double)
PRODUCT(m16n8k8_f64_f64_f64, SM90_16x8x8_F64F64F64F64_TN, double, double, double)
PRODUCT(m16n8k16_f64_f64_f64, SM90_16x8x16_F64F64F64F64_TN, double, double, double)

#define FLOATS8(X, Y, A, B)                                                                    \
    PRODUCT(m16n8k32_##X##_##Y##_f16, SM89_16x8x32_F16##A##B##F16_TN, X, Y, half_t)             \
    PRODUCT(m16n8k32_##X##_##Y##_f32, SM89_16x8x32_F32##A##B##F32_TN, X, Y, float)
using e4m3 = float_e4m3_t;
using e5m2 = float_e5m2_t;
FLOATS8(e4m3, e4m3, E4M3, E4M3)
FLOATS8(e4m3, e5m2, E4M3, E5M2)
FLOATS8(e5m2, e4m3, E5M2, E4M3)
FLOATS8(e5m2, e5m2, E5M2, E5M2)

#define INTEGERS(M, N, K, X, Y, A, B)                                                                 \
    PRODUCT(m##M##n##N##k##K##_##X##_##Y##_s32, SM80_##M##x##N##x##K##_S32##A##B##S32_TN, X, Y, int)   \
    PRODUCT(m##M##n##N##k##K##_##X##_##Y##_s32_sat, SM80_##M##x##N##x##K##_S32##A##B##S32_TN_SATURATE, X, Y, int)
using s8 = int8_t;
using u8 = uint8_t;
using s4 = int4b_t;
using u4 = uint4b_t;
#define BYTES(X, Y, A, B)            \
    INTEGERS(8, 8, 16, X, Y, A, B)   \
    INTEGERS(16, 8, 16, X, Y, A, B)  \
    INTEGERS(16, 8, 32, X, Y, A, B)
BYTES(s8, s8, S8, S8)
BYTES(s8, u8, S8, U8)
BYTES(u8, s8, U8, S8)
BYTES(u8, u8, U8, U8)
#define NIBBLES(X, Y, A, B)          \
    INTEGERS(8, 8, 32, X, Y, A, B)   \
    INTEGERS(16, 8, 64, X, Y, A, B)
NIBBLES(s4, s4, S4, S4)
NIBBLES(s4, u4, S4, U4)
NIBBLES(u4, s4, U4, S4)
NIBBLES(u4, u4, U4, U4)
PRODUCT(m8n8k128_b1_b1_s32_and, SM80_8x8x128_S32U1U1S32_TN_ANDPOPC, uint1b_t, uint1b_t, int)
PRODUCT(m16n8k256_b1_b1_s32_and, SM80_16x8x256_S32U1U1S32_TN_ANDPOPC, uint1b_t, uint1b_t, int)

// Four atoms of eight threads, two by two: a product of 16 x 16.
#define QUADS(turned, layouts)                                                                    \
    extern "C" __global__ void m8n8k4_f16_f16_f16##turned(const void* a, const void* b, void* c) { \
        multiply<SM70_8x8x4_F16F16F16F16_##layouts, half_t, half_t, half_t, 2>(a, b, c);           \
    }                                                                                              \
    extern "C" __global__ void m8n8k4_f16_f16_f32##turned(const void* a, const void* b, void* c) { \
        multiply<SM70_8x8x4_F32F16F16F32_##layouts, half_t, half_t, float, 2>(a, b, c);            \
    }
QUADS(, TN)
QUADS(_trans_b, TT)
QUADS(_trans_a, NN)
QUADS(_trans_a_trans_b, NT)
