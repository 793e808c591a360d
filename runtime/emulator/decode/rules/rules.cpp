// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/decode/rules/rules.hpp"

#include <algorithm>

namespace ikat::emulator {

namespace {

constexpr const Family* all_families[] = {
#define FAMILY(name) &name##_family,
#include "runtime/emulator/decode/rules/families.def"
#undef FAMILY
};

/// Calls f(row) for the rows of an opcode.
template <class F>
void each_row(ptx::Opcode opcode, F f) {
    for (const Family* family : all_families)
        for (const RuleRow& row : family->rows)
            if (row.opcode == opcode) f(row);
}

/// Whether the form allows all of these modifiers, each from a different group.
bool may_be_with(const ptx::Form& form, std::span<const Modifier> modifiers) {
    std::uint64_t taken = 0;
    for (const Modifier modifier : modifiers) {
        std::size_t i = 0;
        const auto takes = [&] {
            return !(taken >> i & 1) &&
                   std::ranges::find(form.groups[i].alternatives, modifier) != form.groups[i].alternatives.end();
        };
        while (i < form.groups.size() && !takes()) ++i;
        if (i == form.groups.size()) return false;
        taken |= std::uint64_t{1} << i;
    }
    return true;
}

}  // namespace

std::span<const Family* const> families() { return all_families; }

const RuleRow* row_of(const ptx::Form& form) {
    const RuleRow* best = nullptr;
    each_row(form.opcode, [&](const RuleRow& row) {
        if (may_be_with(form, row.modifiers()) && (!best || row.modifiers().size() > best->modifiers().size()))
            best = &row;
    });
    return best;
}

Rules::Rules(const ptx::Module& module) : module_(module) {
    for (const Family* family : all_families)
        for (const RuleRow& row : family->rows) {
            Alone& known = alone_[std::size_t(row.opcode)];
            known = {row.rule, known.has_row || !row.modifiers().empty(), known.runs || row.rule != not_run, true};
        }
}

Rule Rules::find(const ptx::Instruction& instruction) {
    const Alone& known = alone_[std::size_t(instruction.opcode)];
    if (!known.has_others) return known.rule;
    key_.assign(1, std::uint32_t(instruction.opcode));
    for (const ptx::Name name : module_.modifiers(instruction.modifiers)) key_.push_back(std::uint32_t(name));
    for (const ptx::Operand& operand : module_.operands(instruction.operands))
        key_.push_back(~std::uint32_t(operand.kind));
    const auto [found, is_new] = by_form_.try_emplace(key_, nullptr);
    if (is_new) {
        const ptx::Match match = ptx::match(module_, instruction);
        const RuleRow* const row = match.form ? row_of(*match.form) : nullptr;
        if (row) found->second = row->rule;
    }
    return found->second;
}

}  // namespace ikat::emulator
