// SPDX-License-Identifier: Apache-2.0
// Several modules become one, as a linker makes one program of separately compiled files:
//
//     a.ptx: .extern .func f(...);  .visible .entry k(...) { ... call f ... }
//     b.ptx: .visible .func f(...) { ... }
//
// What is .extern in one and .visible or .weak in another is one thing; of what is .weak or .common in several, the
// first is taken. What is neither is a module's own, and gets another name where two modules have it. Debug information
// stays that of the first module.
#pragma once
#include <vector>

#include "codegen/ptx/text/module.hpp"

namespace ikat::nvptx {

/// Throws Error for two definitions of one name, for declarations that differ in kind, and for address sizes that
/// differ. The result asks for the highest of the versions and of the targets.
Module link(const std::vector<Module>& modules);

}  // namespace ikat::nvptx
