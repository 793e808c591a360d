// SPDX-License-Identifier: Apache-2.0
// The modifiers of an instruction as a set from which known ones are removed; the rest is not supported.
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
    /// Removes and returns the first of these that is present, or "".
    std::string_view take_any(std::initializer_list<std::string_view> modifiers);
    /// The value of the first name of a list that is present.
    template <class T, std::size_t N>
    std::optional<T> take_named(const std::pair<std::string_view, T> (&names)[N]) {
        for (const auto& [name, meaning] : names)
            if (take(name)) return meaning;
        return {};
    }
    /// Removes and returns the first remaining type.
    std::optional<Type> take_type();
    Rounding take_rounding();
    void take_cache_hints();
    /// The state space, .generic if none is written. `.param` is returned as such; variables refine it (see address).
    Space take_space();
    void take_all() { count_ = 0; }
    std::string_view left() const { return count_ ? rest_[0] : std::string_view{}; }

private:
    std::span<const std::string_view> rest() const { return std::span(rest_).first(count_); }
    void erase(std::size_t i);

    std::array<std::string_view, 32> rest_;  // more would not be supported anyway
    std::size_t count_ = 0;
};

std::optional<Type> type_of(std::string_view modifier);
constexpr std::uint8_t slot_of(Type type) { return type == Type::Pred ? 0 : ir::info(type).bytes == 8 ? 8 : 4; }

}  // namespace ikat::emulator
