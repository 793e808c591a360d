// SPDX-License-Identifier: Apache-2.0
// Appends statements to the body of one PTX function: operands by value, spellings and register names interned once.
#pragma once
#include <array>
#include <initializer_list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::nvptx {

/// Opcode and modifiers of an instruction in the module's pools.
struct Spelling {
    ptx::Opcode opcode = ptx::Opcode::Unknown;
    ptx::Name name = ptx::no_name;  // of the opcode
    ptx::Span modifiers{};
};

class Writer {
public:
    /// With `line_info`, a .loc directive precedes each instruction whose source location differs from the last one's.
    Writer(ptx::Module& module, ptx::Function& function, bool line_info)
        : module_(module), function_(function), line_info_(line_info) {}

    ptx::Module& module() { return module_; }

    // Operands
    ptx::Operand name(std::string_view text) {
        return {.kind = ptx::Operand::Kind::Symbol, .name = module_.intern(text)};
    }
    static ptx::Operand integer(std::uint64_t bits) { return {.kind = ptx::Operand::Kind::Integer, .value = bits}; }
    ptx::Operand hexadecimal(std::uint64_t bits);
    ptx::Operand register_operand(regalloc::Class pool, regalloc::Register number);
    /// Several operands in braces, brackets or parentheses.
    ptx::Operand group(ptx::Operand::Kind kind, std::span<const ptx::Operand> children) {
        return {.kind = kind, .children = module_.add_operands(children)};
    }
    /// `[base+offset]`.
    ptx::Operand address(ptx::Operand base, std::int64_t offset);

    // Statements
    Spelling spelling(std::string_view mnemonic);
    void instruction(Spelling spelling, std::span<const ptx::Operand> operands, ptx::Name guard = ptx::no_name,
                     bool negated = false);
    void instruction(std::string_view mnemonic, std::initializer_list<ptx::Operand> operands) {
        instruction(spelling(mnemonic), std::span(operands.begin(), operands.size()));
    }
    void label(ptx::Name name) { statement(ptx::Statement::Kind::Label, index(name)); }
    void open_scope() { statement(ptx::Statement::Kind::ScopeBegin, 0); }
    void close_scope() { statement(ptx::Statement::Kind::ScopeEnd, 0); }
    void variable(ptx::Variable variable);
    void directive(std::string_view name, std::span<const ptx::Operand> operands);

    /// Sets the source location of the instructions that follow.
    void set_location(const Location& where) { where_ = where; }
    std::vector<Location> take_places() { return std::move(places_); }
    /// Referred to by .loc directives as 1, 2, …
    const std::vector<std::string_view>& files() const { return files_; }

private:
    void statement(ptx::Statement::Kind kind, std::uint32_t index) { function_.body.push_back({kind, index, {}}); }

    void loc();

    ptx::Module& module_;
    ptx::Function& function_;
    bool line_info_;
    std::array<std::vector<ptx::Name>, std::size(pools)> registers_;
    std::unordered_map<std::string, Spelling> spellings_;
    Location where_{}, last_{};
    std::vector<Location> places_;
    std::vector<std::string_view> files_;
};

}  // namespace ikat::nvptx
