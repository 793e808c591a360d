// SPDX-License-Identifier: Apache-2.0
// The modifiers of an instruction as a set from which they are taken; what is left over was not understood.
#pragma once
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "codegen/ptx/text/module.hpp"
#include "runtime/emulator/ops/handlers.hpp"

namespace ikat::emulator {

class Modifiers {
public:
    Modifiers(const nvptx::Module& module, const nvptx::Instruction& instruction);
    bool take(std::string_view modifier);
    bool has(std::string_view modifier) const;
    /// The first of these that is there, or "".
    std::string_view take_any(std::initializer_list<std::string_view> modifiers);
    /// What the first name of a list that is there stands for.
    template <class T, std::size_t N>
    std::optional<T> take_named(const std::pair<std::string_view, T> (&names)[N]) {
        for (const auto& [name, meaning] : names)
            if (take(name)) return meaning;
        return {};
    }
    /// The first type that is left.
    std::optional<Type> take_type();
    Rounding take_rounding();
    void take_cache_hints();
    /// The state space, .generic when none is written. `.param` stands for itself; variables know better (see address).
    Space take_space();
    void take_all() { count_ = 0; }
    std::string_view left() const { return count_ ? rest_[0] : std::string_view{}; }

private:
    std::span<const std::string_view> rest() const { return std::span(rest_).first(count_); }
    void erase(std::size_t i);

    std::array<std::string_view, 32> rest_;  // of more, none would be understood
    std::size_t count_ = 0;
};

std::optional<Type> type_of(std::string_view modifier);
constexpr std::uint8_t slot_of(Type type) { return type == Type::Pred ? 0 : ir::info(type).bytes == 8 ? 8 : 4; }

}  // namespace ikat::emulator
