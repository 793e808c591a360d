// SPDX-License-Identifier: Apache-2.0
// A layout as a table and as a picture, with the banks of shared memory that its elements are in.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "dsl/lanes/layout.hpp"

namespace ikat::cli {

/// A layout of rank 1 or 2 whose elements have this many bytes.
class LayoutDrawing {
public:
    /// Throws Error for other ranks, for more elements than a table can show, and unless the bytes are 1, 2, 4, 8 or
    /// 16.
    LayoutDrawing(const SwizzledLayout& layout, std::uint64_t element_bytes);

    /// A table of the offsets, one of the banks, and how many wavefronts accesses take.
    std::string table() const;
    /// A rectangle for each element, with its offset and bank; banks have colours.
    std::string svg() const;

private:
    std::string title() const;
    std::uint64_t offset(std::uint64_t row, std::uint64_t column) const;
    std::uint64_t bank(std::uint64_t row, std::uint64_t column) const;
    std::string accesses() const;
    std::string access_of_matrices() const;

    SwizzledLayout layout_;
    std::uint64_t element_bytes_, rows_, columns_;
};

}  // namespace ikat::cli
