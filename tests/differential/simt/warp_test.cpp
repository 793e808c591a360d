// SPDX-License-Identifier: Apache-2.0
// Warps and blocks: reductions and matches in one instruction, named barriers, barriers with a reduction, special
// registers.
#include <algorithm>

#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;

const auto reductions = kernel("reductions", params("x", "y"), [](InOut<std::uint32_t> x, InOut<std::int32_t> y) {
    u32 i = thread_id().x;
    u32 v = x[i];
    i32 s = y[i];
    x[32 + i] = reduce_add(v);
    x[64 + i] = reduce_and(v);
    x[96 + i] = reduce_or(v);
    x[128 + i] = reduce_xor(v);
    y[32 + i] = reduce_min(s);
    y[64 + i] = reduce_max(s);
});

TEST_CASE("reductions of a warp") {
    u32s x(160);
    std::vector<std::int32_t> y(96);
    for (std::uint32_t i = 0; i < 32; ++i) x[i] = 0x9e3779b9u * (i + 1) | 0x40, y[i] = std::int32_t(x[i]);
    auto signs = simt_device().upload(y, "y");
    const u32s got = run(reductions, 1, 32, x, signs);
    const auto low = signs.download();
    std::uint32_t sum = 0, all = ~0u, any = 0, odd = 0;
    for (std::uint32_t i = 0; i < 32; ++i) sum += x[i], all &= x[i], any |= x[i], odd ^= x[i];
    CHECK(all == 0x40);
    const std::uint32_t wanted[] = {sum, all, any, odd};
    for (std::uint32_t k = 0; k < 4; ++k)
        for (std::uint32_t i = 0; i < 32; ++i) CHECK(got[32 * (k + 1) + i] == wanted[k]);
    CHECK(low[32 + 7] == *std::min_element(y.begin(), y.begin() + 32));
    CHECK(low[64 + 31] == *std::max_element(y.begin(), y.begin() + 32));
}

const auto matches = kernel("matches", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x;
    u32 members = ballot(i < 24);
    if_(i < 24, [&] {
        u32 same = match_any(i % 5, members);
        x[i] = same;
        u64 wide = cast<u64>(i / 24) << 40;
        u32 all = match_all(wide, members);
        x[32 + i] = all;
        u32 none = match_all(i, members);
        x[64 + i] = none;
        x[96 + i] = active_lanes();
    });
});

TEST_CASE("lanes that hold the same value") {
    const u32s got = run(matches, 1, 32, u32s(128, 0xdead));
    for (std::uint32_t i = 0; i < 24; ++i) {
        std::uint32_t same = 0;
        for (std::uint32_t k = 0; k < 24; ++k) same |= std::uint32_t(k % 5 == i % 5) << k;
        CHECK(got[i] == same);
        CHECK(got[32 + i] == 0xffffff);
        CHECK(got[64 + i] == 0);
        CHECK((got[96 + i] >> i & 1) == 1);
        CHECK((got[96 + i] & 0xff000000) == 0);
    }
    CHECK(got[24] == 0xdead);
}

// Warps 0 and 1 pass data to warps 2 and 3 through barrier 1, at which the latter wait.
const auto handing_over = kernel("handing_over", params("x"), [](InOut<std::uint32_t> x) {
    Shared<std::uint32_t, 64> handed;
    u32 i = thread_id().x;
    if_(i < 64, [&] {
        handed[i] = i * 3;
        arrive_block(1, 128);
    }).else_([&] {
        sync_block(1, 128);
        x[i] = handed[127 - i];
    });
});

TEST_CASE("warps pass data through a named barrier") {
    const u32s got = run(handing_over, 1, 128, u32s(128, 7));
    for (std::uint32_t i = 64; i < 128; ++i) CHECK(got[i] == (127 - i) * 3);
    CHECK(got[0] == 7);
}

const auto asking = kernel("asking", params("x", "n"), [](InOut<std::uint32_t> x, u32 n) {
    u32 i = thread_id().x;
    u32 count = sync_block_count(i < n);
    pred every = sync_block_and(i < n), some = sync_block_or(i >= n);
    x[i] = count * 4 + select(every, 2u, 0u) + select(some, 1u, 0u);
});

