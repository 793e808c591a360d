// SPDX-License-Identifier: Apache-2.0
// Tiles in shared memory: where their elements are, how they are filled, and how conflicts are found.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dsl/kernel/tensor_map.hpp"
#include "dsl/threads/wgmma.hpp"
#include "stdlib/tile/block_product.hpp"
#include "stdlib/tile/online_softmax.hpp"
#include "stdlib/tile/register_operand.hpp"
#include "stdlib/tile/ring.hpp"
#include "stdlib/tile/schedule.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"

#include <ikat/ikat.hpp>

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using runtime::Device;

template <bool is_padded, class T, std::uint32_t stages, std::uint32_t rows, std::uint32_t columns>
using TileOf =
    std::conditional_t<is_padded, PaddedTile<T, stages, rows, columns>, SharedTile<T, stages, rows, columns>>;

// ---- places

/// The place of each element on the device is the layout's on the host, all elements have places of their own, and
/// matrices of eight rows use all banks.
template <class T, std::uint32_t rows, std::uint32_t columns, bool is_padded = false>
void check_places() {
    using Tile = TileOf<is_padded, T, 2, rows, columns>;
    const auto places = kernel("places", [](Out<std::uint32_t> y) {
        u32 t = thread_id().x;
        y[t] = Tile::place(t / columns, t % columns);
    });
    const Device device = test::open_device();
    auto y = device.buffer<std::uint32_t>(rows * columns, "y");
    device.launch(places, Grid{{1}, {rows * columns}}, y);
    const auto got = y.download();
    const SwizzledLayout layout = Tile::layout();
    INFO(layout.text());
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < rows; ++i)
        for (std::uint32_t j = 0; j < columns; ++j) expected.push_back(std::uint32_t(layout(i, j) * sizeof(T)));
    CHECK(got == expected);
    std::ranges::sort(expected);
    for (std::uint32_t e = 0; e < expected.size(); ++e)
        CHECK(expected[e] == e / columns * (Tile::stage_bytes / rows) + e % columns * sizeof(T));
    for (std::uint32_t i = 0; i < rows; i += 8)
        for (std::uint32_t j = 0; j < columns; j += 16 / sizeof(T)) {
            std::vector<std::uint64_t> matrix;
            for (std::uint32_t r = 0; r < 8; ++r) matrix.push_back(layout(i + r, j) * sizeof(T));
            CHECK(wavefronts(matrix, 16) == 1);
        }
}

}  // namespace

TEST_CASE("tiles: elements have the places of the layout, free of conflicts") {
    check_places<half, 8, 8>();    // 16 bytes a row
    check_places<half, 8, 16>();   // 32
    check_places<half, 16, 24>();  // 48: no swizzle
    check_places<half, 16, 32>();  // 64
    check_places<half, 8, 64>();   // 128
    check_places<half, 8, 80>();   // five panels of 32
    check_places<half, 8, 96>();   // three of 64
    check_places<half, 8, 128>();  // two of 128
    check_places<float, 16, 32>();
    check_places<std::int8_t, 8, 128>();
    check_places<half, 8, 128, true>();   // padded: 272 bytes
    check_places<float, 16, 12, true>();  // 48: no padding
}

TEST_CASE("tiles: accesses to banks") {
    const auto count = [](std::uint32_t lanes, std::uint64_t step, std::uint32_t bytes) {
        std::vector<std::uint64_t> places;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) places.push_back(lane * step);
        return wavefronts(places, bytes);
    };
    CHECK(count(32, 4, 4) == 1);
    CHECK(count(32, 0, 4) == 1);  // one word for all
    CHECK(count(32, 2, 2) == 1);
    CHECK(count(32, 8, 4) == 2);
    CHECK(count(32, 128, 4) == 32);
    CHECK(count(32, 8, 8) == 2);
    CHECK(count(32, 16, 16) == 4);
    CHECK(count(8, 128, 16) == 8);
    CHECK(count(8, 144, 16) == 1);
    CHECK(count(8, 32, 16) == 2);
}

// ---- slices

