// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/check/check.hpp"

#include <algorithm>
#include <utility>

#include "codegen/ptx/check/call.hpp"
#include "codegen/ptx/check/checker.hpp"
#include "codegen/ptx/check/declarations.hpp"
#include "codegen/ptx/check/directives.hpp"
#include "codegen/ptx/check/excerpt.hpp"
#include "codegen/ptx/check/operand.hpp"
#include "codegen/ptx/check/scopes.hpp"
#include "codegen/ptx/table/forms.hpp"
#include "codegen/ptx/table/special_registers.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::ptx {

void Checker::head() {
    const Version version = module_.version;
    if (version.major == 0)
        error({}, "the module has no .version", "begin with .version and .target");
    else if (!is_known(version))  // later minor versions only add features
        report(is_newer() && version.major == newest_version.major ? Severity::Warning : Severity::Error, {},
               "there is no .version " + to_text(version), "the newest that is known is " + to_text(newest_version));
    if (module_.target.empty()) return error({}, "the module has no .target", "begin with .version and .target");
    for (std::size_t i = 1; i < module_.target.size(); ++i) {
        static constexpr std::string_view options[] = {"texmode_unified", "texmode_independent", "debug",
                                                       "map_f64_to_f32"};
        if (std::ranges::find(options, module_.text(module_.target[i])) == std::end(options))
            error({}, ".target has no option " + text(module_.target[i]),
                  "its options are texmode_unified, texmode_independent, debug and map_f64_to_f32");
    }
    target_ = find_target(module_.text(module_.target[0]));
    if (!target_) {
        std::string known;
        for (const Target& each : targets()) known += (known.empty() ? "" : ", ") + std::string(each.name);
        if (is_architecture(module_.text(module_.target[0])) || is_newer())
            report(Severity::Warning, {}, "the features of .target " + text(module_.target[0]) + " are not known",
                   "known targets: " + known);
        else
            error({}, "there is no .target " + text(module_.target[0]), "known targets: " + known);
    } else if (module_.version < target_->version) {
        error({}, ".version " + to_text(module_.version) + " does not support .target " + std::string(target_->name),
              "it needs .version " + to_text(target_->version));
    }
    if (module_.address_size != 32 && module_.address_size != 64)
        error({}, ".address_size is " + std::to_string(module_.address_size), "it must be 32 or 64");
}

void Checker::add(Name name, const Declared& symbol) {
    if (module_.text(name) == "_") return;
    const Declared* earlier = scopes_.declare(name, symbol);
    if (earlier && !is_again(name, symbol, *earlier)) declared_twice(name, symbol, *earlier);
}

void Checker::declared_twice(Name name, const Declared& symbol, const Declared& earlier) {
    error(symbol.where, text(name) + " is declared twice in one scope", "give one of them another name");
    findings_.back().notes.emplace_back(Location{module_.file, earlier.where.line, earlier.where.column},
                                        "the first declaration is here");
}

/// A prototype and its function, or an .extern variable and its definition; they must agree.
bool Checker::is_again(Name name, const Declared& symbol, const Declared& earlier) {
    const auto is_extern_variable = [this](const Declared& of) {
        return of.variable && is_extern(of.variable->linkage);
    };
    std::string other;
    if (earlier.function && symbol.function && !earlier.function->has_body)
        other = difference(module_, *earlier.function, *symbol.function);
    else if (is_extern_variable(earlier) || is_extern_variable(symbol))
        other = earlier.type == symbol.type && earlier.variable->space == symbol.variable->space
                    ? ""
                    : "type or state space differ";
    else
        return false;
    if (!other.empty()) {
        declared_twice(name, symbol, earlier);
        findings_.back().message = text(name) + " is declared in two ways: " + other;
        findings_.back().hint = "make them agree";
    }
    return true;
}

void Checker::add_range(const Variable::Declarator& declarator, const Declared& symbol) {
    if (const Declared* earlier = scopes_.declare_range(declarator.name, declarator.range, symbol))
        declared_twice(declarator.name, symbol, *earlier);
}

/// Names in initial values must be global or constant variables or functions, declared before.
void Checker::initialiser(const Variable& variable, const Variable::Declarator& declarator) {
    if (find_type(module_.text(variable.type)).kind == Type::Kind::Opaque) return;
    if (!names(variable.where, declarator.initialiser)) return;
    const auto look = [&](auto&& self, Span operands) -> void {
        for (const Operand& operand : module_.operands(operands)) {
            const Declared* symbol = operand.kind == Operand::Kind::Symbol ? scopes_.find(operand.name) : nullptr;
            const std::string_view space = symbol && symbol->variable ? module_.text(symbol->variable->space) : "";
            if (symbol && symbol->variable && space != ".global" && !space.starts_with(".const"))
                error(variable.where,
                      "the initial value of " + text(declarator.name) + " is the address of " + text(operand.name) +
                          " in " + std::string(space),
                      "only addresses in .global and .const are known before a launch");
            self(self, operand.children);
        }
    };
    look(look, declarator.initialiser);
}

