// SPDX-License-Identifier: Apache-2.0
// Bulk copies of tensors as CUDA's headers make them.
#include <cooperative_groups.h>
#include <cuda.h>

#include <cuda/ptx>

namespace groups = cooperative_groups;
namespace ptx = cuda::ptx;

__device__ void wait(std::uint64_t* bar, unsigned parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
    }
}

/// Where a number of a row of 32 numbers is in a tile that is swizzled by 128 bytes.
__device__ int swizzled(int row, int column) { return 32 * row + ((column / 4) ^ (row % 8)) * 4 + column % 4; }

/// Transposes a matrix by tiles of 32 x 32, both of which are swizzled.
extern "C" __global__ void transpose(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y) {
    alignas(1024) __shared__ float in[1024], out[1024];
    __shared__ std::uint64_t bar;
    const int column = 32 * blockIdx.x, row = 32 * blockIdx.y;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_proxy_async(ptx::space_shared);
        const int at[] = {column, row};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, in, &x, at, &bar);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof in);
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) out[swizzled(i % 32, i / 32)] = in[swizzled(i / 32, i % 32)];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        const int at[] = {row, column};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &y, at, out);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}

/// Each block of a pair adds its own rows of 64 to the row that one of them has loaded for both.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    shared_row(const __grid_constant__ CUtensorMap rows, const __grid_constant__ CUtensorMap row, float* y, int rounds) {
    alignas(128) __shared__ float mine[64], common[64];
    __shared__ std::uint64_t bar;
    const auto cluster = groups::this_cluster();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    cluster.sync();
    float sum = 0;
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) {
            const int block = blockIdx.x, at[] = {0, rounds * block + round}, of_both[] = {0, round};
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar,
                                           sizeof mine + sizeof common);
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, mine, &rows, at, &bar);
            if (cluster.block_rank() == round % 2)
                ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, common, &row, of_both, &bar,
                                          std::uint16_t{3});
        }
        wait(&bar, round % 2);
        sum += mine[threadIdx.x] * common[threadIdx.x];
        cluster.sync();
    }
    y[64 * blockIdx.x + threadIdx.x] = sum;
}

/// Sums of groups of rows of 32 numbers, each group somewhere else: block g reads `count[g]` rows from `groups[g]`, with a
/// map that it makes of that for all.
extern "C" __global__ void sums_of_groups(const __grid_constant__ CUtensorMap any, float* const* groups, const int* count,
                                          const int* pitch, CUtensorMap* maps, float* y) {
    alignas(128) __shared__ CUtensorMap map;
    alignas(128) __shared__ float rows[8][32];
    __shared__ std::uint64_t bar;
    const int g = blockIdx.x, lane = threadIdx.x;
    reinterpret_cast<int*>(&map)[lane] = reinterpret_cast<const int*>(&any)[lane];
    if (lane == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncwarp();
    if (lane == 0) {
        ptx::tensormap_replace_global_address(ptx::space_shared, &map, groups[g]);
        ptx::tensormap_replace_global_dim(ptx::space_shared, &map, ptx::n32_t<1>(), count[g]);
        ptx::tensormap_replace_global_stride(ptx::space_shared, &map, ptx::n32_t<0>(), std::int64_t(4 * pitch[g]));
        ptx::tensormap_replace_box_dim(ptx::space_shared, &map, ptx::n32_t<1>(), 8);
        ptx::tensormap_replace_element_stride(ptx::space_shared, &map, ptx::n32_t<1>(), 1);
        ptx::tensormap_replace_rank(ptx::space_shared, &map, 1);
        ptx::tensormap_replace_elemtype(ptx::space_shared, &map, ptx::n32_t<7>());
        ptx::tensormap_replace_interleave_layout(ptx::space_shared, &map, ptx::n32_t<0>());
        ptx::tensormap_replace_swizzle_mode(ptx::space_shared, &map, ptx::n32_t<0>());
        ptx::tensormap_replace_fill_mode(ptx::space_shared, &map, ptx::n32_t<0>());
    }
    __syncwarp();
    ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, maps + g, &map, ptx::n32_t<128>());
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, maps + g, ptx::n32_t<128>());
    float sum = 0;
    for (int row = 0, round = 0; row < count[g]; row += 8, ++round) {
        if (lane == 0) {
            const int at[] = {0, row};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, rows, maps + g, at, &bar);
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof rows);
        }
        wait(&bar, round % 2);
        for (int i = 0; i < 8; ++i) sum += rows[i][lane];
        __syncwarp();
    }
    y[32 * g + lane] = sum;
}
