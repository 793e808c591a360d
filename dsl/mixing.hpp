// SPDX-License-Identifier: Apache-2.0
// Device values of different types do not mix: for each two of them, the sentence that says so. A static_assert takes
// a literal only, hence the table.
#pragma once
#include <cstdint>
#include <type_traits>

#include "codegen/support/half.hpp"

namespace ikat::detail {

template <class A, class B>
struct Mixed {
    template <class>
    static constexpr bool never = false;
    template <class T>
    static constexpr bool allowed() {
        static_assert(never<T>, "these are no types that a device computes in");
        return false;
    }
};

#define IKAT_MIXED(A, B, a, b)                                                                                   \
    template <>                                                                                                  \
    struct Mixed<A, B> {                                                                                         \
        template <class>                                                                                         \
        static constexpr bool never = false;                                                                     \
        template <class T>                                                                                       \
        static constexpr bool allowed() {                                                                        \
            static_assert(never<T>, a " and " b " do not mix: convert one with cast<" a ">() or cast<" b ">()"); \
            return false;                                                                                        \
        }                                                                                                        \
    };                                                                                                           \
    template <>                                                                                                  \
    struct Mixed<B, A> : Mixed<A, B> {};
IKAT_MIXED(std::int32_t, bool, "i32", "pred")
IKAT_MIXED(std::uint32_t, bool, "u32", "pred")
IKAT_MIXED(std::int64_t, bool, "i64", "pred")
IKAT_MIXED(std::uint64_t, bool, "u64", "pred")
IKAT_MIXED(half, bool, "f16", "pred")
IKAT_MIXED(float, bool, "f32", "pred")
IKAT_MIXED(double, bool, "f64", "pred")
IKAT_MIXED(std::int32_t, std::uint32_t, "i32", "u32")
IKAT_MIXED(std::int32_t, std::int64_t, "i32", "i64")
IKAT_MIXED(std::int32_t, std::uint64_t, "i32", "u64")
IKAT_MIXED(std::int32_t, half, "i32", "f16")
IKAT_MIXED(std::int32_t, float, "i32", "f32")
IKAT_MIXED(std::int32_t, double, "i32", "f64")
IKAT_MIXED(std::uint32_t, std::int64_t, "u32", "i64")
IKAT_MIXED(std::uint32_t, std::uint64_t, "u32", "u64")
IKAT_MIXED(std::uint32_t, half, "u32", "f16")
IKAT_MIXED(std::uint32_t, float, "u32", "f32")
IKAT_MIXED(std::uint32_t, double, "u32", "f64")
IKAT_MIXED(std::int64_t, std::uint64_t, "i64", "u64")
IKAT_MIXED(std::int64_t, half, "i64", "f16")
IKAT_MIXED(std::int64_t, float, "i64", "f32")
IKAT_MIXED(std::int64_t, double, "i64", "f64")
IKAT_MIXED(std::uint64_t, half, "u64", "f16")
IKAT_MIXED(std::uint64_t, float, "u64", "f32")
IKAT_MIXED(std::uint64_t, double, "u64", "f64")
IKAT_MIXED(half, float, "f16", "f32")
IKAT_MIXED(half, double, "f16", "f64")
IKAT_MIXED(float, double, "f32", "f64")
#undef IKAT_MIXED

/// True if A and B are one type; else a static_assert fails.
template <class A, class B>
constexpr bool types_match() {
    if constexpr (std::is_same_v<A, B>)
        return true;
    else
        return Mixed<A, B>::template allowed<A>();
}

}  // namespace ikat::detail
