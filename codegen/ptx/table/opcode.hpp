// SPDX-License-Identifier: Apache-2.0
// The opcodes of PTX as numbers, and the properties of each that do not depend on modifiers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace ikat::ptx {

enum class Opcode : std::uint8_t {
    Unknown,  // a word that is not in the table
#define OPCODE(id, ...) id,
#include "codegen/ptx/table/opcodes.def"
#undef OPCODE
};

/// The category of an opcode.
enum class OpcodeKind : std::uint8_t {
    // These are pure: their results depend only on their operands.
    Arithmetic,
    Bits,
    SpecialFunction,
    Conversion,
    Comparison,
    Move,
    // These do not.
    Load,
    Store,
    SharedLoad,
    SharedStore,
    Atomic,
    AsyncCopy,
    Texture,
    MatrixProduct,
    Barrier,
    WarpOperation,
    ControlFlow,
    Setting,
    Stack,
    None,  // of an unknown opcode
};

struct OpcodeInfo {
    enum Trait : std::uint8_t {
        Bare = 1,        // has a form without operands
        Convergent = 2,  // executed by threads together, or depends on which threads are active
        Jumps = 4,       // control may continue elsewhere
    };
    std::string_view name;
    OpcodeKind kind = OpcodeKind::Arithmetic;
    std::uint8_t traits = 0;

    constexpr bool is(Trait trait) const { return traits & trait; }
    /// Its results depend only on its operands, and it has no effects. A special register among them may read
    /// differently each time.
    constexpr bool is_pure() const { return kind <= OpcodeKind::Move; }
};

namespace opcode_rows {

using enum OpcodeKind;
using enum OpcodeInfo::Trait;
inline constexpr OpcodeInfo rows[] = {
    {.name = "", .kind = OpcodeKind::None},
#define OPCODE(id, name_, kind_, ...) {.name = name_, .kind = kind_, .traits = 0 __VA_OPT__(|) __VA_ARGS__},
#include "codegen/ptx/table/opcodes.def"
#undef OPCODE
};

}  // namespace opcode_rows

inline constexpr std::size_t opcode_count = std::size(opcode_rows::rows);

constexpr const OpcodeInfo& info(Opcode opcode) { return opcode_rows::rows[std::size_t(opcode)]; }

/// The opcode of that name, "add"; Unknown for any other word.
constexpr Opcode find_opcode(std::string_view name) {
    std::size_t first = 1, end = opcode_count;
    while (first < end) {
        const std::size_t middle = (first + end) / 2;
        if (opcode_rows::rows[middle].name < name)
            first = middle + 1;
        else
            end = middle;
    }
    return first < opcode_count && opcode_rows::rows[first].name == name ? Opcode(first) : Opcode::Unknown;
}

}  // namespace ikat::ptx
