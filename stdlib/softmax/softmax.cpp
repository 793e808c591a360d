// SPDX-License-Identifier: Apache-2.0
#include "stdlib/softmax/softmax.hpp"

#include "stdlib/math/math.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

using Block = BlockGroup<256>;

/// Of a row.
auto largest_of(const auto& row) {
    f32 maximum = lowest<float>();
    row.each([&](const auto& v, const auto&) {
        for (const auto& x : v) maximum = max(maximum, x);
    });
    return value(row.group.max(maximum));
}
auto sum_of(const auto& row, auto&& f) {
    f32 sum = 0;
    row.each([&](const auto& v, const auto&) {
        for (const auto& x : v) sum += f(x);
    });
    return row.group.sum(sum);
}

/// The largest element of a row and the sum of exp(x - largest) in one pass: when a larger element comes, the sum so
/// far is scaled down.
auto sum_of_exponentials_online(const auto& row) {
    f32 maximum = -std::numeric_limits<float>::max(), sum = 0;
    row.each([&](const auto& v, const auto&) {
        f32 larger = maximum;
        for (const auto& x : v) larger = max(larger, x);
        sum = sum * exp(value(maximum - larger));
        for (const auto& x : v) sum += exp(value(x - larger));
        maximum = larger;
    });
    const auto of_all = row.group.max(maximum);
    return std::pair{of_all, row.group.sum(value(sum * exp(value(maximum - of_all))))};
}

template <class T, class Group>
void softmax_of(const RowPlaces& places, const In<T>& x, const Out<T>& y) {
    with_row<Group, T, kept_vectors<T>>(x, places, [&](const auto& row) {
        const auto maximum = largest_of(row);
        const auto powers = row.mapped([&](const auto& x) { return value(exp(value(x - maximum))); });
        const auto factor = value(1.0f / sum_of(powers, [](const auto& power) { return power; }));
        powers.map(y, [&](const auto& power) { return power * factor; });
    });
}

template <class T>
void softmax_online_of(const RowPlaces& places, const In<T>& x, const Out<T>& y) {
    require_linear_grid();
    require_threads(Block::block);
    const auto active = value(Block::row() < places.rows);
    const StreamedRow<Block, T> row(x, places, Block::row(), active);
    const auto [maximum, sum] = sum_of_exponentials_online(row);
    const auto factor = value(1.0f / sum);
    row.map(y, [&](const auto& x) { return exp(value(x - maximum)) * factor; });
}

template <class T, class Group>
void log_softmax_of(const RowPlaces& places, const In<T>& x, const Out<T>& y) {
    with_row<Group, T, kept_vectors<T>>(x, places, [&](const auto& row) {
        const auto maximum = largest_of(row);
        const auto log_of_sum = log(sum_of(row, [&](const auto& x) { return exp(value(x - maximum)); }));
        row.map(y, [&](const auto& x) { return (x - maximum) - log_of_sum; });
    });
}

template <class T>
using RowBody = void(const RowPlaces& places, const In<T>& x, const Out<T>& y);

/// The kernel of a body, for rows that follow each other.
template <class T>
RowKernel<T> make_packed(const char* name, RowBody<T>* body, std::uint32_t threads, std::uint32_t min_blocks = 0) {
    return kernel(name, params("x", "y", "rows", "columns"),
                  [=](In<T> x, Out<T> y, u32 rows, u32 columns) { body(RowPlaces(rows, columns), x, y); })
        .require(aligned<16>("x"), aligned<16>("y"))
        .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"))
        .launch_bounds(threads, min_blocks);
}

}  // namespace

