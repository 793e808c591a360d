// SPDX-License-Identifier: Apache-2.0
#include "stdlib/backward/column_sums.hpp"

#include <algorithm>

#include "codegen/ir/type.hpp"
#include "dsl/threads/grids.hpp"
#include "stdlib/backward/column_shares.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t warps = 8, lanes = 32, threads = warps * lanes, bytes_of_tile = 16 * lanes;

std::uint32_t tiles_of(std::uint32_t columns, std::uint64_t bytes) {
    return std::max(1u, std::uint32_t((columns * bytes + bytes_of_tile - 1) / bytes_of_tile));
}

/// Each warp of a block adds every eighth row of the share, and then one thread for each column what the warps have.
template <class T>
void column_sums_of(const RowPlaces& places, const In<T>& x, const Out<float>& sums) {
    constexpr std::uint32_t in_tile = bytes_of_tile / sizeof(T);
    require_linear_grid();
    require_threads(threads);
    Shared<float, warps, in_tile> of_warp;
    const u32 columns = places.columns;
    const auto tiles = value(max((columns + (in_tile - 1)) / in_tile, 1u));
    const auto number = value(block_id().x / tiles), tile = value(block_id().x - number * tiles);
    const RowShare share = share_of_rows(places.rows, number, value(grid_dim().x / tiles));
    const auto warp = value(warp_id()), lane = value(lane_id());
    with_width<T>(places.unit(), [&]<int N>(Width<N>) {
        constexpr std::uint32_t pieces = in_tile / lanes / N;
        const auto length = value(columns / std::uint32_t(N));
        // Column N * at + k of the tile is in place (at / 32 * N + k) * 32 + at % 32: a warp's lanes are in all banks.
        for (auto piece : range(pieces).unroll(1)) {
            const auto column = value(tile * (in_tile / N) + piece * lanes + lane);
            Regs<f32, N> total;
            for (std::size_t k = 0; k < N; ++k) total[k] = 0;
            for (auto row : range(share.first + warp, share.last, warps).unroll(4)) {
                const auto at = value(places.starts<N>(row, length)[RowPlaces::X] + column);
                const auto v = load_lanes_if<N>(column < length, x, at, 0.0f);
                for (std::size_t k = 0; k < N; ++k) total[k] += v[k];
            }
            for (std::size_t k = 0; k < N; ++k)
                of_warp[warp, (piece * std::uint32_t(N) + std::uint32_t(k)) * lanes + lane] = total[k];
        }
        sync_block();
        for (auto at : range(thread_id().x, in_tile, threads)) {
            const auto vector = value(at / std::uint32_t(N)), k = value(at % std::uint32_t(N));
            const auto place = value((vector / lanes * std::uint32_t(N) + k) * lanes + vector % lanes);
            f32 total = of_warp[0, place];
            for (std::uint32_t w = 1; w < warps; ++w) total += of_warp[w, place];
            const auto column = value(tile * in_tile + at);
            if_(column < columns, [&] { sums[number * columns + column] = total; });
        }
    });
}

/// How many shares the rows are divided into: of 256 rows at least, so that what is stored in between is little, and as
/// many as give a large GPU enough blocks.
std::uint32_t shares_of(std::uint32_t rows, std::uint32_t columns, std::uint64_t bytes) {
    const std::uint32_t max_shares = std::max(1u, 1024 / tiles_of(columns, bytes));
    return std::clamp(std::uint32_t((std::uint64_t(rows) + 255) / 256), 1u, max_shares);
}

Grid grid_of_shares(const Call& call, std::uint32_t shares) {
    const std::uint64_t bytes = info(call.argument("x").type).bytes;
    return {{tiles_of(call["columns"], bytes) * shares}, {threads}};
}

std::uint64_t bytes_of_shares(std::uint32_t shares, std::uint64_t columns) {
    return Workspace::rounded(shares * columns * sizeof(float));
}

}  // namespace

template <class T>
const ColumnSumsKernel<T>& column_sums_kernel() {
    static const auto made = kernel(name_of<T>("column_sums"), params("x", "sums", "rows", "columns"),
                                    [](In<T> x, Out<float> sums, u32 rows, u32 columns) {
                                        column_sums_of(RowPlaces(rows, columns), x, sums);
                                    })
                                 .require(aligned<16>("x"))
                                 .require(at_least("x", "rows", "columns"), at_least("sums", "columns"))
                                 .launch_bounds(threads);
    return made;
}

Grid column_sums_grid(std::uint32_t columns, std::uint64_t bytes) { return {{tiles_of(columns, bytes)}, {threads}}; }

std::uint64_t column_sums_workspace(const TensorView& x) {
    const std::uint64_t bytes = info(x.type).bytes;
    return workspace_of_parts(RowLayout({&x, nullptr, nullptr}, true), [&](std::uint32_t rows, std::uint32_t columns) {
        return bytes_of_shares(shares_of(rows, columns, bytes), columns);
    });
}

void column_sums(const Queue& queue, const TensorView& x, const MutableTensorView& sums,
                 const WorkspaceSlice& workspace) {
    run_rows({queue, column_sums_recipe, {x, sums}, workspace}, {});
}

// ---- the recipe

IKAT_INSTANTIATE(column_sums_kernel)

static std::uint32_t shares_of_call(const Call& call) {
    return shares_of(call["rows"], call["columns"], info(call.argument("x").type).bytes);
}

constexpr Recipe column_sums_recipe{
    .call = "column_sums(queue, x, sums, workspace)",
    .kernels = {{.summary = "the sum of each column of a matrix, in f32",
                 .instances = IKAT_FLOATS(column_sums_kernel<T>()),
                 .grid = [](const Call& call) { return grid_of_shares(call, 1); },
                 .passes = 1,
                 .pitched = IKAT_PITCHED("column_sums", (column_sums_of<T>), threads, 0, "x", "sums")}},
    .operands = {{"x", "... columns"}, {"sums", "columns", Access::Out, ir::Type::F32}},
    .document =
        "sums[c] is the sum of column c of x, in f32; x is row-major, rows x columns, with fewer than 2^32\n"
        "elements, and begins at a multiple of 16 bytes. Any sizes. The same in every run.",
    .sizes = {{"x", "rows columns"}, {"sums", "columns"}},
    .steps = [](Steps& steps) { launch_column_shares<1>(steps, {"sums"}, shares_of_call, grid_of_shares); },
    .workspace = [](const Call& call) { return bytes_of_shares(shares_of_call(call), call["columns"]); },
    .reference = reference::column_sums,
    .traffic = "E s",
    .note = "the gradient of a bias; two launches, no atomics, the same result in every run"};

}  // namespace ikat::stdlib
