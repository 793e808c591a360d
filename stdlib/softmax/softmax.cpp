// SPDX-License-Identifier: Apache-2.0
#include "stdlib/softmax/softmax.hpp"

#include "stdlib/math/math.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/shared_rows.hpp"

namespace ikat::stdlib {
namespace {

using Block = BlockGroup<256>;
using Wide = BlockGroup<1024>;
/// Of blocks, or clusters, that keep a row in shared memory.
constexpr SharedRows in_shared{.threads = 1024, .registers = 32768};
using OfBlock = SharedGroup<in_shared.threads, 1>;

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

/// In three passes.
void store_softmax(const auto& row, const auto& y) {
    const auto maximum = largest_of(row);
    const auto powers = row.mapped([&](const auto& x) { return value(exp(value(x - maximum))); });
    const auto factor = value(1.0f / sum_of(powers, [](const auto& power) { return power; }));
    powers.map(y, [&](const auto& power) { return power * factor; });
}
/// In two.
void store_softmax_online(const auto& row, const auto& y) {
    const auto [maximum, sum] = sum_of_exponentials_online(row);
    const auto factor = value(1.0f / sum), largest = value(maximum);
    row.map(y, [&](const auto& x) { return exp(value(x - largest)) * factor; });
}
/// Of rows that are not kept in registers there are two passes, and powers are computed twice.
template <class T, class Group>
void softmax_of(const RowPlaces& places, const In<T>& x, const Out<T>& y) {
    with_row<Group, T, kept_vectors<T>>(x, places, [&](const auto& row) {
        row.is_in_registers ? store_softmax(row, y) : store_softmax_online(row, y);
    });
}
template <class T>
void softmax_online_of(const RowPlaces& places, const In<T>& x, const Out<T>& y) {
    require_linear_grid();
    require_threads(Block::block);
    const auto active = value(Block::row() < places.rows);
    store_softmax_online(StreamedRow<Block, T>(x, places, Block::row(), active), y);
}

template <class T, class Group>
void log_softmax_of(const RowPlaces& places, const In<T>& x, const Out<T>& y) {
    const auto store = [&](const auto& row, const auto& maximum, const auto& sum) {
        const auto log_of_sum = value(log(sum));
        row.map(y, [&](const auto& x) { return (x - maximum) - log_of_sum; });
    };
    with_row<Group, T, kept_vectors<T>>(x, places, [&](const auto& row) {
        if (row.is_in_registers) {
            const auto maximum = largest_of(row);
            store(row, maximum, sum_of(row, [&](const auto& x) { return exp(value(x - maximum)); }));
        } else {
            const auto [maximum, sum] = sum_of_exponentials_online(row);
            store(row, value(maximum), sum);
        }
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

template <class T, RowBody<T>* body>
const RowKernel<T>& shared_kernel(const char* name) {
    static const auto made = make_packed<T>(name_of<T>(name), body, OfBlock::block, 1);
    return made;
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
const RowKernel<T>& softmax_wide() {
    static const auto made =
        make_packed<T>(name_of<T>("softmax_wide"), softmax_of<T, Wide>, Wide::block, blocks_with_64_registers<Wide>);
    return made;
}
template <class T>
const RowKernel<T>& log_softmax_wide() {
    static const auto made = make_packed<T>(name_of<T>("log_softmax_wide"), log_softmax_of<T, Wide>, Wide::block,
                                            blocks_with_64_registers<Wide>);
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
/// For rows of up to `columns` columns; see Variant.
#define ROWS(text, made, Group, columns, times, ...)                                                          \
    {                                                                                                         \
        .summary = text, .instances = IKAT_FLOATS(made<T>()), .grid = rows_to<Group>, .max_columns = columns, \
        .passes = times, .pitched = __VA_ARGS__                                                               \
    }

#define IN_SHARED(text, name, body) \
    IKAT_SHARED_ROWS(in_shared, text, name, (shared_kernel<T, body<T, OfBlock>>(name "_shared")), body, "x", "y")

IKAT_INSTANTIATE(softmax_warp)
IKAT_INSTANTIATE(softmax_block)
IKAT_INSTANTIATE(softmax_wide)
IKAT_INSTANTIATE(log_softmax_wide)
IKAT_INSTANTIATE(softmax_online)
IKAT_INSTANTIATE(log_softmax_warp)
IKAT_INSTANTIATE(log_softmax)

// ---- the recipes

constexpr Recipe softmax_recipe{
    .call = "softmax(queue, x, y)",
    .kernels = {ROWS("softmax of each row, a warp per row: for up to 1024 columns", softmax_warp, WarpGroup, 1024, 1.5,
                     PITCHED("softmax_warp", softmax_of, WarpGroup)),
                ROWS("softmax of each row, a block per row: for up to 8192 columns", softmax_block, Block, 8192, 1.5,
                     PITCHED("softmax_block", softmax_of, Block)),
                ROWS("softmax of each row, a block of 1024 threads per row: for up to 32768 columns", softmax_wide,
                     Wide, 32768, 1.5, PITCHED("softmax_wide", softmax_of, Wide)),
                IN_SHARED("softmax of each row, a block per row, which it keeps in shared memory", "softmax",
                          softmax_of),
                ROWS("softmax of each row, a block per row in two passes: for long rows", softmax_online, Block, ~0u,
                     1.5, IKAT_PITCHED("softmax_online", (softmax_online_of<T>), Block::block, 0, "x", "y"))},
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
constexpr Recipe log_softmax_recipe{
    .call = "log_softmax(queue, x, y)",
    .kernels = {ROWS("the logarithm of softmax of each row, a warp per row", log_softmax_warp, WarpGroup, 1024, 1.5,
                     PITCHED("log_softmax_warp", log_softmax_of, WarpGroup)),
                ROWS("the logarithm of softmax of each row, a block per row", log_softmax, Block, 8192, 1.5,
                     PITCHED("log_softmax", log_softmax_of, Block)),
                IN_SHARED("the logarithm of softmax of each row, a block per row, which it keeps in shared memory",
                          "log_softmax", log_softmax_of),
                ROWS("the logarithm of softmax of each row, a block of 1024 threads per row", log_softmax_wide, Wide,
                     ~0u, 1.5, PITCHED("log_softmax_wide", log_softmax_of, Wide))},
    .operands = softmax_recipe.operands,
    .document = softmax_recipe.document,
    .sizes = softmax_recipe.sizes,
    .reference = reference::log_softmax,
    .magnitude = 20,
    .traffic = "2 E s",
    .note = "by the number of columns"};

}  // namespace ikat::stdlib
