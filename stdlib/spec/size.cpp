// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/size.hpp"

#include <fmt/format.h>

namespace ikat::stdlib {

void SizeCheck::at_least(std::string_view name, std::uint64_t size, std::uint64_t wanted) const {
    if (size >= wanted) return;
    throw Error(
        Diagnostic{.where = where,
                   .message = fmt::format("{}: '{}' has {} elements, {} are needed", function, name, size, wanted),
                   .hint = "check the dimensions against the buffer's size"});
}

std::uint32_t SizeCheck::reached(std::string_view name, std::uint64_t size) const {
    if (size <= ~0u) return std::uint32_t(size);
    throw Error(Diagnostic{
        .where = where,
        .message = fmt::format("{}: '{}' has {} elements, more than a 32-bit index reaches", function, name, size),
        .hint = "split the work into several launches"});
}

void SizeCheck::enumerator(std::string_view name, std::size_t given, std::size_t count) const {
    if (given < count) return;
    throw Error(
        Diagnostic{.where = where,
                   .message = fmt::format("{}: '{}' is {}, which is not an enumerator", function, name, given),
                   .hint = fmt::format("its type has {}, from 0 to {}: write one by its name", count, count - 1)});
}

}  // namespace ikat::stdlib
