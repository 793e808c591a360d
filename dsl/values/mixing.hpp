// SPDX-License-Identifier: Apache-2.0
// Device values of different types do not mix: the error message for each pair of types. A static_assert takes only a
// literal, hence the table.
#pragma once
#pragma GCC system_header  // a user's mistake is one line, not the fifteen macros behind it
#include <cstdint>
#include <type_traits>

#include "codegen/support/half.hpp"

namespace ikat::detail {

/// For two types that differ. `match` exists so that it can be named.
template <class L, class R>
struct TypesMatch {
    static constexpr bool match = false;
    template <class A, class B>
    static constexpr bool are = (std::is_same_v<L, A> && std::is_same_v<R, B>) ||
                                (std::is_same_v<L, B> && std::is_same_v<R, A>);
#define IKAT_MIXED(A, B, a, b) \
    static_assert(!are<A, B>, a " and " b " do not mix: convert one with cast<" a ">() or cast<" b ">()");
// Each list is the previous one plus one type; X pairs the type T of the name t with each of them.
// clang-format off
#define IKAT_UP_TO_pred(X, T, t)   X(T, bool, t, "pred")
#define IKAT_UP_TO_i8(X, T, t) IKAT_UP_TO_pred(X, T, t) X(std::int8_t, T, "i8", t)
#define IKAT_UP_TO_u8(X, T, t) IKAT_UP_TO_i8(X, T, t) X(std::uint8_t, T, "u8", t)
#define IKAT_UP_TO_i16(X, T, t) IKAT_UP_TO_u8(X, T, t) X(std::int16_t, T, "i16", t)
#define IKAT_UP_TO_u16(X, T, t) IKAT_UP_TO_i16(X, T, t) X(std::uint16_t, T, "u16", t)
#define IKAT_UP_TO_i32(X, T, t) IKAT_UP_TO_u16(X, T, t) X(std::int32_t, T, "i32", t)
#define IKAT_UP_TO_u32(X, T, t) IKAT_UP_TO_i32(X, T, t) X(std::uint32_t, T, "u32", t)
#define IKAT_UP_TO_i64(X, T, t) IKAT_UP_TO_u32(X, T, t) X(std::int64_t, T, "i64", t)
#define IKAT_UP_TO_u64(X, T, t) IKAT_UP_TO_i64(X, T, t) X(std::uint64_t, T, "u64", t)
#define IKAT_UP_TO_f16(X, T, t) IKAT_UP_TO_u64(X, T, t) X(half, T, "f16", t)
#define IKAT_UP_TO_bf16(X, T, t) IKAT_UP_TO_f16(X, T, t) X(bfloat16, T, "bf16", t)
#define IKAT_UP_TO_f32(X, T, t) IKAT_UP_TO_bf16(X, T, t) X(float, T, "f32", t)
#define IKAT_UP_TO_f64(X, T, t) IKAT_UP_TO_f32(X, T, t) X(double, T, "f64", t)
#define IKAT_UP_TO_f16x2(X, T, t) IKAT_UP_TO_f64(X, T, t) X(half2, T, "f16x2", t)
#define IKAT_UP_TO_bf16x2(X, T, t) IKAT_UP_TO_f16x2(X, T, t) X(bfloat16x2, T, "bf16x2", t)
#define IKAT_UP_TO_e4m3(X, T, t) IKAT_UP_TO_bf16x2(X, T, t) X(e4m3, T, "e4m3", t)
#define IKAT_UP_TO_e5m2(X, T, t) IKAT_UP_TO_e4m3(X, T, t) X(e5m2, T, "e5m2", t)
#define IKAT_UP_TO_e4m3x2(X, T, t) IKAT_UP_TO_e5m2(X, T, t) X(e4m3x2, T, "e4m3x2", t)
IKAT_UP_TO_pred(IKAT_MIXED, std::int8_t, "i8")
IKAT_UP_TO_i8(IKAT_MIXED, std::uint8_t, "u8")
IKAT_UP_TO_u8(IKAT_MIXED, std::int16_t, "i16")
IKAT_UP_TO_i16(IKAT_MIXED, std::uint16_t, "u16")
IKAT_UP_TO_u16(IKAT_MIXED, std::int32_t, "i32")
IKAT_UP_TO_i32(IKAT_MIXED, std::uint32_t, "u32")
IKAT_UP_TO_u32(IKAT_MIXED, std::int64_t, "i64")
IKAT_UP_TO_i64(IKAT_MIXED, std::uint64_t, "u64")
IKAT_UP_TO_u64(IKAT_MIXED, half, "f16")
IKAT_UP_TO_f16(IKAT_MIXED, bfloat16, "bf16")
IKAT_UP_TO_bf16(IKAT_MIXED, float, "f32")
IKAT_UP_TO_f32(IKAT_MIXED, double, "f64")
IKAT_UP_TO_f64(IKAT_MIXED, half2, "f16x2")
IKAT_UP_TO_f16x2(IKAT_MIXED, bfloat16x2, "bf16x2")
IKAT_UP_TO_bf16x2(IKAT_MIXED, e4m3, "e4m3")
IKAT_UP_TO_e4m3(IKAT_MIXED, e5m2, "e5m2")
IKAT_UP_TO_e5m2(IKAT_MIXED, e4m3x2, "e4m3x2")
IKAT_UP_TO_e4m3x2(IKAT_MIXED, e5m2x2, "e5m2x2")
// clang-format on
#undef IKAT_UP_TO_pred
#undef IKAT_UP_TO_i8
#undef IKAT_UP_TO_u8
#undef IKAT_UP_TO_i16
#undef IKAT_UP_TO_u16
#undef IKAT_UP_TO_i32
#undef IKAT_UP_TO_u32
#undef IKAT_UP_TO_i64
#undef IKAT_UP_TO_u64
#undef IKAT_UP_TO_f16
#undef IKAT_UP_TO_bf16
#undef IKAT_UP_TO_f32
#undef IKAT_UP_TO_f64
#undef IKAT_UP_TO_f16x2
#undef IKAT_UP_TO_bf16x2
#undef IKAT_UP_TO_e4m3
#undef IKAT_UP_TO_e5m2
#undef IKAT_UP_TO_e4m3x2
#undef IKAT_MIXED
};
template <class T>
struct TypesMatch<T, T> {
    static constexpr bool match = true;
};

}  // namespace ikat::detail
