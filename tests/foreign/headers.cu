// SPDX-License-Identifier: Apache-2.0
// What CUDA's own headers make of kernels: CUB, cooperative groups, libcu++ and mma.h.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <mma.h>

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace groups = cooperative_groups;

struct Larger {
    __device__ double operator()(double a, double b) const { return a > b ? a : b; }
};

extern "C" __global__ void block_sort(unsigned* keys, float* values) {
    using Sort = cub::BlockRadixSort<unsigned, 128, 4, float>;
    __shared__ typename Sort::TempStorage storage;
    unsigned key[4];
    float value[4];
    for (int i = 0; i < 4; ++i) key[i] = keys[threadIdx.x * 4 + i], value[i] = values[threadIdx.x * 4 + i];
    Sort(storage).Sort(key, value);
    for (int i = 0; i < 4; ++i) keys[threadIdx.x * 4 + i] = key[i], values[threadIdx.x * 4 + i] = value[i];
}

extern "C" __global__ void block_scan(long long* x, double* y) {
    using Scan = cub::BlockScan<long long, 128>;
    using Reduce = cub::BlockReduce<double, 128, cub::BLOCK_REDUCE_RAKING>;
    __shared__ union {
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } storage;
    long long sum;
    Scan(storage.scan).InclusiveSum(x[threadIdx.x], sum);
    x[threadIdx.x] = sum;
    __syncthreads();
    const double most = Reduce(storage.reduce).Reduce(y[threadIdx.x], Larger());
    if (threadIdx.x == 0) y[0] = most;
}

extern "C" __global__ void grouped(int* x, int* total) {
    const auto block = groups::this_thread_block();
    const auto tile = groups::tiled_partition<8>(block);
    const int sum = groups::reduce(tile, x[block.thread_rank()], groups::plus<int>());
    const auto active = groups::coalesced_threads();
    if (sum & 1) {
        const auto odd = groups::coalesced_threads();
        x[block.thread_rank()] = odd.shfl(sum, 0) + int(odd.size());
    }
    if (active.thread_rank() == 0)
        cuda::atomic_ref<int, cuda::thread_scope_device>(*total).fetch_add(sum, cuda::memory_order_acq_rel);
    groups::sync(block);
}

extern "C" __global__ void piped(const float4* from, float4* to) {
    __shared__ float4 buffer[2][64];
    __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
    const auto block = groups::this_thread_block();
    if (block.thread_rank() == 0) init(&arrived, block.size());
    block.sync();
    cuda::memcpy_async(block, buffer[0], from, sizeof buffer[0], arrived);
    arrived.arrive_and_wait();
    groups::memcpy_async(block, buffer[1], from + 64, sizeof buffer[1]);
    groups::wait(block);
    to[block.thread_rank()] = buffer[0][block.thread_rank() % 64];
    to[block.thread_rank() + 64] = buffer[1][block.thread_rank() % 64];
}

extern "C" __global__ void product(const half* a, const half* b, float* c) {
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void shared_words(cuda::atomic<unsigned long long, cuda::thread_scope_system>* word,
                                        unsigned char* bytes) {
    unsigned long long expected = 1;
    word->compare_exchange_strong(expected, 2, cuda::memory_order_seq_cst);
    word->fetch_max(threadIdx.x, cuda::memory_order_release);
    word->notify_all();
    cuda::atomic_ref<unsigned char, cuda::thread_scope_block>(bytes[threadIdx.x]).fetch_or(3);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
}