namespace {

/// Copies slice `slice` of a matrix of rows x columns in this way, and compares the tile with the host's.
template <class T, std::uint32_t tile_rows, std::uint32_t tile_columns, Along along, std::uint32_t threads = 64>
void check_slices(const TileAccess& access, std::uint32_t rows, std::uint32_t columns, std::uint32_t pitch) {
    INFO(tile_rows << " x " << tile_columns << " along " << int(along) << " of " << rows << " x " << columns << ", by "
                   << access.bytes << " bytes, transposed " << access.transposed);
    const auto copied = kernel("copied", params("x", "first", "slice", "y", "count"),
                               [access](In<T, 2> x, u32 first, u32 slice, Out<T> y, Out<std::uint32_t> count) {
                                   require_linear_blocks();
                                   SharedTile<T, 2, tile_rows, tile_columns> tile;
                                   const TileSource<decltype(tile), threads, along> source(x, first, access);
                                   source.load(tile[1], slice);
                                   copy_commit();
                                   copy_wait<0>();
                                   sync_block();
                                   for (auto e : range(thread_id().x, tile_rows * tile_columns, threads))
                                       y[e] = tile[1][e / tile_columns, e % tile_columns];
                                   count[0] = source.count();
                               });
    std::vector<T> x(std::size_t(rows) * pitch);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(float(int(i % 119) - 50));
    const std::uint32_t extent_i = access.transposed ? columns : rows, extent_j = access.transposed ? rows : columns;
    const auto element = [&](std::uint32_t i, std::uint32_t j) {  // of the matrix as the tile has it
        return access.transposed ? x[std::size_t(j) * pitch + i] : x[std::size_t(i) * pitch + j];
    };
    const bool is_along_columns = along == Along::Columns;
    const std::uint32_t of_slice = is_along_columns ? tile_columns : tile_rows;
    const std::uint32_t length = is_along_columns ? extent_j : extent_i, slices = (length + of_slice - 1) / of_slice;
    for (int seed = 0; seed < 3; ++seed) {
        const Device device = test::open_device({.schedule = std::to_string(seed)});
        const auto matrix = device.upload(x, "x");
        auto y = device.buffer<T>(tile_rows * tile_columns, "y");
        auto count = device.buffer<std::uint32_t>(1, "count");
        for (std::uint32_t slice = 0; slice <= slices; ++slice)
            for (const std::uint32_t first : {0u, is_along_columns ? tile_rows : tile_columns}) {
                if (first >= (is_along_columns ? extent_i : extent_j)) continue;
                device.launch(copied, Grid{{1}, {threads}}, matrix.view(rows, columns).pitched(pitch), first, slice, y,
                              count);
                CHECK(count.download()[0] == slices);
                const auto got = y.download();
                std::size_t wrong = 0;
                for (std::uint32_t r = 0; r < tile_rows; ++r)
                    for (std::uint32_t c = 0; c < tile_columns; ++c) {
                        const std::uint32_t i = is_along_columns ? first + r : slice * tile_rows + r;
                        const std::uint32_t j = is_along_columns ? slice * tile_columns + c : first + c;
                        if (i < extent_i && j < extent_j)
                            wrong += !(got[r * tile_columns + c] == element(i, j));
                        else if (is_along_columns ? j >= extent_j : i >= extent_i)
                            wrong += !(got[r * tile_columns + c] == T(0.0f));
                    }
                INFO("slice " << slice << ", first " << first << ", seed " << seed);
                CHECK(wrong == 0);
            }
    }
}

}  // namespace

