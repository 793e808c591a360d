// SPDX-License-Identifier: Apache-2.0
// Clusters and the roles of warpgroups: blocks that wait for each other, reach each other's shared memory and arrive at
// each other's barriers, under many orders of the blocks and their threads.
#include "tests/differential/simt/run.hpp"

#include <string>

#include "tests/message.hpp"

#include <ikat/cluster.hpp>

namespace ikat::test {
namespace {

constexpr std::uint32_t row = 32;

/// A histogram of bins that the blocks of a cluster share; each block writes its own.
const auto shared_bins =
    kernel("shared_bins", params("x", "n", "bins"), [](In<std::uint32_t> x, u32 n, InOut<std::uint32_t> bins) {
        require_threads(row);
        Shared<std::uint32_t, row> own;
        u32 t = thread_id().x;
        own[t] = 0;
        cluster_sync();
        for (auto i : grid_stride(n)) {
            u32 bin = x[i];
            atomic_add(peer(own, bin / row)[bin % row], 1);
        }
        cluster_sync();
        atomic_add(bins[cluster_rank() * row + t], own[t]);
    }).cluster(4);

/// Each block passes its values on to the next, and collects what comes by; the two steps of the barrier are apart.
const auto passed_on = kernel("passed_on", params("x", "y"), [](In<float> x, Out<float> y) {
                           require_threads(row);
                           Shared<float, 2, row> here;
                           u32 t = thread_id().x, rank = cluster_rank();
                           u32 at = (block_id().y * grid_dim().x + block_id().x) * row + t;
                           auto next = peer(here, (rank + 1) % cluster_size());
                           here[0, t] = x[at];
                           cluster_sync();
                           f32 sum = 0;
                           for (auto step : range(cluster_size())) {
                               f32 value = here[step % 2, t];
                               next[(step + 1) % 2, t] = value;
                               cluster_arrive();
                               sum += value;
                               cluster_wait();
                           }
                           y[at] = sum + cast<f32>(100 * rank);
                           cluster_sync();
                       }).cluster(2, 2);

/// The first block of a pair produces values in the shared memory of the second, which uses and returns them.
const auto remote_ring = kernel("remote_ring", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
                             require_threads(row);
                             Shared<float, 2, row> s;
                             Shared<Barrier, 2> full, empty;
                             u32 t = thread_id().x;
                             if_(t == 0, [&] {
                                 for (int i = 0; i < 2; ++i) full[i].init(row), empty[i].init(row);
                                 fence_barrier_init();
                             });
                             cluster_sync();
                             if_(cluster_rank() == 0, [&] {
                                 for (auto k : range(n)) {
                                     empty[k % 2].wait(k / 2 % 2 ^ 1);
                                     peer(s, 1)[k % 2, t] = x[k * row + t];
                                     peer(full[k % 2], 1).arrive();
                                 }
                             }).else_([&] {
                                 f32 sum = 0;
                                 for (auto k : range(n)) {
                                     full[k % 2].wait(k / 2 % 2);
                                     sum += s[k % 2, row - 1 - t];
                                     peer(empty[k % 2], 0).arrive_relaxed();
                                 }
                                 y[t] = sum;
                             });
                             cluster_sync();
                         }).cluster(2);

/// Both blocks copy half of a tile to both.
const auto exchanged = kernel("exchanged", params("x", "y"), [](In<float> x, Out<float> y) {
                           require_threads(row);
                           auto s = dynamic_shared<float>(2 * row);
                           u32 t = thread_id().x, rank = cluster_rank();
                           cluster_sync();
                           f32 value = x[rank * row + t];
                           s[rank * row + t] = value;
                           peer(s, rank ^ 1)[rank * row + t] = value;
                           cluster_sync();
                           y[rank * 2 * row + t] = s[2 * row - 1 - t] + s[t];
                       }).cluster(2);

/// Each block of four sends what it has computed to the next, in bulk, and uses what it gets.
const auto sent_on =
    kernel("sent_on", params("y"), [](Out<std::uint32_t> y) {
        require_threads(2 * row);
        Shared<std::uint32_t, 2, 2 * row> s;
        Shared<std::uint32_t, 2 * row> made;
        Shared<Barrier, 2> full;
        u32 t = thread_id().x, rank = cluster_rank();
        if_(t == 0, [&] {
            for (int i = 0; i < 2; ++i) full[i].init(1), full[i].arrive_expect(8 * row);
            fence_barrier_init();
        });
        cluster_sync();
        u32 next = (rank + 1) % 4, value = 100 * rank + t;
        for (int i = 0; i < 2; ++i) {
            made[2 * row - 1 - t] = value;
            fence_async_shared();
            sync_block();
            if_(t == 0, [&] { bulk_send(peer(s, next)[i, 0], made[0], 8 * row, peer(full[i], next)); });
            full[i].wait(0);
            value = s[i, t] + 1000;
            cluster_sync();
        }
        y[block_id().x * 2 * row + t] = value;
    }).cluster(4);

/// A block is a peer of itself: what it stores there is its own.
const auto own_peer = kernel("own_peer", params("y"), [](InOut<std::uint32_t> y) {
                          Shared<std::uint32_t, row> s;
                          u32 t = thread_id().x;
                          auto own = peer(s, cluster_rank());
                          s[t] = t;
                          own[t] = own[t] + 100;
                          u32 here = s[t];
                          s[t] = here + 1000;
                          y[block_id().x * row + t] = own[t] + here * 10000;
                      }).cluster(2);

/// The blocks of clusters of any shape know where they are.
const auto places = kernel("places", params("y"), [](Out<std::uint32_t> y) {
                        const auto in = block_id_in_cluster(), size = cluster_dim(), at = cluster_id(),
                                   block = block_id();
                        u32 b = (block.z * grid_dim().y + block.y) * grid_dim().x + block.x;
                        u32 same = cast<u32>(select(block.x == at.x * size.x + in.x, 1u, 0u)) +
                                   cast<u32>(select(block.y == at.y * size.y + in.y, 2u, 0u)) +
                                   cast<u32>(select(block.z == at.z * size.z + in.z, 4u, 0u)) +
                                   cast<u32>(select(cluster_rank() == in.x + size.x * (in.y + size.y * in.z), 8u, 0u));
                        y[b] = same + 16 * cluster_size() + 256 * cluster_count().x;
                    }).cluster(1, 2, 3);

std::vector<float> numbers_of(std::size_t count) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = float(i * i % 97);
    return out;
}

}  // namespace

