// SPDX-License-Identifier: Apache-2.0
// The examples of docs/language in which threads work together: copies in flight, clusters, roles, products of
// matrices.
#include <ikat/async.hpp>
#include <ikat/cluster.hpp>
#include <ikat/ikat.hpp>
#include <ikat/mma.hpp>

#include "tests/catch.hpp"

// clang-format off
namespace ikat {
namespace {

const auto reversed_tiles = kernel("reversed_tiles", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 128> tile;
    u32 t = thread_id().x, i = block_id().x * 128 + t;
    copy_async_if<4>(i < n, tile[t], x[i]);  // begins; a zero where there is nothing to read
    copy_commit();                           // the copies of this thread since the last commit are a group
    f32 scale = x[0];                        // anything else meanwhile
    copy_wait<0>();                          // until none of its groups is unfinished
    sync_block();                            // until those of the other threads are done, too
    if_(i < n, [&] { y[i] = tile[127 - t] * scale; });
});

const auto sums_of_tiles = kernel("sums_of_tiles", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 2, 128> tiles;
    Shared<Barrier, 2> full, empty;
    u32 t = thread_id().x;  // of 128
    if_(t == 0, [&] {
        for (int i = 0; i < 2; ++i) full[i].init(1), empty[i].init(128);
        fence_barrier_init();
    });
    sync_block();
    f32 sum = 0;
    for (auto k : range(n + 1)) {
        if_((t == 0) & (k < n), [&] {                        // one thread asks for tile k,
            empty[k % 2].wait(k / 2 % 2 ^ 1);                // when all are done with tile k - 2,
            full[k % 2].arrive_expect(512);
            bulk_load(tiles[k % 2, 0], x[k * 128], 512, full[k % 2]);
        });
        if_(k > 0, [&] {
            const Var last = k - 1;
            full[last % 2].wait(last / 2 % 2);               // and all use the one before it
            sum += tiles[last % 2, t];
            empty[last % 2].arrive();
        });
    }
    y[t] = sum;
});

const auto transposed = kernel("transposed", params("a", "b"), [](TensorMap<float, Box<32, 32>> a, TensorMap<float, Box<32, 32>> b) {
    Shared<float, 32, 32> s, r;
    Shared<Barrier, 1> full;
    u32 t = thread_id().x, row = block_id().y * 32, column = block_id().x * 32;  // of 32
    if_(t == 0, [&] {
        full[0].init(1);
        fence_barrier_init();
        full[0].arrive_expect(a.bytes);
        tma_load(s[0, 0], a[row, column], full[0]);  // zeros beyond the edges
    });
    sync_block();
    full[0].wait(0);
    for (int i = 0; i < 32; ++i) r[t, i] = s[i, t];
    fence_async_shared();
    sync_block();
    if_(t == 0, [&] {
        tma_store(b[column, row], r[0, 0]);  // nothing beyond the edges
        bulk_commit();
        bulk_wait_read<0>();
    });
});

const auto histogram_of_cluster = kernel("histogram_of_cluster", params("x", "n", "bins"),
    [](In<std::uint32_t> x, u32 n, InOut<std::uint32_t> bins) {
        Shared<std::uint32_t, 256> part;  // each of the four blocks counts 256 of 1024 bins
        u32 t = thread_id().x;            // of 256
        part[t] = 0;
        cluster_sync();                   // all blocks have begun, and cleared their part
        for (auto i : grid_stride(n)) {
            u32 bin = x[i] % 1024;
            atomic_add(peer(part, bin / 256)[bin % 256], 1);
        }
        cluster_sync();                   // nobody counts any more
        atomic_add(bins[cluster_rank() * 256 + t], part[t]);
    }).cluster(4);

const auto halves = kernel("halves", params("x", "half", "n"), [](In<float> x, Out<float> half, u32 n) {
    launch_next();  // the blocks of the next kernel may come as soon as there is room for them
    for (auto i : grid_stride(n)) half[i] = x[i] / 2;
});
const auto weighted =
    kernel("weighted", params("half", "w", "y", "n"), [](In<float> half, In<float> w, Out<float> y, u32 n) {
        u32 i = global_id().x;
        f32 weight = w.load_if(i < n, i, 0);  // which no kernel before writes
        grid_wait();                          // all of half is there
        if_(i < n, [&] { y[i] = half[i] * weight; });
    });

