// SPDX-License-Identifier: Apache-2.0
// What the bounds of references are made of.
#pragma once
#include <cstdint>

namespace ikat::stdlib::reference {

/// A number and the largest error of a kernel.
struct Bounded {
    double value = 0, error = 0;
};

/// The rounding error of f32.
inline constexpr double epsilon = 0x1p-24;

/// The error of a sum over a row of at most `columns` terms, relative to the sum of their magnitudes: each thread adds
/// its share, then come at most 16 levels of a tree.
inline double of_sum(std::uint32_t columns) { return (columns / 32.0 + 16) * epsilon; }

}  // namespace ikat::stdlib::reference
