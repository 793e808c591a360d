// SPDX-License-Identifier: Apache-2.0
#include "stdlib/softmax/softmax.hpp"

#include "stdlib/math/math.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

using Block = BlockGroup<256>;
template <class T>
constexpr int vectors_per_thread = 32 / lanes_of<T>;  // of a row that is kept in registers
/// Gives each thread 64 registers: without it ptxas spills to fit one more block on a multiprocessor.
template <class Group>
constexpr std::uint32_t min_blocks = 1024 / Group::block;

/// The largest element of a row and the sum of exp(x - largest), in a pass for each.
auto sum_of_exponentials(const auto& row) {
    f32 most = lowest<float>();
    row.each([&](const auto& v, const auto&) {
        for (const auto& x : v) most = max(most, x);
    });
    most = row.group.max(most);
    f32 sum = 0;
    row.each([&](const auto& v, const auto&) {
        for (const auto& x : v) sum += exp(value(x - most));
    });
    return std::pair{value(most), row.group.sum(sum)};
}

/// The same in one pass: when a larger element comes, the sum so far is scaled down.
auto sum_of_exponentials_online(const auto& row) {
    f32 most = -std::numeric_limits<float>::max(), sum = 0;
    row.each([&](const auto& v, const auto&) {
        f32 larger = most;
        for (const auto& x : v) larger = max(larger, x);
        sum = sum * exp(value(most - larger));
        for (const auto& x : v) sum += exp(value(x - larger));
        most = larger;
    });
    const auto of_all = row.group.max(most);
    return std::pair{of_all, row.group.sum(value(sum * exp(value(most - of_all))))};
}

template <class T, class Group>
RowKernel<T> make_softmax(const char* name) {
    return kernel(name, params("x", "y", "rows", "columns"),
                  [](In<T> x, Out<T> y, u32 rows, u32 columns) {
                      with_row<Group, T, vectors_per_thread<T>>(x, rows, columns, [&](const auto& row) {
                          const auto [most, sum] = sum_of_exponentials(row);
                          const auto factor = value(1.0f / sum);
                          row.map(y, [&](const auto& x) { return exp(value(x - most)) * factor; });
                      });
                  })
        .require(aligned<16>("x"), aligned<16>("y"))
        .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"))
        .launch_bounds(Group::block, min_blocks<Group>);
}

}  // namespace

template <class T>
const RowKernel<T>& softmax_warp() {
    static const auto made = make_softmax<T, WarpGroup>(name_of<T>("softmax_warp"));
    return made;
}
template <class T>
const RowKernel<T>& softmax_block() {
    static const auto made = make_softmax<T, Block>(name_of<T>("softmax_block"));
    return made;
}
template <class T>
const RowKernel<T>& softmax_online() {
    static const auto made = kernel(name_of<T>("softmax_online"), params("x", "y", "rows", "columns"),
                                    [](In<T> x, Out<T> y, u32 rows, u32 columns) {
                                        require_linear_grid();
                                        require_threads(Block::block);
                                        const auto active = value(Block::row() < rows);
                                        const StreamedRow<Block, T> row(x, Block::row(), active, columns);
                                        const auto [most, sum] = sum_of_exponentials_online(row);
                                        const auto factor = value(1.0f / sum);
                                        row.map(y, [&](const auto& x) { return exp(value(x - most)) * factor; });
                                    })
                                 .require(aligned<16>("x"), aligned<16>("y"))
                                 .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"))
                                 .launch_bounds(Block::block);
    return made;
}
template <class T>
const RowKernel<T>& log_softmax() {
    static const auto made =
        kernel(name_of<T>("log_softmax"), params("x", "y", "rows", "columns"),
               [](In<T> x, Out<T> y, u32 rows, u32 columns) {
                   with_row<Block, T, vectors_per_thread<T>>(x, rows, columns, [&](const auto& row) {
                       const auto [most, sum] = sum_of_exponentials(row);
                       const auto log_of_sum = log(sum);
                       row.map(y, [&](const auto& x) { return (x - most) - log_of_sum; });
                   });
               })
            .require(aligned<16>("x"), aligned<16>("y"))
            .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"))
            .launch_bounds(Block::block, min_blocks<Block>);
    return made;
}

// ---- the recipes

IKAT_INSTANTIATE(softmax_warp)
IKAT_INSTANTIATE(softmax_block)
IKAT_INSTANTIATE(softmax_online)
IKAT_INSTANTIATE(log_softmax)

constexpr Recipe softmax_recipe{
    .call = "softmax(queue, x, y, rows, columns)",
    .kernels = {{"softmax of each row, a warp per row: for up to 1024 columns", IKAT_FLOATS(softmax_warp<T>()),
                 rows_to<WarpGroup>, 1024, 2},
                {"softmax of each row, a block per row: for up to 8192 columns", IKAT_FLOATS(softmax_block<T>()),
                 rows_to<Block>, 8192, 2},
                {"softmax of each row, a block per row in two passes: for long rows", IKAT_FLOATS(softmax_online<T>()),
                 rows_to<Block>, ~0u, 1.5}},
    .document =
        "x and y are row-major, rows x columns, with fewer than 2^32 elements, and begin at multiples of 16\n"
        "bytes. Any sizes. Each row by itself, computed in f32 from x minus the row's maximum and rounded\n"
        "once.",
    .shapes = "x: rows columns, y: rows columns",
    .reference = reference::softmax,
    .magnitude = 20,
    .traffic = "2 E s",
    .note = "by the number of columns"};
constexpr Recipe log_softmax_recipe{.call = "log_softmax(queue, x, y, rows, columns)",
                                    .kernels = {{"the logarithm of softmax of each row, a block per row",
                                                 IKAT_FLOATS(log_softmax<T>()), rows_to<Block>, ~0u, 2}},
                                    .document = softmax_recipe.document,
                                    .shapes = softmax_recipe.shapes,
                                    .reference = reference::log_softmax,
                                    .magnitude = 20,
                                    .traffic = "2 E s"};

}  // namespace ikat::stdlib
