// SPDX-License-Identifier: Apache-2.0
// The modifiers of PTX instructions as numbers, so that nothing has to compare their text.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace ikat::ptx {

enum class Modifier : std::uint16_t {
    Unknown,  // a word that no form takes
#define MODIFIER(id, ...) id,
#include "codegen/ptx/table/modifiers.def"
#undef MODIFIER
};

namespace modifier_rows {

inline constexpr std::string_view names[] = {
    "",
#define MODIFIER(id, name) name,
#include "codegen/ptx/table/modifiers.def"
#undef MODIFIER
};
static_assert(std::ranges::is_sorted(names), "find_modifier does a binary search");

}  // namespace modifier_rows

inline constexpr std::size_t modifier_count = std::size(modifier_rows::names);

/// Without its dot: "rn".
constexpr std::string_view name(Modifier modifier) { return modifier_rows::names[std::size_t(modifier)]; }

/// The modifier of that name, with no dot; Unknown for any other word.
constexpr Modifier find_modifier(std::string_view name) {
    const auto found = std::ranges::lower_bound(modifier_rows::names, name);
    if (found == std::end(modifier_rows::names) || *found != name) return Modifier::Unknown;
    return Modifier(found - std::begin(modifier_rows::names));
}

/// The modifier that an instruction spells, dot included: ".rn".
Modifier spelled_modifier(std::string_view spelling);

/// The state space that a modifier names, without its part: Shared for Shared, SharedCta and SharedCluster. Unknown for
/// modifiers that name no space.
constexpr Modifier space_of(Modifier modifier) {
    switch (modifier) {
        case Modifier::Const:
        case Modifier::Global:
        case Modifier::Local: return modifier;
        case Modifier::Param:
        case Modifier::ParamEntry:
        case Modifier::ParamFunc: return Modifier::Param;
        case Modifier::Shared:
        case Modifier::SharedCta:
        case Modifier::SharedCluster: return Modifier::Shared;
        default: return Modifier::Unknown;
    }
}

namespace table {

/// A modifier by its name, which must be in modifiers.def.
struct Word {
    Modifier modifier = Modifier::Unknown;

    constexpr Word() = default;
    consteval Word(const char* name) : modifier(find_modifier(name)) {
        if (modifier == Modifier::Unknown) throw "modifiers.def does not have it";
    }
};

}  // namespace table

}  // namespace ikat::ptx
