// SPDX-License-Identifier: Apache-2.0
// Other names of kernels of the registry: those that other systems have for them. `ikat run` and `ikat kernels` take
// them.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "stdlib/registry.hpp"

namespace ikat::stdlib {

struct Alias {
    std::string_view name;
    /// By their names for f32. The first of them that takes the arguments, rows of so many columns among them ...
    std::vector<std::string_view> kernels;
    bool chooses = true;  // ... or, if false, they differ in what they compute, and the user chooses
};

/// By name in alphabetical order.
std::span<const Alias> aliases();
/// The alias of that name, or null.
const Alias* find_alias(std::string_view name);

/// The kernels of a name, for f32, f16 and bf16 as far as there are.
std::vector<const Entry*> entries_of(std::string_view kernel);

}  // namespace ikat::stdlib
