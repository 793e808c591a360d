// SPDX-License-Identifier: Apache-2.0
// What functions of the library check about sizes before they launch.
#pragma once
#include <cstdint>
#include <string_view>

#include "codegen/support/diagnostic.hpp"

namespace ikat::stdlib {

/// Each throws Error, in the name of a function and at the place of its call.
struct SizeCheck {
    std::string_view function{};
    Location where{};

    /// Two arrays have equally many elements.
    void equal(std::string_view a, std::uint64_t a_size, std::string_view b, std::uint64_t b_size) const;
    /// An array has at least `wanted` elements.
    void at_least(std::string_view name, std::uint64_t size, std::uint64_t wanted) const;
    /// The size as a kernel's u32 parameter: a u32 index reaches all elements.
    std::uint32_t reached(std::string_view name, std::uint64_t size) const;
};

}  // namespace ikat::stdlib
