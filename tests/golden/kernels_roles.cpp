// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Kernels for tests/golden/lower and dsl_errors: clusters, and warps and blocks with roles.
#include <ikat/cluster.hpp>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto uses_of_a_cluster = kernel("uses_of_a_cluster", params("y"), [](InOut<std::uint32_t> y) {
    Shared<std::uint32_t, 64> s;
    Shared<Barrier, 2> full;
    u32 t = thread_id().x, other = cluster_rank() ^ 1;
    cluster_sync();
    auto theirs = peer(s, other);
    theirs[t] = y[t];
    u32 value = theirs[t + 1];
    atomic_add(theirs[0], value);
    atomic_add(s[0], 1);
    peer(full[1], other).expect(16);
    peer(full[1], other).arrive_expect(t);
    peer(full[1], other).arrive();
    peer(full[1], other).arrive_drop();
    bulk_send(peer(s, other)[8], s[4], 64, peer(full[0], other));
    full[1].wait(0);
    full[0].arrive();
    cluster_arrive();
    y[t] = s[t];
    cluster_wait();
}).cluster(2);

// ---- roles that are right

/// A producer, of which one thread copies, and two warpgroups of consumers, which share a barrier at the end.
const auto producer_and_consumers = kernel("producer_and_consumers", params("x", "y", "n"), [](In<float> x, InOut<float> y, u32 n) {
    Shared<float, 2, 256> s;
    Shared<Barrier, 2> full, empty;
    if_(thread_id().x == 0, [&] {
        for (int i = 0; i < 2; ++i) full[i].init(1), empty[i].init(2);
        fence_barrier_init();
    });
    sync_block();
    u32 role = warp_uniform(warpgroup_id());
    if_(role == 0, [&] {
        registers_shrink<40>();
        if_((warp_id() == 0) & elect(), [&] {
            for (auto k : range(n)) {
                empty[k % 2].wait(k / 2 % 2 ^ 1);
                full[k % 2].arrive_expect(1024);
                bulk_load(s[k % 2, 0], x[k * 256], 1024, full[k % 2]);
            }
        });
    }).else_([&] {
        registers_grow<232>();
        u32 t = thread_id().x - 128;
        f32 sum = 0;
        for (auto k : range(n)) {
            full[k % 2].wait(k / 2 % 2);
            sum += s[k % 2, t];
            sync_block(role, 128);
            if_(t % 128 == 0, [&] { empty[k % 2].arrive(); });
        }
        y[t] = sum;
        sync_block(3, 256);
        if_(t == 0, [&] { y[256] = y[0] + y[255]; });
    });
}).launch_bounds(384, 1);

/// Each block of a pair has one warp that copies, tile after tile; the pair shares what it reads, and who has used a
/// tile says so to both.
const auto persistent_pair = kernel("persistent_pair", params("x", "y", "tiles"), [](In<float> x, Out<float> y, u32 tiles) {
    Shared<float, 64> s;
    Shared<Barrier, 1> full, empty;
    if_(thread_id().x == 0, [&] {
        full[0].init(1);
        empty[0].init(4);
        fence_barrier_init();
    });
    cluster_sync();
    if_(warp_id() == 2, [&] {
        u32 phase = 1;
        for (auto tile : range(cluster_id().x, tiles, cluster_count().x)) {
            if_(elect(), [&] {
                empty[0].wait(phase);
                full[0].arrive_expect(256);
                bulk_load(s[0], x[tile * 64], 256, full[0]);
            });
            phase ^= 1;
        }
    }).else_([&] {
        u32 phase = 0;
        for (auto tile : range(cluster_id().x, tiles, cluster_count().x)) {
            full[0].wait(phase);
            y[(tile * 2 + cluster_rank()) * 64 + thread_id().x] = s[thread_id().x];
            sync_warp();
            if_(lane_id() < 2, [&] { peer(empty[0], lane_id()).arrive_relaxed(); });
            phase ^= 1;
        }
    });
    cluster_arrive();
    cluster_wait();
}).cluster(2).launch_bounds(96);

/// Two warpgroups take turns at what must not be done by both.
const auto ping_pong = kernel("ping_pong", params("y", "n"), [](InOut<float> y, u32 n) {
    u32 t = thread_id().x, mine = t / 128;
    if_(mine == 1, [&] { arrive_block(1, 256); });
    for (auto k : range(n)) {
        sync_block(1 + mine, 256);
        y[t % 128] += cast<f32>(k);
        arrive_block(2 - mine, 256);
    }
    if_(mine == 0, [&] { sync_block(1, 256); });
}).launch_bounds(256);

// ---- roles that are not

