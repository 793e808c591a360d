// SPDX-License-Identifier: Apache-2.0
// The loops over a ring: products of a warpgroup, and sums of what one thread copies.
#include <cmath>
#include <cstdint>
#include <vector>

#include "dsl/kernel/tensor_map.hpp"
#include "stdlib/tile/ring_pipeline.hpp"
#include "stdlib/tile/warp_specialised.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

#include <ikat/ikat.hpp>

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using runtime::Device;

using W = Wgmma<64, 64, 16, half, float>;
using Tile = SharedTile<half, 3, 64, 64>;
using Map = TensorMap<half, Box<64, 64>, 128>;

/// C = A B^T, one tile of 64 x 64, by a warpgroup; and the sum of each column of A, by another.
auto product_and_sums() {
    return kernel("product_and_sums", params("A", "B", "C", "columns", "k"),
                  [](Map A, Map B, Out<float, 2> C, Out<float> columns, u32 k) {
                      Tile a, b;
                      const Ring<3> ring(8);
                      RingPlace<3> at;
                      const auto slices = value(k / 64u);
                      warp_specialised<2>(
                          [&] {
                              const auto ask = [&](const auto& stage, const auto& arrival, const auto& slice) {
                                  tma_load(a[stage][0, 0], A[0, slice * 64u], arrival);
                                  tma_load(b[stage][0, 0], B[0, slice * 64u], arrival);
                              };
                              fill_slices(ring, at, slices, A.bytes + B.bytes, ask);
                          },
                          [&](const auto& group) {
                              if_(group == 0u, [&] {
                                  const WarpgroupOperand<W, Tile, Major::K> left(a, 0), right(b, 0);
                                  WarpgroupTiles<W, 1> sums(0.0f);
                                  pipeline_products(ring, at, slices, [&](const auto& stage, const auto&) {
                                      sums.begin(left, right, a[stage], b[stage]);
                                  });
                                  const auto row = value(warp_id() % 4u * 16u + lane_id() / 4u);
                                  for (std::uint32_t e = 0; e < 32; ++e) {
                                      const std::uint32_t down = e % 4 / 2 * 8, along = e / 4 * 8 + e % 2;
                                      C[row + down, lane_id() % 4u * 2u + along] = sums[0][e];
                                  }
                              }).else_([&] {
                                  pipeline(ring, at, slices, [&](const auto& stage, const auto& slice) {
                                      if_(thread_id().x % 128u < 64u, [&] {
                                          f32 sum = 0.0f;
                                          for (auto row : range(64u))
                                              sum += cast<f32>(a[stage][row, thread_id().x % 64u]);
                                          columns[slice * 64u + thread_id().x % 64u] = sum;
                                      });
                                  });
                              });
                          });
                  })
        .launch_bounds(specialised_threads(2), 1);
}

}  // namespace

TEST_CASE("ring pipelines: a product and sums of the same slices") {
    const Device device = test::open_device({.target = "sm_90a", .check = "races", .schedules = 6});
    for (const std::uint32_t k : {64u, 192u, 640u}) {
        std::vector<half> a, b;
        for (std::uint32_t i = 0; i < 64 * k; ++i) {
            a.emplace_back(float(int(i * 7 % 23) - 11));
            b.emplace_back(float(int(i * 5 % 19) - 9));
        }
        const auto A = device.upload(a, "A"), B = device.upload(b, "B");
        auto C = device.buffer<float>(64 * 64, "C"), columns = device.buffer<float>(k, "columns");
        device.launch(product_and_sums(), Grid{{1}, {specialised_threads(2)}}, A.view(64, k), B.view(64, k),
                      C.view(64, 64), columns, k);
        const auto got = C.download(), sums = columns.download();
        for (std::uint32_t i = 0; i < 64; ++i)
            for (std::uint32_t j = 0; j < 64; ++j) {
                double right = 0;
                for (std::uint32_t l = 0; l < k; ++l) right += double(a[i * k + l]) * double(b[j * k + l]);
                CHECK(got[i * 64 + j] == right);  // integers
            }
        for (std::uint32_t l = 0; l < k; ++l) {
            double right = 0;
            for (std::uint32_t i = 0; i < 64; ++i) right += double(a[i * k + l]);
            CHECK(sums[l] == right);
        }
    }
}
