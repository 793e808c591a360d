// SPDX-License-Identifier: Apache-2.0
// The actions of the grammar: each function is one step of building the module, named after what was just read.
// Operands are kept on a stack until the end of their statement; a bracket's children are popped when it closes, so the
// children of one operand are adjacent in the module's pool.
#pragma once
#include <string>
#include <vector>

#include "codegen/ptx/text/module.hpp"
#include "codegen/ptx/text/parse/source.hpp"

namespace ikat::ptx {

class Build {
public:
    Build(std::string_view text, std::string_view file);

    Source source;
    Module module;

    /// What is being read, for messages: "ld.global.f32", "variable tile", ".maxntid".
    std::string subject() const;

    // The header of the module.
    void version(Module::Version version) { module.version = version; }
    void target(Name name) { module.target.push_back(name); }
    void address_size(const Operand& bits) { module.address_size = std::uint32_t(bits.value); }

    // Operands.
    void push(const Operand& operand) { stack_.push_back(operand); }
    void push_negated(Operand operand);
    void push_minus(Operand operand);
    void push_word(Name name) { push({.kind = Operand::Kind::Symbol, .name = name}); }
    /// function_name or inlined_at; false for any other word.
    bool location_clause(Name name);
    void offset(const Operand& bytes);
    /// Opens and closes brackets; false if they are nested too deeply.
    bool open();
    void close(Operand::Kind kind);
    /// Makes the last two operands the children of one.
    void join(Operand::Kind kind);
    /// Makes the last operand the child of the mask before it.
    void mask();

    // Instructions and labels.
    void guard_not() { instruction_.guard_negated = true; }
    void guard(Name name) { instruction_.guard = name; }
    void statement_at(const char* place) { where_ = source.position(place); }
    void opcode(Name name);
    /// Whether the opcode has a form without operands.
    bool may_end_here();
    void modifier(Name name) { modifiers_.push_back(name); }
    void instruction();
    /// The word read as an opcode is a label.
    void label();
    bool scope_begin();
    bool in_scope() const { return scope_depth_ > 0; }
    void scope_end();

    // Declarations.
    void linkage(Name name) { linkage_.push_back(name); }
    void variable(Name space);
    void bank(const Operand& number);
    bool alignment(const Operand& bytes);
    void attribute(Name text) { variable_.attribute = text; }
    /// ".v4", ".f32", ".ptr"; false for one too many.
    bool specifier(Name name);
    void declarator(Name name);
    void range(const Operand& count);
    void extent(const Operand& count) { variable_.declarators.back().extents.push_back(std::int64_t(count.value)); }
    void open_extent() { variable_.declarators.back().extents.push_back(-1); }
    void initialiser();
    void module_variable();
    void result() { function().results.push_back(take_variable()); }
    void parameter() { function().parameters.push_back(take_variable()); }
    void body_variable();

    // Functions.
    void function_begin();
    void entry_begin();
    void function_attribute(Name text) { function().attribute = text; }
    void function_name(Name name) { function().name = name; }
    void function_named() { reading_ = Reading::Function; }
    void prototype() { function().has_body = false; }

    // Other directives.
    void directive(Name name);
    void raw(std::string_view text) { directive_.raw = text; }
    void raw_body(std::string_view text);
    void module_directive();
    void header_directive() { function().directives.push_back(take_directive()); }
    void body_directive();

private:
    Function& function() { return module.functions.back(); }
    void statement(Statement::Kind kind, std::size_t index) {
        function().body.push_back({kind, std::uint32_t(index), where_});
    }
    Span take_operands(std::size_t first);
    Variable take_variable();
    Directive take_directive();

    std::vector<Operand> stack_;
    std::vector<std::uint32_t> marks_;  // start of the open brackets' children in stack_
    std::vector<Name> modifiers_, linkage_;
    Instruction instruction_;
    Variable variable_;
    Directive directive_;
    Position where_;  // of the statement being read
    std::uint32_t scope_depth_ = 0;
    enum class Reading : std::uint8_t { Module, Instruction, Variable, Function, Directive } reading_ = Reading::Module;
};

}  // namespace ikat::ptx
