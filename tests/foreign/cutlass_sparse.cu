// SPDX-License-Identifier: Apache-2.0
// Products with a sparse a by a warp, as CUTLASS makes them: its iterators say which thread holds which elements and
// which metadata. c, 64 x 64, = a b^T; of a, 64 x K, half of each row is held, and the metadata are by rows, too.
#include "cutlass/aligned_buffer.h"
#include "cutlass/cutlass.h"
#include "cutlass/gemm/warp/default_mma_sparse_tensor_op.h"
#include "cutlass/layout/matrix.h"

template <class Element, class Sum, int K, int InstructionK, class Operator>
__device__ void multiply(const Element* a, const Element* b, Sum* c, const void* metadata) {
    constexpr int extent = 64, held = K / 2, bits = 8 * sizeof(Element);
    using Shape = cutlass::gemm::GemmShape<extent, extent, K>;
    using Instruction = cutlass::gemm::GemmShape<16, 8, InstructionK>;
    using LayoutA = cutlass::layout::RowMajorTensorOpMultiplicandCrosswise<bits, held>;
    using LayoutB = cutlass::layout::ColumnMajorTensorOpMultiplicandCrosswise<bits, K>;
    using Rows = cutlass::layout::RowMajor;
    using Mma = typename cutlass::gemm::warp::DefaultSparseMmaTensorOp<Shape, Instruction, Element, LayoutA, Element,
                                                                       LayoutB, Sum, Rows, Operator>::Type;
    using Word = typename Mma::ElementE;
    constexpr int words = held / Mma::kElementsPerElementE;
    __shared__ cutlass::AlignedBuffer<Element, extent * held> tile_a;
    __shared__ cutlass::AlignedBuffer<Element, extent * K> tile_b;
    __shared__ cutlass::AlignedBuffer<Word, extent * words> tile_e;
    const auto of_a = LayoutA::packed({extent, held});
    const auto of_b = LayoutB::packed({K, extent});
    const auto of_e = cutlass::layout::ColumnMajorInterleaved<2>::packed({extent, words});
    for (int row = threadIdx.x; row < extent; row += 32) {
        for (int k = 0; k < held; ++k) tile_a.data()[of_a({row, k})] = a[row * held + k];
        for (int k = 0; k < K; ++k) tile_b.data()[of_b({k, row})] = b[row * K + k];
        // In memory, sparse kernels have metadata of rows 8 apart side by side, then blocks of 2 x 2 turned.
        constexpr int beside = sizeof(Word) == 2 ? 4 : 2;
        for (int k = 0; k < words; ++k) {
            const int line = row / (8 * beside) * 8 * beside + row % 8 * beside + row % (8 * beside) / 8;
            tile_e.data()[of_e({line / 2 * 2 + k % 2, k / 2 * 2 + line % 2})] =
                static_cast<const Word*>(metadata)[row * words + k];
        }
    }
    __syncthreads();
    const auto packed = Mma::LayoutE::packed({extent * Mma::kInterleaved, words / Mma::kInterleaved});
    typename Mma::IteratorA from_a({tile_a.data(), of_a}, threadIdx.x);
    typename Mma::IteratorB from_b({tile_b.data(), of_b}, threadIdx.x);
    typename Mma::IteratorE from_e({tile_e.data(), packed}, threadIdx.x);
    typename Mma::FragmentC sums;
    sums.clear();
    for (int k = 0; k < K; k += InstructionK, ++from_a, ++from_b, ++from_e) {
        typename Mma::FragmentA fragment_a;
        typename Mma::FragmentB fragment_b;
        typename Mma::FragmentE fragment_e;
        from_a.load(fragment_a);
        from_b.load(fragment_b);
        from_e.load(fragment_e);
        Mma()(sums, fragment_a, fragment_b, sums, fragment_e);
    }
    typename Mma::IteratorC to({c, Rows(extent)}, threadIdx.x);
    to.store(sums);
}

using Adds = cutlass::arch::OpMultiplyAdd;
using Saturates = cutlass::arch::OpMultiplyAddSaturate;
using Half = cutlass::half_t;
using Brain = cutlass::bfloat16_t;
using Tf32 = cutlass::tfloat32_t;
extern "C" __global__ void f16(const Half* a, const Half* b, float* c, const void* e) {
    multiply<Half, float, 64, 32, Adds>(a, b, c, e);
}
extern "C" __global__ void bf16(const Brain* a, const Brain* b, float* c, const void* e) {
    multiply<Brain, float, 64, 32, Adds>(a, b, c, e);
}
extern "C" __global__ void tf32(const Tf32* a, const Tf32* b, float* c, const void* e) {
    multiply<Tf32, float, 32, 16, Adds>(a, b, c, e);
}
extern "C" __global__ void s8(const std::int8_t* a, const std::int8_t* b, int* c, const void* e) {
    multiply<std::int8_t, int, 128, 64, Saturates>(a, b, c, e);
}
