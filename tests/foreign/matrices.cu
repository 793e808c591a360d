// SPDX-License-Identifier: Apache-2.0
// Products of matrices by wmma of CUDA's headers, and by inline mma, and tiles that CUDA's headers copy behind the program's
// back.
#include <cuda/pipeline>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

namespace {

__device__ unsigned lane() { return threadIdx.x % 32; }

}  // namespace

/// c[16][16] = a[16][k] b[k][16] by one warp: tiles of 16 x 16 come by cp.async, two ahead, and into registers by ldmatrix.
extern "C" __global__ void tiled(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int k) {
    __shared__ __align__(16) __nv_bfloat16 left[3][16][16], right[3][16][16];
    const auto load = [&](int tile) {
        if (16 * tile < k) {
            const int row = threadIdx.x / 2, half = threadIdx.x % 2 * 8;
            __pipeline_memcpy_async(&left[tile % 3][row][half], a + k * row + 16 * tile + half, 16);
            __pipeline_memcpy_async(&right[tile % 3][row][half], b + 16 * (16 * tile + row) + half, 16);
        }
        __pipeline_commit();
    };
    load(0);
    load(1);
    float d[2][4] = {};
    for (int tile = 0; 16 * tile < k; ++tile) {
        __pipeline_wait_prior(1);
        __syncwarp();
        load(tile + 2);
        unsigned ra[4], rb[4];
        const auto address = [&](const __nv_bfloat16(&tile)[16][16]) {
            return unsigned(__cvta_generic_to_shared(&tile[lane() % 16][lane() / 16 * 8]));
        };
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
                     : "r"(address(left[tile % 3])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(rb[0]), "=r"(rb[1]), "=r"(rb[2]), "=r"(rb[3])
                     : "r"(address(right[tile % 3])));
        for (int j = 0; j < 2; ++j)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                         "{%0,%1,%2,%3};"
                         : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
                         : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[2 * j]), "r"(rb[2 * j + 1]));
    }
    for (int j = 0; j < 2; ++j)
        for (int i = 0; i < 4; ++i)
            c[16 * (lane() / 4 + i / 2 * 8) + 8 * j + lane() % 4 * 2 + i % 2] = d[j][i];
}

/// y[i] = x of the thread opposite in the block, through tiles that a pipeline of libcu++ fills.
extern "C" __global__ void reversed(const float4* x, float4* y, int tiles) {
    __shared__ float4 stage[2][64];
    auto pipe = cuda::make_pipeline();
    const auto load = [&](int tile) {
        pipe.producer_acquire();
        if (tile < tiles)
            cuda::memcpy_async(&stage[tile % 2][threadIdx.x], &x[64 * tile + threadIdx.x],
                               cuda::aligned_size_t<16>(16), pipe);
        pipe.producer_commit();
    };
    load(0);
    for (int tile = 0; tile < tiles; ++tile) {
        load(tile + 1);
        cuda::pipeline_consumer_wait_prior<1>(pipe);
        __syncthreads();
        y[64 * tile + threadIdx.x] = stage[tile % 2][63 - threadIdx.x];
        __syncthreads();
        pipe.consumer_release();
    }
}

namespace wmma = nvcuda::wmma;

/// c = a b + c by CUDA's own wmma; each lays out its matrices as its types say.
template <int M, int N, int K, class T, class Sum, class LayoutA, class LayoutB, class Stored = T, class StoredSum = Sum>
__device__ void multiply(const Stored* a, const Stored* b, StoredSum* c, unsigned pitch_a, unsigned pitch_b,
                         wmma::layout_t layout_c = wmma::mem_row_major) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> left;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> right;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    const unsigned pitch_c = layout_c == wmma::mem_row_major ? N : M;
    wmma::load_matrix_sync(left, a, pitch_a);
    wmma::load_matrix_sync(right, b, pitch_b);
    wmma::load_matrix_sync(sum, c, pitch_c, layout_c);
    wmma::mma_sync(sum, left, right, sum);
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] + sum.x[i];
    wmma::store_matrix_sync(c, sum, pitch_c, layout_c);
}

/// a is [M][K] by rows and b is [K][N] by rows, each product doubled.
extern "C" __global__ void wmma_half(const __half* a, const __half* b, float* c) {
    multiply<16, 16, 16, __half, float, wmma::row_major, wmma::row_major>(a, b, c, 16, 16);
}
extern "C" __global__ void wmma_half_wide(const __half* a, const __half* b, float* c) {
    multiply<8, 32, 16, __half, float, wmma::row_major, wmma::row_major>(a, b, c, 16, 32);
}
extern "C" __global__ void wmma_half_tall(const __half* a, const __half* b, float* c) {
    multiply<32, 8, 16, __half, float, wmma::row_major, wmma::row_major>(a, b, c, 16, 8);
}
extern "C" __global__ void wmma_brain(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
    multiply<16, 16, 16, __nv_bfloat16, float, wmma::row_major, wmma::row_major>(a, b, c, 16, 16);
}
extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c) {
    multiply<16, 16, 8, wmma::precision::tf32, float, wmma::row_major, wmma::row_major>(a, b, c, 8, 16);
}
extern "C" __global__ void wmma_double(const double* a, const double* b, double* c) {
    multiply<8, 8, 4, double, double, wmma::row_major, wmma::row_major>(a, b, c, 4, 8);
}
extern "C" __global__ void wmma_bytes(const signed char* a, const signed char* b, int* c) {
    multiply<32, 8, 16, signed char, int, wmma::row_major, wmma::row_major>(a, b, c, 16, 8);
}
/// a is [K][M] and b is [N][K]: by columns, from shared memory; the sums are halves.
extern "C" __global__ void wmma_by_columns(const __half* a, const __half* b, __half* c) {
    __shared__ __align__(32) __half left[256], right[256];
    for (int i = threadIdx.x; i < 256; i += 32) left[i] = a[i], right[i] = b[i];
    __syncwarp();
    multiply<16, 16, 16, __half, __half, wmma::col_major, wmma::col_major>(left, right, c, 16, 16);
}
