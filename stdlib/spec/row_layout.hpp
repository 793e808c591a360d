// SPDX-License-Identifier: Apache-2.0
// How a function that treats rows or elements by themselves covers views of any shape with launches.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/tensor_view.hpp"

namespace ikat::stdlib {

using runtime::TensorView;

/// The dimensions that up to six arrays of the same shape have in common, as few as there can be.
class RowLayout {
public:
    static constexpr std::size_t arrays = 6;
    /// Where rows do not matter, one of 2^32 elements or more is cut into pieces of this many.
    static constexpr std::uint64_t piece = std::uint64_t{1} << 31;
    struct Dimension {
        std::uint64_t extent;
        std::array<std::uint64_t, arrays> strides;  // elements, of each array
    };

    /// Null for an array that there is not; there is at least one. Rows are the last dimension, or, if they do not
    /// matter, as many elements as follow each other in all arrays.
    RowLayout(const std::array<const TensorView*, arrays>& of, bool rows_matter);

    std::uint64_t columns = 1;                  // of the first array; others may have rows of another length
    std::vector<Dimension> rows{};              // the outermost first, none with one index
    std::array<std::uint64_t, arrays> first{};  // the first element of each array, counted from its view's
    std::uint64_t before = 0;                   // of a part: how many elements come before it, gaps not counted

    std::uint64_t number_of_rows() const;
    bool is_empty() const { return columns == 0 || number_of_rows() == 0; }
    /// Whether all rows follow each other in all arrays.
    bool is_packed() const;
    /// Calls f with parts of this, in order, which together are all of it: each has at most two dimensions of rows, and
    /// fewer than 2^32 elements in each array, gaps between rows included; or it is a single row that matters.
    void each_launch(const std::function<void(const RowLayout&)>& f) const;

private:
    bool fits() const;
    RowLayout part(std::uint64_t begin, std::uint64_t count) const;
    RowLayout part_of_row(std::uint64_t begin, std::uint64_t count) const;

    std::array<bool, arrays> has_{};
    std::array<std::uint64_t, arrays> columns_of_{};
    bool rows_matter_;
};

}  // namespace ikat::stdlib