const auto sums_by_roles = kernel("sums_by_roles", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 4, 256> tiles;
    Shared<Barrier, 4> full, empty;
    if_(thread_id().x == 0, [&] {
        for (int i = 0; i < 4; ++i) full[i].init(1), empty[i].init(256);
        fence_barrier_init();
    });
    sync_block();
    if_(warpgroup_id() == 0, [&] {  // it copies,
        registers_shrink<40>();
        if_(thread_id().x == 0, [&] {
            for (auto k : range(n)) {
                empty[k % 4].wait(k / 4 % 2 ^ 1);
                full[k % 4].arrive_expect(1024);
                bulk_load(tiles[k % 4, 0], x[k * 256], 1024, full[k % 4]);
            }
        });
    }).else_([&] {                  // the two others add up
        registers_grow<232>();
        u32 t = thread_id().x - 128;
        f32 sum = 0;
        for (auto k : range(n)) {
            full[k % 4].wait(k / 4 % 2);
            sum += tiles[k % 4, t];
            empty[k % 4].arrive();
        }
        y[t] = sum;
    });
}).launch_bounds(384, 1);

// C = A * B: A is 16 x k by rows, B is k x 8 by columns; k is a multiple of 16.
const auto one_product = kernel("one_product", params("a", "b", "c", "k"), [](In<bfloat16x2> a, In<bfloat16x2> b, Out<float> c, u32 k) {
    using M = Mma<16, 8, 16, bfloat16, float>;
    M::C accumulators(0.0f);
    for (auto from : range(0, k, 16)) {
        M::A x;
        M::B y;
        for (int r = 0; r < 4; ++r) x[r] = a[(M::A::row(2 * r) * k + from + M::A::column(2 * r)) / 2];
        for (int r = 0; r < 2; ++r) y[r] = b[(M::B::column(2 * r) * k + from + M::B::row(2 * r)) / 2];
        accumulators = mma(x, y, accumulators);
    }
    for (int i = 0; i < M::C::elements; ++i) c[M::C::row(i) * 8 + M::C::column(i)] = accumulators[i];
});

// y[q] = a[q] * b[q] for four pairs of matrices, a 8 x 4 by rows, b 4 x 8 by columns.
const auto four_products = kernel("four_products", params("a", "b", "y"), [](In<half2, 3> a, In<half2, 3> b, Out<float, 3> y) {
    using M = Mma<8, 8, 4, half, float>;
    M::A x;
    M::B w;
    for (int r = 0; r < 2; ++r) {
        x[r] = a[M::product(), M::A::row(2 * r), M::A::column(2 * r) / 2];
        w[r] = b[M::product(), M::B::column(2 * r), M::B::row(2 * r) / 2];
    }
    M::C accumulators = mma(x, w, M::C(0.0f));
    for (int i = 0; i < M::C::elements; ++i) y[M::product(), M::C::row(i), M::C::column(i)] = accumulators[i];
});

// C = A * B: A is m x k by rows, B is k x n by columns. Blocks have 128 threads and make 64 x 64 of C.
const auto tile_product = kernel("tile_product", params("a", "b", "C", "k"), [](TensorMap<bfloat16, Box<64, 64>, 128> a, TensorMap<bfloat16, Box<64, 64>, 128> b, Out<float, 2> C, u32 k) {
    using W = Wgmma<64, 64, 16, bfloat16, float>;
    Shared<bfloat16, 64, 64> x, y;
    Shared<Barrier, 1> full;
    u32 row = block_id().y * 64, column = block_id().x * 64;
    if_(thread_id().x == 0, [&] {
        full[0].init(1);
        fence_barrier_init();
    });
    sync_block();
    W::C accumulators(0.0f);
    for (auto from : range(0, k, 64)) {
        if_(thread_id().x == 0, [&] {
            full[0].arrive_expect(a.bytes + b.bytes);
            tma_load(x[0, 0], a[row, from], full[0]);
            tma_load(y[0, 0], b[column, from], full[0]);
        });
        full[0].wait(from / 64 % 2);
        wgmma_fence();
        for (int i = 0; i < 64; i += W::k) wgmma(accumulators, k_major<128>(x[0, i]), k_major<128>(y[0, i]));
        wgmma_commit();
        wgmma_wait<0>();
        sync_block();  // x and y may be overwritten
    }
    for (int i = 0; i < W::C::elements; ++i) {
        u32 r = row + W::C::row(i), c = column + W::C::column(i);
        if_((r < C.extent(0)) & (c < C.extent(1)), [&] { C[r, c] = accumulators[i]; });
    }
});

TEST_CASE("the examples of docs/language for threads are right") {
    CHECK_NOTHROW(reversed_tiles.check());
    CHECK_NOTHROW(sums_of_tiles.check());
    CHECK_NOTHROW(transposed.check());
    CHECK_NOTHROW(histogram_of_cluster.check());
    CHECK_NOTHROW(halves.check());
    CHECK_NOTHROW(weighted.check());
    CHECK_NOTHROW(sums_by_roles.check());
    CHECK_NOTHROW(one_product.check());
    CHECK_NOTHROW(four_products.check());
    CHECK_NOTHROW(tile_product.check());
}

}  // namespace
}  // namespace ikat
