// SPDX-License-Identifier: Apache-2.0
// Whether a function is well formed: SSA, types by the op table, modifiers that the rows allow, ties, guards, control
// flow. Every pass may rely on it and must preserve it.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::ir {

enum class Level : std::uint8_t {
    Typed,     // from lowering to selection: types agree exactly
    Selected,  // after selection: only the widths of registers agree; integers of 8 and 16 bits live in 16 or 32
};

/// Whether a value of type `actual` may be used where `expected` is required; Void accepts any type.
bool agree(Type expected, Type actual, Level level);

/// Whether the text can name a function, a parameter or a symbol: letters, digits, _ and $, and no digit first.
bool is_identifier(std::string_view name);

/// All findings, in the order of the text; empty if the function is well formed. Each names function, block and
/// instruction and shows the line of IR.
std::vector<Diagnostic> problems(const Function& fn, Level level = Level::Typed);
/// The findings for a module's functions and the calls between them.
std::vector<Diagnostic> problems(std::span<const Function> functions, Level level = Level::Typed);

/// Throws the findings as one Error. For IR as it is written; the compiler's own stages assert that there are no
/// problems(). Of IR as it is written, each access is to the space of what its address is made from; after a stage that
/// need not hold in code that never runs: one address may be of one object in one arm and of another in the other, and
/// as one arm turns out not to be taken, the address there becomes that of the wrong object.
void verify(const Function& fn, Level level = Level::Typed);
void verify(const Module& module, Level level = Level::Typed);

/// The findings and the whole function, for an assertion; empty if there are none.
std::string complaint(const Function& fn, Level level = Level::Typed);
std::string complaint(std::span<const Function> functions, Level level = Level::Typed);

}  // namespace ikat::ir
