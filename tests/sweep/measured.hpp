// SPDX-License-Identifier: Apache-2.0
// What sweep_math found when a function was last changed. docs/math.md shows it.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::test {

struct Measured {
    std::string_view name;
    double error = 0;      ///< the largest, in the function's units
    double at = 0, y = 0;  ///< where it is
    double misrounded_percent = 0;
    /// Sums over all results, and over those of the sample that the tests take. They are the same on every device; 0
    /// for fast forms, of which they are not.
    std::uint64_t digest = 0, sample_digest = 0;
};

/// Of a function of functions.hpp; an empty one if there is no row.
const Measured& measured(std::string_view name);

}  // namespace ikat::test
