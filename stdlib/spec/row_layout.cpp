// SPDX-License-Identifier: Apache-2.0
#include "stdlib/spec/row_layout.hpp"

#include <algorithm>

namespace ikat::stdlib {

constexpr std::uint64_t max_offset = 0xffffffff;

RowLayout::RowLayout(const std::array<const TensorView*, arrays>& of, bool rows_matter) : rows_matter_(rows_matter) {
    const TensorView* shape = nullptr;
    for (std::size_t a = 0; a < arrays; ++a)
        if ((has_[a] = of[a] != nullptr)) shape = of[a], columns_of_[a] = of[a]->extents[of[a]->rank - 1];
    if (has_[0]) shape = of[0];
    columns = shape->extents[shape->rank - 1];
    for (std::size_t d = shape->rank - 1; d-- > 0;) {
        if (shape->extents[d] == 1) continue;
        Dimension next{shape->extents[d], {}};
        for (std::size_t a = 0; a < arrays; ++a)
            if (has_[a]) next.strides[a] = of[a]->strides[d];
        const auto follows = [&](auto&& last) {
            for (std::size_t a = 0; a < arrays; ++a)
                if (has_[a] && next.strides[a] != last(a)) return false;
            return true;
        };
        if (rows.empty() && !rows_matter && follows([&](std::size_t) { return columns; }))
            columns *= next.extent;
        else if (!rows.empty() && follows([&](std::size_t a) { return rows[0].extent * rows[0].strides[a]; }))
            rows[0].extent *= next.extent;
        else
            rows.insert(rows.begin(), next);
    }
}

std::uint64_t RowLayout::number_of_rows() const {
    std::uint64_t out = 1;
    for (const Dimension& dimension : rows) out *= dimension.extent;
    return out;
}

bool RowLayout::is_packed() const {
    if (rows.size() > 1) return false;
    for (std::size_t a = 0; a < arrays; ++a)
        if (has_[a] && !rows.empty() && rows[0].strides[a] != (rows_matter_ ? columns_of_[a] : columns)) return false;
    return true;
}

bool RowLayout::fits() const {
    if (rows.size() > 2 || number_of_rows() > max_offset / std::max<std::uint64_t>(columns, 2)) return false;
    for (std::size_t a = 0; a < arrays; ++a) {
        std::uint64_t reach = columns;
        for (const Dimension& dimension : rows) reach += (dimension.extent - 1) * dimension.strides[a];
        if (reach > max_offset) return false;
    }
    return true;
}

RowLayout RowLayout::part(std::uint64_t begin, std::uint64_t count) const {
    RowLayout out = *this;
    for (std::size_t a = 0; a < arrays; ++a) out.first[a] += begin * rows[0].strides[a];
    out.before += begin * (number_of_rows() / rows[0].extent) * columns;
    out.rows[0].extent = count;
    if (count == 1) out.rows.erase(out.rows.begin());
    return out;
}

RowLayout RowLayout::part_of_row(std::uint64_t begin, std::uint64_t count) const {
    RowLayout out = *this;
    for (std::uint64_t& each : out.first) each += begin;
    out.before += begin;
    out.columns = count;
    return out;
}

void RowLayout::each_launch(const std::function<void(const RowLayout&)>& f) const {
    if (is_empty() || fits() || (rows.empty() && rows_matter_)) return f(*this);
    if (rows.empty()) {
        for (std::uint64_t begin = 0; begin < columns; begin += piece)
            f(part_of_row(begin, std::min(piece, columns - begin)));
        return;
    }
    const std::uint64_t extent = rows[0].extent;
    std::uint64_t count = rows.size() > 2 ? 1 : extent;
    while (count > 1 && !part(0, count).fits()) count = (count + 1) / 2;
    for (std::uint64_t begin = 0; begin < extent; begin += count)
        part(begin, std::min(count, extent - begin)).each_launch(f);
}

}  // namespace ikat::stdlib