template <class T>
const RowKernel<T>& softmax_warp() {
    static const auto made = make_packed<T>(name_of<T>("softmax_warp"), softmax_of<T, WarpGroup>, WarpGroup::block,
                                            blocks_with_64_registers<WarpGroup>);
    return made;
}
template <class T>
const RowKernel<T>& softmax_block() {
    static const auto made = make_packed<T>(name_of<T>("softmax_block"), softmax_of<T, Block>, Block::block,
                                            blocks_with_64_registers<Block>);
    return made;
}
template <class T>
const RowKernel<T>& softmax_online() {
    static const auto made = make_packed<T>(name_of<T>("softmax_online"), softmax_online_of<T>, Block::block);
    return made;
}
template <class T>
const RowKernel<T>& log_softmax_warp() {
    static const auto made = make_packed<T>(name_of<T>("log_softmax_warp"), log_softmax_of<T, WarpGroup>,
                                            WarpGroup::block, blocks_with_64_registers<WarpGroup>);
    return made;
}
template <class T>
const RowKernel<T>& log_softmax() {
    static const auto made = make_packed<T>(name_of<T>("log_softmax"), log_softmax_of<T, Block>, Block::block,
                                            blocks_with_64_registers<Block>);
    return made;
}

void softmax(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
    run_rows({queue, softmax_recipe, {x, y}}, {});
}
void log_softmax(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
    run_rows({queue, log_softmax_recipe, {x, y}}, {});
}

#define PITCHED(name, body, Group) \
    IKAT_PITCHED(name, (body<T, Group>), Group::block, blocks_with_64_registers<Group>, "x", "y")

// ---- the recipes

IKAT_INSTANTIATE(softmax_warp)
IKAT_INSTANTIATE(softmax_block)
IKAT_INSTANTIATE(softmax_online)
IKAT_INSTANTIATE(log_softmax_warp)
IKAT_INSTANTIATE(log_softmax)

constexpr Recipe softmax_recipe{
    .call = "softmax(queue, x, y)",
    .kernels = {{.summary = "softmax of each row, a warp per row: for up to 1024 columns",
                 .instances = IKAT_FLOATS(softmax_warp<T>()),
                 .grid = rows_to<WarpGroup>,
                 .max_columns = 1024,
                 .passes = 2,
                 .pitched = PITCHED("softmax_warp", softmax_of, WarpGroup)},
                {.summary = "softmax of each row, a block per row: for up to 8192 columns",
                 .instances = IKAT_FLOATS(softmax_block<T>()),
                 .grid = rows_to<Block>,
                 .max_columns = 8192,
                 .passes = 2,
                 .pitched = PITCHED("softmax_block", softmax_of, Block)},
                {.summary = "softmax of each row, a block per row in two passes: for long rows",
                 .instances = IKAT_FLOATS(softmax_online<T>()),
                 .grid = rows_to<Block>,
                 .passes = 1.5,
                 .pitched = IKAT_PITCHED("softmax_online", (softmax_online_of<T>), Block::block, 0, "x", "y")}},
    .operands = {{"x", "... columns"}, {"y", "... columns", Access::Out}},
    .document =
        "x and y are row-major, rows x columns, with fewer than 2^32 elements, and begin at multiples of 16\n"
        "bytes. Any sizes. Each row by itself, computed in f32 from x minus the row's maximum and rounded\n"
        "once.",
    .sizes = {{"x", "rows columns"}, {"y", "rows columns"}},
    .reference = reference::softmax,
    .magnitude = 20,
    .traffic = "2 E s",
    .note = "by the number of columns"};
constexpr Recipe log_softmax_recipe{.call = "log_softmax(queue, x, y)",
                                    .kernels = {{.summary = "the logarithm of softmax of each row, a warp per row",
                                                 .instances = IKAT_FLOATS(log_softmax_warp<T>()),
                                                 .grid = rows_to<WarpGroup>,
                                                 .max_columns = 1024,
                                                 .passes = 2,
                                                 .pitched = PITCHED("log_softmax_warp", log_softmax_of, WarpGroup)},
                                                {.summary = "the logarithm of softmax of each row, a block per row",
                                                 .instances = IKAT_FLOATS(log_softmax<T>()),
                                                 .grid = rows_to<Block>,
                                                 .passes = 2,
                                                 .pitched = PITCHED("log_softmax", log_softmax_of, Block)}},
                                    .operands = softmax_recipe.operands,
                                    .document = softmax_recipe.document,
                                    .sizes = softmax_recipe.sizes,
                                    .reference = reference::log_softmax,
                                    .magnitude = 20,
                                    .traffic = "2 E s",
                                    .note = "by the number of columns"};

}  // namespace ikat::stdlib
