// SPDX-License-Identifier: Apache-2.0
// Accumulators row by row: masks, reductions and scales of warps and warpgroups, and copies to tiles and back.
#include <cmath>
#include <cstdint>
#include <vector>

#include "dsl/threads/wgmma.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/tile/lane_rows.hpp"
#include "stdlib/tile/tile_rows.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

#include <ikat/ikat.hpp>

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using runtime::Device;

/// What the tests begin with, in row i and column j.
auto number(const auto& i, const auto& j) { return (i * 37u + j * 11u) % 29u; }

/// softmax of the rows of a causal matrix, and the largest number of each row.
template <class Tiles>
auto softmax_rows(std::uint32_t threads) {
    return kernel("softmax_rows", params("C", "largest"),
                  [](Out<float, 2> C, Out<float> largest) {
                      Tiles x(0.0f);
                      each_number(x, [](auto& v, std::uint32_t, const auto& row, const auto& column) {
                          v = cast<f32>(number(row, column));
                      });
                      mask(x, [](const auto& row, const auto& column) { return column <= row; });
                      const auto maximum = row_max(x);
                      each_number(x, [&](auto& v, std::uint32_t r, const auto&, const auto&) {
                          v = stdlib::exp(v - maximum[r]);
                      });
                      const auto total = row_sum(x);
                      scale_rows(x, [&](std::uint32_t r) { return 1.0f / total[r]; });
                      each_number(
                          x, [&](auto& v, std::uint32_t, const auto& row, const auto& column) { C[row, column] = v; });
                      if_(lane_id() % 4u == 0u, [&] {
                          for (std::uint32_t r = 0; r < LaneRowsOf<Tiles>::rows; ++r)
                              largest[LaneRowsOf<Tiles>::row(r)] = maximum[r];
                      });
                  })
        .launch_bounds(threads);
}

template <class Tiles>
void check_softmax(std::uint32_t threads, const char* target) {
    const Device device = test::open_device({.target = target, .check = "races", .schedules = 4});
    auto C = device.buffer<float>(Tiles::m * Tiles::n, "C"), largest = device.buffer<float>(Tiles::m, "largest");
    device.launch(softmax_rows<Tiles>(threads), Grid{{1}, {threads}}, C.view(Tiles::m, Tiles::n), largest);
    const auto got = C.download(), maximum = largest.download();
    for (std::uint32_t i = 0; i < Tiles::m; ++i) {
        double sum = 0, top = 0;
        for (std::uint32_t j = 0; j < Tiles::n && j <= i; ++j) top = std::max(top, double(number(i, j)));
        for (std::uint32_t j = 0; j < Tiles::n && j <= i; ++j) sum += std::exp(number(i, j) - top);
        CHECK(maximum[i] == top);
        for (std::uint32_t j = 0; j < Tiles::n; ++j) {
            const double right = j <= i ? std::exp(number(i, j) - top) / sum : 0;
            INFO("row " << i << " column " << j << ": " << got[i * Tiles::n + j] << ", not " << right);
            CHECK(std::abs(got[i * Tiles::n + j] - right) <= 1e-6 * right);
        }
    }
}

}  // namespace

TEST_CASE("lane rows: softmax of the rows of a warp and of a warpgroup") {
    check_softmax<WarpTiles<Mma<16, 8, 16, half, float>, 32, 64>>(32, "sm_80");
    check_softmax<WarpTiles<Mma<16, 8, 16, half, float>, 16, 8>>(32, "sm_80");
    check_softmax<WarpgroupTiles<Wgmma<64, 64, 16, half, float>, 2>>(128, "sm_90a");
}

TEST_CASE("lane rows: integers, and other reductions") {
    using Tiles = WarpTiles<Mma<16, 8, 32, std::int8_t, std::int32_t>, 32, 16>;
    const auto made = kernel("integers", params("y"), [](Out<std::int32_t, 2> y) {
        Tiles x(0);
        fill(x, -3);
        const auto sum = row_sum(x), maximum = row_max(x);
        each_number(x, [](auto& v, std::uint32_t, const auto& row, const auto&) { v = cast<i32>(row % 2u) + 1; });
        const auto product = row_reduce(x, 1, [](auto&& a, auto&& b) { return a * b; });
        for (std::uint32_t r = 0; r < LaneRowsOf<Tiles>::rows; ++r) {
            const auto row = LaneRowsOf<Tiles>::row(r);
            if_(lane_id() % 4u == r % 4, [&] {  // all four lanes have the same
                y[row, 0u] = sum[r];
                y[row, 1u] = maximum[r];
                y[row, 2u] = product[r];
            });
        }
    });
    const Device device = test::open_device({.check = "races"});
    auto y = device.buffer<std::int32_t>(32 * 3, "y");
    device.launch(made, Grid{{1}, {32}}, y.view(32, 3));
    const auto got = y.download();
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(got[3 * i] == -48);
        CHECK(got[3 * i + 1] == -3);
        CHECK(got[3 * i + 2] == (i % 2 ? 65536 : 1));
    }
}

TEST_CASE("lane rows: to a tile and back") {
    using Tiles = WarpTiles<Mma<16, 8, 16, half, float>, 32, 64>;
    const auto made = kernel("there_and_back", params("y"), [](Out<float, 2> y) {
        SharedTile<half, 1, 64, 64> tile;
        Tiles x(0.0f);
        each_number(x, [](auto& v, std::uint32_t, const auto& row, const auto& column) {
            v = cast<f32>(number(row, column)) + 1.0f / 3.0f;
        });
        put_rows(x, tile[0], 16u);
        fill(x, 0.0f);
        get_rows(x, tile[0], 16u);
        each_number(x, [&](auto& v, std::uint32_t, const auto& row, const auto& column) { y[row, column] = v; });
    });
    const Device device = test::open_device({.check = "races", .schedules = 4});
    auto y = device.buffer<float>(32 * 64, "y");
    device.launch(made, Grid{{1}, {32}}, y.view(32, 64));
    const auto got = y.download();
    for (std::uint32_t i = 0; i < 32; ++i)
        for (std::uint32_t j = 0; j < 64; ++j) CHECK(got[64 * i + j] == float(half(float(number(i, j)) + 1.0f / 3.0f)));
}
