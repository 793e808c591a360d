// SPDX-License-Identifier: Apache-2.0
// Products of sources of one's own: rows that an array of numbers chooses, and integers that become halves on the way
// to shared memory, by several schedules. Elements are small integers: all results are exact.
#include <ikat/ikat.hpp>

#include <cstdint>
#include <vector>

#include "stdlib/tile/block_product.hpp"
#include "stdlib/tile/block_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using enum MatrixOrder;

constexpr TensorTile tile{.m = 64, .n = 64, .warp_m = 32, .warp_n = 32, .stages = 3};
constexpr std::uint32_t slice = 64;  // of k

/// Calls f(row, column) for each `width` elements of a tile, by all threads.
template <class Tile>
void each_place(std::uint32_t width, auto&& f) {
    const std::uint32_t of_row = Tile::columns / width;
    for (std::uint32_t begin = 0; begin < Tile::rows * of_row; begin += tile.threads()) {
        const auto at = value(begin + thread_id().x);
        f(value(at / of_row), value(at % of_row * width));
    }
}

/// Rows rows[first], rows[first + 1] ... of a matrix, whose columns are a multiple of eight.
struct GatheredRows {
    const In<half, 2>& x;
    const In<std::uint32_t>& rows;
    Leaf<std::uint32_t> first, count_of_rows;

    Leaf<std::uint32_t> count() const { return tiles_of(x.extent(1), slice); }
    template <class Tile>
    void load(const TileStage<Tile>& to, const Word& number) const {
        const auto begin = value(word(number) * slice);
        each_place<Tile>(8, [&](const auto& row, const auto& column) {
            const auto from = value(rows[min(first + row, count_of_rows - 1u)]);
            const auto k = value(begin + column);
            copy_async_if<16>(k < x.extent(1), to[row, column], x[from, min(k, x.extent(1) - 8u)]);
        });
    }
};

/// A matrix of bytes, n x k, as halves.
struct Bytes {
    const In<std::int8_t, 2>& x;
    Leaf<std::uint32_t> first;

    Leaf<std::uint32_t> count() const { return tiles_of(x.extent(1), slice); }
    template <class Tile>
    void load(const TileStage<Tile>& to, const Word& number) const {
        const auto begin = value(word(number) * slice);
        each_place<Tile>(1, [&](const auto& row, const auto& column) {
            const auto n = value(first + row), k = value(begin + column);
            const auto is_there = value((n < x.extent(0)) & (k < x.extent(1)));
            to[row, column] = cast<f16>(x.load_if(is_there, n, k, std::int8_t{0}));
        });
    }
};

using Product = BlockProduct<half, tile, Rows, Columns, GatheredRows, Bytes>;
using OfMatrices = BlockProduct<half, tile, Rows, Columns>;
static_assert(SourceFor<GatheredRows, OfMatrices::TileA> && SourceFor<OfMatrices::SourceB, OfMatrices::TileB>);
static_assert(!SourceFor<OfMatrices, OfMatrices::TileA> && !SourceFor<std::vector<half>, OfMatrices::TileA>);
static_assert(TileProduct<Product> && TileProduct<OfMatrices> && !TileProduct<Bytes>);
static_assert(TileSchedule<BlockPerTile> && TileSchedule<PersistentBlocks> && TileSchedule<SplitBlocks> &&
              TileSchedule<StreamBlocks> && TileSchedule<PersistentClusters<2>> && !TileSchedule<StreamK>);

enum class Way { PerTile, Persistent, Split };

/// C, m x n, or planes of it whose sum it is.
auto product_of(Way way) {
    return kernel("gathered", params("A", "rows", "B", "C", "parts"),
                  [=](In<half, 2> A, In<std::uint32_t> rows, In<std::int8_t, 2> B, Out<float, 3> C, u32 parts) {
                      const auto m = value(C.extent(1)), n = value(C.extent(2));
                      const TileGrid grid{tiles_of(m, tile.m), tiles_of(n, tile.n)};
                      const auto make = [&](const TileSchedule auto& schedule, auto&& plane_of) {
                          schedule.each([&](const auto& work) {
                              const auto row = value(work.at.row * tile.m), column = value(work.at.column * tile.n);
                              const Product product(GatheredRows{A, rows, row, m}, Bytes{B, column}, row, column,
                                                    work.part);
                              product.each<4>([&](const auto& i, const auto& j, const auto& v) {
                                  if_((i < m) & (j < n), [&] { C.vec<4>(plane_of(work), i, j / 4u) = v; });
                              });
                          });
                      };
                      const auto first = [](const auto&) { return value(0u); };
                      if (way == Way::PerTile) make(BlockPerTile(grid), first);
                      if (way == Way::Persistent) make(PersistentBlocks(grid, 1), first);
                      if (way == Way::Split)
                          make(SplitBlocks(grid, tiles_of(A.extent(1), slice), parts),
                               [](const auto& work) { return work.sums; });
                  })
        .launch_bounds(tile.threads());
}

void check(const Device& device, Way way, std::uint32_t blocks, std::uint32_t parts) {
    const std::uint32_t m = 70, n = 132, k = 200, stored = 50;
    std::vector<half> a;
    std::vector<std::uint32_t> rows;
    std::vector<std::int8_t> b;
    for (std::uint32_t i = 0; i < stored * k; ++i) a.push_back(half(float(int(i * 7 + i / 13) % 5 - 2)));
    for (std::uint32_t i = 0; i < m; ++i) rows.push_back(i * 37 % stored);
    for (std::uint32_t i = 0; i < n * k; ++i) b.push_back(std::int8_t(int(i * 11 + i / 7) % 9 - 4));
    const auto A = device.upload(a, "A");
    const auto Rows = device.upload(rows, "rows");
    const auto B = device.upload(b, "B");
    auto C = device.buffer<float>(parts * m * n, "C");
    device.launch(product_of(way), Grid{{blocks}, {tile.threads()}}, A.view(stored, k), Rows, B.view(n, k),
                  C.view(parts, m, n), parts);
    const auto got = C.download();
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            double want = 0, sum = 0;
            for (std::uint32_t l = 0; l < k; ++l) want += double(float(a[rows[i] * k + l])) * double(b[j * k + l]);
            for (std::uint32_t p = 0; p < parts; ++p) sum += double(got[(p * m + i) * n + j]);
            wrong += sum != want;
        }
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("sources of one's own: gathered rows by integers, in every order of the warps, without a race") {
    const Device device = test::open_device({.target = "sm_80", .threads = 1, .check = "races", .schedules = 4});
    check(device, Way::PerTile, 6, 1);
    check(device, Way::Persistent, 4, 1);
    check(device, Way::Split, 12, 2);
}
