// SPDX-License-Identifier: Apache-2.0
// The opcodes of PTX as numbers, and what is known of each whatever its modifiers are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace ikat::nvptx {

enum class Opcode : std::uint8_t {
    Unknown,  // a word that the table does not have
#define OPCODE(id, ...) id,
#include "codegen/ptx/table/opcodes.def"
#undef OPCODE
};

/// What an opcode is for.
enum class OpcodeKind : std::uint8_t {
    // These compute from their operands alone.
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
        Convergent = 2,  // threads do it together, or it tells which are together
        Jumps = 4,       // control may go on elsewhere
    };
    std::string_view name;
    OpcodeKind kind = OpcodeKind::Arithmetic;
    std::uint8_t traits = 0;

    constexpr bool is(Trait trait) const { return traits & trait; }
    /// Its results depend on its operands alone, and it does nothing else. A special register among them may read
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

/// The opcode of that name, "add"; Unknown for a word that is none.
constexpr Opcode find_opcode(std::string_view name) {
    std::size_t first = 1, behind = opcode_count;
    while (first < behind) {
        const std::size_t middle = (first + behind) / 2;
        if (opcode_rows::rows[middle].name < name)
            first = middle + 1;
        else
            behind = middle;
    }
    return first < opcode_count && opcode_rows::rows[first].name == name ? Opcode(first) : Opcode::Unknown;
}

}  // namespace ikat::nvptx