const auto roles_apart = kernel("roles_apart", params("x", "n"), [](InOut<float> x, u32 n) {
    u32 t = thread_id().x;
    if_(cluster_rank() == 0, [&] { cluster_sync(); });
    if_(t < n, [&] { cluster_sync(); });
    if_(lane_id() == 0, [&] { cluster_arrive(); });
    if_(warpgroup_id() == 0, [&] { cluster_wait(); });  // the others wait elsewhere
    if_(block_id().x < 4, [&] { cluster_sync(); });     // perhaps of whole clusters
    if_(warpgroup_id() == 0, [&] { sync_block(); });
    if_(warp_uniform(t / 128) == 1, [&] { sync_block(); });
    if_(warp_uniform(t) >= 128, [&] { sync_block(); });
    x[t] = 1;
}).cluster(2);

const auto parted_warpgroup = kernel("parted_warpgroup", params("n"), [](u32 n) {
    u32 t = thread_id().x, warp = warp_uniform(warp_id());
    if_(warp_id() == 0, [&] { registers_shrink<24>(); });
    if_(t < 160, [&] { registers_grow<240>(); });
    if_(warp <= 2, [&] { registers_grow<200>(); });
    if_(warp % 4 < 2, [&] { registers_grow<200>(); });
    if_(lane_id() < 16, [&] { registers_grow<32>(); });
    if_(warp_uniform(t) / 32 == 1, [&] { registers_grow<40>(); });
    if_(t / n == 1, [&] { registers_grow<64>(); });
    if_(t < 128, [&] { registers_shrink<24>(); });  // the rest are right
    if_(t >= 256, [&] { registers_shrink<24>(); });
    if_(t / 128 == 1, [&] { registers_shrink<32>(); });
    if_((t >> 7) == 1, [&] { registers_shrink<32>(); });
    if_(warp < 4, [&] { registers_grow<56>(); });
    if_(warp > 7, [&] { registers_grow<56>(); });
    if_((warp >> 2) == 1, [&] { registers_grow<56>(); });
    if_((warp - 4) / 4 == 1, [&] { registers_grow<56>(); });
    if_(warp_uniform(t) / 128 == 1, [&] { registers_grow<56>(); });
    if_(warpgroup_id() == n, [&] { registers_grow<64>(); });
    if_(thread_id().y == 1, [&] { registers_grow<64>(); });
}).launch_bounds(384, 1);

const auto barriers_of_others = kernel("barriers_of_others", params("x"), [](InOut<float> x) {
    if_(warp_id() < 2, [&] { sync_block(1, 64); }).else_([&] {
        arrive_block(1, 128);
        sync_block(2, 64);
        sync_block(2, 64);
    });
    x[0] = 1;
});

const auto unknown_registers = kernel("unknown_registers", params("x"), [](InOut<float> x) {
    registers_grow<240>();
    x[0] = 1;
}).launch_bounds(384);

const auto no_cluster = kernel("no_cluster", params("x"), [](InOut<float> x) {
    Shared<float, 32> s;
    peer(s, 1)[0] = x[0];
});
const auto too_many_blocks = kernel("too_many_blocks", params("x"), [](InOut<float> x) { x[0] = 1; }).cluster(4, 2, 2);
const auto blocks_of_nothing = kernel("blocks_of_nothing", params("x"), [](InOut<float> x) { x[0] = 1; }).cluster(0);
const auto peers_of_the_wrong = kernel("peers_of_the_wrong", params("x"), [](InOut<float> x) {
    Shared<float, 32> s;
    Shared<Barrier, 1> full;
    peer(x, 1)[0] = 1;
    bulk_load(peer(s, 1)[0], x[0], 128, full[0]);
    copy_async<4>(peer(s, 1)[0], x[0]);
    bulk_send(s[0], s[4], 16, peer(full[0], 1));
    bulk_send(peer(s, 1)[0], x[0], 16, peer(full[0], 1));
    bulk_send(peer(s, 1)[0], s[2], 24, peer(full[0], 1));
}).cluster(2);

#define ENTRY(kernel) {#kernel, kernel}
const KernelRegistration role_kernels[] = {
    ENTRY(uses_of_a_cluster), ENTRY(producer_and_consumers), ENTRY(persistent_pair), ENTRY(ping_pong), ENTRY(roles_apart),
    ENTRY(parted_warpgroup), ENTRY(barriers_of_others), ENTRY(unknown_registers), ENTRY(no_cluster), ENTRY(too_many_blocks),
    ENTRY(blocks_of_nothing), ENTRY(peers_of_the_wrong),
};
#undef ENTRY

}  // namespace
}  // namespace ikat::tests
