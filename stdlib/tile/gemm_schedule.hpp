// SPDX-License-Identifier: Apache-2.0
// The schedules of products by name.
#pragma once
#include <cstdint>

namespace ikat::stdlib {

/// Which blocks make which tiles of C.
enum class GemmSchedule : std::uint8_t {
    chosen,
    block_per_tile,  // by mma.sync
    persistent,      // as many blocks as the device runs at once take tile after tile
    split_k,         // k is divided into parts, whose sums are added by a second kernel
    stream_k,   // by mma.sync: as many blocks as the device runs at once have equally many slices of k of the tiles
                // that do not fill it; the sums of a tile are added by a second kernel, in the order of k
    ping_pong,  // by wgmma, of 16-bit elements: persistent, and the two warpgroups of a block make tiles in turn: one
                // stores its tile while the other multiplies
};

}  // namespace ikat::stdlib
