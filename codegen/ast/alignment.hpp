// SPDX-License-Identifier: Apache-2.0
// What the accesses of a kernel need the addresses of its arguments to be multiples of.
#pragma once
#include <cstdint>
#include <optional>

#include "codegen/ast/ast.hpp"

namespace ikat::ast {

struct WideAccess {
    std::uint32_t bytes = 0;
    Location where{};
};

/// The widest access to a pointer parameter that stands at a multiple of its width behind the pointer, if some threads
/// reach it whatever the arguments are (and there is enough to do).
std::optional<WideAccess> widest_access(const KernelTree& kernel, std::uint32_t parameter);

}  // namespace ikat::ast
