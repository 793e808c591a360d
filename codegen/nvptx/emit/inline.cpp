// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/emit/inline.hpp"

#include "codegen/ptx/check/inline.hpp"

namespace ikat::nvptx {
namespace {

/// Copies statements from the module that was parsed into the one that is written.
class Copy {
public:
    Copy(const Module& from, Writer& to) : from_(from), to_(to) {}

    void run() {
        const Function& function = from_.functions.front();
        for (const Statement& statement : function.body) {
            switch (statement.kind) {
                case Statement::Kind::Instruction: instruction(function.instructions[statement.index]); break;
                case Statement::Kind::Label: to_.label(name(Name(statement.index))); break;
                case Statement::Kind::Variable: to_.variable(variable(function.variables[statement.index])); break;
                case Statement::Kind::Directive: {
                    const Directive& directive = function.body_directives[statement.index];
                    to_.directive(from_.text(directive.name), operands(directive.operands));
                    break;
                }
                case Statement::Kind::ScopeBegin: to_.open_scope(); break;
                case Statement::Kind::ScopeEnd: to_.close_scope(); break;
            }
        }
    }

private:
    Name name(Name of) const { return of == no_name ? no_name : to_.module().intern(from_.text(of)); }
    std::vector<Name> names(std::span<const Name> list) const {
        std::vector<Name> out;
        for (Name each : list) out.push_back(name(each));
        return out;
    }
    std::vector<Operand> operands(Span span) const {
        std::vector<Operand> out;
        for (Operand operand : from_.operands(span)) {
            operand.name = name(operand.name);
            operand.suffix = name(operand.suffix);
            if (operand.children.count) operand.children = to_.module().add_operands(operands(operand.children));
            out.push_back(operand);
        }
        return out;
    }
    void instruction(const Instruction& from) {
        std::string mnemonic(from_.text(from.spelling));
        for (Name modifier : from_.modifiers(from.modifiers)) mnemonic += from_.text(modifier);
        to_.instruction(to_.spelling(mnemonic), operands(from.operands), name(from.guard), from.guard_negated);
    }
    Variable variable(const Variable& from) const {
        Variable out = from;
        out.linkage = names(from.linkage), out.pointer = names(from.pointer);
        out.space = name(from.space), out.attribute = name(from.attribute);
        out.vector = name(from.vector), out.type = name(from.type);
        for (Variable::Declarator& each : out.declarators) {
            each.name = name(each.name);
            if (each.initialiser.count) each.initialiser = to_.module().add_operands(operands(each.initialiser));
        }
        return out;
    }

    const Module& from_;
    Writer& to_;
};

}  // namespace

void append_inline(Writer& writer, std::string_view text, std::span<const Operand> operands) {
    std::vector<std::string> spelled;
    for (const Operand& operand : operands) spelled.push_back(print(writer.module(), operand));
    Copy(parse_inline(text, spelled), writer).run();
}

}  // namespace ikat::nvptx
