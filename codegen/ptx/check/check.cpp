// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/check/check.hpp"

#include <algorithm>
#include <utility>

#include "codegen/ptx/check/call.hpp"
#include "codegen/ptx/check/declarations.hpp"
#include "codegen/ptx/check/directives.hpp"
#include "codegen/ptx/check/excerpt.hpp"
#include "codegen/ptx/check/operand.hpp"
#include "codegen/ptx/check/scopes.hpp"
#include "codegen/ptx/table/forms.hpp"
#include "codegen/ptx/table/special_registers.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::ptx {
namespace {

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

std::string Checker::mnemonic(const Instruction& instruction) const {
    std::string out = text(instruction.spelling);
    for (Name modifier : module_.modifiers(instruction.modifiers)) out += module_.text(modifier);
    return out;
}

void Checker::instruction(const Instruction& instruction) {
    current_ = &instruction;
    guard(instruction);
    const bool names_known = names(instruction.where, instruction.operands);
    const Match found = match(module_, instruction);
    if (!found.form) {
        if (options_.unknown_opcodes)
            report(is_newer() ? Severity::Note : *options_.unknown_opcodes, instruction.where,
                   "the opcode " + text(instruction.spelling) + " is not known",
                   "its modifiers and operands were not checked");
    } else if (modifiers(instruction, found)) {
        features(instruction, found);
        if (width(instruction, found) && names_known) operands(instruction, found);
        if (names_known && instruction.opcode == Opcode::Call) call(instruction);
        if (names_known) direction(instruction);
    }
    current_ = nullptr;
}

void Checker::guard(const Instruction& instruction) {
    if (instruction.guard == no_name) return;
    const Declared* symbol = scopes_.find(instruction.guard);
    if (!symbol) return undeclared(instruction.where, instruction.guard);
    if (symbol->kind != Declared::Kind::Register || symbol->type.kind != Type::Kind::Predicate)
        error(instruction.where, "the guard " + text(instruction.guard) + " is not a predicate",
              "set a .pred register with setp");
}

void Checker::undeclared(Position where, Name name) {
    const std::string range = scopes_.past_the_end(name);
    std::string hint = "declare it before its use, in this scope or around it";
    if (module_.text(name).starts_with('%')) hint = "declare it with .reg";
    if (current_ && current_->opcode == Opcode::Bra) hint = "a label is reached from its scope and those inside it";
    if (!range.empty()) hint = range;
    error(where, text(name) + " is not declared here", std::move(hint));
}

bool Checker::is_extern(std::span<const Name> linkage) const {
    return std::ranges::any_of(linkage, [this](Name each) { return module_.text(each) == ".extern"; });
}

/// In a complete module every function needs a body; an .extern one only if it is used.
void Checker::body_of(Position where, Name name) {
    static constexpr std::string_view of_the_system[] = {"vprintf", "__assertfail", "malloc", "free"};
    if (!options_.is_complete || std::ranges::find(of_the_system, module_.text(name)) != std::end(of_the_system))
        return;
    const Function* const function = module_.find_function(module_.text(name));
    if (function && !function->has_body)
        error(where, text(name) + " is declared but has no body",
              "link the file that has it: `ikat run --link FILE`, `ikat ptx FILE FILE`");
}

/// Whether all names among the operands are declared; reports those that are not.
bool Checker::names(Position where, Span operands) {
    bool known = true;
    for (const Operand& operand : module_.operands(operands)) {
        const Declared* const symbol = operand.kind == Operand::Kind::Symbol ? scopes_.find(operand.name) : nullptr;
        if (symbol && symbol->kind == Declared::Kind::Function && is_extern(symbol->function->linkage))
            body_of(where, operand.name);
        if (operand.kind == Operand::Kind::Symbol && !symbol && !find_special_register(module_.text(operand.name)) &&
            module_.text(operand.name) != "WARP_SZ") {
            undeclared(where, operand.name);
            known = false;
        }
        known &= names(where, operand.children);
    }
    return known;
}

bool Checker::modifiers(const Instruction& instruction, const Match& match) {
    const std::string opcode = text(instruction.spelling);
    const std::string hint = "one form is " + syntax(*match.form);
    const auto at_modifier = [&] {
        findings_.back().excerpt = excerpt_of_modifier(module_, instruction, match.unexpected);
    };
    if (match.unexpected != no_name && match.is_duplicate) {
        error(instruction.where, text(match.unexpected) + " is one too many for " + opcode, hint);
        at_modifier();
    } else if (match.unexpected != no_name) {
        error(instruction.where, opcode + " does not take " + text(match.unexpected) + " here", hint);
        at_modifier();
    } else if (match.missing) {
        std::string wanted;
        for (const Modifier each : match.missing->alternatives)
            wanted += (wanted.empty() ? "." : ", .") + std::string(name(each));
        const bool one = match.missing->alternatives.size() == 1;
        error(instruction.where, mnemonic(instruction) + (one ? " lacks " : " lacks one of ") + wanted, hint);
        findings_.back().excerpt = excerpt_of_opcode(module_, instruction);
    }
    return match.problems == 0;
}

void Checker::features(const Instruction& instruction, const Match& match) {
    if (!target_) return;
    std::vector<Feature> needed;
    add_features(module_, instruction, match, needed);
    for (const Operand& operand : module_.operands(instruction.operands))
        if (operand.kind == Operand::Kind::Symbol && !scopes_.find(operand.name))
            if (const SpecialRegister* special = find_special_register(module_.text(operand.name)))
                needed.push_back(special->feature);
    for (Feature each : needed) {
        const FeatureInfo& wanted = info(each);
        const std::string name(wanted.name);
        if (!supports(*target_, each))
            error(instruction.where, std::string(target_->name) + " does not have " + name,
                  "it needs .target sm_" + std::to_string(wanted.target) + (wanted.specific ? "a" : " or higher"));
        else if (const Version version = wanted.version_for(*target_); module_.version < version)
            error(instruction.where, ".version " + to_text(module_.version) + " does not have " + name,
                  "it needs .version " + to_text(version));
    }
}

/// Vectors of ld and st have at most 256 bits, and there are no vectors of .b128.
bool Checker::width(const Instruction& instruction, const Match& match) {
    const std::uint32_t bits = match.vector * match.t.bits;
    const OpcodeKind kind = info(instruction.opcode).kind;
    if ((kind != OpcodeKind::Load && kind != OpcodeKind::Store) || match.vector == 1) return true;
    if (bits <= 256 && match.t.bits < 128) return true;
    error(instruction.where, mnemonic(instruction) + " moves " + std::to_string(bits) + " bits at once",
          "a vector has at most 256 bits, and each element at most 64");
    findings_.back().excerpt = excerpt_of_opcode(module_, instruction);
    return false;
}

void Checker::call(const Instruction& instruction) {
    if (const CallMisfit wrong = misfit_of_call(module_, scopes_, instruction); !wrong.what.empty())
        error(instruction.where, wrong.what, wrong.hint);
}

/// Parameters can only be read, results only written.
void Checker::direction(const Instruction& instruction) {
    const bool writes = instruction.opcode == Opcode::St;
    if (instruction.opcode != Opcode::Ld && !writes) return;
    const std::span<const Operand> given = module_.operands(instruction.operands);
    const auto address = std::ranges::find(given, Operand::Kind::Address, &Operand::kind);
    if (address == given.end() || address->children.count == 0) return;
    const Operand& base = module_.operands(address->children)[0];
    const Declared* symbol = base.kind == Operand::Kind::Symbol ? scopes_.find(base.name) : nullptr;
    if (!symbol || symbol->kind != Declared::Kind::Variable || symbol->place == Place::Module ||
        symbol->place == Place::Body)
        return;
    const bool is_result = symbol->place == Place::Result;
    if (is_result != writes)
        error(instruction.where,
              text(base.name) +
                  (is_result ? " is a result, which cannot be read" : " is a parameter, which cannot be written"),
              "copy it to a register");
}

bool Checker::has_short_addresses(const Instruction& instruction) const {
    return std::ranges::any_of(module_.modifiers(instruction.modifiers), [this](Name modifier) {
        const Modifier space = space_of(spelled_modifier(module_.text(modifier)));
        return space != Modifier::Unknown && space != Modifier::Global;
    });
}

void Checker::operands(const Instruction& instruction, const Match& match) {
    const std::vector<OperandRule> rules = match.rules();
    const std::span<const Operand> given = module_.operands(instruction.operands);
    const std::size_t fewest = fewest_operands(rules);
    if (!takes_any_operands(rules) && (given.size() < fewest || given.size() > rules.size())) {
        const std::string wanted = fewest == rules.size()
                                       ? std::to_string(fewest)
                                       : std::to_string(fewest) + " to " + std::to_string(rules.size());
        error(instruction.where,
              mnemonic(instruction) + " takes " + wanted + (wanted == "1" ? " operand, not " : " operands, not ") +
                  std::to_string(given.size()),
              "it is written " + mnemonic(instruction) + syntax(rules));
        findings_.back().excerpt = excerpt_of_operand(module_, instruction, rules.size());
        return;
    }
    const OpcodeKind kind = info(instruction.opcode).kind;
    const OperandContext context{module_, scopes_, match, has_short_addresses(instruction),
                                 kind == OpcodeKind::Load || kind == OpcodeKind::Store};
    for (std::size_t i = 0; i < std::min(given.size(), rules.size()); ++i) {
        if (rules[i].letter == '*') return;
        const std::string wrong = misfit(context, given[i], rules[i]);
        if (wrong.empty()) continue;
        error(instruction.where,
              "operand " + std::to_string(i + 1) + " of " + mnemonic(instruction) + ", " + print(module_, given[i]) +
                  ", " + wrong,
              "it is written " + mnemonic(instruction) + syntax(rules));
        findings_.back().excerpt = excerpt_of_operand(module_, instruction, i);
    }
}

}  // namespace

std::vector<Diagnostic> check(const Module& module, const CheckOptions& options) {
    return Checker(module, options).run();
}

void check_or_throw(const Module& module, const CheckOptions& options) {
    std::vector<Diagnostic> findings = check(module, options);
    if (std::ranges::any_of(findings, [](const Diagnostic& each) { return each.severity == Severity::Error; }))
        throw Error(std::move(findings));
}

}  // namespace ikat::ptx
