// SPDX-License-Identifier: Apache-2.0
// The checks of sizes and choices that the library's functions make before they launch.
#pragma once
#include <cstdint>
#include <string_view>

#include "codegen/support/diagnostic.hpp"

namespace ikat::stdlib {

/// Each check throws Error, which names the function and has the location of its call.
struct SizeCheck {
    std::string_view function{};
    Location where{};

    /// That an array has at least `wanted` elements.
    void at_least(std::string_view name, std::uint64_t size, std::uint64_t wanted) const;
    /// That a u32 index reaches all elements; gives the size as a u32.
    std::uint32_t reached(std::string_view name, std::uint64_t size) const;
    /// That an enumerator is one of the `count` of its type.
    void enumerator(std::string_view name, std::size_t given, std::size_t count) const;
};

}  // namespace ikat::stdlib
