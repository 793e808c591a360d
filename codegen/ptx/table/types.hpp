// SPDX-License-Identifier: Apache-2.0
// PTX's types for the checks: a kind and a width.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::ptx {

struct Type {
    enum class Kind : std::uint8_t {
        None,
        Bits,       // .b32: such a register can be used in any operation of its width
        Integer,    // .u32 and .s32 alike
        Float,      // .f16 .f32 .f64
        Packed,     // .f16x2 .bf16 .tf32 .e4m3x2 .s16x2: held in untyped registers
        Predicate,  // .pred
        Opaque,     // .texref .surfref .samplerref
    };
    Kind kind = Kind::None;
    std::uint16_t bits = 0;

    explicit operator bool() const { return kind != Kind::None; }
    bool operator==(const Type&) const = default;
};

/// The type that a modifier names, with or without its dot; None if it names none.
Type find_type(std::string_view modifier);

/// Whether a register declared with type `declared` can be used where an instruction needs `wanted`. With `wider` (ld,
/// st and cvt), an integer or untyped register may also be wider.
bool fits(Type declared, Type wanted, bool wider);

}  // namespace ikat::ptx