TEST_CASE("a barrier with a reduction") {
    for (std::uint32_t n : {0u, 1u, 77u, 96u, 200u}) {
        const u32s got = run(asking, 1, 96, u32s(96), n);
        const std::uint32_t count = std::min(n, 96u);
        for (std::uint32_t i = 0; i < 96; ++i)
            CHECK(got[i] == count * 4 + (count == 96 ? 2 : 0) + (count < 96 ? 1 : 0));
    }
}

const auto registers = kernel("registers", params("x"), [](InOut<std::uint32_t> x) {
    u32 i = thread_id().x;
    x[i] = lane_mask_eq();
    x[32 + i] = lane_mask_lt() | lane_mask_ge();
    x[64 + i] = lane_mask_le() ^ lane_mask_gt();
    x[96 + i] = popcount(lane_mask_lt());
    u64 before = clock64();
    u32 short_before = clock32();
    u64 nanoseconds = global_timer();
    u64 after = clock64();
    u64 later = global_timer();
    x[128 + i] = select(after >= before, 1u, 0u) + select(later >= nanoseconds, 2u, 0u);
    x[160 + i] = select(multiprocessor_id() < multiprocessor_count(), 1u, 0u) +
                 select(hardware_warp_id() < hardware_warp_count(), 2u, 0u);
    x[192 + i] = clock32() - short_before;
});

TEST_CASE("special registers") {
    const u32s got = run(registers, 1, 32, u32s(224));
    for (std::uint32_t i = 0; i < 32; ++i) {
        CHECK(got[i] == 1u << i);
        CHECK(got[32 + i] == ~0u);
        CHECK(got[64 + i] == ~0u);
        CHECK(got[96 + i] == i);
        CHECK(got[128 + i] == 3);
        CHECK(got[160 + i] == 3);
        CHECK(got[192 + i] < 0x10000000);
    }
}

/// In a launch without clusters, each block is its own cluster.
const auto clusters = kernel("clusters", params("x"), [](InOut<std::uint32_t> x) {
    u32 block = block_id().x;
    if_(thread_id().x == 0, [&] {
        x[6 * block] = cluster_id().x;
        x[6 * block + 1] = cluster_count().x;
        x[6 * block + 2] = cluster_dim().x;
        x[6 * block + 3] = block_id_in_cluster().x;
        x[6 * block + 4] = cluster_rank();
        x[6 * block + 5] = cluster_size();
    });
});

TEST_CASE("a block that is launched without clusters is its own cluster") {
    const runtime::Device device = open_device({.target = "sm_90"});
    if (device.properties().compute_major < 9) return;
    auto x = device.upload(u32s(18, 7), "x");
    device.launch(clusters, runtime::Grid{{3}, {32}}, x);
    const u32s got = x.download();
    for (std::uint32_t block = 0; block < 3; ++block) {
        const u32s of_block(got.begin() + 6 * block, got.begin() + 6 * block + 6);
        CHECK(of_block == u32s{block, 3, 1, 0, 0, 1});
    }
    check_assembled(clusters, 90);
}

/// Its operand is the same for all lanes, but its result is not.
const auto elected = kernel("elected", params("y"),
                            [](InOut<std::uint32_t> y) { if_(elect(), [&] { y[warp_id()] += lane_id() + 1; }); });

TEST_CASE("one lane of each warp is elected") {
    const runtime::Device device = runtime::Device::open({.device = "emulator", .target = "sm_90"});
    auto y = device.upload(std::vector<std::uint32_t>(2));
    device.launch(elected, runtime::grid(64, 64), y);
    for (const std::uint32_t lane : y.download()) {
        CHECK(lane >= 1);
        CHECK(lane <= 32);
    }
}

TEST_CASE("ptxas accepts warp operations") {
    check_assembled(reductions, 80);
    check_assembled(matches, 75);
    check_assembled(handing_over, 75);
    check_assembled(asking, 75);
    check_assembled(registers, 75);
}

}  // namespace
}  // namespace ikat::test