void Checker::declare(const Variable& variable, Place place) {
    const bool is_register = module_.text(variable.space) == ".reg";
    const std::string_view vector = module_.text(variable.vector);
    const Declared symbol{.kind = is_register ? Declared::Kind::Register : Declared::Kind::Variable,
                          .type = find_type(module_.text(variable.type)),
                          .lanes = vector.empty() ? 1u : std::uint32_t(vector[2] - '0'),
                          .where = variable.where,
                          .variable = &variable,
                          .place = place};
    check_declaration(module_, variable, place, report_error_);
    check_attribute(module_, variable.attribute, variable.where, module_.text(variable.space), target_, report_error_);
    if (!symbol.type)
        error(variable.where,
              variable.type == no_name ? "a declaration without a type" : text(variable.type) + " is not a type",
              "types are .b32, .u32, .s32, .f32 and the like");
    for (const Variable::Declarator& each : variable.declarators) {
        initialiser(variable, each);
        if (each.has_range) {
            add_range(each, symbol);
            continue;
        }
        Declared own = symbol;
        if (const auto placed = layout(module_, variable, each)) own.bytes = placed->bytes;
        add(each.name, own);
    }
}

void Checker::function(const Function& function) {
    add(function.name, {.kind = Declared::Kind::Function, .where = function.where, .function = &function});
    check_head(module_, function, target_, report_error_);
    check_attribute(module_, function.attribute, function.where, {}, target_, report_error_);
    check_signature(module_, function, !target_ || target_->number >= 70, report_error_);
    scopes_.enter();
    for (const Variable& each : function.results) declare(each, Place::Result);
    for (const Variable& each : function.parameters)
        declare(each, function.is_entry                      ? Place::EntryParameter
                      : &each == &function.parameters.back() ? Place::LastParameter
                                                             : Place::Parameter);
    if (!function.has_body) {
        if (!is_extern(function.linkage)) body_of(function.where, function.name);
        return scopes_.leave();
    }
    labels(function);
    body(function);
    scopes_.leave();
}

/// Labels may be used before they are defined: they are collected first, for each scope of the function.
void Checker::labels(const Function& function) {
    labels_.assign(1, {});
    std::vector<std::size_t> open{0};
    for (std::size_t i = 0; i < function.body.size(); ++i) {
        const Statement& statement = function.body[i];
        if (statement.kind == Statement::Kind::ScopeBegin) {
            open.push_back(labels_.size());
            labels_.emplace_back();
        } else if (statement.kind == Statement::Kind::ScopeEnd) {
            open.pop_back();
        } else if (statement.kind == Statement::Kind::Label) {
            Declared symbol{.kind = Declared::Kind::Label, .where = statement.where};
            if (i + 1 < function.body.size() && function.body[i + 1].kind == Statement::Kind::Directive) {
                const Directive& next = function.body_directives[function.body[i + 1].index];
                if (module_.text(next.name) == ".branchtargets") symbol.kind = Declared::Kind::Targets;
                if (module_.text(next.name) == ".callprototype") symbol.kind = Declared::Kind::Prototype;
            }
            labels_[open.back()].emplace_back(Name(statement.index), symbol);
        }
    }
}

void Checker::body(const Function& function) {
    std::size_t scope = 0;
    const auto declare_labels = [&] {
        for (const auto& [name, symbol] : labels_[scope]) add(name, symbol);
        ++scope;
    };
    declare_labels();
    bool has_label = false;
    for (const Statement& statement : function.body) {
        switch (statement.kind) {
            case Statement::Kind::Instruction: instruction(function.instructions[statement.index]); break;
            case Statement::Kind::Variable: declare(function.variables[statement.index], Place::Body); break;
            case Statement::Kind::Directive: {
                const Directive& directive = function.body_directives[statement.index];
                check_body_directive(module_, directive, has_label, report_error_);
                if (module_.text(directive.name) == ".branchtargets") names(directive.where, directive.operands);
                break;
            }
            case Statement::Kind::ScopeBegin:
                scopes_.enter();
                declare_labels();
                break;
            case Statement::Kind::ScopeEnd: scopes_.leave(); break;
            case Statement::Kind::Label: break;
        }
        has_label = statement.kind == Statement::Kind::Label;
    }
}

std::vector<Diagnostic> check(const Module& module, const CheckOptions& options) {
    return Checker(module, options).run();
}

void check_or_throw(const Module& module, const CheckOptions& options) {
    std::vector<Diagnostic> findings = check(module, options);
    if (std::ranges::any_of(findings, [](const Diagnostic& each) { return each.severity == Severity::Error; }))
        throw Error(std::move(findings));
}

}  // namespace ikat::ptx
