// SPDX-License-Identifier: Apache-2.0
// The kernels that commands take by name.
#pragma once
#include <string>

#include "stdlib/registry.hpp"

namespace ikat::cli {

/// Throws Error for a name that the registry does not have.
const stdlib::Entry& find_kernel(const std::string& name);

}  // namespace ikat::cli
