// SPDX-License-Identifier: Apache-2.0
// Sums over rows in shares, and the launch that adds these.
#pragma once
#include "stdlib/backward/column_sums.hpp"
#include "stdlib/spec/row_layout.hpp"
#include "stdlib/tile/row_places.hpp"

namespace ikat::stdlib {

/// The rows of a share.
struct RowShare {
    Leaf<std::uint32_t> first, last;
};
/// Of share number `share` of `shares`, which differ by one row at most.
RowShare share_of_rows(const u32& rows, const auto& share, const auto& shares) {
    const auto least = value(rows / shares), more = value(rows - least * shares);
    const auto first = value(share * least + min(share, more));
    return {first, value(first + least + select(share < more, 1u, 0u))};
}

/// Launches a function's kernel for each of its parts, and adds the shares that these make. `shares_of(call)` is how
/// many a part makes, `grid_of(call, shares)` its launch. `sums` are the parameters with sums of columns.
template <std::size_t count>
void launch_column_shares(Steps& steps, const std::array<std::string_view, count>& sums, auto&& shares_of,
                          auto&& grid_of) {
    const std::uint32_t columns = steps["columns"];
    if (columns == 0) return;
    std::uint32_t shares = 0;
    for (const Steps::Part& part : steps.parts()) shares += shares_of(part.call);
    if (shares == 1) return steps.launch(grid_of(steps, 1u));
    std::array<BufferSlice<float>, count> all;
    for (auto& each : all) each = steps.take<float>(std::uint64_t(shares) * columns);
    std::uint64_t before = 0;
    for (const Steps::Part& part : steps.parts()) {
        const std::uint32_t of_part = shares_of(part.call);
        const auto from = [&](std::size_t i) {
            return std::pair<std::string_view, FunctionOperand>(
                sums[i], all[i].slice(before * columns, std::uint64_t(of_part) * columns));
        };
        if constexpr (count == 1)
            steps.launch(part, grid_of(part.call, of_part), {from(0)});
        else
            steps.launch(part, grid_of(part.call, of_part), {from(0), from(1)});
        before += of_part;
    }
    for (std::size_t i = 0; i < count; ++i)
        steps.launch(column_sums_kernel<float>().handle(), column_sums_grid(columns, sizeof(float)),
                     {all[i], steps.floats(sums[i]), shares, columns});
}

/// The workspace of a function on views by that of a part with these rows and columns.
template <class Bytes>
std::uint64_t workspace_of_parts(const RowLayout& layout, Bytes&& bytes) {
    std::uint64_t out = 0;
    layout.each_launch([&](const RowLayout& part) {
        out += bytes(std::uint32_t(part.number_of_rows()), std::uint32_t(part.columns));
    });
    return out;
}

}  // namespace ikat::stdlib
