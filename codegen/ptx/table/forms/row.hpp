// SPDX-License-Identifier: Apache-2.0
// A row of the table of forms in source form (forms.hpp).
#pragma once
#include <string_view>

#include "codegen/ptx/table/modifier.hpp"
#include "codegen/ptx/table/opcode.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::ptx::table {

/// An opcode by its name, which must be in opcodes.def.
struct Stem {
    Opcode opcode = Opcode::Unknown;

    constexpr Stem() = default;
    consteval Stem(const char* name) : opcode(find_opcode(name)) {
        if (opcode == Opcode::Unknown) throw "opcodes.def does not have it";
    }
};

struct Row {
    Stem stem;
    std::string_view modifiers = "";
    std::string_view operands = "";
    Feature feature = Feature::None;
};

/// $name: alternatives; @name: groups.
struct Set {
    std::string_view name, alternatives;
};

struct ModifierFeature {
    Word word;
    Feature feature;
    Stem stem{};  // on this opcode; on any if unknown
};

}  // namespace ikat::ptx::table
