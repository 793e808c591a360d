// SPDX-License-Identifier: Apache-2.0
// Warps and warpgroups that do different things: producers and consumers with registers of their own, pairs of blocks
// that keep pace, warpgroups that take turns. Under many orders of the threads and of what is copied.
#include "tests/differential/simt/run.hpp"

#include <string>

#include <ikat/cluster.hpp>

namespace ikat::test {
namespace {

constexpr std::uint32_t part = 256;

/// One thread copies; two warpgroups add up, and meet at the end.
const auto producer_and_adders =
    kernel("producer_and_adders", params("x", "y", "n"), [](In<float> x, InOut<float> y, u32 n) {
        require_threads(128 + part);
        Shared<float, 3, part> s;
        Shared<float, part> sums;
        Shared<Barrier, 3> full, empty;
        if_(thread_id().x == 0, [&] {
            for (int i = 0; i < 3; ++i) full[i].init(1), empty[i].init(8);
            fence_barrier_init();
        });
        sync_block();
        u32 role = warp_uniform(warpgroup_id());
        if_(role == 0, [&] {
            registers_shrink<40>();
            if_(warp_id() == 0, [&] {
                if_(elect(), [&] {
                    for (auto k : range(n)) {
                        empty[k % 3].wait(k / 3 % 2 ^ 1);
                        full[k % 3].arrive_expect(4 * part);
                        bulk_load(s[k % 3, 0], x[k * part], 4 * part, full[k % 3]);
                    }
                });
            });
        }).else_([&] {
            registers_grow<232>();
            u32 t = thread_id().x - 128;
            f32 sum = 0;
            for (auto k : range(n)) {
                full[k % 3].wait(k / 3 % 2);
                sum += s[k % 3, t];
                sync_warp();
                if_(elect(), [&] { empty[k % 3].arrive(); });
            }
            sums[t] = sum;
            sync_block(1, part);
            y[t] = sum + sums[t ^ 255];
        });
    }).launch_bounds(128 + part, 1);

/// Both blocks of a pair use each tile; one of them copies it to both, as soon as both are done with the one before.
const auto pairs_in_step = kernel("pairs_in_step", params("x", "y", "tiles"),
                                  [](In<float> x, Out<float> y, u32 tiles) {
                                      require_threads(96);
                                      Shared<float, 2, 64> s;
                                      Shared<Barrier, 2> full, empty;
                                      u32 rank = cluster_rank();
                                      if_(thread_id().x == 0, [&] {
                                          for (int i = 0; i < 2; ++i) full[i].init(1), empty[i].init(4);
                                          fence_barrier_init();
                                      });
                                      cluster_sync();
                                      u32 k = 0;
                                      if_(warp_id() == 2, [&] {
                                          if_(elect(), [&] {
                                              for (auto tile : range(cluster_id().x, tiles, cluster_count().x)) {
                                                  empty[k % 2].wait(k / 2 % 2 ^ 1);
                                                  full[k % 2].arrive_expect(256);
                                                  bulk_load(s[k % 2, 0], x[tile * 64], 256, full[k % 2]);
                                                  k += 1;
                                              }
                                          });
                                      }).else_([&] {
                                          for (auto tile : range(cluster_id().x, tiles, cluster_count().x)) {
                                              full[k % 2].wait(k / 2 % 2);
                                              y[(tile * 2 + rank) * 64 + thread_id().x] =
                                                  s[k % 2, thread_id().x] + cast<f32>(rank);
                                              sync_warp();
                                              if_(lane_id() < 2, [&] { peer(empty[k % 2], lane_id()).arrive(); });
                                              k += 1;
                                          }
                                      });
                                      cluster_arrive();
                                      cluster_wait();
                                  })
                               .cluster(2)
                               .launch_bounds(96);

/// Two warpgroups take turns: what one adds the other doubles.
const auto turns = kernel("turns", params("y", "n"), [](InOut<std::uint32_t> y, u32 n) {
                       require_threads(256);
                       Shared<std::uint32_t, 128> s;
                       u32 t = thread_id().x, mine = t / 128;
                       if_(mine == 0, [&] { s[t] = t; });
                       if_(mine == 1, [&] { arrive_block(1, 256); });
                       for (auto k : range(n)) {
                           sync_block(1 + mine, 256);
                           u32 old = s[t % 128];
                           s[t % 128] = select(mine == 0, old + k, old * 2);
                           arrive_block(2 - mine, 256);
                       }
                       if_(mine == 0, [&] {
                           sync_block(1, 256);
                           y[t] = s[t];
                       });
                   }).launch_bounds(256);

std::vector<float> values_of(std::size_t count) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = float(i * i % 89);
    return out;
}

/// On the emulator under several seeds; for sm_90a.
template <class F>
void in_orders(F&& run) {
    const runtime::DeviceProperties& device_is = simt_device().properties();
    if (device_is.kind != runtime::DeviceKind::Emulator) {
        if (device_is.compute_major != 9 || device_is.compute_minor != 0) return;  // the only devices of sm_90a
        runtime::Device device = open_device({.target = "sm_90a"});
        return run(device);
    }
    for (int seed = 0; seed < 8; ++seed) {
        INFO("seed " << seed);
        const std::string schedule = std::to_string(seed);
        runtime::Device device = open_device({.target = "sm_90a", .schedule = schedule});
        run(device);
    }
}

/// ptxas says so if it ignores a change of registers, or serialises something.
template <class... P>
void check_assembled_for_sm_90a(const Kernel<P...>& kernel) {
    static const bool is_skipped = tests::skip_without_ptxas();
    if (is_skipped) return;
    const std::string ptx = compile(kernel.ast(), {.target = "sm_90a"}).ptx;
    const tests::PtxasReport report = tests::assemble(ptx, "sm_90a");
    INFO(report.log << "\n" << ptx);
    CHECK(report.clean());
    CHECK(report.log.find("C75") == std::string::npos);
}

}  // namespace

