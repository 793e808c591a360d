// SPDX-License-Identifier: Apache-2.0
// The examples of docs/tiles.md, compiled and run. pages_test.cpp compares the page with this file.
#include <ikat/ikat.hpp>
#include <ikat/layout.hpp>
#include <ikat/mma.hpp>
#include <ikat/stdlib.hpp>
#include <ikat/tile.hpp>

#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"

// clang-format off
namespace ikat::tile_examples {
namespace {

using namespace ikat::stdlib;

TEST_CASE("docs/tiles.md: where elements are") {
    using Tile = SharedTile<bfloat16, 3, 128, 64>;             // three stages of 128 x 64
    const SwizzledLayout layout = Tile::layout();              // Sw<3,3,3> o (128,64):(64,1), in elements
    std::vector<std::uint64_t> rows;                           // 16 bytes of eight rows, one below the other
    for (int r = 0; r < 8; ++r) rows.push_back(layout(r, 0) * sizeof(bfloat16));
    const std::uint32_t accesses = wavefronts(rows, 16);       // 1
    CHECK(layout.text() == "Sw<3,3,3> o (128,64):(64,1)");
    CHECK(accesses == 1);
    CHECK(SharedTile<half, 1, 8, 128>::layout().text() == "Sw<3,3,3> o (8,(64,2)):(64,(1,512))");
    CHECK(SharedTile<half, 1, 8, 96>::layout().text() == "Sw<2,3,3> o (8,(32,3)):(32,(1,256))");
    CHECK(SharedTile<half, 1, 8, 80>::layout().text() == "Sw<1,3,3> o (8,(16,5)):(16,(1,128))");
    CHECK(SharedTile<half, 1, 8, 24>::layout().text() == "Sw<0,3,3> o (8,24):(24,1)");
}

const auto turned = kernel("turned", params("A", "y"), [](In<float, 2> A, Out<float> y) {
    require_threads(128);
    require_linear_blocks();
    SharedTile<float, 1, 32, 32> tile;
    const TileSource<decltype(tile), 128, Along::Columns> rows(A, 0, {.bytes = 16});
    rows.load(tile[0], block_id().x);                    // columns 32 * block_id().x and on
    copy_commit();
    copy_wait<0>();
    sync_block();
    u32 i = thread_id().x / 4, j = thread_id().x % 4 * 8;
    for (int e = 0; e < 8; ++e) y[(block_id().x * 32 + i) * 32 + j + e] = tile[0][j + e, i];
});

TEST_CASE("docs/tiles.md: a source") {
    const Device device = Device::open({.device = "emulator"});
    std::vector<float> x(32 * 64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i);
    const auto A = device.upload(x, "A");
    auto y = device.buffer<float>(32 * 64, "y");
    device.launch(turned, Grid{{2}, {128}}, A.view(32, 64), y);
    const auto got = y.download();
    for (std::uint32_t i = 0; i < 64; ++i)
        for (std::uint32_t j = 0; j < 32; ++j) CHECK(got[i * 32 + j] == x[j * 64 + i]);
}

const auto column_sums = kernel("column_sums", params("A", "y"), [](In<float, 2> A, Out<float> y) {
    require_threads(32);
    require_linear_blocks();
    SharedTile<float, 3, 32, 32> tile;
    const TileSource<decltype(tile), 32, Along::Rows> slices(A, block_id().x * 32, {.bytes = 16});
    f32 sum = 0;
    pipeline<3>(
        slices.count(),
        [&](const auto& stage, const auto& slice) { slices.load(tile[stage], slice); },
        [&](const auto& stage) {
            for (int i = 0; i < 32; ++i) sum += tile[stage][i, thread_id().x];
        });
    y[block_id().x * 32 + thread_id().x] = sum;
});

const auto sums_in_steps = kernel("sums_in_steps", params("A", "y"), [](In<float, 2> A, Out<float> y) {
    require_threads(32);
    require_linear_blocks();
    SharedTile<float, 3, 32, 32> tile;
    const TileSource<decltype(tile), 32, Along::Rows> slices(A, block_id().x * 32, {.bytes = 16});
    f32 sum = 0;
    Regs<f32, 8> rows[2];  // of a step, and of the next
    const auto load = [&](const auto& stage, std::uint32_t step) {
        for (std::uint32_t i = 0; i < 8; ++i) rows[step % 2][i] = tile[stage][8 * step + i, thread_id().x];
    };
    pipeline_in_steps<3, 4>(
        slices.count(),
        [&](const auto& stage, const auto& slice, std::uint32_t part) { slices.load(tile[stage], slice, {part, 3}); },
        [&](const auto& stage) { load(stage, 0); },
        [&](std::uint32_t step, const auto& stage, std::uint32_t next) {
            load(stage, next);
            for (std::uint32_t i = 0; i < 8; ++i) sum += rows[step % 2][i];
        });
    y[block_id().x * 32 + thread_id().x] = sum;
});

template <class K>
void check_column_sums(const K& kernel) {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t rows = 100, columns = 64;
    std::vector<float> x(rows * columns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7);
    const auto A = device.upload(x, "A");
    auto y = device.buffer<float>(columns, "y");
    device.launch(kernel, Grid{{columns / 32}, {32}}, A.view(rows, columns), y);
    const auto got = y.download();
    for (std::uint32_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (std::uint32_t i = 0; i < rows; ++i) sum += x[i * columns + j];
        CHECK(got[j] == sum);
    }
}
TEST_CASE("docs/tiles.md: a pipeline") { check_column_sums(column_sums); }
TEST_CASE("docs/tiles.md: a pipeline in steps") { check_column_sums(sums_in_steps); }

const auto squares = kernel("squares", params("A", "B", "C"), [](In<half, 2> A, In<half, 2> B, Out<half, 2> C) {
    constexpr TensorTile tile{.m = 64, .n = 64, .warp_m = 32, .warp_n = 32, .stages = 4};
    const auto m = C.extent(0), n = C.extent(1);
    const auto down = tiles_of(m, tile.m), across = tiles_of(n, tile.n);
    const auto at = grouped_raster(block_id().x, down, across);
    const BlockProduct<half, tile, MatrixOrder::Rows, MatrixOrder::Columns> product(A, B, at.row * tile.m,
                                                                                    at.column * tile.n, {16, 16});
    product.each<8>([&](const auto& i, const auto& j, const auto& values) {
        if_((i < m) & (j < n), [&] { C.vec<8>(i, j / 8) = cast<f16>(values * values); });
    });
}).launch_bounds(128);

TEST_CASE("docs/tiles.md: a product by blocks") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t m = 70, n = 136, k = 72;
    std::vector<half> a(m * k), b(n * k);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = half(float(i % 3) - 1);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = half(float(i % 5) - 2);
    const auto A = device.upload(a, "A"), B = device.upload(b, "B");
    auto C = device.buffer<half>(m * n, "C");
    device.launch(squares, Grid{{2 * 3}, {128}}, A.view(m, k), B.view(n, k), C.view(m, n));
    const auto got = C.download();
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::uint32_t e = 0; e < k; ++e) sum += float(a[i * k + e]) * float(b[j * k + e]);
            wrong += float(got[i * n + j]) != float(half(sum * sum));
        }
    CHECK(wrong == 0);
}

