// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/decode/vector_registers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "codegen/ptx/text/words.hpp"

namespace ikat::emulator {

namespace {

using ptx::Module;
using ptx::Name;
using ptx::Operand;
using ptx::Variable;

class Expansion {
public:
    Expansion(Module& module, ptx::Function& function) : module_(module), function_(function) {}

    void run() {
        const auto has_any = [&](const std::vector<Variable>& variables) {
            return std::ranges::any_of(variables, [&](const Variable& variable) { return is_vector(variable); });
        };
        if (!has_any(function_.variables) && !has_any(function_.parameters) && !has_any(function_.results)) return;
        scopes_.emplace_back();
        expand_parameters(function_.results);
        expand_parameters(function_.parameters);
        using Kind = ptx::Statement::Kind;
        for (const ptx::Statement& statement : function_.body) switch (statement.kind) {
                case Kind::ScopeBegin: scopes_.emplace_back(); break;
                case Kind::ScopeEnd: scopes_.pop_back(); break;
                case Kind::Variable: declare(function_.variables[statement.index]); break;
                case Kind::Instruction: rewrite(function_.instructions[statement.index].operands); break;
                default: break;
            }
    }

private:
    using Elements = std::vector<Name>;  // empty: a name that hides a vector register

    bool is_vector(const Variable& variable) const {
        return variable.vector != ptx::no_name && space_of(module_, variable) == ptx::StateSpace::Register;
    }

    const Elements& define(Name name, const Variable& variable) {
        Elements& elements = scopes_.back()[name];
        const int count = module_.text(variable.vector)[2] - '0';
        for (int i = 0; i < count; ++i)
            elements.push_back(module_.intern(std::string(module_.text(name)) + '.' + "xyzw"[i]));
        return elements;
    }

    void declare(Variable& variable) {
        if (!is_vector(variable)) {
            for (const auto& declarator : variable.declarators) scopes_.back()[declarator.name] = {};
            return;
        }
        std::vector<Variable::Declarator> scalars;
        const auto add = [&](Name name) {
            for (const Name element : define(name, variable)) scalars.emplace_back().name = element;
        };
        for (const auto& declarator : variable.declarators) {
            if (!declarator.has_range) add(declarator.name);
            for (std::uint32_t i = 0; declarator.has_range && i < declarator.range; ++i) {
                const Name name = module_.find(std::string(module_.text(declarator.name)) + std::to_string(i));
                if (name != ptx::no_name) add(name);  // else it is unused
            }
        }
        variable.declarators = std::move(scalars);
        variable.vector = ptx::no_name;
    }

    void expand_parameters(std::vector<Variable>& parameters) {
        std::vector<Variable> scalars;
        for (Variable& parameter : parameters) {
            const Variable::Declarator whole = parameter.declarators.front();
            if (!is_vector(parameter)) {
                scalars.push_back(parameter);
                continue;
            }
            for (const Name element : define(whole.name, parameter)) {
                Variable& scalar = scalars.emplace_back(parameter);
                scalar.declarators.front().name = element;
                scalar.vector = ptx::no_name;
            }
        }
        parameters = std::move(scalars);
    }

    const Elements* find(Name name) const {
        for (std::size_t i = scopes_.size(); i-- > 0;)
            if (const auto found = scopes_[i].find(name); found != scopes_[i].end())
                return found->second.empty() ? nullptr : &found->second;
        return nullptr;
    }

    /// .x and .r are the first element, and so on.
    std::optional<std::size_t> number_of(Name suffix) const {
        const std::string_view text = module_.text(suffix);
        if (text.size() != 2) return {};
        std::size_t at = std::string_view("xyzwrgba").find(text[1]);
        return at == std::string_view::npos ? std::nullopt : std::optional(at % 4);
    }

    static Operand symbol(Name name) {
        Operand operand{.kind = Operand::Kind::Symbol};
        operand.name = name;
        return operand;
    }

    /// True if a register in it was replaced.
    bool rewrite(Operand& operand) {
        if (operand.kind != Operand::Kind::Symbol)
            return rewrite(operand.children, operand.kind == Operand::Kind::List);
        const Elements* const elements = find(operand.name);
        if (!elements) return false;
        if (operand.suffix != ptx::no_name) {
            const auto number = number_of(operand.suffix);
            if (!number || *number >= elements->size()) return false;
            operand.name = (*elements)[*number];
            operand.suffix = ptx::no_name;
            return true;
        }
        std::vector<Operand> children;
        for (const Name element : *elements) children.push_back(symbol(element));
        operand = {.kind = Operand::Kind::Vector, .children = module_.add_operands(children)};
        return true;
    }

    /// In the argument list of a call the elements are separate arguments.
    bool rewrite(ptx::Span& span, bool flat = false) {
        bool changed = false;
        std::vector<Operand> all;
        const auto old = module_.operands(span);
        for (Operand operand : std::vector<Operand>(old.begin(), old.end())) {
            const bool was_symbol = operand.kind == Operand::Kind::Symbol;
            changed |= rewrite(operand);
            if (flat && was_symbol && operand.kind == Operand::Kind::Vector)
                for (const Operand& element : module_.operands(operand.children)) all.push_back(element);
            else
                all.push_back(operand);
        }
        if (changed) span = module_.add_operands(all);
        return changed;
    }

    Module& module_;
    ptx::Function& function_;
    std::vector<std::unordered_map<Name, Elements>> scopes_;
};

}  // namespace

Module without_vector_registers(Module module) {
    for (ptx::Function& function : module.functions) Expansion(module, function).run();
    return module;
}

}  // namespace ikat::emulator