TEST_CASE("tiles: slices of a matrix are copied, with zeros after the last") {
    using enum Along;
    for (const std::uint32_t bytes : {16u, 8u, 4u, 0u}) {
        check_slices<half, 16, 64, Columns>({bytes}, 21, 72, 80);
        check_slices<half, 16, 64, Rows>({bytes}, 21, 72, 80);
        check_slices<half, 16, 64, Rows>({.bytes = bytes, .saves_registers = true}, 21, 72, 80);
        check_slices<half, 32, 256, Rows, 128>({.bytes = bytes, .saves_registers = true}, 50, 256, 264);
        check_slices<float, 24, 64, Rows>({.bytes = bytes, .multiplies_rows = true}, 30, 72, 84);  // half a pass
        check_slices<half, 32, 256, Rows, 128>({bytes}, 50, 256, 264);  // four rows at once, and fewer
        check_slices<float, 16, 32, Columns>({bytes}, 3, 100, 104);
        check_slices<std::int8_t, 32, 128, Columns>({bytes}, 33, 144, 160);
        check_slices<half, 8, 80, Rows>({bytes}, 50, 80, 80);    // threads do not divide into rows
        check_slices<half, 8, 24, Columns>({bytes}, 9, 56, 64);  // fewer pieces than threads
    }
    check_slices<half, 16, 64, Columns>({0}, 21, 71, 75);
    check_slices<float, 16, 32, Columns>({0, true}, 70, 21, 23);
    check_slices<std::int8_t, 16, 128, Columns>({0, true}, 150, 21, 23);
}

/// On a GPU, blocks that all read one row wait for one place of the cache.
TEST_CASE("tiles: rows after the last are copies of the tile's others, of none too often") {
    const auto copied = kernel("copied", params("x", "first", "y"), [](In<half, 2> x, u32 first, Out<half> y) {
        require_linear_blocks();
        SharedTile<half, 1, 64, 64> tile;
        const TileSource<decltype(tile), 64, Along::Columns> source(x, first, {16});
        source.load(tile[0], 0u);
        copy_commit();
        copy_wait<0>();
        sync_block();
        y[thread_id().x] = tile[0][thread_id().x, 0u];
    });
    const Device device = test::open_device();
    for (const auto& [rows, first, max_times] :
         {std::array{16u, 0u, 6u}, {3u, 0u, 24u}, {70u, 64u, 14u}, {1u, 0u, 64u}}) {
        INFO(rows << " rows from " << first << " on");
        std::vector<half> x(rows * 64);
        for (std::uint32_t i = 0; i < x.size(); ++i) x[i] = half(float(i / 64));
        auto y = device.buffer<half>(64, "y");
        device.launch(copied, Grid{{1}, {64}}, device.upload(x, "x").view(rows, 64), first, y);
        std::vector<std::uint32_t> times(rows);
        for (const half row : y.download()) ++times.at(std::size_t(float(row)));
        for (std::uint32_t row = 0; row < rows; ++row) CHECK((times[row] > 0) == (row >= first));
        CHECK(std::ranges::max(times) <= max_times);
    }
}

// ---- schedules

TEMPLATE_TEST_CASE_SIG("tiles: lanes that come one after the other exchange rows", "", ((std::uint32_t count), count),
                       4, 8) {
    const auto exchanged = kernel("exchanged", params("y", "z"), [](Out<float> y, InOut<std::uint32_t> z) {
        const Shared<float, 16 * scratch_pitch(32)> scratch;
        const auto lane = value(lane_id());
        const auto come_apart = [&] {  // lanes leave this loop at different times
            for (auto i : range(lane % 7u)) z[lane] = z[lane] + i;
        };
        for (std::uint32_t round = 0; round < 2; ++round) {
            come_apart();
            exchange_rows<float, 32, count>(
                scratch.flat(),
                [&](std::uint32_t j, std::uint32_t half) {
                    const auto sum = value(((lane / 4u + 8 * half) * 32u + 8 * j + lane % 4u * 2u) * 2u + round);
                    return Vec<float, 2>(cast<f32>(sum), cast<f32>(sum + 2u));
                },
                [&](const auto& row, const auto& column, const auto& values) {
                    come_apart();
                    for (std::uint32_t e = 0; e < count; ++e) y[round * 512 + row * 32 + column + e] = values.lane(e);
                });
        }
    });
    std::vector<float> expected;
    for (int round = 0; round < 2; ++round)
        for (int e = 0; e < 512; ++e) expected.push_back(float(2 * e + round));
    for (int seed = 0; seed < 8; ++seed) {
        INFO("seed " << seed);
        const std::string order = std::to_string(seed) + ",lanes";
        const Device device = test::open_device({.schedule = order});
        auto y = device.buffer<float>(1024, "y");
        auto z = device.upload(std::vector<std::uint32_t>(32), "z");
        device.launch(exchanged, Grid{{1}, {32}}, y, z);
        CHECK(y.download() == expected);
    }
}

