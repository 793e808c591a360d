// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory as CUDA's headers use them: cuda::barrier, its tokens and parities, pipelines that produce
// and consume, and the instructions by cuda::ptx.
#pragma nv_diag_suppress static_var_with_dynamic_init
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

namespace groups = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

/// Each thread adds its neighbour's value, as often as there are rounds; two barriers take turns.
extern "C" __global__ void rounds_of_neighbours(int* x, int rounds) {
    __shared__ int values[2][128];
    __shared__ Barrier barriers[2];
    const auto block = groups::this_thread_block();
    const int i = threadIdx.x;
    if (i < 2) init(&barriers[i], 128);
    block.sync();
    int mine = x[i];
    for (int round = 0; round < rounds; ++round) {
        values[round % 2][i] = mine;
        auto token = barriers[round % 2].arrive();
        mine *= 3;
        barriers[round % 2].wait(std::move(token));
        mine += values[round % 2][(i + 1) % 128];
    }
    x[i] = mine;
}

/// The first warp produces, the others consume; empty and full by parity.
extern "C" __global__ void warps_in_roles(const int* x, int* y, int tiles) {
    __shared__ int tile[3][32];
    __shared__ Barrier full[3], empty[3];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < 3) init(&full[threadIdx.x], 32), init(&empty[threadIdx.x], 96);
    __syncthreads();
    int sum = 0;
    for (int t = 0; t < tiles; ++t) {
        const int stage = t % 3, round = t / 3;
        if (warp == 0) {
            empty[stage].wait_parity(round % 2 == 0);
            tile[stage][lane] = x[32 * t + lane];
            (void)full[stage].arrive();
        } else {
            full[stage].wait_parity(round % 2);
            sum += warp * tile[stage][31 - lane];
            (void)empty[stage].arrive();
        }
    }
    if (warp) y[threadIdx.x - 32] = sum;
}

/// Threads drop out of the barrier one after the other.
extern "C" __global__ void dropping(int* count) {
    __shared__ Barrier barrier;
    __shared__ int here;
    if (threadIdx.x == 0) init(&barrier, blockDim.x), here = 0;
    __syncthreads();
    for (int round = 0;; ++round) {
        if (round == threadIdx.x % 32) {
            atomicAdd(&here, 1);
            barrier.arrive_and_drop();
            break;
        }
        barrier.arrive_and_wait();
        if (here < (round + 1) * int(blockDim.x / 32)) count[blockDim.x] = 1;
    }
    count[threadIdx.x] = here;
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) arrivals_from_afar(int* y) {
    __shared__ int inbox[64];
    __shared__ std::uint64_t bar;
    namespace ptx = cuda::ptx;
    const auto cluster = groups::this_cluster();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 64);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    for (int round = 0; round < 4; ++round) {
        const unsigned peer = cluster.block_rank() ^ 1;
        cluster.map_shared_rank(inbox, peer)[threadIdx.x] = 100 * round + 10 * blockIdx.x + threadIdx.x;
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,
                             cluster.map_shared_rank(&bar, peer));
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, round & 1)) {
        }
        y[256 * round + 64 * blockIdx.x + threadIdx.x] = inbox[63 - threadIdx.x];
        cluster.sync();
    }
}
#endif

/// A pipeline of the block, with roles: one warp copies, the other adds.
extern "C" __global__ void pipeline_of_roles(const float* x, float* y, int tiles) {
    __shared__ float tile[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    const auto block = groups::this_thread_block();
    const auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    float sum = 0;
    if (role == cuda::pipeline_role::producer) {
        for (int t = 0; t < tiles; ++t) {
            pipe.producer_acquire();
            float* const to = &tile[t % 2][2 * threadIdx.x];
            cuda::memcpy_async(to, x + 64 * t + 2 * threadIdx.x, cuda::aligned_size_t<8>(8), pipe);
            pipe.producer_commit();
        }
    } else {
        for (int t = 0; t < tiles; ++t) {
            pipe.consumer_wait();
            sum += tile[t % 2][threadIdx.x - 32] - tile[t % 2][95 - threadIdx.x] / 2;
            pipe.consumer_release();
        }
        y[threadIdx.x - 32] = sum;
    }
}
