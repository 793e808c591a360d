// SPDX-License-Identifier: Apache-2.0
// Typed ids. A compiler object is identified by a 32-bit index into its owner's vector; the index has its own type,
// owns nothing, is free to copy and stays valid when the vector grows:
//
//     enum class Value : std::uint32_t {};
//     values_[index(v)]
#pragma once
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <utility>

namespace ikat {

template <class T>
concept Id = std::is_enum_v<T> && std::is_same_v<std::underlying_type_t<T>, std::uint32_t>;

/// The invalid id.
template <Id T>
inline constexpr T no_id = T(~0u);

template <Id T>
constexpr std::uint32_t index(T id) {
    return std::to_underlying(id);
}

/// All ids of a vector with `count` elements, in order.
template <Id T>
constexpr auto ids(std::size_t count) {
    return std::views::iota(std::uint32_t{0}, std::uint32_t(count)) |
           std::views::transform([](std::uint32_t i) { return T(i); });
}

}  // namespace ikat
