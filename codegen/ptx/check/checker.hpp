// SPDX-License-Identifier: Apache-2.0
// One module being checked: declarations and labels (check.cpp), then each instruction (instructions.cpp).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/check/declarations.hpp"
#include "codegen/ptx/check/directives.hpp"
#include "codegen/ptx/check/scopes.hpp"
#include "codegen/ptx/table/forms.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::ptx {

class Checker {
public:
    Checker(const Module& module, const CheckOptions& options) : module_(module), options_(options), scopes_(module) {}

    std::vector<Diagnostic> run() {
        head();
        for (const Module::Item& item : module_.items) {
            if (item.kind == Module::Item::Kind::Variable) declare(module_.variables[item.index], Place::Module);
            if (item.kind == Module::Item::Kind::Function) function(module_.functions[item.index]);
            if (item.kind == Module::Item::Kind::Directive)
                check_module_directive(module_, module_.directives[item.index], report_error_);
        }
        check_constants(module_, report_error_);
        return std::move(findings_);
    }

private:
    void report(Severity severity, Position where, std::string message, std::string hint) {
        findings_.push_back({.severity = severity,
                             .where = {module_.file, where.line, where.column},
                             .message = std::move(message),
                             .hint = std::move(hint),
                             .notes = {},
                             .excerpt = current_ ? "    " + print(module_, *current_) : ""});
    }
    void error(Position where, std::string message, std::string hint = {}) {
        report(Severity::Error, where, std::move(message), std::move(hint));
    }
    std::string text(Name name) const { return std::string(module_.text(name)); }

    void head();
    void function(const Function& function);
    void body(const Function& function);
    void labels(const Function& function);
    void declare(const Variable& variable, Place place);
    void initialiser(const Variable& variable, const Variable::Declarator& declarator);
    void add(Name name, const Declared& symbol);
    void add_range(const Variable::Declarator& declarator, const Declared& symbol);
    void declared_twice(Name name, const Declared& symbol, const Declared& earlier);
    bool is_again(Name name, const Declared& symbol, const Declared& earlier);

    void instruction(const Instruction& instruction);
    void guard(const Instruction& instruction);
    void features(const Instruction& instruction, const Match& match);
    bool modifiers(const Instruction& instruction, const Match& match);
    void operands(const Instruction& instruction, const Match& match);
    void call(const Instruction& instruction);
    void direction(const Instruction& instruction);
    bool is_newer() const { return newest_version < module_.version; }
    bool width(const Instruction& instruction, const Match& match);
    bool names(Position where, Span operands);
    void undeclared(Position where, Name name);
    bool is_extern(std::span<const Name> linkage) const;
    void body_of(Position where, Name name);
    bool has_short_addresses(const Instruction& instruction) const;
    std::string mnemonic(const Instruction& instruction) const;

    const Module& module_;
    const CheckOptions& options_;
    Scopes scopes_;
    std::vector<Diagnostic> findings_;
    const Report report_error_ = [this](Position where, std::string message, std::string hint) {
        error(where, std::move(message), std::move(hint));
    };
    const Target* target_ = nullptr;
    const Instruction* current_ = nullptr;                        // for excerpts
    std::vector<std::vector<std::pair<Name, Declared>>> labels_;  // for each scope of the function, in order
};

}  // namespace ikat::ptx
