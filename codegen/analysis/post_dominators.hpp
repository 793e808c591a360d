// SPDX-License-Identifier: Apache-2.0
// Where the ways from a block have all met again: its immediate post-dominator.
//
// A thread that traps ends the kernel, and one that stays in a loop for ever ends nothing: neither continues, or past,
// to miss the others. So a way counts only if it ends as well as the others do: by a return, if one can be reached,
// else in an endless loop, each of whose iterations ends where it jumps back to the loop's begin, else by a trap.
//
//     ^1 ─▶ ^2 ─▶ ^3 ─▶ return        the ways from ^1 meet in ^3
//      └──▶ ^4 ─▶ trap                as if ^4 were not there
//
//     ^1 ─▶ ^2 ─▶ ^3 ─▶ ^1 …          the ways from ^1 meet in ^3
//      └──────────▲
#pragma once
#include "codegen/analysis/dominators.hpp"

namespace ikat::analysis {

/// Node 0 is after all ends; block b is node b + 1.
DominatorTree post_dominators(const ir::Function& fn, const Dominators& dominators);

}  // namespace ikat::analysis
