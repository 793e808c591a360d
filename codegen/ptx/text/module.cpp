// SPDX-License-Identifier: Apache-2.0
// The module's pools and its table of names: open addressing over 32-bit hashes, names numbered in the order of their
// first use.
#include "codegen/ptx/text/module.hpp"

#include <functional>

namespace ikat::ptx {

/// The slot that holds text, or the free one where it belongs. There is always a free slot.
std::uint32_t Module::slot_of(std::string_view text, std::uint32_t hash) const {
    const auto last = std::uint32_t(slots_.size() - 1);
    std::uint32_t at = hash & last;
    while (slots_[at].name != no_name && (slots_[at].hash != hash || texts_[index(slots_[at].name)] != text))
        at = (at + 1) & last;
    return at;
}

void Module::grow() {
    std::vector<Slot> old(slots_.empty() ? 256 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
        if (slot.name != no_name) slots_[slot_of(texts_[index(slot.name)], slot.hash)] = slot;
}

Name Module::intern(std::string_view text) {
    if ((texts_.size() + 1) * 2 > slots_.size()) grow();
    const auto hash = std::uint32_t(std::hash<std::string_view>{}(text));
    Slot& slot = slots_[slot_of(text, hash)];
    if (slot.name == no_name) {
        slot = {hash, Name(std::uint32_t(texts_.size()))};
        texts_.emplace_back(text);
    }
    return slot.name;
}

Name Module::find(std::string_view text) const {
    if (slots_.empty()) return no_name;
    return slots_[slot_of(text, std::uint32_t(std::hash<std::string_view>{}(text)))].name;
}

std::string_view Module::text(Name name) const {
    return name == no_name ? std::string_view{} : std::string_view(texts_[index(name)]);
}

Opcode Module::opcode(Name spelling) {
    if (index(spelling) >= opcodes_.size()) opcodes_.resize(texts_.size());
    std::optional<Opcode>& known = opcodes_[index(spelling)];
    if (!known) known = find_opcode(text(spelling));
    return *known;
}

Span Module::add_operands(std::span<const Operand> operands) {
    const Span span{std::uint32_t(operands_.size()), std::uint32_t(operands.size())};
    operands_.insert(operands_.end(), operands.begin(), operands.end());
    return span;
}

Span Module::add_modifiers(std::span<const Name> modifiers) {
    const Span span{std::uint32_t(modifiers_.size()), std::uint32_t(modifiers.size())};
    modifiers_.insert(modifiers_.end(), modifiers.begin(), modifiers.end());
    return span;
}

const Function* Module::find_function(std::string_view name) const {
    const auto search = [this](Name wanted) {
        const Function* found = nullptr;
        for (const Function& function : functions)
            if (function.name == wanted && wanted != no_name && (!found || !found->has_body)) found = &function;
        return found;
    };
    const Function* const found = search(find(name));
    if (!found || found->has_body) return found;
    for (const Directive& directive : directives) {
        const std::span<const Operand> given = operands(directive.operands);
        if (text(directive.name) == ".alias" && given.size() == 2 && given[0].name == found->name)
            if (const Function* const aliased = search(given[1].name); aliased && aliased->has_body) return aliased;
    }
    return found;
}

}  // namespace ikat::ptx
