// SPDX-License-Identifier: Apache-2.0
// Two arrays whose rows belong together, one by one, whatever lies between them: quantised weights and what they
// become. How launches cover them that take rows at one pitch in each array.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace ikat::stdlib {

/// An array as rows. Lengths and strides of an array are in a unit of its own: bytes or elements.
struct ArrayRows {
    std::uint64_t length = 0;                       // of a row
    std::vector<std::uint64_t> extents, strides{};  // of the rows, the outermost first, none with one index

    /// Adds an innermost dimension of rows.
    void add(std::uint64_t extent, std::uint64_t stride);
    std::uint64_t number_of_rows() const;
    /// Whether rows follow each other.
    bool is_flat() const;
    /// The same rows in other dimensions, one after the other. Only of one that is flat.
    ArrayRows in(const std::vector<std::uint64_t>& dimensions) const;
};

class RowPairs {
public:
    /// A launch reaches no farther: what begins up to 15 bytes earlier is reached, too.
    static constexpr std::uint64_t farthest = 0xffffffff - 16;
    /// Whether rows of both correspond: the dimensions are the same, or one of them is flat and has as many rows.
    static bool fit(const ArrayRows& a, const ArrayRows& b);
    /// Of arrays that fit. If rows do not matter, those that follow each other in both are one, where its length is
    /// below 2^32 in both. A row has `columns` elements.
    RowPairs(const ArrayRows& a, const ArrayRows& b, std::uint64_t columns, bool rows_matter);

    struct Launch {
        std::array<std::uint64_t, 2> first, pitch;  // of each array: where the first row begins; 0 for a single row
        std::array<std::uint64_t, 2> reach;         // ... and from there to the end of the last row
        std::uint64_t rows;
    };
    /// Of a row.
    std::uint64_t columns;
    /// Of the first array alone, which has at most one dimension: that many rows from `first` on. max_rows() of them
    /// are not too many for a launch.
    static Launch rows_of(const ArrayRows& a, std::uint64_t first, std::uint64_t rows);
    static std::uint64_t max_rows(const ArrayRows& a);
    /// Calls f with launches, in order, which together are all rows: each reaches less than 2^32 in both arrays, or is
    /// a single row.
    void each_launch(const std::function<void(const Launch&)>& f) const;

private:
    void launch_from(std::size_t dimension, Launch launch, const std::function<void(const Launch&)>& f) const;

    std::array<ArrayRows, 2> of_;
};

}  // namespace ikat::stdlib