TEST_CASE("tiles: workers have equally many slices, and the sums of a tile are found again") {
    struct Job {
        std::uint32_t tile, first, count, is_whole, number;
    };
    const auto shares =
        kernel("shares", params("y", "shares_of", "streamed", "tiles", "slices"),
               [](Out<std::uint32_t> y, Out<std::uint32_t> shares_of, u32 streamed, u32 tiles, u32 slices) {
                   const StreamK stream(streamed, slices, grid_dim().x);
                   u32 next = block_id().x * 100;
                   stream.each(block_id().x, tiles, [&](const TileShare& share) {
                       const Leaf<std::uint32_t> values[] = {share.tile, share.part.first, share.part.count,
                                                             value(select(share.is_whole, 1u, 0u)), share.number};
                       for (std::uint32_t e = 0; e < 5; ++e) y[next * 5 + e] = values[e];
                       next += 1;
                   });
                   y[next * 5 + 2] = 0;
                   if_(block_id().x == 0, [&] {
                       for (auto tile : range(streamed)) {
                           const SharesOfTile of = stream.shares_of(tile);
                           shares_of[tile * 100] = of.count;
                           for (auto i : range(of.count)) shares_of[tile * 100 + 1 + i] = of.number(i);
                       }
                   });
               });
    const Device device = test::open_device();
    for (const std::uint32_t workers : {1u, 2u, 5u, 7u})
        for (const auto& [streamed, tiles] : {std::array{0u, 14u}, {3u, 3u}, {1u, 1u}, {8u, 20u}, {9u, 9u}})
            for (const std::uint32_t slices : {1u, 4u, 13u}) {
                INFO(workers << " workers, " << streamed << " of " << tiles << " tiles of " << slices << " slices");
                auto y = device.buffer<std::uint32_t>(workers * 500 + 5, "y");
                auto of = device.upload(std::vector<std::uint32_t>(streamed * 100 + 1), "of");
                device.launch(shares, Grid{{workers}, {1}}, y, of, streamed, tiles, slices);
                const auto got = y.download(), numbers = of.download();
                std::vector<std::vector<Job>> of_tile(tiles);  // in the order of workers, which is that of slices
                std::uint32_t min = ~0u, max = 0;
                for (std::uint32_t w = 0; w < workers; ++w) {
                    std::uint32_t all = 0;
                    for (const std::uint32_t* at = &got[w * 500]; at[2] != 0; at += 5) {
                        const Job job{at[0], at[1], at[2], at[3], at[4]};
                        REQUIRE(job.tile < tiles);
                        CHECK(job.is_whole == (job.count == slices));
                        CHECK(job.number / 2 == w);
                        if (job.tile < streamed) all += job.count;
                        of_tile[job.tile].push_back(job);
                    }
                    min = std::min(min, all), max = std::max(max, all);
                }
                CHECK(max - min <= 1);
                for (std::uint32_t t = 0; t < tiles; ++t) {
                    std::uint32_t next = 0;
                    for (const Job& job : of_tile[t]) {
                        CHECK(job.first == next);
                        next += job.count;
                    }
                    CHECK(next == slices);
                    if (t >= streamed) continue;
                    REQUIRE(numbers[t * 100] == of_tile[t].size());
                    if (of_tile[t].size() == 1) continue;
                    for (std::size_t i = 0; i < of_tile[t].size(); ++i)
                        CHECK(numbers[t * 100 + 1 + i] == of_tile[t][i].number);
                }
            }
}

