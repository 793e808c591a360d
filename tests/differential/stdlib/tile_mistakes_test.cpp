// SPDX-License-Identifier: Apache-2.0
// Tiles that are not captured, or not launched: with conflicts, for other stages, boxes or products than theirs.
#include <cstdint>
#include <string>
#include <vector>

#include "dsl/kernel/tensor_map.hpp"
#include "dsl/threads/wgmma.hpp"
#include "stdlib/tile/block_product.hpp"
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

}  // namespace

TEST_CASE("tiles: one with conflicts is not captured, unless they are allowed") {
    using M = Mma<16, 8, 16, half, float>;
    constexpr int line = __LINE__ + 5;
    const auto made = [](bool allowed) {
        return kernel("conflicts", [allowed](Out<half> y) {
            SharedTile<half, 1, 16, 64, 0> a;
            if (allowed) a.conflicts_allowed();
            const LeftOperand<M, decltype(a), Major::K> left(a, 0);
            const auto fragment = left.fragment(a[0], 0, 0);
            y[thread_id().x] = fragment[0][0];
        });
    };
    const std::string message = tests::message_of([&] { made(false).check(); });
    INFO(message);
    CHECK(message.find("tile_mistakes_test.cpp:" + std::to_string(line) + ":") != std::string::npos);
    CHECK(
        message.find("eight rows of a matrix of this SharedTile, Sw<0,3,3> o (16,64):(64,1), are read in 8 accesses to "
                     "shared memory instead of one: they share banks") != std::string::npos);
    CHECK(message.find("swizzle 128 bytes: SharedTile<T, stages, rows, columns, 128>, the default; or say "
                       "tile.conflicts_allowed()") != std::string::npos);
    CHECK(tests::message_of([&] { made(true).check(); }).empty());
}

namespace {

constexpr TensorTile tensor_tile_of_test{.m = 64, .n = 64, .warp_m = 32, .warp_n = 32, .stages = 2};

/// That a message is an error in line `first` of this file, with a note that names line `second`.
void check_both_lines(const std::string& message, const std::string& text, int first, int second) {
    INFO(message);
    CHECK(message.find("tile_mistakes_test.cpp:" + std::to_string(first) + ":") ==
          message.find("tile_mistakes_test.cpp:"));
    CHECK(message.find(text) != std::string::npos);
    CHECK(message.find("tile_mistakes_test.cpp:" + std::to_string(second) + ":") != std::string::npos);
}

}  // namespace

TEST_CASE("tiles: one with fewer stages than its pipeline, or its ring, is not captured") {
    constexpr int line = __LINE__ + 4;
    const auto by_pipeline = []<std::uint32_t stages>(std::integral_constant<std::uint32_t, stages>) {
        return tests::message_of([&] {
            kernel("by_pipeline", [](Out<half> y, u32 count) {
                SharedTile<half, stages, 16, 64> a;
                pipeline<3>(
                    count, [&](const auto& stage, const auto&) { a[stage][0, 0] = 1.0f; },
                    [&](const auto& stage) { y[0] = a[stage][0, 0]; });
            }).check();
        });
    };
    using std::integral_constant;
    CHECK(by_pipeline(integral_constant<std::uint32_t, 3>{}).empty());
    CHECK(by_pipeline(integral_constant<std::uint32_t, 4>{}).empty());
    const std::string message = by_pipeline(integral_constant<std::uint32_t, 2>{});
    check_both_lines(message, "a SharedTile of 2 stages in a pipeline of 3 stages", line + 0, line + 1);
    CHECK(message.find("SharedTile of 2") == message.rfind("SharedTile of 2"));  // once

    constexpr int of_ring = __LINE__ + 3;
    const auto by_ring = [] {
        kernel("by_ring", [](Out<half> y) {
            SharedTile<half, 1, 16, 64> a;
            RingPlace<2> at;
            y[0] = a[at.stage()][0, 0];
        }).check();
    };
    check_both_lines(tests::message_of(by_ring), "a SharedTile of 1 stage in a ring of 2 stages", of_ring, of_ring + 1);
}