TEST_CASE("a warpgroup copies for two others, which have its registers") {
    constexpr std::uint32_t n = 8;
    const std::vector<float> x = values_of(n * part);
    in_orders([&](runtime::Device& device) {
        auto y = device.upload(std::vector<float>(part), "y");
        device.launch(producer_and_adders, runtime::Grid{{1}, {128 + part}}, device.upload(x, "x"), y, n);
        const auto found = y.download();
        std::vector<float> sums(part);
        for (std::uint32_t i = 0; i < n * part; ++i) sums[i % part] += x[i];
        for (std::uint32_t t = 0; t < part; ++t) CHECK(found[t] == sums[t] + sums[t ^ 255]);
    });
    check_assembled_for_sm_90a(producer_and_adders);
}

TEST_CASE("pairs of blocks keep pace over tile after tile") {
    constexpr std::uint32_t tiles = 11;
    const std::vector<float> x = values_of(tiles * 64);
    in_orders([&](runtime::Device& device) {
        auto y = device.buffer<float>(tiles * 128, "y");
        device.launch(pairs_in_step, runtime::Grid{{4}, {96}}, device.upload(x, "x"), y, tiles);
        const auto found = y.download();
        for (std::uint32_t i = 0; i < found.size(); ++i)
            CHECK(found[i] == x[i / 128 * 64 + i % 64] + float(i / 64 % 2));
    });
    check_assembled_for_sm_90a(pairs_in_step);
}

TEST_CASE("two warpgroups take turns") {
    in_orders([&](runtime::Device& device) {
        auto y = device.upload(std::vector<std::uint32_t>(128), "y");
        device.launch(turns, runtime::Grid{{1}, {256}}, y, 6u);
        const auto found = y.download();
        for (std::uint32_t t = 0; t < 128; ++t) {
            std::uint32_t expected = t;
            for (std::uint32_t k = 0; k < 6; ++k) expected = (expected + k) * 2;
            CHECK(found[t] == expected);
        }
    });
    check_assembled_for_sm_90a(turns);
}

}  // namespace ikat::test
