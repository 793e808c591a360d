// SPDX-License-Identifier: Apache-2.0
// Groups larger than a warp: tiles of 64 threads, which meet in the shared memory that is reserved for the system, and the
// whole grid, which meets in the workspace of a cooperative launch.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace groups = cooperative_groups;

extern "C" __global__ void tiles(int* x) {
    const auto tile = groups::tiled_partition<64>(groups::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int sum = groups::reduce(tile, x[i], groups::plus<int>());
    tile.sync();
    x[i] = sum + int(tile.thread_rank());
}

/// Three rounds, in each of which a block takes what the next block left in the round before.
extern "C" __global__ void rounds(int* a, int* b) {
    const auto grid = groups::this_grid();
    for (int round = 0; round < 3; ++round) {
        if (threadIdx.x == 0) b[blockIdx.x] = a[(blockIdx.x + 1) % gridDim.x] + 1;
        grid.sync();
        if (threadIdx.x == 0) a[blockIdx.x] = b[blockIdx.x];
        grid.sync();
    }
}