TEST_CASE("tiles: boxes and products that swizzle them differently are not captured") {
    using W = Wgmma<64, 64, 16, half, float>;
    constexpr int line = __LINE__ + 10;
    const auto made = []<int of_box, int of_matrix>(std::integral_constant<int, of_box>,
                                                    std::integral_constant<int, of_matrix>, bool stores) {
        return tests::message_of([&] {
            const auto k = kernel("swizzled", [stores](TensorMap<half, Box<64, 16>, of_box> map, Out<float> y) {
                Shared<half, 64, 16> a;
                Shared<Barrier, 1> full;
                if_(thread_id().x == 0u, [&] { full[0].init(1u); });
                sync_block();
                if_(thread_id().x == 0u,
                    [&] { full[0].arrive_expect(map.bytes), tma_load(a[0, 0], map[0, 0], full[0]); });
                if (stores) a[thread_id().x % 64u, 0] = 1.0f;
                full[0].wait(0u);
                W::C sums(0.0f);
                wgmma_fence();
                wgmma(sums, k_major<of_matrix>(a[0, 0]), k_major<of_matrix>(a[0, 0]));
                wgmma_commit();
                wgmma_wait<0>();
                y[thread_id().x] = sums[0];
            });
            k.check();
        });
    };
    const std::integral_constant<int, 32> by_32;
    const std::integral_constant<int, 64> by_64;
    CHECK(made(by_32, by_32, false) == "");
    CHECK(made(by_64, by_32, true) == "");  // what is stored may lie otherwise
    check_both_lines(made(by_64, by_32, false),
                     "k_major() of a matrix that is swizzled within 32 bytes, in an array of boxes that are swizzled "
                     "within 64 bytes",
                     line + 5, line);
}

TEST_CASE("tiles: a box that fits the tile it fills in bytes, but not in rows or in its swizzle, is not captured") {
    constexpr int line = __LINE__ + 4;
    const auto made = []<class B, int of_box>(B, std::integral_constant<int, of_box>) {
        return tests::message_of([&] {
            const auto k = kernel("filled", [](TensorMap<half, B, of_box> map) {
                SharedTile<half, 2, 64, 32> a;
                Shared<Barrier, 1> full;
                tma_load(a[1][0, 0], map[0, 0], full[0]);
            });
            k.check();
        });
    };
    const std::integral_constant<int, 128> by_128;
    const std::integral_constant<int, 64> by_64;
    CHECK(made(Box<64, 32>{}, by_64) == "");
    CHECK(made(Box<8, 32>{}, by_64) == "");
    check_both_lines(
        made(Box<64, 32>{}, by_128),
        "tma_load() of a box that is swizzled within 128 bytes, and a tile that is swizzled within 64 bytes", line + 2,
        line);
    check_both_lines(made(Box<32, 64>{}, by_128),
                     "tma_load() of a box whose rows have 128 bytes, and those of the array have 64", line + 2, line);
}

TEST_CASE("tiles: a matrix that cannot be accessed by that many bytes is not launched") {
    using Product = BlockProduct<half, tensor_tile_of_test, MatrixOrder::Rows, MatrixOrder::Columns>;
    constexpr int line = __LINE__ + 2;
    const auto k = kernel("products", params("A", "B", "y"), [](In<half, 2> A, In<half, 2> B, Out<float> y) {
        const Product product(A, B, 0, 0, {16, 4});
        product.each<4>(
            [&](const auto& i, const auto& j, const auto& v) { if_(i * 64u + j < 1u, [&] { y[0] = v.lane(0); }); });
    });
    const runtime::Device device = test::open_device();
    const auto x = device.upload(std::vector<half>(4096, half(1.0f)), "x");
    auto y = device.buffer<float>(1, "y");
    int launch = 0;
    const auto message = [&](const auto& A, const auto& B) {
        launch = __LINE__ + 1;
        return tests::message_of([&] { device.launch(k, {{{1}, {tensor_tile_of_test.threads()}}}, A, B, y); });
    };
    CHECK(message(x.view(4, 16), x.view(4, 16)) == "");
    CHECK(y.download()[0] == 16);
    CHECK(message(x.view(4, 16).pitched(24), x.view(4, 16).pitched(18)) == "");
    CHECK(message(x.view(1, 16).pitched(17), x.slice(2, 100).view(4, 16)) == "");  // there is no second row
    const auto check = [&](const std::string& found, const std::string& text) {
        check_both_lines(found, text, launch, line);
        CHECK(found.find("a TileSource copies 16 bytes of a row at once here") != std::string::npos);
    };
    check(message(x.view(4, 16).pitched(20), x.view(4, 16)), "'A_pitch' is 20, which is not a multiple of 8");
    check(message(x.view(4, 12).pitched(16), x.view(4, 12)), "'A_extent1' is 12, which is not a multiple of 8");
    check(message(x.slice(4, 100).view(4, 16), x.view(4, 16)), "buffer 'A' is not aligned to 16 bytes");
    CHECK_THAT(message(x.view(4, 16), x.view(4, 16).pitched(17)),
               Catch::Contains("'B_pitch' is 17, which is not a multiple of 2"));
}
