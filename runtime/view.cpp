// SPDX-License-Identifier: Apache-2.0
#include "runtime/view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/buffer.hpp"
#include "runtime/facts/launch_view.hpp"

namespace ikat::runtime {

namespace {

/// The memory that a part belongs to.
const MemoryBlock& memory_of(const BufferPart& part) {
    if (part.is_there()) return *part.memory;
    throw Error(part.memory ? freed : "a slice of no buffer is used",
                part.memory ? freed_hint : "buffer.slice(first, count) is one");
}

}  // namespace

BufferPart part_of(const BufferPart& whole, std::uint64_t first, std::uint64_t count, std::size_t element_bytes) {
    const MemoryBlock& memory = memory_of(whole);
    const std::uint64_t size = whole.bytes / element_bytes;
    if (first > size || count > size - first)
        throw Error(fmt::format("a slice of {} elements from element {} on, of buffer '{}', which has {} there", count,
                                first, memory.name(), size),
                    "slice(first, count) must be inside its buffer or slice");
    return {whole.memory, whole.offset + first * element_bytes, count * element_bytes};
}

std::uint64_t view_size(std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches) {
    if (std::ranges::find(extents, 0) != extents.end()) return 0;
    std::uint64_t size = extents.back();
    for (std::size_t d = 0; d < pitches.size(); ++d) size += (extents[d] - 1) * pitches[d];
    return size;
}

std::string view_problem(std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches,
                         std::uint64_t elements) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 32;
    const std::string shape = fmt::format("a view of {} elements", fmt::join(extents, " x "));
    for (std::span<const std::uint64_t> numbers : {extents, pitches})
        for (const std::uint64_t number : numbers)
            if (number >= limit)
                return fmt::format("{} with an extent or a pitch of {}, which is not below 2^32", shape, number);
    const bool is_empty = std::ranges::find(extents, 0) != extents.end();
    std::uint64_t inner = is_empty ? 0 : extents.back();  // elements from the first to the last of an index
    for (const std::size_t d : emulator::outwards(pitches)) {
        if (extents[d] <= 1) continue;
        if (pitches[d] < inner)
            return fmt::format("{} with a pitch of {}, which is less than {}", shape, pitches[d], inner);
        inner += (extents[d] - 1) * pitches[d];
    }
    const std::uint64_t size = view_size(extents, pitches);
    if (size > elements)
        return fmt::format("{} with pitch {} needs {}, and there are {}", shape, fmt::join(pitches, " and "), size,
                           elements);
    return {};
}

namespace detail {

void read(const BufferPart& part, std::span<std::byte> to) {
    Backend& device = *memory_of(part).device();
    device.read(part.address(), to, default_stream);
    device.synchronize(default_stream);
}

void write(const BufferPart& part, std::span<const std::byte> from) {
    const MemoryBlock& memory = memory_of(part);
    if (from.size() > part.bytes)
        throw Error(fmt::format("an upload of {} bytes for a slice of buffer '{}', which has {}", from.size(),
                                memory.name(), part.bytes),
                    "make the slice large enough");
    Backend& device = *memory.device();
    device.write(part.address(), from, default_stream);
    device.synchronize(default_stream);
}

void check_columns(std::uint64_t first, std::uint64_t count, std::uint64_t of) {
    if (first <= of && count <= of - first) return;
    throw Error("columns from " + std::to_string(first) + " on, " + std::to_string(count) + " of them, of rows of " +
                    std::to_string(of) + " elements",
                "columns(first, count) takes a part of each row");
}

void check_pieces(std::uint64_t length, std::uint64_t of) {
    if (length != 0 && of % length == 0) return;
    throw Error("rows of " + std::to_string(of) + " elements in pieces of " + std::to_string(length),
                "split(length) needs rows that are whole pieces");
}

void check_view(const BufferPart& part, std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches,
                std::size_t element_bytes) {
    const MemoryBlock& memory = memory_of(part);
    const std::string problem = view_problem(extents, pitches, part.bytes / element_bytes);
    if (!problem.empty())
        throw Error(fmt::format("buffer '{}': {}", memory.name(), problem),
                    "a view must lie inside its buffer: view(rows, columns), view(planes, rows, columns)");
}

}  // namespace detail
}  // namespace ikat::runtime
