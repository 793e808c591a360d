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

std::vector<float> numbers() {
    std::vector<float> out(tile * tiles);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = float(i * i % 97);
    return out;
}

/// On the emulator under several seeds.
template <class F>
void under_seeds(const char* target, F&& run) {
    const bool emulates = simt_device().properties().kind == runtime::DeviceKind::Emulator;
    if (!emulates) return run(simt_device());
    for (int seed = 0; seed < 8; ++seed) {
        INFO(target << ", seed " << seed);
        const std::string schedule = std::to_string(seed);
        runtime::Device device = open_device({.target = target, .schedule = schedule});
        run(device);
    }
}

}  // namespace

TEST_CASE("a ring of tiles that a warp copies for others") {
    const std::vector<float> x = numbers();
    for (const char* target : {"sm_80", "sm_90"})
        under_seeds(target, [&](runtime::Device& device) {
            auto y = device.buffer<float>(tile, "y");
            device.launch(copied_ring, runtime::Grid{{1}, {96}}, device.upload(x, "x"), y, tiles);
            const auto found = y.download();
            for (std::uint32_t i = 0; i < tile; ++i) {
                float sum = 0;
                for (std::uint32_t k = 0; k < tiles; ++k) sum += x[k * tile + tile - 1 - i];
                CHECK(found[i] == sum);
            }
        });
    check_assembled(copied_ring, 80);
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
