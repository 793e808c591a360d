// SPDX-License-Identifier: Apache-2.0
// The results of sweep_math when a function was last changed. docs/math.md shows them.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::test {

struct Measured {
    std::string_view name;
    double error = 0;      ///< the largest, in the function's units
    double at = 0, y = 0;  ///< where it is
    double misrounded_percent = 0;
    /// Checksums over all results, and over those of the tests' sample. They are the same on every device; 0 for fast
    /// versions, whose results are not.
    std::uint64_t digest = 0, sample_digest = 0;
};

/// The row for a function of functions.hpp; an empty one if there is none.
const Measured& measured(std::string_view name);

}  // namespace ikat::test
