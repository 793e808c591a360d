// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/emit/inline.hpp"

#include "codegen/ptx/check/inline.hpp"
#include "codegen/ptx/text/copy.hpp"

namespace ikat::nvptx {
namespace {

/// Copies the statements of the parsed function into the one being written.
void copy_statements(const ptx::Module& from, Writer& to) {
    const ptx::Copier copy(from, to.module());
    const ptx::Function& function = from.functions.front();
    const auto instruction = [&](const ptx::Instruction& it) {
        std::string mnemonic(from.text(it.spelling));
        for (ptx::Name modifier : from.modifiers(it.modifiers)) mnemonic += from.text(modifier);
        to.instruction(to.spelling(mnemonic), copy.operands(it.operands), copy.word(it.guard), it.guard_negated);
    };
    const auto directive = [&](const ptx::Directive& it) {
        to.directive(from.text(it.name), copy.operands(it.operands));
    };
    for (const ptx::Statement& statement : function.body) {
        switch (statement.kind) {
            case ptx::Statement::Kind::Instruction: instruction(function.instructions[statement.index]); break;
            case ptx::Statement::Kind::Label: to.label(copy.word(ptx::Name(statement.index))); break;
            case ptx::Statement::Kind::Variable: to.variable(copy.variable(function.variables[statement.index])); break;
            case ptx::Statement::Kind::Directive: directive(function.body_directives[statement.index]); break;
            case ptx::Statement::Kind::ScopeBegin: to.open_scope(); break;
            case ptx::Statement::Kind::ScopeEnd: to.close_scope(); break;
        }
    }
}

}  // namespace

void append_inline(Writer& writer, std::string_view text, std::span<const ptx::Operand> operands) {
    std::vector<std::string> spelled;
    for (const ptx::Operand& operand : operands) spelled.push_back(print(writer.module(), operand));
    copy_statements(ptx::parse_inline(text, spelled), writer);
}

}  // namespace ikat::nvptx
