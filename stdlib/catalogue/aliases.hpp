// SPDX-License-Identifier: Apache-2.0
// Other names of the registry's kernels, which other systems use. `ikat run` and `ikat kernels` accept them.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "stdlib/catalogue/registry.hpp"

namespace ikat::stdlib {

struct Alias {
    std::string_view name;
    /// The kernels, by their names for f32. The first one that takes the arguments and the columns of their rows runs
    /// ...
    std::vector<std::string_view> kernels;
    bool chooses = true;  // ... or, if false, they differ in what they compute, and the user chooses
};

/// By name in alphabetical order.
std::span<const Alias> aliases();
/// The alias of that name, or null.
const Alias* find_alias(std::string_view name);

/// The kernels of a name, for those of f32, f16 and bf16 that it has.
std::vector<const Entry*> entries_of(std::string_view kernel);

}  // namespace ikat::stdlib
