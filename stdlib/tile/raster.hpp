// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace ikat::stdlib {

/// In which order tiles follow each other: down in groups of rows, grouped_raster(), or along a Hilbert curve,
/// hilbert_raster().
enum class Raster : std::uint8_t { grouped, hilbert };

}  // namespace ikat::stdlib
