// SPDX-License-Identifier: Apache-2.0
// The modifiers and operands of PTX opcodes. The table in forms/ has a row for each form of an instruction:
//
//     {.stem = "fma", .modifiers = "$round ftz? sat? f32:t", .operands = "d:t s:t s:t s:t"},
// Modifiers are groups, each of which matches one of its alternatives, in any order. `a|b` are alternatives, `$name` a
// set of them, `@name` a list of groups shared by several rows, `?` makes a group optional, `*` matches all remaining
// modifiers. The N of m64nNk16 is a multiple of 8 up to 256. Operands may refer to a group:
//
//     :t :u  a type                       :s        the shape of a matrix, m16n8k16
//     :n     a number of registers:       :d :a :b :c   the types of its elements, d = a * b + c
//            .v4, .x4, or what a shape    :A :B     the same, packed as 4 bits
//            multiplies it by             :g        .1d to .5d or a texture's geometry: a number of coordinates
// Operands are a letter and a type; `?` makes one optional, `*4` gives its number of parts, `@modifier` means only with
// that modifier, `a|b` is a pair whose second part is optional:
//
//     d destination register        s source: register or literal    m address in brackets
//     o the same, or _              r source register                y address in tensor memory
//     w the same, may be wider      n source, perhaps with -         T [tensor map, {coordinates}]
//     D w, or a vector of .vN       c source, may be wider           X [texture, sampler or none, coordinates]
//     M d, or a vector of parts     C c, or a special register       g r, or y
//     P o, or a vector of .vN       Q s, or a vector of .vN, also a special one
//     q destination predicate       S c, or a vector of .vN          f r, or v
//     V vector of destinations      A s, special register, address,  l label
//     v vector of sources             vector of parts                L label of .branchtargets
//     * anything that is left       p predicate, perhaps negated     i integer
// The type is t, u, a PTX type, or `wide`: twice as wide as t. A vector's is that of its parts, or d, a, b, c for the
// registers of such a matrix, or `half` for half of a. Without a type, the type is not checked.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ptx/table/modifier.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/table/types.hpp"
#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

struct Group {
    std::span<const Modifier> alternatives;
    bool optional = false;
    bool rest = false;  // *
    char slot = 0;      // the letter after ':'
};

struct OperandRule {
    char letter = 's';
    std::string_view type;  // "", "t", "u", "wide", a type's name, or "d", "a", "b", "c", "half"
    bool optional = false;
    char second = 0;                        // of a pair: q
    std::uint32_t parts = 0;                // *4
    Modifier modifier = Modifier::Unknown;  // @L2::cache_hint: only with that modifier; Unknown: always
};

/// A parsed row.
struct Form {
    Opcode opcode = Opcode::Unknown;
    std::span<const Group> groups;
    std::span<const OperandRule> operands;
    Feature feature = Feature::None;
};

/// All forms of an opcode, in table order; none for an unknown one.
std::span<const Form> forms_of(Opcode opcode);

/// "fma.rn{.ftz}{.sat}.f32 d, a, b, c": how a form is written, for messages.
std::string syntax(const Form& form);
/// " d, [a], b": operands by their rules; optional parts are in braces.
std::string syntax(std::span<const OperandRule> rules);

struct MatrixShape {
    std::uint32_t m = 0, n = 0, k = 0;
};
struct Element {
    std::string_view type;  // "bf16"
    std::uint32_t bits = 0;
};

/// How an instruction's modifiers match a form's groups.
struct Match {
    const Form* form = nullptr;
    Type t, u;                          // the types matched by the groups :t and :u
    std::uint32_t vector = 1;           // .v2: 2; the product of the groups :n
    std::uint32_t coordinates = 0;      // .2d: 2
    MatrixShape shape{};                // .m16n8k16
    std::array<Element, 4> elements{};  // of d, a, b, c
    std::uint32_t left_out = 0;         // bit i: operand i of the form is absent because its modifier is
    Name unexpected = no_name;          // the first modifier that no group matches
    bool is_duplicate = false;          // ... because its group is already matched
    const Group* missing = nullptr;     // the first non-optional group without a match
    std::size_t problems = 0;

    /// The rule for each operand of the form.
    std::vector<OperandRule> rules() const;
};

bool takes_any_operands(std::span<const OperandRule> rules);
std::size_t fewest_operands(std::span<const OperandRule> rules);

/// The best matching form; form == nullptr for an unknown opcode.
Match match(const Module& module, const Instruction& instruction);

/// How the modifiers match this form.
Match match(const Module& module, const Instruction& instruction, const Form& form);

/// Adds the features needed by the modifiers of an instruction and its form.
void add_features(const Module& module, const Instruction& instruction, const Match& match,
                  std::vector<Feature>& features);

}  // namespace ikat::ptx
