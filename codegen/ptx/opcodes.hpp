// SPDX-License-Identifier: Apache-2.0
// What the opcodes of PTX take. The table in opcodes.cpp has a row for each form of an instruction:
//
//     {.stem = "fma", .modifiers = "$round ftz? sat? f32:t", .operands = "d:t s:t s:t s:t"},
//
// Modifiers are groups, of which each takes one of its alternatives, in any order. `a|b` are alternatives, `$name` a
// set of them, `@name` a list of groups that several rows share, `?` makes a group optional, `:t` and `:u` name the
// types that operands refer to, `:n` the group of .v2, .v4 and .v8. `*` takes whatever is left.
//
// Operands are a letter and a type; `?` makes one optional, `a|b` is a pair whose second part may be left out:
//
//     d destination register        s source: register or literal    m address in brackets
//     o the same, or _              r source register                l label
//     w the same, may be wider      c source, may be wider           L label of .branchtargets
//     D w, or a vector of .vN       C c, or a special register       v vector of registers
//     M d, or a vector of parts     S c, or a vector of .vN          i integer
//     q destination predicate       A s, special register, address, vector of parts
//     * anything that is left       p predicate, perhaps negated
//
// The type is t, u, a PTX type, or `wide`: twice as wide as t. Without one, it is not looked at.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/module.hpp"
#include "codegen/ptx/target.hpp"
#include "codegen/ptx/types.hpp"

namespace ikat::nvptx {

struct Group {
    std::vector<std::string_view> alternatives;  // without dots
    bool optional = false;
    bool rest = false;  // *
    char slot = 0;      // 't', 'u', 'n'
};

struct OperandRule {
    char letter = 's';
    std::string_view type;  // "", "t", "u", "wide" or a type's name
    bool optional = false;
    char second = 0;  // of a pair: q
};

/// A row, read.
struct Form {
    std::string_view stem;
    std::vector<Group> groups;
    std::vector<OperandRule> operands;
    Feature feature = Feature::None;

    bool takes_any_operands() const { return !operands.empty() && operands.back().letter == '*'; }
    std::size_t fewest_operands() const;
};

/// All forms of a stem, in the order of the table; none if the stem is not known.
std::span<const Form> forms_of(std::string_view stem);

/// "fma{.ftz}{.sat}.f32 d, a, b, c": how a form is written, for messages.
std::string syntax(const Form& form);

/// How an instruction's modifiers meet a form's groups.
struct Match {
    const Form* form = nullptr;
    Type t, u;                       // what the groups :t and :u took
    std::uint32_t vector = 1;        // .v2: 2
    Name unexpected = no_name;       // the first modifier that no group takes
    bool is_duplicate = false;       // ... because its group is taken already
    const Group* missing = nullptr;  // the first group that took none and is not optional
    std::size_t problems = 0;
};

/// The form that suits the instruction best; form == nullptr for an unknown stem.
Match match(const Module& module, const Instruction& instruction);

/// What the modifiers of an instruction and its form need.
void add_features(const Module& module, const Instruction& instruction, const Match& match,
                  std::vector<Feature>& features);

namespace table {

/// A row of the table, as it is written.
struct Row {
    std::string_view stem;
    std::string_view modifiers = "";
    std::string_view operands = "";
    Feature feature = Feature::None;
};

struct Set {
    std::string_view name, alternatives;
};
struct ModifierFeature {
    std::string_view modifier;
    Feature feature;
    std::string_view stem = "";  // on this opcode; on any if empty
};
std::span<const Set> sets();         // $name
std::span<const Set> group_lists();  // @name
std::span<const Row> rows();
std::span<const ModifierFeature> features();  // of modifiers by themselves

}  // namespace table

}  // namespace ikat::nvptx
