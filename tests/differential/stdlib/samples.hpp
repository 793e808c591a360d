// SPDX-License-Identifier: Apache-2.0
// The launches that every kernel of the library is tested with: numbers for its parameters by their names, and arrays
// of the sizes that its recipe gives them.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stdlib/catalogue/registry.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/spec/example.hpp"

namespace ikat::test {

/// Values for the integer parameters of a kernel in their order: sizes 0, 1, tails, whole tiles. A parameter that has
/// to be a multiple of a number is counted in such multiples. Throws Error for a combination of parameters that there
/// are no values for.
std::span<const std::vector<std::uint32_t>> samples_of(const KernelInfo& kernel);

/// All that there are.
std::vector<stdlib::Quantised> quantised_formats();
/// Random weights, with scales of a sensible size; with `edges`, those of the first blocks are edge values of f16.
std::vector<std::uint8_t> random_blocks(stdlib::Quantised format, std::size_t count, std::uint32_t seed,
                                        bool edges = false);

/// The arguments for one row of values: arrays hold random numbers, those of integers 0, 1, 2 ... and now and then
/// 2^32 - 1; outputs are poisoned, with NaN or -1.
std::vector<stdlib::Example::Argument> arguments_of(const stdlib::Entry& entry, std::span<const std::uint32_t> values);

/// Checks what an array holds after a launch.
void check_expected(const stdlib::Example::Expected& expected, ir::Type type, std::span<const std::uint8_t> got);

}  // namespace ikat::test
