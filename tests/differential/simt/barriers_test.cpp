// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory: rings of tiles that some threads fill while others use them, under many orders of the
// threads and of what is copied.
#include "tests/differential/simt/run.hpp"

#include <string>

#include <ikat/async.hpp>

namespace ikat::test {
namespace {

constexpr std::uint32_t tile = 64, tiles = 7;

/// One warp copies tiles for two others, which add them up, through a ring of two stages.
const auto copied_ring = kernel("copied_ring", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    require_threads(96);
    Shared<float, 2, tile> s;
    Shared<Barrier, 2> full, empty;
    u32 t = thread_id().x;
    if_(t == 0, [&] {
        for (int i = 0; i < 2; ++i) full[i].init(32), empty[i].init(64);
        fence_barrier_init();
    });
    sync_block();
    if_(t < 32, [&] {
        for (auto k : range(n)) {
            empty[k % 2].wait(k / 2 % 2 ^ 1);
            copy_async<8>(s[k % 2, 2 * t], x[k * tile + 2 * t]);
            full[k % 2].arrive_copies();
        }
    }).else_([&] {
        f32 sum = 0;
        for (auto k : range(n)) {
            full[k % 2].wait(k / 2 % 2);
            sum += s[k % 2, tile - 1 - (t - 32)];
            empty[k % 2].arrive();
        }
        y[t - 32] = sum;
    });
});

/// Warps drop out of a barrier one after another; each phase ends with those that are left.
const auto dropping = kernel("dropping", params("y"), [](InOut<std::uint32_t> y) {
    Shared<Barrier, 1> met;
    Shared<std::uint32_t, 1> turn;
    u32 warp = warp_id();
    if_(thread_id().x == 0, [&] {
        met[0].init(block_dim().x / 32);
        turn[0] = 0;
        fence_barrier_init();
    });
    sync_block();
    return_if(lane_id() != 0);
    u32 phase = 0;
    while_([&] { return phase < warp; },
           [&] {
               met[0].arrive();
               met[0].wait(phase % 2);
               phase += 1;
           });
    y[warp] = atomic_add(turn[0], 1);
    if_(phase + 1 < block_dim().x / 32, [&] { met[0].arrive_drop(); });
});

/// One thread asks for tiles of 256 bytes; the others use the last one meanwhile.
const auto bulk_ring = kernel("bulk_ring", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    require_threads(tile);
    Shared<float, 2, tile> s;
    Shared<Barrier, 2> full, empty;
    u32 t = thread_id().x;
    if_(t == 0, [&] {
        for (int i = 0; i < 2; ++i) full[i].init(1), empty[i].init(tile);
        fence_barrier_init();
    });
    sync_block();
    f32 sum = 0;
    for (auto k : range(n + 1)) {
        if_((t == 0) & (k < n), [&] {
            empty[k % 2].wait(k / 2 % 2 ^ 1);
            full[k % 2].arrive_expect(4 * tile);
            bulk_load(s[k % 2, 0], x[k * tile], 4 * tile, full[k % 2]);
        });
        if_(k > 0, [&] {
            const Var last = k - 1;
            full[last % 2].wait(last / 2 % 2);
            sum += s[last % 2, tile - 1 - t];
            empty[last % 2].arrive();
        });
    }
    y[t] = sum;
});

/// Blocks add what they have computed, and take the greatest; the source is used again in between.
const auto bulk_sums = kernel("bulk_sums", params("y", "z"), [](InOut<std::int32_t> y, InOut<std::uint32_t> z) {
    Shared<std::int32_t, tile> s;
    Shared<std::uint32_t, tile> r;
    u32 t = thread_id().x, b = block_id().x;
    s[t] = cast<i32>(t * b);
    r[t] = (t * 37 + b * 11) % 64;
    fence_async_shared();
    sync_block();
    if_(t == 0, [&] {
        bulk_add(y[0], s[0], 4 * tile);
        bulk_max(z[0], r[0], 4 * tile);
        bulk_commit();
        bulk_wait_read<0>();
    });
    sync_block();
    s[t] = -1;
    fence_async_shared();
    sync_block();
    if_(t == 0, [&] {
        bulk_store(y[tile + b * tile], s[0], 4 * tile);
        bulk_commit();
        bulk_wait<0>();
    });
});