TEST_CASE("tiles: a raster in groups has each tile once, neighbours in a group of rows") {
    const auto raster =
        kernel("raster", params("rows", "columns", "y"), [](u32 rows, u32 columns, Out<std::uint32_t> y) {
            const auto at = grouped_raster(thread_id().x, rows, columns, 4);
            y[thread_id().x] = at.plane * 10000 + at.row * 100 + at.column;
        });
    const Device device = test::open_device();
    for (const std::uint32_t rows : {1u, 4u, 7u, 9u})
        for (const std::uint32_t columns : {1u, 3u, 10u}) {
            auto y = device.buffer<std::uint32_t>(2 * rows * columns, "y");
            device.launch(raster, Grid{{1}, {2 * rows * columns}}, rows, columns, y);
            auto got = y.download();
            for (std::uint32_t i = 1; i < std::min(4u, rows); ++i) CHECK(got[i] == i * 100);
            std::vector<std::uint32_t> expected;
            for (std::uint32_t i = 0; i < 2 * rows * columns; ++i)
                expected.push_back(i / (rows * columns) * 10000 + i / columns % rows * 100 + i % columns);
            std::ranges::sort(got);
            CHECK(got == expected);
        }
}

// ---- factors in registers, softmax

namespace {

/// One warp: the product of 32 rows of k small integers of A, from registers, and n rows or columns of B; through
/// put_rows() and each_piece() to C.
template <class T, std::uint32_t n, std::uint32_t k, Major major, bool is_padded = false>
void check_register_operand() {
    using M = Mma<16, 8, 16, T, float>;
    static constexpr bool by_rows = major == Major::MN;
    const auto product = kernel("product", params("a", "b", "c"), [](In<T, 2> a, In<T, 2> b, Out<T, 2> c) {
        require_linear_blocks();
        TileOf<is_padded, T, 1, 32, k> of_a;
        TileOf<is_padded, T, 1, by_rows ? k : n, by_rows ? n : k> of_b;
        TileOf<is_padded, T, 2, 40, n> of_c;
        TileSource<decltype(of_a), 32, Along::Columns>(a, 0, {0}).load(of_a[0], 0);
        TileSource<decltype(of_b), 32, Along::Columns>(b, 0, {0}).load(of_b[0], 0);
        sync_block();
        const LeftOperand<M, decltype(of_a), Major::K> left(of_a, 0);
        const RightOperand<M, decltype(of_b), major> right(of_b, 0);
        const auto stage = of_a[0];
        WarpTiles<M, 32, n> sums(0.0f), others(0.0f);
        sums.accumulate(RegisterOperand<M, 32, k>(left, stage), right, of_b[0]);
        others.accumulate(left.of(stage), right, of_b[0]);
        for (std::uint32_t i = 0; i < 2; ++i)
            for (std::uint32_t j = 0; j < n / 8; ++j) sums(i, j) += others(i, j);
        put_rows(sums, of_c[1], 8);
        each_piece(of_c[1], 8, 32, [&](const auto& row, const auto& column, const auto& v) {
            c.template vec<8>(row, column / 8u) = v;
        });
    });
    const auto small = [](std::size_t i) { return float(int(i * 7 + i / 11) % 5 - 2); };
    std::vector<T> a(32 * k), b(k * n);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = T(small(i));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = T(small(3 * i + 1));
    const Device device = test::open_device();
    const auto A = device.upload(a, "a"), B = device.upload(b, "b");
    auto C = device.buffer<T>(32 * n, "c");
    device.launch(product, Grid{{1}, {32}}, A.view(32, k), B.view(by_rows ? k : n, by_rows ? n : k), C.view(32, n));
    const auto got = C.download();
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < 32; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::uint32_t l = 0; l < k; ++l)
                sum += float(a[i * k + l]) * float(b[by_rows ? l * n + j : j * k + l]);
            wrong += float(got[i * n + j]) != 2 * sum;
        }
    INFO("n " << n << ", k " << k << ", by rows " << by_rows);
    CHECK(wrong == 0);
}

}  // namespace

