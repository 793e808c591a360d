// SPDX-License-Identifier: Apache-2.0
// The scalar types of the IR, sets of them, and their C++ models.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "codegen/support/half.hpp"

namespace ikat::ir {

/// Any scalar as raw bits, zero-extended.
using Word = std::uint64_t;

enum class Type : std::uint8_t {
    Void,
    Pred,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    BF16,
    F16x2,  // two lanes in one register
    BF16x2,
    E4M3,  // 8-bit floats: only converted; arithmetic uses other types
    E5M2,
    E4M3x2,
    E5M2x2,
};
inline constexpr int type_count = int(Type::E5M2x2) + 1;

/// Sets of types, for the domain column of ops.def.
using TypeSet = std::uint32_t;
template <class... T>
constexpr TypeSet set(T... types) {
    return (0u | ... | (1u << int(types)));
}
constexpr bool contains(TypeSet types, Type type) { return types >> int(type) & 1; }

inline constexpr TypeSet SignedInt = set(Type::I32, Type::I64), UnsignedInt = set(Type::U32, Type::U64);
inline constexpr TypeSet Int = SignedInt | UnsignedInt;  // types that all integer instructions of PTX support
inline constexpr TypeSet ByteInt = set(Type::I8, Type::U8), ShortInt = set(Type::I16, Type::U16);
inline constexpr TypeSet NarrowInt = ByteInt | ShortInt;
inline constexpr TypeSet AnyInt = Int | NarrowInt;
inline constexpr TypeSet AnySignedInt = SignedInt | set(Type::I8, Type::I16);
inline constexpr TypeSet AnyUnsignedInt = UnsignedInt | set(Type::U8, Type::U16);
inline constexpr TypeSet Float = set(Type::F16, Type::BF16, Type::F32, Type::F64);
inline constexpr TypeSet Packed = set(Type::F16x2, Type::BF16x2);
inline constexpr TypeSet SmallFloat = set(Type::F16, Type::BF16) | Packed;
inline constexpr TypeSet Float8 = set(Type::E4M3, Type::E5M2), PackedFloat8 = set(Type::E4M3x2, Type::E5M2x2);
inline constexpr TypeSet Num = Int | Float;
inline constexpr TypeSet Bits = AnyInt | set(Type::Pred);
inline constexpr TypeSet Signed = AnySignedInt | Float | Packed;
inline constexpr TypeSet Updatable = Int | ShortInt;  // integers with atomic operations
inline constexpr TypeSet Word32 = set(Type::I32, Type::U32), Words = Word32 | set(Type::I64, Type::U64);
inline constexpr TypeSet AnyNum = AnyInt | Float;
inline constexpr TypeSet Storable = AnyNum | Packed | Float8 | PackedFloat8;  // what memory holds
inline constexpr TypeSet Any = Storable | set(Type::Pred);

/// A type's spelling and size. `typed` and `bits` are PTX's suffixes.
struct TypeInfo {
    std::string_view name, typed, bits;
    std::uint8_t bytes;
};
inline constexpr TypeInfo type_table[] = {
    {"void", "", "", 0},
    {"pred", "pred", "pred", 1},
    {"i8", "s8", "b8", 1},
    {"u8", "u8", "b8", 1},
    {"i16", "s16", "b16", 2},
    {"u16", "u16", "b16", 2},
    {"i32", "s32", "b32", 4},
    {"u32", "u32", "b32", 4},
    {"i64", "s64", "b64", 8},
    {"u64", "u64", "b64", 8},
    {"f16", "f16", "b16", 2},
    {"f32", "f32", "b32", 4},
    {"f64", "f64", "b64", 8},
    {"bf16", "bf16", "b16", 2},
    {"f16x2", "f16x2", "b32", 4},
    {"bf16x2", "bf16x2", "b32", 4},
    {"e4m3", "e4m3", "b8", 1},
    {"e5m2", "e5m2", "b8", 1},
    {"e4m3x2", "e4m3x2", "b16", 2},
    {"e5m2x2", "e5m2x2", "b16", 2},
};
static_assert(std::size(type_table) == type_count);
constexpr const TypeInfo& info(Type type) { return type_table[int(type)]; }
constexpr int bits(Type type) { return type == Type::Pred ? 1 : info(type).bytes * 8; }
/// A float, or lanes of them.
constexpr bool is_float(Type type) { return contains(Float | Packed | Float8 | PackedFloat8, type); }
constexpr bool is_packed(Type type) { return contains(Packed | PackedFloat8, type); }
constexpr bool is_signed(Type type) { return is_float(type) || contains(AnySignedInt, type); }
/// The type of one lane of a packed type; other types map to themselves.
constexpr Type lane(Type type) {
    switch (type) {
        case Type::F16x2: return Type::F16;
        case Type::BF16x2: return Type::BF16;
        case Type::E4M3x2: return Type::E4M3;
        case Type::E5M2x2: return Type::E5M2;
        default: return type;
    }
}

/// The type with that name in IR text, if there is one.
constexpr std::optional<Type> type_named(std::string_view name) {
    for (int t = 0; t < type_count; ++t)
        if (type_table[t].name == name) return Type(t);
    return {};
}

/// Calls f.template operator()<T>() with the C++ type that models `type` (never Void).
constexpr decltype(auto) with_type(Type type, auto&& f) {
    switch (type) {
        case Type::I8: return f.template operator()<std::int8_t>();
        case Type::U8: return f.template operator()<std::uint8_t>();
        case Type::I16: return f.template operator()<std::int16_t>();
        case Type::U16: return f.template operator()<std::uint16_t>();
        case Type::I32: return f.template operator()<std::int32_t>();
        case Type::U32: return f.template operator()<std::uint32_t>();
        case Type::I64: return f.template operator()<std::int64_t>();
        case Type::U64: return f.template operator()<std::uint64_t>();
        case Type::F16: return f.template operator()<half>();
        case Type::F32: return f.template operator()<float>();
        case Type::F64: return f.template operator()<double>();
        case Type::BF16: return f.template operator()<bfloat16>();
        case Type::F16x2: return f.template operator()<half2>();
        case Type::BF16x2: return f.template operator()<bfloat16x2>();
        case Type::E4M3: return f.template operator()<e4m3>();
        case Type::E5M2: return f.template operator()<e5m2>();
        case Type::E4M3x2: return f.template operator()<e4m3x2>();
        case Type::E5M2x2: return f.template operator()<e5m2x2>();
        default: return f.template operator()<bool>();
    }
}

/// The IR type that a C++ type models; Void for a type that models none.
template <class T>
inline constexpr Type type_of = Type::Void;
template <>
inline constexpr Type type_of<bool> = Type::Pred;
template <>
inline constexpr Type type_of<std::int8_t> = Type::I8;
template <>
inline constexpr Type type_of<std::uint8_t> = Type::U8;
template <>
inline constexpr Type type_of<std::int16_t> = Type::I16;
template <>
inline constexpr Type type_of<std::uint16_t> = Type::U16;
template <>
inline constexpr Type type_of<std::int32_t> = Type::I32;
template <>
inline constexpr Type type_of<std::uint32_t> = Type::U32;
template <>
inline constexpr Type type_of<std::int64_t> = Type::I64;
template <>
inline constexpr Type type_of<std::uint64_t> = Type::U64;
template <>
inline constexpr Type type_of<half> = Type::F16;
template <>
inline constexpr Type type_of<float> = Type::F32;
template <>
inline constexpr Type type_of<double> = Type::F64;
template <>
inline constexpr Type type_of<bfloat16> = Type::BF16;
template <>
inline constexpr Type type_of<half2> = Type::F16x2;
template <>
inline constexpr Type type_of<bfloat16x2> = Type::BF16x2;
template <>
inline constexpr Type type_of<e4m3> = Type::E4M3;
template <>
inline constexpr Type type_of<e5m2> = Type::E5M2;
template <>
inline constexpr Type type_of<e4m3x2> = Type::E4M3x2;
template <>
inline constexpr Type type_of<e5m2x2> = Type::E5M2x2;

}  // namespace ikat::ir
