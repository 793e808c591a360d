// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_buffer.hpp"

#include <fmt/format.h>

namespace ikat::runtime {

void check_host_slice(std::uint64_t first, std::uint64_t count, std::uint64_t of, const Location& where) {
    if (first <= of && count <= of - first) return;
    throw Error(Diagnostic{
        .where = where,
        .message = fmt::format("a slice of {} elements from {} on of a host buffer that has {}", count, first, of),
        .hint = "slice(first, count) is inside of the buffer"});
}

}  // namespace ikat::runtime
