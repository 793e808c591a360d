// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/draw/layout_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/tile/conflicts.hpp"
#include "tools/cli/draw/drawing.hpp"

namespace ikat::cli {
namespace {

constexpr std::uint64_t banks = 32, bank_bytes = 4, max_elements = 1 << 14;

/// The most wavefronts that one of several accesses takes, and the fewest that any could.
struct Wavefronts {
    std::uint32_t max = 0, min = 0;

    void add(const std::vector<std::uint64_t>& places, std::uint64_t bytes) {
        const std::size_t together = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
        max = std::max(max, stdlib::wavefronts(places, std::uint32_t(bytes)));
        min = std::max(min, std::uint32_t((places.size() + together - 1) / together));
    }
    std::string text() const { return fmt::format("{:>4} {:>9}", max, min); }
};

}  // namespace

LayoutDrawing::LayoutDrawing(const SwizzledLayout& layout, std::uint64_t element_bytes)
    : layout_(layout),
      element_bytes_(element_bytes),
      rows_(layout.layout.extent(0)),
      columns_(layout.layout.rank() == 2 ? layout.layout.extent(1) : 1) {
    if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
        throw Error(fmt::format("elements of {} bytes", element_bytes), "--element is 1, 2, 4, 8 or 16");
    if (layout.layout.rank() > 2)
        throw Error(fmt::format("a layout of rank {} cannot be drawn as a table", layout.layout.rank()),
                    "write several extents as one, such as ((2,4),8):((1,16),2)");
    if (layout.layout.size() > max_elements)
        throw Error(fmt::format("a table of {} elements is too large", layout.layout.size()),
                    fmt::format("draw a part of at most {}", max_elements));
}

std::string LayoutDrawing::title() const {
    const bool is_plain = layout_.swizzle == Swizzle(0, 4, 3);
    return fmt::format("{}, elements of {} byte{}", is_plain ? layout_.layout.text() : layout_.text(), element_bytes_,
                       element_bytes_ == 1 ? "" : "s");
}

std::uint64_t LayoutDrawing::offset(std::uint64_t row, std::uint64_t column) const {
    return layout_.layout.rank() == 2 ? layout_(row, column) : layout_(row);
}
std::uint64_t LayoutDrawing::bank(std::uint64_t row, std::uint64_t column) const {
    return offset(row, column) * element_bytes_ / bank_bytes % banks;
}

/// Eight rows of 16 bytes, as ldmatrix reads them.
std::string LayoutDrawing::access_of_matrices() const {
    const std::uint64_t piece = 16 / element_bytes_;
    if (rows_ < 8 || columns_ < piece) return "   - there are no eight rows of 16 bytes";
    Wavefronts out;
    for (std::uint64_t i = 0; i + 8 <= rows_; i += 8)
        for (std::uint64_t j = 0; j + piece <= columns_; j += piece) {
            std::vector<std::uint64_t> places;
            for (std::uint64_t r = i; r < i + 8; ++r) {
                for (std::uint64_t k = 1; k < piece; ++k)
                    if (offset(r, j + k) != offset(r, j) + k)
                        return fmt::format("   - elements {} and {} of row {} are not neighbours", j, j + k, r);
                places.push_back(offset(r, j) * element_bytes_);
                if (places.back() % 16 != 0)
                    return fmt::format("   - element {} of row {} is not at a multiple of 16 bytes", j, r);
            }
            out.add(places, 16);
        }
    return out.text();
}

std::string LayoutDrawing::accesses() const {
    const auto of_lines = [&](std::uint64_t lines, std::uint64_t length, auto&& at) {
        Wavefronts out;
        for (std::uint64_t line = 0; line < lines; ++line) {
            std::vector<std::uint64_t> places;
            for (std::uint64_t k = 0; k < length; ++k) places.push_back(at(line, k) * element_bytes_);
            out.add(places, element_bytes_);
        }
        return out.text();
    };
    return fmt::format(
        "wavefronts of shared memory     most  possible\n"
        "a column, an element a lane     {}\n"
        "a row, an element a lane        {}\n"
        "8 rows of 16 bytes, by ldmatrix {}\n",
        of_lines(columns_, rows_, [&](std::uint64_t line, std::uint64_t k) { return offset(k, line); }),
        of_lines(rows_, columns_, [&](std::uint64_t line, std::uint64_t k) { return offset(line, k); }),
        access_of_matrices());
}

std::string LayoutDrawing::table() const {
    const auto offsets = [&](std::uint64_t i, std::uint64_t j) { return offset(i, j); };
    const auto bank_numbers = [&](std::uint64_t i, std::uint64_t j) { return bank(i, j); };
    return title() + "\n\n" + number_table("offset", rows_, columns_, offsets) + '\n' +
           number_table("bank", rows_, columns_, bank_numbers) + '\n' + accesses();
}

std::string LayoutDrawing::svg() const {
    constexpr std::uint64_t width = 40, height = 30, left = 40, top = 50;
    const std::uint64_t right = left + columns_ * width + 10, bottom = top + rows_ * height + 10;
    Svg out(std::max<std::uint64_t>(right, 480), bottom, title());
    for (std::uint64_t j = 0; j < columns_; ++j) out.text(left + j * width + width / 2, top - 6, 10, std::to_string(j));
    for (std::uint64_t i = 0; i < rows_; ++i) {
        const std::uint64_t y = top + i * height;
        out.text(left / 2, y + height / 2 + 4, 10, std::to_string(i));
        for (std::uint64_t j = 0; j < columns_; ++j) {
            const std::uint64_t x = left + j * width;
            out.box(x, y, width, height, light_colour(bank(i, j)));
            out.text(x + width / 2, y + 14, 12, std::to_string(offset(i, j)));
            out.text(x + width / 2, y + 26, 8, "bank " + std::to_string(bank(i, j)));
        }
    }
    return out.str();
}

}  // namespace ikat::cli
