// SPDX-License-Identifier: Apache-2.0
// What a call of gemm_tensor_core() may choose.
#pragma once
#include <cstdint>

namespace ikat::stdlib {

/// By mma.sync, on any device from sm_80 on, or by wgmma on sm_90a.
enum class GemmPath : std::uint8_t { chosen, mma_sync, wgmma };

/// What a block makes of C by mma.sync: 64 x 64, 128 x 128 or 256 x 128 elements.
enum class TileSize : std::uint8_t { chosen, small, medium, large };

}  // namespace ikat::stdlib
