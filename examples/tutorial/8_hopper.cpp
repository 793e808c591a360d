// SPDX-License-Identifier: Apache-2.0
// Step 8 of the tutorial: a product of matrices on sm_90a. One thread copies boxes of the matrices (TMA) into a ring of
// stages in shared memory, and two warpgroups multiply what has arrived (wgmma). They wait for each other at barriers.
#include <ikat/ikat.hpp>

#include <ikat/async.hpp>
#include <ikat/mma.hpp>
#include <ikat/tile.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

// A block makes 128 x 128 elements of C. A slice of a matrix is a box of 128 rows of 64 elements, of which four are in
// shared memory. A warpgroup, 128 threads, has 64 x 128 accumulators.
constexpr std::uint32_t extent = 128, stages = 4, threads = specialised_threads(2);
using Tile = SharedTile<bfloat16, stages, extent, 64>;
using Slices = TensorMap<bfloat16, Box<extent, 64>, 128>;
using W = Wgmma<64, extent, 16, bfloat16, float>;
using Accumulators = WarpgroupTiles<W, 1>;
using TileOperand = WarpgroupOperand<W, Tile, Major::K>;

// C = A B. The columns of B are contiguous, as the rows of A are: it is stored as n x k.
const auto product_by_warpgroups =
    kernel("product_by_warpgroups", params("A", "B", "C", "k"),
           [](Slices A, Slices B, Out<float, 2> C, u32 k) {
               require_linear_blocks();
               u32 row = block_id().y * extent, column = block_id().x * extent, slices = (k + 63) / 64;
               Tile a, b;
               Shared<float, 8 * warpgroup_scratch> scratch;
               const Ring<stages> ring(8);  // eight warps free a stage
               RingPlace<stages> at;

               warp_specialised<2>(
                   [&] {  // one thread asks for all slices
                       for (auto slice : range(slices))
                           ring.fill(at, A.bytes + B.bytes, [&](const auto& stage, const auto& arrival) {
                               tma_load(a[stage][0, 0], A[row, slice * 64], arrival);
                               tma_load(b[stage][0, 0], B[column, slice * 64], arrival);
                           });
                   },
                   [&](const auto& group) {
                       u32 my_row = group * 64;
                       const TileOperand left(a, my_row), right(b, 0);
                       Accumulators accumulators(0.0f);
                       for (auto slice [[maybe_unused]] : range(slices)) {
                           ring.wait(at);
                           wgmma_fence();
                           accumulators.begin(left, right, a[at.stage()], b[at.stage()]);
                           wgmma_commit();
                           wgmma_wait<0>();
                           ring.free(at.stage());
                           at.next();
                       }
                       const auto mine = scratch.flat().slice((group * 4 + warp_id() % 4) * warpgroup_scratch);
                       each_row<4>(accumulators, mine, [&](const auto& i, const auto& j, const auto& four) {
                           u32 r = row + my_row + i, c = column + j;
                           if_((r < C.extent(0)) & (c < C.extent(1)), [&] { C.vec<4>(r, c / 4) = four; });
                       });
                   });
           })
        .require(aligned<16>("C"), multiple_of<4>("C_extent1"), multiple_of<4>("C_pitch"))
        .launch_bounds(threads, 1);

// A sum is read while the product that it belongs to is in flight.
const auto too_early = kernel("too_early", [](Out<float> y) {
    Tile a;
    const TileOperand left(a, 0), right(a, 0);
    Accumulators accumulators(0.0f);
    wgmma_fence();
    accumulators.begin(left, right, a[0], a[0]);
    wgmma_commit();
    y[thread_id().x] = accumulators[0][0];
    wgmma_wait<0>();
});

std::vector<bfloat16> numbers(std::size_t count, double step) {
    std::vector<bfloat16> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(std::sin(step * double(i)));
    return out;
}

/// Whether each element is the sum of k exact products, in whatever order they were added, and however rounded.
bool check(const char* what, const std::vector<float>& c, const std::vector<bfloat16>& a,
           const std::vector<bfloat16>& b, std::size_t n, std::size_t k) {
    bool right = true;
    for (std::size_t i = 0; i < c.size(); ++i) {
        double sum = 0, magnitude = 0;
        for (std::size_t at = 0; at < k; ++at) {
            const double product = double(a[i / n * k + at]) * double(b[i % n * k + at]);
            sum += product, magnitude += std::abs(product);
        }
        right = right && std::abs(c[i] - sum) <= magnitude * double(k) * 0x1p-23;
    }
    std::printf("%s: %s\n", what, right ? "right" : "WRONG");
    return right;
}

int main() try {
    try {
        too_early.check();
    } catch (const Error& error) { std::printf("%s\n", error.what()); }

    const auto device = Device::open({.target = "sm_90a"});
    bool right = true;
    for (const auto [m, n, k] : {std::array{256u, 128u, 448u}, std::array{100u, 72u, 200u}}) {
        const auto a = numbers(m * k, 0.1), b = numbers(n * k, 0.3);
        const auto A = device.upload(a, "A"), B = device.upload(b, "B");
        auto C = device.buffer<float>(m * n, "C");
        device.launch(product_by_warpgroups, Grid{{(n - 1) / extent + 1, (m - 1) / extent + 1}, {threads}},
                      A.view(m, k), B.view(n, k), C.view(m, n), k);
        right = check("C by warpgroups", C.download(), a, b, n, k) && right;
    }
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
