// SPDX-License-Identifier: Apache-2.0
// Tiles: matrices in shared memory, copied and multiplied by blocks.
#pragma once
#include "stdlib/tile/block_product.hpp"
#include "stdlib/tile/cluster_product.hpp"
#include "stdlib/tile/conflicts.hpp"
#include "stdlib/tile/fma_tiles.hpp"
#include "stdlib/tile/online_softmax.hpp"
#include "stdlib/tile/pipeline.hpp"
#include "stdlib/tile/register_factor.hpp"
#include "stdlib/tile/ring.hpp"
#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/shared_tile.hpp"
#include "stdlib/tile/tile_rows.hpp"
#include "stdlib/tile/tile_source.hpp"
#include "stdlib/tile/warp_rows.hpp"
#include "stdlib/tile/warp_specialised.hpp"
#include "stdlib/tile/warp_tiles.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"