constexpr TensorTile square{.m = 64, .n = 64, .warp_m = 32, .warp_n = 32, .stages = 4};
using Squares = BlockProduct<half, square, MatrixOrder::Rows, MatrixOrder::Columns>;

const auto streamed = kernel("streamed", params("A", "B", "C", "sums"),
                             [](In<half, 2> A, In<half, 2> B, Out<float, 2> C, Out<float, 3> sums) {
    const auto down = tiles_of(C.extent(0), 64), across = tiles_of(C.extent(1), 64), slices = tiles_of(A.extent(1), 64);
    const auto tiles = value(down * across);
    StreamK(tiles, slices, grid_dim().x).each(block_id().x, tiles, [&](const TileShare& share) {
        const auto at = grouped_raster(share.tile, down, across);
        const Squares product(A, B, at.row * 64, at.column * 64, {16, 16}, share.part);
        product.each<4>([&](const auto& i, const auto& j, const auto& v) {
            if_(share.is_whole, [&] { C.vec<4>(i, j / 4) = v; })
                .else_([&] { sums.vec<4>(share.number, i % 64, j % 64 / 4) = v; });
        });
        sync_block();
    });
}).launch_bounds(128);

const auto joined = kernel("joined", params("C", "sums", "slices", "workers"),  // a block for each tile
                           [](Out<float, 2> C, In<float, 3> sums, u32 slices, u32 workers) {
    const auto down = tiles_of(C.extent(0), 64), across = tiles_of(C.extent(1), 64);
    const auto at = grouped_raster(block_id().x, down, across);
    const SharesOfTile shares = StreamK(down * across, slices, workers).shares_of(block_id().x);
    if_(shares.count > 1, [&] {
        for (auto e : range(thread_id().x, 64 * 64, block_dim().x)) {
            f32 sum = 0;
            for (auto i : range(shares.count)) sum += sums[shares.number(i), e / 64, e % 64];
            C[at.row * 64 + e / 64, at.column * 64 + e % 64] = sum;
        }
    });
});

