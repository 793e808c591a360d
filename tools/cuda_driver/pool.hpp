// SPDX-License-Identifier: Apache-2.0
// What others tell memory pools.
#pragma once
#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {

/// Memory has been freed, which may be a pool's.
void note_pool_free(Driver& its, CUdeviceptr address);
/// The program has waited: pools keep no more than their thresholds.
void trim_pools(Driver& its);

}  // namespace ikat::cuda_driver
