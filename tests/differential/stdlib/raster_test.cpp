// SPDX-License-Identifier: Apache-2.0
// The tiles of a result along a Hilbert curve: all of them, each once, and in an order in which those at work at the
// same time, and then the next ones, need few rows of A and columns of B.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/tile/block_schedule.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using runtime::Device;
using runtime::Grid;

struct Place {
    std::uint32_t row, column, plane;
    bool operator==(const Place&) const = default;
};

/// The places of all tiles of some planes, as a kernel computes them.
std::vector<Place> places(const Device& device, Raster raster, std::uint32_t rows, std::uint32_t columns,
                          std::uint32_t planes = 1) {
    static const auto of = [](Raster raster) {
        return kernel("places", params("rows", "columns", "count", "y"),
                      [raster](u32 rows, u32 columns, u32 count, Out<std::uint32_t> y) {
                          const auto number = value(block_id().x * 128u + thread_id().x);
                          if_(number < count, [&] {
                              const TilePlace at = TileGrid{value(rows), value(columns), raster}.at(number);
                              y[number * 3u] = at.row;
                              y[number * 3u + 1u] = at.column;
                              y[number * 3u + 2u] = at.plane;
                          });
                      });
    };
    static const auto grouped = of(Raster::grouped), hilbert = of(Raster::hilbert);
    const std::uint32_t count = rows * columns * planes;
    auto y = device.buffer<std::uint32_t>(3 * count, "y");
    device.launch(raster == Raster::hilbert ? hilbert : grouped, Grid{{(count + 127) / 128}, {128}}, rows, columns,
                  count, y);
    const auto got = y.download();
    std::vector<Place> out;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back({got[3 * i], got[3 * i + 1], got[3 * i + 2]});
    return out;
}

std::uint32_t distance(std::uint32_t a, std::uint32_t b) { return std::uint32_t(std::abs(int(a) - int(b))); }

/// What `workers` who take the tiles in turn need: how many rows and columns at the same time, in the mean, and how
/// many that were not needed just before, in all.
struct Need {
    double at_once;
    std::size_t fetched;
};
Need need_of(const std::vector<Place>& tiles, std::size_t workers) {
    using Lines = std::set<std::uint32_t>;
    Lines rows, columns;
    Need out{};
    std::size_t waves = 0;
    for (std::size_t first = 0; first < tiles.size(); first += workers, ++waves) {
        Lines next_rows, next_columns;
        for (std::size_t i = first; i < std::min(first + workers, tiles.size()); ++i)
            next_rows.insert(tiles[i].row), next_columns.insert(tiles[i].column);
        const auto is_new = [](const Lines& before) {
            return [&](std::uint32_t line) { return !before.contains(line); };
        };
        out.fetched += std::size_t(std::ranges::count_if(next_rows, is_new(rows)) +
                                   std::ranges::count_if(next_columns, is_new(columns)));
        out.at_once += double(next_rows.size() + next_columns.size());
        rows = next_rows, columns = next_columns;
    }
    out.at_once /= double(waves);
    return out;
}

/// A product, of numbers whose sums are rounded; by stream-k, where other tiles share their slices, of integers.
template <class Result>
std::vector<float> product(const Device& device, std::uint32_t m, std::uint32_t n, std::uint32_t k,
                           const GemmOptions& options) {
    std::vector<bfloat16> a(2 * m * k), b(2 * k * n);
    const bool are_integers = options.schedule == GemmSchedule::stream_k;
    const auto number = [&](float x) { return bfloat16(are_integers ? std::round(8 * x) : x); };
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = number(std::sin(float(i)));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = number(std::cos(float(i)));
    const auto A = device.upload(a, "A"), B = device.upload(b, "B");
    auto C = device.upload(std::vector<Result>(2 * m * n, Result(NAN)), "C");
    gemm_tensor_core(device, A.view(2, m, k), B.view(2, k, n), C.view(2, m, n), options);
    const std::vector<Result> out = C.download();
    return {out.begin(), out.end()};
}

}  // namespace

