// SPDX-License-Identifier: Apache-2.0
#include "stdlib/tile/shared_tile.hpp"

#include <algorithm>
#include <bit>

namespace ikat::stdlib {

Leaf<std::uint32_t> TileShape::place(const Word& row, const Word& column) const {
    const auto byte = value(word(column) * element_bytes);
    return value(piece_place(word(row), value(byte / 16u)) + byte % 16u);
}

Leaf<std::uint32_t> TileShape::piece_place(const Leaf<std::uint32_t>& row, const Leaf<std::uint32_t>& piece) const {
    if (swizzle == 0) return value(row * panel_row() + piece * 16u);
    return value(row * panel_row() + piece / pieces_of_panel() * panel_bytes() +
                 (piece % pieces_of_panel() ^ turn(row)) * 16u);
}

std::vector<Leaf<std::uint32_t>> TileShape::pieces(const Word& first_row, const Word& first_piece) const {
    const auto row = word(first_row), piece = word(first_piece);
    if (swizzle == 0) return {piece_place(row, piece)};
    const std::uint32_t in_panel = pieces_of_panel();
    const auto start = value(row * panel_row() + piece / in_panel * panel_bytes());
    const auto turned = value(piece % in_panel ^ turn(row));
    std::vector<Leaf<std::uint32_t>> out;
    for (std::uint32_t j = 0; j < in_panel; ++j) out.push_back(value(start + (turned ^ j) * 16u));
    return out;
}

UnitOfRow TileShape::unit_of_row(const Leaf<std::uint32_t>& at, std::uint32_t bytes, std::uint32_t count) const {
    const std::uint32_t of_row = row_bytes / bytes, of_panel = panel_row() / bytes;
    const std::uint32_t together = rows_of_wavefront();
    if (together == 1 || count % together != 0) return {value(at / of_row), value(at % of_row)};
    const auto in_rows = value(at % (together * of_row)), in_panel = value(in_rows % (together * of_panel));
    return {value(at / (together * of_row) * together + in_panel / of_panel),
            value(in_rows / (together * of_panel) * of_panel + in_panel % of_panel)};
}

SwizzledLayout TileShape::layout() const {
    const std::uint32_t width = panel_row() / element_bytes;
    Layout::Mode across{{std::min(width, columns()), 1}};
    if (width < columns()) across.push_back({columns() / width, std::uint64_t{rows} * width});
    const Layout plain({{{rows, width}}, across});
    const auto base = unsigned(std::countr_zero(16 / element_bytes));
    return {Swizzle(swizzle ? unsigned(std::countr_zero(swizzle / 16)) : 0, base, 3), plain};
}

}  // namespace ikat::stdlib
