// SPDX-License-Identifier: Apache-2.0
// What is wrong with an instruction: its opcode, modifiers, operands, and the features that it needs.
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
    static constexpr std::string_view of_the_system[] = {"vprintf", "__assertfail", "malloc", "free",
                                                         "cudaGraphSetConditional"};
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

}  // namespace ikat::ptx