TEST_CASE("raster: a Hilbert curve passes each tile of any rectangle once") {
    const Device device = test::open_device();
    const std::uint32_t sides[] = {1, 2, 3, 4, 5, 7, 8, 12, 17, 33, 70};
    for (const std::uint32_t rows : sides)
        for (const std::uint32_t columns : sides) {
            INFO(rows << " x " << columns);
            const std::uint32_t tiles = rows * columns;
            const std::vector<Place> found = places(device, Raster::hilbert, rows, columns, 2);
            std::vector<char> is_passed(tiles);
            std::uint32_t outside = 0, twice = 0, jumps = 0, corners = 0;
            for (std::uint32_t i = 0; i < tiles; ++i) {
                const Place& at = found[i];
                CHECK(found[tiles + i] == Place{at.row, at.column, 1});
                if (at.row >= rows || at.column >= columns || at.plane != 0) {
                    ++outside;
                    continue;
                }
                twice += is_passed[at.row * columns + at.column]++ != 0;
                if (i == 0) continue;
                const std::uint32_t down = distance(at.row, found[i - 1].row),
                                    across = distance(at.column, found[i - 1].column);
                jumps += std::max(down, across) != 1;
                corners += down + across == 2;
            }
            CHECK(outside == 0);
            CHECK(twice == 0);
            CHECK(jumps == 0);
            CHECK(corners <= (std::max(rows, columns) % 2 == 1 && std::min(rows, columns) % 2 == 0 ? 1 : 0));
        }
}

TEST_CASE("raster: a Hilbert curve begins in a corner, as its picture says") {
    const std::uint32_t picture[] = {0, 1, 14, 15, 3, 2, 13, 12, 4, 7, 8, 11, 5, 6, 9, 10};
    const auto found = places(test::open_device(), Raster::hilbert, 4, 4);
    for (std::uint32_t i = 0; i < 16; ++i) CHECK(picture[found[i].row * 4 + found[i].column] == i);
}

TEST_CASE("raster: what is fetched again along a Hilbert curve") {
    const Device device = test::open_device();
    const auto need = [&](Raster raster, std::size_t workers) {
        return need_of(places(device, raster, 64, 64), workers);
    };
    // 64 x 64 tiles and 132 workers: the table of docs/tiles.md.
    const Need grouped = need(Raster::grouped, 132), hilbert = need(Raster::hilbert, 132);
    CHECK(grouped.at_once == Approx(26.1).margin(0.05));
    CHECK(hilbert.at_once == Approx(27.6).margin(0.05));
    CHECK(grouped.fetched == 576);
    CHECK(hilbert.fetched == 380);
    CHECK(need(Raster::grouped, 264).at_once == Approx(43.5).margin(0.05));
    CHECK(need(Raster::hilbert, 264).at_once == Approx(39.1).margin(0.05));
    CHECK(need(Raster::grouped, 264).fetched == 548);
    CHECK(need(Raster::hilbert, 264).fetched == 272);
}

TEST_CASE("raster: products have the same bits in each order of their tiles") {
    using enum GemmSchedule;
    const GemmOptions by_mma[] = {{.tile = TileSize::small, .schedule = block_per_tile},
                                  {.tile = TileSize::small, .schedule = persistent},
                                  {.tile = TileSize::small, .schedule = split_k, .parts = 2},
                                  {.tile = TileSize::small, .schedule = stream_k}};
    const GemmOptions by_wgmma[] = {{.tile = TileSize::medium, .schedule = persistent},
                                    {.tile = TileSize::large, .schedule = persistent},
                                    {.schedule = ping_pong}};
    const GemmOptions in_parts[] = {{.tile = TileSize::medium, .schedule = split_k, .parts = 2}};
    const auto check = [&]<class Result>(Result, const char* target, std::uint32_t m, std::uint32_t n,
                                         std::span<const GemmOptions> ways) {
        std::vector<std::vector<float>> found;
        for (GemmOptions options : ways) {
            INFO(target << ", schedule " << int(options.schedule));
            options.path = target == std::string_view("sm_80") ? GemmPath::mma_sync : GemmPath::wgmma;
            const Device device = test::open_device({.target = target, .threads = 2, .check = "races"});
            found.push_back(product<Result>(device, m, n, 136, options));
            options.raster = Raster::hilbert;
            CHECK(product<Result>(device, m, n, 136, options) == found.back());
        }
        return found;
    };
    check(0.0f, "sm_80", 64 * 5 - 7, 64 * 5 - 8, by_mma);  // 50 tiles: stream-k shares those that are left over
    check(0.0f, "sm_90a", 256 * 2 - 7, 128 * 3 - 8, in_parts);
    const auto compare = [&](auto result) {
        const auto by_each_tile = check(result, "sm_90a", 256 * 2 - 7, 128 * 3 - 8, by_wgmma);  // and by each of them
        CHECK(by_each_tile[1] == by_each_tile[0]);
        CHECK(by_each_tile[2] == by_each_tile[0]);
    };
    compare(0.0f);
    compare(bfloat16());
}
