// SPDX-License-Identifier: Apache-2.0
// PTX's types as the checks see them: a kind and a width.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::nvptx {

struct Type {
    enum class Kind : std::uint8_t {
        None,
        Bits,       // .b32: a register of it takes part in any operation of its width
        Integer,    // .u32 and .s32 alike
        Float,      // .f16 .f32 .f64
        Packed,     // .f16x2 .bf16 .tf32 .e4m3x2 .s16x2: live in registers of bits
        Predicate,  // .pred
        Opaque,     // .texref .surfref .samplerref
    };
    Kind kind = Kind::None;
    std::uint16_t bits = 0;

    explicit operator bool() const { return kind != Kind::None; }
    bool operator==(const Type&) const = default;
};

/// The type that a modifier names, with or without its dot; no type where it names none.
Type find_type(std::string_view modifier);

/// A register declared with type `declared` may stand where an instruction wants `wanted`. With `wider`, as ld, st and
/// cvt have it, an integer or untyped register may also be wider.
bool fits(Type declared, Type wanted, bool wider);

}  // namespace ikat::nvptx
