// SPDX-License-Identifier: Apache-2.0
// The modifiers of an instruction as a set from which known ones are removed; the rest is not supported.
#pragma once
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/ptx/table/modifier.hpp"
#include "codegen/ptx/text/module.hpp"
#include "runtime/emulator/ops/handlers.hpp"

namespace ikat::emulator {

using ptx::Modifier;

/// What the words of a module are as modifiers; each is looked up once.
class KnownModifiers {
public:
    explicit KnownModifiers(const ptx::Module& module) : module_(module) {}
    Modifier find(ptx::Name spelling) {
        if (index(spelling) >= known_.size()) known_.resize(index(spelling) + 1);
        std::optional<Modifier>& known = known_[index(spelling)];
        if (!known) known = ptx::spelled_modifier(module_.text(spelling));
        return *known;
    }

private:
    const ptx::Module& module_;
    std::vector<std::optional<Modifier>> known_;  // by Name
};

class Modifiers {
public:
    Modifiers(KnownModifiers& known, std::span<const ptx::Name> spellings);
    bool take(Modifier modifier);
    bool has(Modifier modifier) const;
    /// Removes and returns the first of these that is present, or Unknown.
    Modifier take_any(std::initializer_list<Modifier> modifiers);
    /// The same of the first of the instruction's, where their order matters.
    Modifier take_next(std::initializer_list<Modifier> modifiers);
    /// The value of the first modifier of a list that is present.
    template <class T, std::size_t N>
    std::optional<T> take_named(const std::pair<Modifier, T> (&list)[N]) {
        for (const auto& [modifier, meaning] : list)
            if (take(modifier)) return meaning;
        return {};
    }
    /// Removes and returns the first remaining type.
    std::optional<Type> take_type();
    Rounding take_rounding();
    /// The number of elements: 2, 4 or 8; 1 without .v2, .v4 and .v8.
    unsigned take_vector();
    void take_cache_hints();
    /// The state space, .generic if none is written. `.param` is returned as such; variables refine it (see address).
    Space take_space();
    void take_all() { count_ = 0; }
    /// The spelling of the first that is left, or no_name.
    ptx::Name left() const { return count_ ? rest_[0].spelling : ptx::no_name; }

private:
    struct Spelled {
        Modifier modifier;
        ptx::Name spelling;
    };
    std::span<const Spelled> rest() const { return std::span(rest_).first(count_); }
    void erase(std::size_t i);

    std::array<Spelled, 32> rest_;  // more would not be supported anyway
    std::size_t count_ = 0;
};

std::optional<Type> type_of(Modifier modifier);
constexpr std::uint8_t slot_of(Type type) { return type == Type::Pred ? 0 : ir::info(type).bytes == 8 ? 8 : 4; }

}  // namespace ikat::emulator
