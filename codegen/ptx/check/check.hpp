// SPDX-License-Identifier: Apache-2.0
// Is a module PTX that its target takes? The parser knows the shape of the language alone; this looks at names, types
// and what each opcode takes:
//
//   - a .version that knows the .target, and both high enough for what is used;
//   - names: declared before their use, in the scope or around it, once; labels in reach; predicates as guards;
//   - directives: known, where they may stand, with as many numbers as they take;
//   - declarations: space, type, alignment, extents, initialisers, the bytes of parameters and of constant memory;
//   - each instruction: a known opcode, modifiers that go together, the number and the classes of operands, registers
//     of the right width and kind.
//
// It is no proof: addresses are not followed, and opcodes whose row in table/forms takes anything are not looked into.
#pragma once
#include <optional>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::nvptx {

struct CheckOptions {
    /// How to report an opcode that the table does not have; nothing: not at all. In a module of a .version that is
    /// newer than the table it is a note at most.
    std::optional<Severity> unknown_opcodes = Severity::Error;
    /// Nothing is linked to it afterwards: the functions that it uses have bodies.
    bool is_complete = false;
};

/// What is wrong, in the order of the text. Empty if nothing is.
std::vector<Diagnostic> check(const Module& module, const CheckOptions& options = {});

/// Throws Error with the findings if one of them is an error.
void check_or_throw(const Module& module, const CheckOptions& options = {});

}  // namespace ikat::nvptx
