// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/text/words.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ikat::ptx {
namespace {

constexpr std::string_view spaces[] = {".reg", ".const", ".global", ".local", ".param", ".shared"};
constexpr std::string_view directives[] = {".branchtargets",   ".callprototype",     ".calltargets",
                                           ".explicitcluster", ".maxnreg",           ".maxntid",
                                           ".minnctapersm",    ".reqnctapercluster", ".reqntid"};
static_assert(std::size(spaces) == std::size_t(StateSpace::Other));
static_assert(std::size(directives) == std::size_t(DirectiveKind::Other));

/// The place of a word, or the one after the last.
std::size_t place(const auto& words, std::string_view word) {
    return std::size_t(std::ranges::find(words, word) - std::begin(words));
}

}  // namespace

StateSpace space_of(const Module& module, const Variable& variable) {
    return StateSpace(place(spaces, module.text(variable.space)));
}
bool is_predicate(const Module& module, const Variable& variable) { return module.text(variable.type) == ".pred"; }

DirectiveKind kind_of(const Module& module, const Directive& directive) {
    return DirectiveKind(place(directives, module.text(directive.name)));
}

bool has(const Module& module, const Instruction& instruction, Modifier modifier) {
    return std::ranges::any_of(module.modifiers(instruction.modifiers),
                               [&](Name each) { return spelled_modifier(module.text(each)) == modifier; });
}

}  // namespace ikat::ptx
