// SPDX-License-Identifier: Apache-2.0
// Bytes as ranges that ascend and do not touch: equal ones at equal distances, as the rows of a matrix, are one entry.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace ikat::emulator {

class ByteRanges {
public:
    struct Range {
        std::uint64_t begin = 0, end = 0;
        bool operator==(const Range&) const = default;
    };

    /// Adds bytes after all others; they may follow the last ones directly.
    void add(std::uint64_t begin, std::uint64_t end);
    /// The rows of a box, whose pitches are not negative, in any order and at any distance.
    static ByteRanges of_box(std::uint64_t begin, std::uint64_t bytes, std::uint64_t rows, std::uint64_t pitch,
                             std::uint64_t planes, std::uint64_t plane_pitch);

    bool empty() const { return rows_.empty(); }
    /// From the first byte to the last.
    Range whole() const { return {rows_.front().begin, rows_.back().end()}; }
    /// How many entries it takes.
    std::size_t entries() const { return rows_.size(); }
    bool operator==(const ByteRanges&) const = default;

    /// The first bytes that both have.
    static std::optional<Range> common(const ByteRanges& a, const ByteRanges& b);

private:
    struct Rows {
        std::uint64_t begin = 0, bytes = 0, pitch = 0, count = 1;
        std::uint64_t last() const { return begin + (count - 1) * pitch; }
        std::uint64_t end() const { return last() + bytes; }
        bool operator==(const Rows&) const = default;
    };
    /// Goes through the ranges one by one.
    class Walk {
    public:
        explicit Walk(const ByteRanges& of) : rows_(&of.rows_) {}
        bool is_over() const { return entry_ == rows_->size(); }
        Range range() const;
        /// To the first range that ends after an address.
        void skip_to(std::uint64_t address);

    private:
        const std::vector<Rows>* rows_;
        std::size_t entry_ = 0;
        std::uint64_t row_ = 0;
    };

    std::vector<Rows> rows_;
};

}  // namespace ikat::emulator