TEST_CASE("docs/tiles.md: workers with equally many slices") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t m = 192, n = 128, k = 320, workers = 4;
    std::vector<half> a(m * k), b(n * k);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = half(float(i % 3) - 1);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = half(float(i % 5) - 2);
    const auto A = device.upload(a, "A"), B = device.upload(b, "B");
    auto C = device.buffer<float>(m * n, "C"), sums = device.buffer<float>(2 * workers * 64 * 64, "sums");
    device.launch(streamed, Grid{{workers}, {128}}, A.view(m, k), B.view(n, k), C.view(m, n),
                  sums.view(2 * workers, 64, 64));
    device.launch(joined, Grid{{3 * 2}, {256}}, C.view(m, n), sums.view(2 * workers, 64, 64), 5, workers);
    const auto got = C.download();
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::uint32_t e = 0; e < k; ++e) sum += float(a[i * k + e]) * float(b[j * k + e]);
            wrong += got[i * n + j] != sum;
        }
    CHECK(wrong == 0);
}

struct GatheredRows {                                              // rows[first], rows[first + 1] ... of x
    const In<half, 2>& x;
    const In<std::uint32_t>& rows;
    Leaf<std::uint32_t> first;

    Leaf<std::uint32_t> count() const { return tiles_of(x.extent(1), 64); }
    template <class Tile>
    void load(const TileStage<Tile>& to, const Word& slice) const {
        for (std::uint32_t begin = 0; begin < 64 * 8; begin += 128) {           // 64 rows of eight pieces, 128 threads
            u32 row = (begin + thread_id().x) / 8, column = thread_id().x % 8 * 8, k = word(slice) * 64 + column;
            copy_async_if<16>(k < x.extent(1), to[row, column], x[rows[first + row], min(k, x.extent(1) - 8)]);
        }
    }
};

const auto gathered = kernel("gathered", params("A", "rows", "B", "C"),
                             [](In<half, 2> A, In<std::uint32_t> rows, In<half, 2> B, Out<float, 2> C) {
    using Product = BlockProduct<half, square, MatrixOrder::Rows, MatrixOrder::Columns, GatheredRows>;
    const TileGrid grid{tiles_of(C.extent(0), 64), tiles_of(C.extent(1), 64)};
    PersistentBlocks(grid, 1).each([&](const auto& work) {
        const auto row = value(work.at.row * 64), column = value(work.at.column * 64);
        const Product product({A, rows, row}, Product::SourceB(B, column, {.bytes = 16}), row, column, work.part);
        product.each<4>([&](const auto& i, const auto& j, const auto& v) { C.vec<4>(i, j / 4) = v; });
    });
}).launch_bounds(128);