TEST_CASE("blocks of a cluster share the bins of a histogram") {
    std::vector<std::uint32_t> x(1000), expected(4 * row);
    for (std::size_t i = 0; i < x.size(); ++i) ++expected[x[i] = std::uint32_t(i * i * 7 % (4 * row))];
    under_seeds("sm_90", [&](runtime::Device& device) {
        auto bins = device.upload(std::vector<std::uint32_t>(4 * row), "bins");
        device.launch(shared_bins, runtime::Grid{{8}, {row}}, device.upload(x, "x"), 1000u, bins);
        CHECK(bins.download() == expected);
    });
    check_assembled(shared_bins, 90);
}

TEST_CASE("blocks of a cluster pass values on") {
    const std::vector<float> x = numbers_of(4 * 2 * row);
    under_seeds("sm_90", [&](runtime::Device& device) {
        auto y = device.buffer<float>(x.size(), "y");
        device.launch(passed_on, runtime::Grid{{4, 2}, {row}}, device.upload(x, "x"), y);
        const auto found = y.download();
        for (std::uint32_t bx = 0; bx < 4; ++bx)
            for (std::uint32_t by = 0; by < 2; ++by)
                for (std::uint32_t t = 0; t < row; ++t) {
                    float sum = 0;
                    for (std::uint32_t i = 0; i < 4; ++i) sum += x[(i / 2 * 4 + bx / 2 * 2 + i % 2) * row + t];
                    CHECK(found[(by * 4 + bx) * row + t] == sum + 100 * float(by * 2 + bx % 2));
                }
    });
    check_assembled(passed_on, 90);
}

TEST_CASE("a block fills the shared memory of another, with barriers of both") {
    constexpr std::uint32_t n = 7;
    const std::vector<float> x = numbers_of(n * row);
    under_seeds("sm_90", [&](runtime::Device& device) {
        auto y = device.buffer<float>(row, "y");
        device.launch(remote_ring, runtime::Grid{{2}, {row}}, device.upload(x, "x"), y, n);
        const auto found = y.download();
        for (std::uint32_t t = 0; t < row; ++t) {
            float sum = 0;
            for (std::uint32_t k = 0; k < n; ++k) sum += x[k * row + row - 1 - t];
            CHECK(found[t] == sum);
        }
    });
    check_assembled(remote_ring, 90);
}

TEST_CASE("blocks store in each other's dynamic shared memory") {
    const std::vector<float> x = numbers_of(2 * row);
    under_seeds("sm_90", [&](runtime::Device& device) {
        auto y = device.upload(std::vector<float>(4 * row), "y");
        device.launch(exchanged, runtime::Grid{{2}, {row}, 8 * row}, device.upload(x, "x"), y);
        const auto found = y.download();
        for (std::uint32_t rank = 0; rank < 2; ++rank)
            for (std::uint32_t t = 0; t < row; ++t) CHECK(found[rank * 2 * row + t] == x[2 * row - 1 - t] + x[t]);
    });
    check_assembled(exchanged, 90);
}

TEST_CASE("blocks of a cluster send to each other in bulk") {
    under_seeds("sm_90", [&](runtime::Device& device) {
        auto y = device.upload(std::vector<std::uint32_t>(8 * 2 * row), "y");
        device.launch(sent_on, runtime::Grid{{8}, {2 * row}}, y);
        const auto found = y.download();
        for (std::uint32_t i = 0; i < found.size(); ++i)
            CHECK(found[i] == (i / (2 * row) + 2) % 4 * 100 + i % (2 * row) + 2000);
    });
    check_assembled(sent_on, 90);
}

TEST_CASE("a block may be its own peer") {
    under_seeds("sm_90", [&](runtime::Device& device) {
        auto y = device.upload(std::vector<std::uint32_t>(2 * row), "y");
        device.launch(own_peer, runtime::Grid{{2}, {row}}, y);
        const auto found = y.download();
        for (std::uint32_t i = 0; i < 2 * row; ++i) CHECK(found[i] == i % row + 1100 + (i % row + 100) * 10000);
    });
    check_assembled(own_peer, 90);
}

TEST_CASE("blocks know where they are in their cluster") {
    under_seeds("sm_90", [&](runtime::Device& device) {
        auto y = device.upload(std::vector<std::uint32_t>(3 * 4 * 6), "y");
        device.launch(places, runtime::Grid{{3, 4, 6}, {1}}, y);
        for (const std::uint32_t found : y.download()) CHECK(found == 15 + 16 * 6 + 256 * 3);
    });
    check_assembled(places, 90);
}

TEST_CASE("a grid is whole clusters, along each axis") {
    auto y = simt_device().upload(std::vector<std::uint32_t>(64), "y");
    for (const runtime::Grid& grid : {runtime::Grid{{3, 3, 6}, {1}}, runtime::Grid{{3, 4, 5}, {1}}})
        CHECK_THAT(tests::message_of([&] { simt_device().launch(places, grid, y); }),
                   tests::contains("in clusters of 1 x 2 x 3"));
}

}  // namespace ikat::test
