// SPDX-License-Identifier: Apache-2.0
// Step 7 of the tutorial: a product of matrices from the library's tiles. Slices of the matrices are on their way to
// shared memory while others are multiplied, for any number of rows and any alignment of them that copies can use.
#include <ikat/ikat.hpp>

#include <ikat/mma.hpp>
#include <ikat/tile.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

// A block of four warps makes 64 x 64 elements of C. A slice of a matrix is 64 rows of 64 elements, 128 bytes each, of
// which three are in shared memory.
constexpr std::uint32_t extent = 64, stages = 3, threads = 128;
using M = Mma<16, 8, 16, bfloat16, float>;
using Tile = SharedTile<bfloat16, stages, extent, 64>;
using Accumulators = WarpTiles<M, 32, 32>;

// C = A B. The columns of B are contiguous, as the rows of A are: it is stored as n x k.
const auto product_of_tiles =
    kernel("product_of_tiles", params("A", "B", "C"),
           [](In<bfloat16, 2> A, In<bfloat16, 2> B, Out<float, 2> C) {
               require_threads(threads);
               require_linear_blocks();
               u32 row = block_id().y * extent, column = block_id().x * extent;
               Tile a, b;
               const TileSource<Tile, threads, Along::Columns> from_a(A, row, {.bytes = 16}), from_b(B, column, {});

               u32 my_row = warp_id() / 2 * 32, my_column = warp_id() % 2 * 32;
               const LeftOperand<M, Tile, Major::K> left(a, my_row);
               const RightOperand<M, Tile, Major::K> right(b, my_column);
               Accumulators accumulators(0.0f);

               pipeline<stages>(
                   from_a.count(),
                   [&](const auto& stage, const auto& slice) {  // ask for a slice
                       from_a.load(a[stage], slice);
                       from_b.load(b[stage], slice);
                   },
                   [&](const auto& stage) {  // work on one
                       accumulators.accumulate(left, right, a[stage], b[stage]);
                   });

               const auto scratch = a.bytes().as<float>().slice(warp_id() * row_scratch<Accumulators>);
               each_row<4>(accumulators, scratch, [&](const auto& i, const auto& j, const auto& four) {
                   u32 r = row + my_row + i, c = column + my_column + j;
                   if_((r < C.extent(0)) & (c < C.extent(1)), [&] { C.vec<4>(r, c / 4) = four; });
               });
           })
        .require(aligned<16>("A"), multiple_of<8>("A_extent1"), multiple_of<8>("A_pitch"))
        .require(aligned<16>("B"), multiple_of<8>("B_extent1"), multiple_of<8>("B_pitch"))
        .require(aligned<16>("C"), multiple_of<4>("C_extent1"), multiple_of<4>("C_pitch"))
        .launch_bounds(threads);

// The same tile without a swizzle: its rows are 128 bytes apart, so all begin in the same bank.
const auto with_conflicts = kernel("with_conflicts", [](Out<float> y) {
    SharedTile<bfloat16, stages, extent, 64, 0> a;
    const LeftOperand<M, decltype(a), Major::K> left(a, 0);
    y[thread_id().x] = cast<f32>(left.fragment(a[0], 0, 0)[0][0]);
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
    std::printf("a tile is %s\n", Tile::layout().text().c_str());
    try {
        with_conflicts.check();
    } catch (const Error& error) { std::printf("%s\n", error.what()); }

    const auto device = Device::open();
    bool right = true;
    for (const auto [m, n, k] : {std::array{128u, 192u, 256u}, std::array{100u, 72u, 200u}}) {
        const auto a = numbers(m * k, 0.1), b = numbers(n * k, 0.3);
        const auto A = device.upload(a, "A"), B = device.upload(b, "B");
        auto C = device.buffer<float>(m * n, "C");
        device.launch(product_of_tiles, Grid{{(n - 1) / extent + 1, (m - 1) / extent + 1}, {threads}}, A.view(m, k),
                      B.view(n, k), C.view(m, n));
        right = check("C from tiles", C.download(), a, b, n, k) && right;
    }
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
