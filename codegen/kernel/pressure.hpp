// SPDX-License-Identifier: Apache-2.0
// Register pressure by line of the kernel's source.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "codegen/support/diagnostic.hpp"

namespace ikat {

/// How many values are live at a line of the source.
struct LinePressure {
    Location where;                       // without a column
    std::array<std::uint32_t, 4> live{};  // the maximum over its instructions, by pool: pred, b16, b32, b64
    std::uint32_t words = 0;              // the same in registers of 32 bits, as a device has them
};

/// The same of all lines of a kernel.
struct SourcePressure {
    std::vector<LinePressure> lines;  // by file and line; instructions without a line are left out
    std::uint32_t words = 0;          // the most anywhere
};

}  // namespace ikat
