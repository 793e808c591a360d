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
    Opcode opcode = Opcode::Unknown;
    Name name = no_name;  // of the opcode
    Span modifiers{};
};

class Writer {
public:
    /// With `line_info`, a .loc directive precedes each instruction whose source location differs from the last one's.
    Writer(Module& module, Function& function, bool line_info)
        : module_(module), function_(function), line_info_(line_info) {}

    Module& module() { return module_; }

    // Operands
    Operand name(std::string_view text) { return {.kind = Operand::Kind::Symbol, .name = module_.intern(text)}; }
    static Operand integer(std::uint64_t bits) { return {.kind = Operand::Kind::Integer, .value = bits}; }
    Operand hexadecimal(std::uint64_t bits);
    Operand register_operand(regalloc::Class pool, regalloc::Register number);
    /// Several operands in braces, brackets or parentheses.
    Operand group(Operand::Kind kind, std::span<const Operand> children) {
        return {.kind = kind, .children = module_.add_operands(children)};
    }
    /// `[base+offset]`.
    Operand address(Operand base, std::int64_t offset);

    // Statements
    Spelling spelling(std::string_view mnemonic);
    void instruction(Spelling spelling, std::span<const Operand> operands, Name guard = no_name, bool negated = false);
    void instruction(std::string_view mnemonic, std::initializer_list<Operand> operands) {
        instruction(spelling(mnemonic), std::span(operands.begin(), operands.size()));
    }
    void label(Name name) { statement(Statement::Kind::Label, index(name)); }
    void open_scope() { statement(Statement::Kind::ScopeBegin, 0); }
    void close_scope() { statement(Statement::Kind::ScopeEnd, 0); }
    void variable(Variable variable);
    void directive(std::string_view name, std::span<const Operand> operands);

    /// Sets the source location of the instructions that follow.
    void set_location(const Location& where) { where_ = where; }
    std::vector<Location> take_places() { return std::move(places_); }
    /// Referred to by .loc directives as 1, 2, …
    const std::vector<std::string_view>& files() const { return files_; }

private:
    void statement(Statement::Kind kind, std::uint32_t index) { function_.body.push_back({kind, index, {}}); }

    void loc();

    Module& module_;
    Function& function_;
    bool line_info_;
    std::array<std::vector<Name>, std::size(pools)> registers_;
    std::unordered_map<std::string, Spelling> spellings_;
    Location where_{}, last_{};
    std::vector<Location> places_;
    std::vector<std::string_view> files_;
};

}  // namespace ikat::nvptx
