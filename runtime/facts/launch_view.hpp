// SPDX-License-Identifier: Apache-2.0
// The part of a buffer that a launch was given as an argument: consecutive elements, or a row-major array.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ikat::emulator {

struct LaunchView {
    std::string argument;       // its name
    std::uint64_t address = 0;  // of the first element
    std::uint32_t element_bytes = 1;
    std::vector<std::uint64_t> extents, pitches;  // in elements, as of runtime/view.hpp; no pitches: rank 1
    std::vector<std::uint64_t> halo{};  // by dimension: so many elements beyond each edge may be read; empty: none
};

}  // namespace ikat::emulator
