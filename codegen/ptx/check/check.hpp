// SPDX-License-Identifier: Apache-2.0
// Checks whether a module is valid PTX for its target. The parser only knows the syntax; this checks names, types and
// the operands of each opcode:
// - a .version that knows the .target, and both high enough for the features used;
// - names: declared once, before their use, in the same or an enclosing scope; labels in reach; predicates as guards;
// - directives: known, in allowed positions, with the right number of operands;
//   - declarations: space, type, alignment, extents, initialisers, the bytes of parameters and of constant memory;
// - each instruction: a known opcode, a valid combination of modifiers, number and classes of operands, registers of
//   the right width and kind.
// It is not complete: addresses are not tracked, and opcodes whose row in table/forms accepts anything are not checked.
#pragma once
#include <optional>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::ptx {

struct CheckOptions {
    /// How to report an opcode that is not in the table; empty: not at all. In a module whose .version is newer than
    /// the table it is at most a note.
    std::optional<Severity> unknown_opcodes = Severity::Error;
    /// Nothing will be linked to the module: the functions that it uses must have bodies.
    bool is_complete = false;
};

/// The findings, in text order. Empty if there are none.
std::vector<Diagnostic> check(const Module& module, const CheckOptions& options = {});

/// Throws Error with the findings if one of them is an error.
void check_or_throw(const Module& module, const CheckOptions& options = {});

}  // namespace ikat::ptx
