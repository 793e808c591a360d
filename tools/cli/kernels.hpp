// SPDX-License-Identifier: Apache-2.0
// The kernels that commands take by name.
#pragma once
#include <string>

#include "stdlib/aliases.hpp"
#include "stdlib/registry.hpp"

namespace ikat::cli {

/// "softmax_warp, softmax_block, softmax_online": what an alias may stand for.
std::string names_of(const stdlib::Alias& alias);

/// The kernel of that name, or that an alias stands for. Throws Error for a name that the registry does not have, and
/// for an alias of several.
const stdlib::Entry& find_kernel(const std::string& name);

}  // namespace ikat::cli
