// SPDX-License-Identifier: Apache-2.0
#include "stdlib/embedding/embedding.hpp"

#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/row_places.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t gather_threads = 256;

/// A block for each token.
template <class T>
void gather(const RowPlaces& places, const In<std::uint32_t>& ids, const In<T>& table, const Out<T>& y,
            const u32& table_rows) {
    require_linear_grid();
    const auto token = value(block_id().x);
    return_if(token >= places.rows);
    const auto id = value(ids[token]);
    const auto is_there = value(id < table_rows);
    for_each_in_row<T>(places, token, places.columns, value(thread_id().x), value(block_dim().x),
                       [&]<int N>(Width<N>, const auto& at, const auto& column) {
                           const auto first = places.starts<N>(id, places.columns / std::uint32_t(N));
                           const auto from = value(first[RowPlaces::X] + column);
                           if constexpr (N == 1)
                               y[at[RowPlaces::Y]] = table.load_if(is_there, from, T{});
                           else
                               y.template vec<N>(at[RowPlaces::Y]) = table.template load_if<N>(is_there, from, T{});
                       });
}

}  // namespace

template <class T>
const GatherKernel<T>& gather_rows_kernel() {
    static const auto made =
        kernel(name_of<T>("gather_rows"), params("ids", "table", "y", "tokens", "width", "table_rows"),
               [](In<std::uint32_t> ids, In<T> table, Out<T> y, u32 tokens, u32 width, u32 table_rows) {
                   gather(RowPlaces(tokens, width), ids, table, y, table_rows);
               })
            .require(aligned<16>("table"), aligned<16>("y"))
            .require(at_least("ids", "tokens"), at_least("table", "table_rows", "width"))
            .require(at_least("y", "tokens", "width"))
            .launch_bounds(gather_threads);
    return made;
}

void gather_rows(const Queue& queue, const TensorView& ids, const TensorView& table, const MutableTensorView& y) {
    const ViewCall call(queue, gather_rows_recipe, {ids, table, y});
    const std::uint32_t tokens = call.extent("tokens"), width = call.extent("width"), rows = call.extent("table_rows");
    if (call.writes_nothing()) return;
    const std::uint64_t table_pitch = table.strides[0], pitch = y.strides[0];
    if (rows != 0) call.check().reached("table", (rows - 1) * table_pitch + width);
    call.check().reached("y", (tokens - 1) * pitch + width);
    const Variant& variant = gather_rows_recipe.kernels[0];
    const bool has_gaps = !is_packed(table) || !is_packed(y);
    run_kernel(
        call, variant, (has_gaps ? variant.pitched : variant.instances)[call.type()](),
        with_pitches({{"tokens", tokens}, {"width", width}, {"table_rows", rows}, {"rows", tokens}, {"columns", width}},
                     width, {table_pitch, 0, pitch}, {&table, &y}));
}

// ---- the recipe

IKAT_INSTANTIATE(gather_rows_kernel)

constexpr Recipe gather_rows_recipe{
    .call = "gather_rows(queue, ids, table, y)",
    .kernels = {{.summary = "copies given rows of a table",
                 .instances = IKAT_FLOATS(gather_rows_kernel<T>()),
                 .grid =
                     [](const Call& call) {
                         return Grid{{call[call.has("tokens") ? "tokens" : "rows"]}, {gather_threads}};
                     },
                 .pitched =
                     IKAT_PITCHED("gather_rows", (gather<T>), gather_threads, 0, "ids", "table", "y", "table_rows")}},
    .operands = {{"ids", "tokens", Access::In, ir::Type::U32},
                 {"table", "table_rows width"},
                 {"y", "tokens width", Access::Out}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { gather_rows(queue, arrays[0], arrays[1], arrays[2]); },
    .document =
        "y[t] = table[ids[t]], rows of `width` elements, for t < tokens; zeros where the id is not below\n"
        "table_rows. table and y begin at multiples of 16 bytes. A block for each token.",
    .sizes = {{"ids", "tokens"}, {"table", "table_rows width"}, {"y", "tokens width"}},
    .reference = reference::gather_rows,
    .traffic = "2 E s",
    .note = "row ids[t] of a table as row t of y; also `embedding`"};

}  // namespace ikat::stdlib