TEMPLATE_TEST_CASE("tiles: factors from registers, and sums by way of a tile", "", half, bfloat16) {
    check_register_operand<TestType, 64, 64, Major::K>();
    check_register_operand<TestType, 64, 64, Major::MN>();
    check_register_operand<TestType, 64, 64, Major::K, true>();
    check_register_operand<TestType, 64, 64, Major::MN, true>();
    check_register_operand<TestType, 8, 16, Major::K>();
    check_register_operand<TestType, 8, 16, Major::MN>();
    check_register_operand<TestType, 24, 32, Major::K>();
    check_register_operand<TestType, 24, 32, Major::MN>();
    check_register_operand<TestType, 40, 48, Major::K>();
    check_register_operand<TestType, 40, 48, Major::MN>();
}

TEST_CASE("tiles: softmax of rows whose scores come in tiles") {
    using M = Mma<16, 8, 16, half, float>;
    static constexpr std::uint32_t rows = 32, keys = 16, tiles = 5, columns = tiles * keys;
    // The sums are those of each row's exponentials themselves, in all eight columns.
    const auto softmax =
        kernel("softmax", params("x", "y", "sums"), [](In<float, 2> x, Out<float, 2> y, Out<float> log_sums) {
            OnlineSoftmax<rows> softmax;
            WarpTiles<M, rows, 8> sums(0.0f);
            for (auto tile : range(tiles)) {
                WarpTiles<M, rows, keys> scores(0.0f);
                for (std::uint32_t i = 0; i < rows / 16; ++i)
                    for (std::uint32_t j = 0; j < keys / 8; ++j)
                        for (int e = 0; e < 4; ++e)
                            scores(i, j)[e] = x[16 * i + M::C::row(e), tile * keys + 8 * j + M::C::column(e)];
                softmax.take(scores, 0.5f, sums);
                for (std::uint32_t i = 0; i < rows / 16; ++i)
                    for (int e = 0; e < 4; ++e)
                        for (std::uint32_t j = 0; j < keys / 8; ++j) sums(i, 0)[e] += scores(i, j)[e];
            }
            softmax.finish(sums);
            for (std::uint32_t i = 0; i < rows / 16; ++i)
                for (int e = 0; e < 4; ++e) y[16 * i + M::C::row(e), M::C::column(e)] = sums(i, 0)[e];
            for (std::uint32_t r = 0; r < softmax.rows; ++r)
                if_(lane_id() % 4 == 0, [&] { log_sums[lane_id() / 4 + 8 * r] = softmax.log2_sum(r); });
        });
    std::vector<float> x(rows * columns);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / columns, column = i % columns;
        x[i] = row == 3 || (row == 4 && column < 40) || (row == 5 && column > 20) ? -INFINITY
               : row == 6                                                         ? 300 * float(column)
               : row == 7                                                         ? -300 * float(column)
                                                                                  : float(int(i * 37 % 101) - 50);
    }
    const Device device = test::open_device();
    const auto X = device.upload(x, "x");
    auto Y = device.buffer<float>(rows * 8, "y"), sums = device.buffer<float>(rows, "sums");
    device.launch(softmax, Grid{{1}, {32}}, X.view(rows, columns), Y.view(rows, 8), sums);
    const auto y = Y.download(), log_sums = sums.download();
    for (std::uint32_t i = 0; i < rows; ++i) {
        double total = 0, maximum = -INFINITY;
        for (std::uint32_t j = 0; j < columns; ++j) maximum = std::max(maximum, double(x[i * columns + j]) / 2);
        for (std::uint32_t j = 0; j < columns && maximum > -INFINITY; ++j)
            total += std::exp2(double(x[i * columns + j]) / 2 - maximum);
        INFO("row " << i);
        // The four lanes of a row have different columns: together they have all.
        double all = 0;
        for (std::uint32_t lane = 0; lane < 4; ++lane)
            all += double(y[i * 8 + 2 * lane]) + double(y[i * 8 + 2 * lane + 1]);
        CHECK(std::abs(all - (i == 3 ? 0 : 1)) <= 1e-5);
        if (i == 3)
            CHECK(log_sums[i] == -INFINITY);
        else
            CHECK(std::abs(double(log_sums[i]) - (maximum + std::log2(total))) <= 1e-5 * (1 + std::abs(maximum)));
    }
}
