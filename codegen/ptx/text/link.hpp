// SPDX-License-Identifier: Apache-2.0
// Links several modules into one, like a linker:
//
//     a.ptx: .extern .func f(...);  .visible .entry k(...) { ... call f ... }
//     b.ptx: .visible .func f(...) { ... }
// A symbol that is .extern in one module and .visible or .weak in another is the same; of symbols that are .weak or
// .common in several, the first is used. Other symbols are local, and are renamed if two modules have the same name.
// Only the debug information of the first module is kept.
#pragma once
#include <vector>

#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

/// Throws Error for two definitions of one name, for declarations of different kinds, and for different address sizes.
/// The result has the highest of the versions and of the targets.
Module link(const std::vector<Module>& modules);

}  // namespace ikat::ptx
