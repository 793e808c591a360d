// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/emit/writer.hpp"

#include <algorithm>
#include <charconv>

namespace ikat::nvptx {

ptx::Operand Writer::hexadecimal(std::uint64_t bits) {
    std::array<char, 18> text{'0', 'x'};
    const auto end = std::to_chars(text.data() + 2, text.data() + text.size(), bits, 16).ptr;
    ptx::Operand out = integer(bits);
    out.name = module_.intern({text.data(), std::size_t(end - text.data())});
    return out;
}

ptx::Operand Writer::register_operand(regalloc::Class pool, regalloc::Register number) {
    std::vector<ptx::Name>& names = registers_[pool];
    if (number >= names.size()) names.resize(number + 1, ptx::no_name);
    if (names[number] == ptx::no_name)
        names[number] = module_.intern(std::string(pools[pool].prefix) + std::to_string(number));
    return {.kind = ptx::Operand::Kind::Symbol, .name = names[number]};
}

ptx::Operand Writer::address(ptx::Operand base, std::int64_t offset) {
    base.value += std::uint64_t(offset);
    base.has_offset = base.value != 0;
    return group(ptx::Operand::Kind::Address, {&base, 1});
}

Spelling Writer::spelling(std::string_view mnemonic) {
    const auto [found, added] = spellings_.try_emplace(std::string(mnemonic));
    if (!added) return found->second;
    std::vector<ptx::Name> modifiers;
    std::size_t begin = mnemonic.find('.');
    const ptx::Name name = module_.intern(mnemonic.substr(0, begin));
    while (begin < mnemonic.size()) {
        const std::size_t end = std::min(mnemonic.find('.', begin + 1), mnemonic.size());
        modifiers.push_back(module_.intern(mnemonic.substr(begin, end - begin)));
        begin = end;
    }
    return found->second = {module_.opcode(name), name, module_.add_modifiers(modifiers)};
}

void Writer::instruction(Spelling spelling, std::span<const ptx::Operand> operands, ptx::Name guard, bool negated) {
    if (line_info_ && where_.known() && where_ != last_) loc();
    statement(ptx::Statement::Kind::Instruction, std::uint32_t(function_.instructions.size()));
    function_.instructions.push_back({.opcode = spelling.opcode,
                                      .spelling = spelling.name,
                                      .modifiers = spelling.modifiers,
                                      .operands = module_.add_operands(operands),
                                      .guard = guard,
                                      .guard_negated = negated});
    places_.push_back(where_);
}

/// `.loc 1 12 5`
void Writer::loc() {
    last_ = where_;
    const std::string_view file = where_.file;
    const auto found = std::ranges::find(files_, file);
    const auto number = std::uint64_t(found - files_.begin()) + 1;
    if (found == files_.end()) files_.push_back(file);
    directive(".loc", std::array{integer(number), integer(where_.line), integer(where_.column)});
}

void Writer::variable(ptx::Variable variable) {
    statement(ptx::Statement::Kind::Variable, std::uint32_t(function_.variables.size()));
    function_.variables.push_back(std::move(variable));
}

void Writer::directive(std::string_view name, std::span<const ptx::Operand> operands) {
    statement(ptx::Statement::Kind::Directive, std::uint32_t(function_.body_directives.size()));
    function_.body_directives.push_back({.name = module_.intern(name), .operands = module_.add_operands(operands)});
}

}  // namespace ikat::nvptx
