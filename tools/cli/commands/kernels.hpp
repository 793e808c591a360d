// SPDX-License-Identifier: Apache-2.0
// Kernels by name, for the commands.
#pragma once
#include <string>

#include "stdlib/catalogue/aliases.hpp"
#include "stdlib/catalogue/registry.hpp"

namespace ikat::cli {

/// "softmax_warp, softmax_block, softmax_online": the kernels of an alias.
std::string names_of(const stdlib::Alias& alias);

/// The kernel of that name or alias. Throws Error for a name that the registry does not have, and for an alias of
/// several kernels.
const stdlib::Entry& find_kernel(const std::string& name);

}  // namespace ikat::cli
