// SPDX-License-Identifier: Apache-2.0
// Clusters with distributed shared memory, as cooperative groups give it.
#include <cooperative_groups.h>

namespace groups = cooperative_groups;

/// A histogram of bins that the blocks of a cluster share: block r has the bins from r * blockDim.x on.
extern "C" __global__ void __cluster_dims__(4, 1, 1) histogram(const int* x, int n, int* bins) {
    extern __shared__ int part[];
    const auto cluster = groups::this_cluster();
    part[threadIdx.x] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(cluster.map_shared_rank(part, x[i] / blockDim.x) + x[i] % blockDim.x, 1);
    cluster.sync();
    atomicAdd(&bins[cluster.block_rank() * blockDim.x + threadIdx.x], part[threadIdx.x]);
}

/// Each block passes its values on to the next, as many times as the cluster has blocks, and collects what comes by.
extern "C" __global__ void __cluster_dims__(2, 2, 1) ring(const float* x, float* sums) {
    __shared__ float here[2][32];
    __shared__ double doubled[32];
    const auto cluster = groups::this_cluster();
    const unsigned rank = cluster.block_rank(), i = threadIdx.x;
    const unsigned at = (blockIdx.y * gridDim.x + blockIdx.x) * 32 + i;
    float* const next = cluster.map_shared_rank(&here[0][0], (rank + 1) % cluster.num_blocks());
    here[0][i] = x[at];
    doubled[i] = 2 * double(x[at]);
    cluster.sync();
    float sum = 0;
    for (unsigned step = 0; step < cluster.num_blocks(); ++step) {
        sum += here[step % 2][i];
        next[(step + 1) % 2 * 32 + i] = here[step % 2][i];
        cluster.sync();
    }
    const double* const first = cluster.map_shared_rank(doubled, 0);
    sums[at] = sum + 100 * float(first[31 - i]) + 10000 * cluster.query_shared_rank(first);
    cluster.sync();
}