TEST_CASE("docs/tiles.md: a source of one's own") {
    const Device device = Device::open({.device = "emulator"});
    const std::uint32_t m = 64, n = 128, k = 72, stored = 20;
    std::vector<half> a(stored * k), b(n * k);
    std::vector<std::uint32_t> rows(m);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = half(float(i % 7) - 3);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = half(float(i % 5) - 2);
    for (std::size_t i = 0; i < m; ++i) rows[i] = std::uint32_t(i * 7 % stored);
    const auto A = device.upload(a, "A"), B = device.upload(b, "B");
    const auto numbers = device.upload(rows, "rows");
    auto C = device.buffer<float>(m * n, "C");
    device.launch(gathered, Grid{{2}, {128}}, A.view(stored, k), numbers, B.view(n, k), C.view(m, n));
    const auto got = C.download();
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::uint32_t e = 0; e < k; ++e) sum += float(a[rows[i] * k + e]) * float(b[j * k + e]);
            wrong += got[i * n + j] != sum;
        }
    CHECK(wrong == 0);
}

TEST_CASE("docs/tiles.md: gemm_tensor_core") {
    const Device device = Device::open({.device = "emulator"});
    const Stream stream = device.stream();
    const std::uint32_t m = 40, n = 24, k = 128;
    const auto A = device.upload(std::vector<bfloat16>(m * k, bfloat16(1.0f)), "A");
    const auto B = device.upload(std::vector<bfloat16>(n * k, bfloat16(2.0f)), "B");
    const auto bias = device.upload(std::vector<bfloat16>(n, bfloat16(-300.0f)), "bias");
    auto C = device.buffer<bfloat16>(m * n, "C");
    gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n));                  // C = A B
    CHECK(C.download()[7] == bfloat16(256.0f));
    gemm_tensor_core(device, A.view(m, k), B.view(n, k), C.view(m, n),                   // C = relu(A B + bias)
                     {.b = MatrixOrder::Columns, .activation = Activation::relu, .bias = bias});
    CHECK(C.download()[7] == bfloat16(0.0f));
    auto sums = device.buffer<float>(m * n, "sums");
    gemm_tensor_core(device, A.view(m, k), B.view(k, n), sums.view(m, n));               // of f32: C = A B, not rounded
    CHECK(sums.download()[7] == 256);
    const auto gate = device.upload(std::vector<bfloat16>(m * n, bfloat16(0.5f)), "gate");
    gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n),                   // C = silu(A B + bias) * gate
                     epilogue("silu_gated",
                              [](auto sum, auto at, auto bias, auto gate) { return silu(sum + bias[at.column]) * gate[at]; },
                              bias, gate.view(m, n)));
    CHECK(std::abs(float(C.download()[7])) < 1e-6f);
    {
        const auto A = device.upload(std::vector<std::int8_t>(m * k, 3), "A");
        const auto B = device.upload(std::vector<std::int8_t>(n * k, 2), "B");
        const auto bias = device.upload(std::vector<std::int32_t>(n, 32), "bias");
        auto C = device.buffer<std::int32_t>(m * n, "C");
        gemm_tensor_core(device, A.view(m, k), B.view(k, n), C.view(m, n),                   // C = (A B + bias) / 16
                         epilogue<i32>("shifted", [](auto sum, auto at, auto bias) { return (sum + bias[at.column]) >> 4; }, bias));
        CHECK(C.download()[7] == (128 * 6 + 32) / 16);
    }
    const GemmOptions halves{.parts = 2};
    const auto bytes = gemm_workspace(stream, A.view(m, k), B.view(k, n), C.view(m, n), halves);
    auto workspace = device.buffer<std::uint8_t>(bytes);
    gemm_tensor_core(stream, A.view(m, k), B.view(k, n), C.view(m, n), {.parts = 2, .workspace = workspace});
    stream.synchronize();
    CHECK(bytes == 2 * m * n * 4);
    CHECK(C.download()[7] == bfloat16(256.0f));
}

}  // namespace
}  // namespace ikat::tile_examples
