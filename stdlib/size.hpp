// SPDX-License-Identifier: Apache-2.0
// What launch helpers check about sizes before they launch.
#pragma once
#include <cstdint>
#include <string_view>

namespace ikat::stdlib {

/// Throws Error unless the two buffers have equally many elements.
void require_equal_sizes(std::string_view function, std::string_view a, std::uint64_t a_size, std::string_view b,
                         std::uint64_t b_size);

/// Throws Error unless the buffer has at least `wanted` elements.
void require_size(std::string_view function, std::string_view name, std::uint64_t size, std::uint64_t wanted);

/// The size as a kernel's u32 parameter; throws Error when a u32 index cannot reach all elements.
std::uint32_t u32_size(std::string_view function, std::string_view name, std::uint64_t size);

}  // namespace ikat::stdlib
