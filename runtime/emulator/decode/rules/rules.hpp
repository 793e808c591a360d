// SPDX-License-Identifier: Apache-2.0
// The lowering rules. The PTX table (codegen/ptx/table) has a row for each form of an instruction; here each supported
// form has a rule, which emits its ops. Rules are in the file of their family, which ends with its rows:
//
//     {"add", simple<Op::Add>},           all forms of an opcode,
//     {"add", "f32x2", pair_of_singles<...>},    except those that allow all of these modifiers: the row with the most
//                                                modifiers is used
//     {"mma", "sp", not_run},                    ... which are not supported
//
// A new family is a line in families.def.
#pragma once
#include <algorithm>
#include <map>

#include "codegen/ptx/table/forms.hpp"
#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

/// In place of a rule.
inline constexpr Rule not_run = nullptr;

struct RuleRow {
    ptx::Opcode opcode;
    std::array<Modifier, 2> with{};  // up to the first Unknown
    Rule rule;

    consteval RuleRow(const char* stem, Rule rule) : RuleRow(stem, "", rule) {}
    consteval RuleRow(const char* stem, const char* with, Rule rule) : opcode(ptx::find_opcode(stem)), rule(rule) {
        if (opcode == ptx::Opcode::Unknown) throw "opcodes.def does not have it";
        auto next = this->with.begin();
        for (std::string_view left = with; !left.empty();) {
            const std::string_view word = left.substr(0, left.find(' '));
            left.remove_prefix(std::min(word.size() + 1, left.size()));
            if (next == this->with.end()) throw "a row names at most two modifiers";
            *next = ptx::find_modifier(word);
            if (*next++ == Modifier::Unknown) throw "modifiers.def does not have it";
        }
    }
    constexpr std::span<const Modifier> modifiers() const {
        return {with.begin(), std::ranges::find(with, Modifier::Unknown)};
    }
};

struct Family {
    std::span<const RuleRow> rows;
};
#define FAMILY(name) extern const Family name##_family;
#include "runtime/emulator/decode/rules/families.def"
#undef FAMILY
std::span<const Family* const> families();

/// The row of a form; nullptr if its opcode has none for it.
const RuleRow* row_of(const ptx::Form& form);

/// Finds the rules of a module's instructions: by opcode if it has only one row, else by the matching form, cached for
/// each spelling.
class Rules {
public:
    explicit Rules(const ptx::Module& module);
    /// nullptr for an unsupported instruction.
    Rule find(const ptx::Instruction& instruction);
    /// Whether some forms of an opcode are supported.
    bool runs(ptx::Opcode opcode) const { return alone_[std::size_t(opcode)].runs; }

private:
    struct Alone {
        Rule rule = nullptr;
        bool has_others = false;  // rows for other forms of the opcode
        bool runs = false;        // a row with a rule
        bool has_row = false;
    };
    const ptx::Module& module_;
    std::array<Alone, ptx::opcode_count> alone_{};
    std::map<std::vector<std::uint32_t>, Rule> by_form_;  // by opcode, modifiers and kinds of operands
    std::vector<std::uint32_t> key_;
};

// ---- helpers for several families

/// d = scalar of up to three words.
void on_words(Lowering& code, Scalar scalar, Operands operands, std::uint32_t x = 0, std::uint32_t y = 0);
/// The number of sources is the operation's.
void integer_operation(Lowering& code, Operation operation, std::size_t sources, Type type, Operands operands,
                       std::uint64_t mode = 0);
/// The operation of .and, .or and .xor.
Op combining(Modifier modifier);
/// Lane 0 or 1 of a packed value, in the low bits; and two of them as one.
VReg lane_of(Lowering& code, VReg packed, Type type, unsigned number);
void join_lanes(Lowering& code, Type type, VReg d, VReg low, VReg high);
/// The two halves of a register of 128 bits.
std::vector<VReg> double_words(Lowering& code, const ptx::Operand& operand);

}  // namespace ikat::emulator
