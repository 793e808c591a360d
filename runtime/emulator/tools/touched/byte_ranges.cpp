// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/touched/byte_ranges.hpp"

#include <algorithm>

namespace ikat::emulator {

void ByteRanges::add(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    if (!rows_.empty()) {
        Rows& last = rows_.back();
        if (last.end() == begin) {
            if (last.count == 1) return void(last.bytes += end - begin);
            // The row that becomes longer is no longer like the others.
            begin = last.last();
            --last.count;
        } else if (last.bytes == end - begin && (last.count == 1 || last.last() + last.pitch == begin)) {
            last.pitch = begin - last.last();
            ++last.count;
            return;
        }
    }
    rows_.push_back({.begin = begin, .bytes = end - begin});
}

ByteRanges ByteRanges::of_box(std::uint64_t begin, std::uint64_t bytes, std::uint64_t rows, std::uint64_t pitch,
                              std::uint64_t planes, std::uint64_t plane_pitch) {
    ByteRanges out;
    if (bytes == 0) return out;
    std::vector<std::uint64_t> firsts;
    for (std::uint64_t plane = 0; plane < planes; ++plane)
        for (std::uint64_t row = 0; row < rows; ++row) firsts.push_back(begin + plane * plane_pitch + row * pitch);
    std::ranges::sort(firsts);
    std::uint64_t end = 0;  // of what is added
    for (const std::uint64_t first : firsts) {
        if (first + bytes <= end) continue;
        out.add(std::max(first, end), first + bytes);
        end = first + bytes;
    }
    return out;
}

ByteRanges::Range ByteRanges::Walk::range() const {
    const Rows& rows = (*rows_)[entry_];
    const std::uint64_t begin = rows.begin + row_ * rows.pitch;
    return {begin, begin + rows.bytes};
}

void ByteRanges::Walk::skip_to(std::uint64_t address) {
    while (!is_over() && (*rows_)[entry_].end() <= address) ++entry_, row_ = 0;
    if (is_over() || range().end > address) return;
    const Rows& rows = (*rows_)[entry_];
    row_ = (address - rows.begin) / rows.pitch;  // begins at it or before
    if (range().end <= address) ++row_;
}

std::optional<ByteRanges::Range> ByteRanges::common(const ByteRanges& a, const ByteRanges& b) {
    Walk x(a), y(b);
    while (!x.is_over() && !y.is_over()) {
        const Range first = x.range(), second = y.range();
        const Range both{std::max(first.begin, second.begin), std::min(first.end, second.end)};
        if (both.begin < both.end) return both;
        first.end <= second.begin ? x.skip_to(second.begin) : y.skip_to(first.begin);
    }
    return {};
}

}  // namespace ikat::emulator
