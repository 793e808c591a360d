// SPDX-License-Identifier: Apache-2.0
#include "runtime/view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/buffer.hpp"
#include "runtime/facts/launch_view.hpp"
#include "runtime/graph/recording.hpp"

namespace ikat::runtime {

namespace {

/// The memory that a part belongs to.
const MemoryBlock& memory_of(const BufferPart& part, const Location& where = {}) {
    if (part.is_there()) return *part.memory;
    throw Error(part.memory ? freed : "a slice of no buffer is used",
                part.memory ? freed_hint : "buffer.slice(first, count) is one")
        .located(where);
}

std::string too_small_pitch_hint(std::uint64_t inner, std::uint64_t row) {
    return inner == row ? fmt::format("the pitch must be at least the row length, {}", row)
                        : fmt::format("the pitch must be at least {}, the length of what it steps over", inner);
}

}  // namespace

BufferPart part_of(const BufferPart& whole, std::uint64_t first, std::uint64_t count, std::size_t element_bytes,
                   const Location& where) {
    const MemoryBlock& memory = memory_of(whole, where);
    const std::uint64_t size = whole.bytes / element_bytes;
    if (first > size || count > size - first)
        throw Error(fmt::format("a slice of {} elements from element {} on, of buffer '{}', which has {} there", count,
                                first, memory.name(), size),
                    "slice(first, count) must be inside its buffer or slice")
            .located(where);
    return {whole.memory, whole.offset + first * element_bytes, count * element_bytes};
}

std::uint64_t view_size(std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches) {
    if (std::ranges::find(extents, 0) != extents.end()) return 0;
    std::uint64_t size = extents.back();
    for (std::size_t d = 0; d < pitches.size(); ++d) size += (extents[d] - 1) * pitches[d];
    return size;
}

ViewProblem view_problem(std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches,
                         std::uint64_t elements) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 32;
    const auto shape = [&] { return fmt::format("a view of {} elements", fmt::join(extents, " x ")); };
    const auto too_large = [&](std::span<const std::uint64_t> numbers) -> const std::uint64_t* {
        for (const std::uint64_t& number : numbers)
            if (number >= limit) return &number;
        return nullptr;
    };
    if (const std::uint64_t* const number = too_large(extents) ? too_large(extents) : too_large(pitches))
        return {fmt::format("{} with an extent or a pitch of {}, which is not below 2^32", shape(), *number),
                "extents and pitches count elements; a negative number is taken for a large one"};
    bool is_empty = false, is_sorted = true;
    for (const std::uint64_t extent : extents) is_empty |= extent == 0;
    for (std::size_t d = 1; d < pitches.size(); ++d) is_sorted &= pitches[d] <= pitches[d - 1];
    std::uint64_t inner = is_empty ? 0 : extents.back();  // elements from the first to the last of an index
    const auto fits = [&](std::size_t d) { return extents[d] <= 1 || pitches[d] >= inner; };
    const auto step_over = [&](std::size_t d) { inner += extents[d] <= 1 ? 0 : (extents[d] - 1) * pitches[d]; };
    const auto too_small = [&](std::size_t d) {
        return ViewProblem{fmt::format("{} with a pitch of {}, which is less than {}", shape(), pitches[d], inner),
                           too_small_pitch_hint(inner, extents.back())};
    };
    if (is_sorted) {  // nearly all are
        for (std::size_t d = pitches.size(); d-- > 0; step_over(d))
            if (!fits(d)) return too_small(d);
    } else {
        for (const std::size_t d : emulator::outwards(pitches)) {
            if (!fits(d)) return too_small(d);
            step_over(d);
        }
    }
    if (const std::uint64_t size = is_empty ? 0 : inner; size > elements)
        return {fmt::format("{} with pitch {} needs {}, and there are {}", shape(), fmt::join(pitches, " and "), size,
                            elements),
                "a view must lie inside its buffer: view(rows, columns), view(planes, rows, columns)"};
    return {};
}

namespace detail {

void read(const BufferPart& part, std::span<std::byte> to) {
    Recording::refuse_wait("a download", {});
    Backend& device = *memory_of(part).device();
    device.read(part.address(), to, default_stream);
    device.synchronize(default_stream);
}

void write(const BufferPart& part, std::span<const std::byte> from) {
    Recording::refuse_wait("an upload", {});
    const MemoryBlock& memory = memory_of(part);
    if (from.size() > part.bytes)
        throw Error(fmt::format("an upload of {} bytes for a slice of buffer '{}', which has {}", from.size(),
                                memory.name(), part.bytes),
                    "make the slice large enough");
    Backend& device = *memory.device();
    device.write(part.address(), from, default_stream);
    device.synchronize(default_stream);
}

void check_columns(std::uint64_t first, std::uint64_t count, std::uint64_t of, const Location& where) {
    if (first <= of && count <= of - first) return;
    throw Error(fmt::format("columns from {} on, {} of them, of rows of {} elements", first, count, of),
                "columns(first, count) takes a part of each row")
        .located(where);
}

void check_pieces(std::uint64_t length, std::uint64_t of, const Location& where) {
    if (length != 0 && of % length == 0) return;
    throw Error(fmt::format("rows of {} elements in pieces of {}", of, length),
                "split(length) needs rows that are whole pieces")
        .located(where);
}

void check_view(const BufferPart& part, std::span<const std::uint64_t> extents, std::span<const std::uint64_t> pitches,
                std::size_t element_bytes, const Location& where) {
    const MemoryBlock& memory = memory_of(part, where);
    if (const ViewProblem problem = view_problem(extents, pitches, part.bytes / element_bytes))
        throw Error(fmt::format("buffer '{}': {}", memory.name(), problem.message), problem.hint).located(where);
}

}  // namespace detail
}  // namespace ikat::runtime
