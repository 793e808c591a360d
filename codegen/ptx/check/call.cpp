// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/check/call.hpp"

#include <algorithm>

namespace ikat::ptx {
namespace {

/// The parts of `call (results), callee, (arguments)`.
struct Parts {
    std::span<const Operand> results{}, arguments{};
    const Function* callee = nullptr;
};

Parts take_apart(const Module& module, const Scopes& scopes, const Instruction& call) {
    Parts out;
    for (const Operand& operand : module.operands(call.operands)) {
        if (operand.kind == Operand::Kind::List && !out.callee) out.results = module.operands(operand.children);
        if (operand.kind == Operand::Kind::List && out.callee) out.arguments = module.operands(operand.children);
        if (operand.kind != Operand::Kind::Symbol || out.callee) continue;
        const Declared* symbol = scopes.find(operand.name);
        if (!symbol || symbol->kind != Declared::Kind::Function) return {};
        out.callee = symbol->function;
    }
    return out;
}

class Passing {
public:
    Passing(const Module& module, const Scopes& scopes, std::string callee)
        : module_(module), scopes_(scopes), callee_(std::move(callee)) {}

    CallMisfit count(std::size_t given, std::span<const Variable> formals, const std::string& what) const {
        const auto& last = formals.empty() ? std::vector<std::int64_t>{} : formals.back().declarators.front().extents;
        const bool is_open = !last.empty() && last.front() <= 0;
        if (given == formals.size() || (is_open && given + 1 == formals.size())) return {};
        return {callee_ + (what == "result" ? " has " : " takes ") + std::to_string(formals.size()) + ' ' + what +
                (formals.size() == 1 ? "" : "s") + ", not " + std::to_string(given)};
    }

    CallMisfit type(const Operand& given, const Variable& formal) const {
        const Declared* symbol = given.kind == Operand::Kind::Symbol ? scopes_.find(given.name) : nullptr;
        const Variable::Declarator& declarator = formal.declarators.front();
        const auto wanted = layout(module_, formal, declarator);
        if (!symbol || !wanted || wanted->bytes == 0) return {};
        const std::string shown =
            print(module_, given) + " for " + callee_ + "'s " + std::string(module_.text(declarator.name)) + " has ";
        const bool is_array = !declarator.extents.empty();
        if (symbol->kind == Declared::Kind::Register) {
            const std::uint32_t bits = symbol->type.bits * symbol->lanes;
            const bool fits = is_array || wanted->bytes < 4 || bits == 8 * wanted->bytes;
            if (fits) return {};
            return {shown + std::to_string(bits) + " bits, not " + std::to_string(8 * wanted->bytes)};
        }
        if (symbol->kind != Declared::Kind::Variable || module_.text(symbol->variable->space) != ".param") return {};
        if (symbol->place != Place::Body)
            return {print(module_, given) + " is a parameter of the caller, which cannot be passed on",
                    "copy it to a .param variable of the body"};
        if (symbol->bytes != wanted->bytes)
            return {shown + std::to_string(symbol->bytes) + " bytes, not " + std::to_string(wanted->bytes)};
        const Variable::Declarator& own = symbol->variable->declarators.front();
        if (own.extents.empty() == is_array) return {shown + "another type: one of them is an array"};
        const auto held = layout(module_, *symbol->variable, own);
        if (!held || held->alignment == wanted->alignment) return {};
        return {shown + "an alignment of " + std::to_string(held->alignment) + ", not " +
                std::to_string(wanted->alignment)};
    }

private:
    const Module& module_;
    const Scopes& scopes_;
    std::string callee_;
};

}  // namespace

CallMisfit misfit_of_call(const Module& module, const Scopes& scopes, const Instruction& call) {
    const Parts parts = take_apart(module, scopes, call);
    if (!parts.callee) return {};
    const std::string name(module.text(parts.callee->name));
    if (parts.callee->is_entry) return {name + " is an entry, which cannot be called", "call a .func"};
    const Passing passing(module, scopes, name);
    if (CallMisfit wrong = passing.count(parts.results.size(), parts.callee->results, "result"); !wrong.what.empty())
        return wrong;
    if (CallMisfit wrong = passing.count(parts.arguments.size(), parts.callee->parameters, "argument");
        !wrong.what.empty())
        return wrong;
    for (std::size_t i = 0; i < parts.results.size(); ++i)
        if (CallMisfit wrong = passing.type(parts.results[i], parts.callee->results[i]); !wrong.what.empty())
            return wrong;
    for (std::size_t i = 0; i < std::min(parts.arguments.size(), parts.callee->parameters.size()); ++i)
        if (CallMisfit wrong = passing.type(parts.arguments[i], parts.callee->parameters[i]); !wrong.what.empty())
            return wrong;
    return {};
}

}  // namespace ikat::ptx
