// SPDX-License-Identifier: Apache-2.0
// The part of a buffer that a launch was given as an argument: consecutive elements, or a row-major array.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ikat::emulator {

/// The dimensions of an array that have these pitches, all but its last, from the one with the smallest pitch on; of
/// equal ones the inner one comes first.
std::vector<std::size_t> outwards(std::span<const std::uint64_t> pitches);

/// The part of a buffer that a parameter has been given: accesses outside of it are findings.
struct LaunchView {
    std::string argument;       // its name
    std::uint64_t address = 0;  // of the first element
    std::uint32_t element_bytes = 1;
    std::vector<std::uint64_t> extents, pitches;  // in elements, as of runtime/view.hpp; no pitches: rank 1
    std::vector<std::uint64_t> halo{};  // by dimension: this many elements beyond each edge may be read; empty: none
};

}  // namespace ikat::emulator
