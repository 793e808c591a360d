// SPDX-License-Identifier: Apache-2.0
// Other names of kernels of the registry: those that other systems have for them. `ikat run` and `ikat kernels` take
// them.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stdlib/registry.hpp"

namespace ikat::stdlib {

struct Candidate {
    std::string_view kernel;           // for f32; others have its name and a suffix
    std::uint32_t most_columns = ~0u;  // for rows of up to so many columns
};

struct Alias {
    std::string_view name;
    std::vector<Candidate> kernels;  // the first of them that takes the arguments ...
    bool chooses = true;             // ... or, if false, they differ in what they compute, and the user chooses
};

/// By name in alphabetical order.
std::span<const Alias> aliases();
/// The alias of that name, or null.
const Alias* find_alias(std::string_view name);

/// The kernels of a candidate, for f32, f16 and bf16 as far as there are.
std::vector<const Entry*> entries_of(const Candidate& candidate);

}  // namespace ikat::stdlib
