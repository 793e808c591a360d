// SPDX-License-Identifier: Apache-2.0
#include "stdlib/size.hpp"

#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"

namespace ikat::stdlib {

void require_equal_sizes(std::string_view function, std::string_view a, std::uint64_t a_size, std::string_view b,
                         std::uint64_t b_size) {
    if (a_size == b_size) return;
    throw Error(fmt::format("{}: '{}' has {} elements and '{}' has {}", function, a, a_size, b, b_size),
                "both take part element by element: make them equally long");
}

void require_size(std::string_view function, std::string_view name, std::uint64_t size, std::uint64_t wanted) {
    if (size >= wanted) return;
    throw Error(fmt::format("{}: '{}' has {} elements, {} are needed", function, name, size, wanted),
                "check the dimensions against the buffer's size");
}

std::uint32_t u32_size(std::string_view function, std::string_view name, std::uint64_t size) {
    if (size <= ~0u) return std::uint32_t(size);
    throw Error(fmt::format("{}: '{}' has {} elements, more than a 32-bit index reaches", function, name, size),
                "split the work into several launches");
}

}  // namespace ikat::stdlib
