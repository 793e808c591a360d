// SPDX-License-Identifier: Apache-2.0
// Which warps and blocks may do different things. tests/golden/dsl_errors has the messages.
#include <ikat/cluster.hpp>
#include <ikat/compile.hpp>

#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat {
namespace {

/// Whether a branch of threads for which `role(t)` holds, in a cluster of two blocks, may do what `act` does.
bool may(const auto& role, const auto& act) {
    const auto k = kernel("k",
                          [role, act](InOut<std::uint32_t> y) {
                              u32 t = thread_id().x;
                              if_(role(t), [&] { act(); });
                              y[t] = 1;
                          })
                       .cluster(2)
                       .launch_bounds(384, 1);
    try {
        k.check();
    } catch (const Error&) { return false; }
    return true;
}

const auto grows = [] { registers_grow<64>(); };
const auto syncs = [] { sync_block(); };
const auto meets = [] { cluster_sync(); };
const auto arrives = [] { cluster_arrive(); };

std::string ptx_of(const auto& kernel) { return compile(kernel.ast(), {.target = "sm_90a"}).ptx; }
bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("all warps of a warpgroup change their registers, or none") {
    CHECK(may([](const u32& t) { return t < 128; }, grows));
    CHECK(may([](const u32& t) { return t / 128 == 1; }, grows));
    CHECK(may([](const u32& t) { return t > 255; }, grows));
    CHECK(may([](const u32&) { return warpgroup_id() == 2; }, grows));
    CHECK(may([](const u32&) { return warp_id() < 8; }, grows));
    CHECK(may([](const u32&) { return warp_uniform(warp_id()) / 4 == 1; }, grows));
    CHECK(may([](const u32&) { return (warp_id() + 4) / 4 == 2; }, grows));
    CHECK(may([](const u32& t) { return warp_uniform(t) >= 128; }, grows));
    CHECK(may([](const u32&) { return cluster_rank() == 0; }, grows));
    CHECK_FALSE(may([](const u32& t) { return t < 96; }, grows));
    CHECK_FALSE(may([](const u32& t) { return t / 32 == 1; }, grows));
    CHECK_FALSE(may([](const u32&) { return warp_id() == 2; }, grows));
    CHECK_FALSE(may([](const u32&) { return (warp_id() + 2) / 4 == 1; }, grows));
    CHECK_FALSE(may([](const u32&) { return warp_uniform(warp_id()) % 4 == 1; }, grows));
    CHECK_FALSE(may([](const u32& t) { return warp_uniform(t) == 32; }, grows));
    CHECK_FALSE(may([](const u32&) { return lane_id() == 0; }, grows));
}

TEST_CASE("all of a block meet, and all of a cluster") {
    const auto first_warpgroup = [](const u32& t) { return warp_uniform(t / 128) == 0; };
    const auto first_block = [](const u32&) { return cluster_rank() == 0; };
    const auto perhaps_all = [](const u32&) { return block_id().x < 4; };
    const auto one_lane = [](const u32&) { return lane_id() == 0; };
    CHECK_FALSE(may(first_warpgroup, syncs));
    CHECK(may(first_block, syncs));
    CHECK_FALSE(may(first_block, meets));
    CHECK_FALSE(may(first_warpgroup, meets));
    CHECK(may(perhaps_all, meets));
    CHECK(may(first_warpgroup, arrives));
    CHECK_FALSE(may(one_lane, arrives));
}

TEST_CASE("a numbered barrier is of one number of threads") {
    const auto meet = [](std::uint32_t id, std::uint32_t threads) {
        return [=] {
            sync_block(1, 64);
            arrive_block(id, threads);
        };
    };
    const auto warps = [](const u32& t) { return t < 64; };
    CHECK(may(warps, meet(1, 64)));
    CHECK(may(warps, meet(2, 128)));
    CHECK_FALSE(may(warps, meet(1, 128)));
}

TEST_CASE("what other blocks do is seen where it is waited for") {
    const auto waits = [](bool peers) {
        return kernel("waits",
                      [peers](InOut<std::uint32_t> y) {
                          Shared<Barrier, 1> full;
                          Shared<std::uint32_t, 1> count;
                          if (peers) peer(full[0], cluster_rank() ^ 1).arrive();
                          if (peers) atomic_add(peer(count, 0)[0], 1);
                          atomic_add(count[0], 1);
                          full[0].wait(0);
                          y[0] = count[0];
                      })
            .cluster(2);
    };
    CHECK(has(ptx_of(waits(true)), "try_wait.parity.acquire.cluster.shared"));
    CHECK(has(ptx_of(waits(false)), "try_wait.parity.shared"));
    CHECK(has(ptx_of(waits(true)), "red.relaxed.cluster.shared.add"));
    CHECK(has(ptx_of(waits(false)), "red.relaxed.cta.shared.add"));
}

TEST_CASE("a target that lacks clusters or changes of registers is told, and one that has them") {
    const auto clusters = kernel("clusters", [](InOut<float> x) { x[0] = 1; }).cluster(2);
    const auto changes = kernel("changes", [](InOut<float> x) {
                             registers_grow<64>();
                             x[0] = 1;
                         }).launch_bounds(128, 1);
    const auto said = [](const auto& kernel, const char* target) {
        return tests::message_of([&] { compile(kernel.ast(), {.target = target}); });
    };
    CHECK_THAT(said(clusters, "sm_80"), tests::contains("sm_80 does not have clusters"));
    CHECK_THAT(said(clusters, "sm_80"), tests::contains("it needs .target sm_90 or higher"));
    CHECK(said(clusters, "sm_90").empty());
    CHECK_THAT(said(changes, "sm_90"), tests::contains("sm_90 does not have setmaxnreg"));
    CHECK_THAT(said(changes, "sm_90"), tests::contains("it needs .target sm_90a"));
    CHECK(said(changes, "sm_90a").empty());
}

TEST_CASE("a branch on what one lane gives its warp is not divergent") {
    const auto is_uniform = [](const auto& given) {
        const auto branches = kernel("branches", [given](InOut<std::uint32_t> y) {
            u32 t = thread_id().x, warp = given(t);
            while_([&] { return warp < 3; },
                   [&] {
                       y[t] = y[t] * 3;
                       warp += 1;
                   });
        });
        return has(ptx_of(branches), "bra.uni");
    };
    CHECK(is_uniform([](const u32& t) { return warp_uniform(t / 32); }));
    CHECK(is_uniform([](const u32& t) { return shuffle_idx(t, cluster_rank()); }));
    CHECK_FALSE(is_uniform([](const u32& t) { return t / 32; }));
    CHECK_FALSE(is_uniform([](const u32& t) { return shuffle_idx(t, 0, 0xffff); }));
    CHECK_FALSE(is_uniform([](const u32& t) { return shuffle_idx(t, 0, all_lanes, 16); }));
    CHECK_FALSE(is_uniform([](const u32& t) { return shuffle_idx(t, t); }));
    CHECK_FALSE(is_uniform([](const u32& t) { return shuffle_xor(t, 1); }));
}

}  // namespace ikat
