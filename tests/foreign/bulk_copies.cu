// SPDX-License-Identifier: Apache-2.0
// Copies in bulk as CUDA's headers make them: memcpy_async to a barrier, pipelines of stages by cuda::ptx, reductions.
#pragma nv_diag_suppress static_var_with_dynamic_init
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/ptx>

namespace groups = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

/// y = 3 x + 1 for 256 numbers of each block: there and back in bulk.
extern "C" __global__ void there_and_back(const int* x, int* y) {
    alignas(128) __shared__ int tile[256];
    __shared__ Barrier bar;
    const int i = threadIdx.x;
    if (i == 0) {
        init(&bar, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    Barrier::arrival_token token;
    if (i == 0) {
        cuda::memcpy_async(tile, x + 256 * blockIdx.x, cuda::aligned_size_t<16>(sizeof tile), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, 0);
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int k = i; k < 256; k += blockDim.x) tile[k] = 3 * tile[k] + 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (i == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + 256 * blockIdx.x, tile, sizeof tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    __syncthreads();
}

/// One thread loads the stages of a ring, a warp adds them up, and the sums of all blocks meet in memory.
extern "C" __global__ void sums_of_stages(const float* x, float* y, int tiles) {
    constexpr int stages = 3;
    alignas(128) __shared__ float ring[stages][64], sums[64];
    __shared__ std::uint64_t full[stages], empty[stages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) ptx::mbarrier_init(&full[s], 1), ptx::mbarrier_init(&empty[s], 32);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    const float* const mine = x + 64 * tiles * blockIdx.x;
    if (threadIdx.x == 32) {
        for (int t = 0; t < tiles; ++t) {
            const int s = t % stages, round = t / stages;
            while (!ptx::mbarrier_try_wait_parity(&empty[s], (round & 1) ^ 1)) {
            }
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], sizeof ring[s]);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, ring[s], mine + 64 * t, sizeof ring[s], &full[s]);
        }
    } else if (threadIdx.x < 32) {
        float low = 0, high = 0;
        for (int t = 0; t < tiles; ++t) {
            const int s = t % stages, round = t / stages;
            while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &full[s], round & 1)) {
            }
            low += ring[s][threadIdx.x];
            high += ring[s][threadIdx.x + 32];
            ptx::mbarrier_arrive(&empty[s]);
        }
        sums[threadIdx.x] = low;
        sums[threadIdx.x + 32] = high;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncwarp();
        if (threadIdx.x == 0) {
            ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, y, sums, sizeof sums);
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
        }
    }
}

/// Each block sends its numbers to the next one of its cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1) to_the_next(const int* x, int* y) {
    alignas(16) __shared__ int mine[128], received[128];
    __shared__ std::uint64_t bar;
    const auto cluster = groups::this_cluster();
    const int i = threadIdx.x;
    mine[i] = x[128 * blockIdx.x + i];
    if (i == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof received);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    if (i == 0) {
        const unsigned next = (cluster.block_rank() + 1) % 4;
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(received, next), mine,
                           sizeof mine, cluster.map_shared_rank(&bar, next));
    }
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
    }
    y[128 * blockIdx.x + i] = received[i];
    cluster.sync();
}