/// Without a fence between the stores and the copy.
const auto unfenced_bulk = kernel("unfenced_bulk", params("y"), [](Out<float> y) {
    Shared<float, tile> s;
    u32 t = thread_id().x;
    s[t] = cast<f32>(t);
    sync_block();
    if_(t == 0, [&] {
        bulk_store(y[0], s[0], 4 * tile);
        bulk_commit();
        bulk_wait<0>();
    });
});

std::vector<float> numbers() {
    std::vector<float> out(tile * tiles);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = float(i * i % 97);
    return out;
}

}  // namespace

TEST_CASE("rings of tiles that some threads copy for others") {
    const std::vector<float> x = numbers();
    const auto run = [&](const auto& ring, std::uint32_t threads) {
        return [&, threads](runtime::Device& device) {
            auto y = device.buffer<float>(tile, "y");
            device.launch(ring, runtime::Grid{{1}, {threads}}, device.upload(x, "x"), y, tiles);
            const auto found = y.download();
            for (std::uint32_t i = 0; i < tile; ++i) {
                float sum = 0;
                for (std::uint32_t k = 0; k < tiles; ++k) sum += x[k * tile + tile - 1 - i];
                CHECK(found[i] == sum);
            }
        };
    };
    for (const char* target : {"sm_80", "sm_90"}) under_seeds(target, run(copied_ring, 96));
    under_seeds("sm_90", run(bulk_ring, tile));
    check_assembled(copied_ring, 80);
    check_assembled(bulk_ring, 90);
}

TEST_CASE("what is missing before a bulk copy has the language's name") {
    if (simt_device().properties().kind != runtime::DeviceKind::Emulator) return;
    runtime::Device device = open_device({.target = "sm_90"});
    auto y = device.buffer<float>(tile, "y");
    CHECK_THROWS_WITH(device.launch(unfenced_bulk, runtime::Grid{{1}, {tile}}, y),
                      Catch::Matchers::Contains("has written without fence_async() before it") &&
                          Catch::Matchers::Contains("execute fence_async() after its stores") &&
                          Catch::Matchers::Contains("of 'shared0' in shared memory"));
}

TEST_CASE("sums and maxima of blocks in bulk") {
    under_seeds("sm_90", [&](runtime::Device& device) {
        auto y = device.upload(std::vector<std::int32_t>(tile * 6), "y");
        auto z = device.upload(std::vector<std::uint32_t>(tile), "z");
        device.launch(bulk_sums, runtime::Grid{{5}, {tile}}, y, z);
        const auto sums = y.download();
        const auto greatest = z.download();
        for (std::uint32_t t = 0; t < tile; ++t) {
            std::uint32_t expected = 0;
            for (std::uint32_t b = 0; b < 5; ++b) expected = std::max(expected, (t * 37 + b * 11) % 64);
            CHECK(sums[t] == std::int32_t(t * (0 + 1 + 2 + 3 + 4)));
            CHECK(greatest[t] == expected);
            CHECK(sums[tile + t] == -1);
            CHECK(sums[5 * tile + t] == -1);
        }
    });
    check_assembled(bulk_sums, 90);
}

TEST_CASE("warps that drop out of a barrier take their turns") {
    for (const char* target : {"sm_80", "sm_90"})
        under_seeds(target, [&](runtime::Device& device) {
            auto y = device.upload(std::vector<std::uint32_t>(8), "y");
            device.launch(dropping, runtime::Grid{{1}, {256}}, y);
            const auto found = y.download();
            for (std::uint32_t i = 0; i < 8; ++i) CHECK(found[i] == i);
        });
    check_assembled(dropping, 80);
}

}  // namespace ikat::test
