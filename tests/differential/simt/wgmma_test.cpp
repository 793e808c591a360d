// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a warpgroup: all types, shapes and places of A and B, with exact numbers, compared with loops
// of the host, under several orders of the warps and of what is in flight.
#include "tests/differential/simt/matrices.hpp"
#include "tests/differential/simt/run.hpp"

#include <string>

#include <ikat/async.hpp>

namespace ikat::test {
namespace {

/// Where a matrix lies in shared memory: rows of `span` bytes along k, or, if mn_major, along its rows.
template <int swizzle_, bool mn_major_ = false>
struct Lay {
    static constexpr int swizzle = swizzle_, span = swizzle ? swizzle : 16;
    static constexpr bool mn_major = mn_major_;
    static constexpr std::uint32_t mask = swizzle == 128 ? 0x70 : swizzle == 64 ? 0x30 : swizzle == 32 ? 0x10 : 0;

    /// The word in shared memory with the 4 bytes of row r from byte k on, or, if mn_major, of k from byte r on.
    static auto word(const auto& r, const auto& k, std::uint32_t rows, std::uint32_t depth) {
        const u32 at = linear(r, k, rows, depth);
        return (at ^ (at >> 3 & mask)) / 4;
    }
    template <class S>
    static auto matrix(const S& s, std::uint32_t rows, std::uint32_t depth) {
        if constexpr (mn_major)
            return ikat::mn_major<swizzle>(s[0], swizzle ? depth * span : 8 * depth * 2, swizzle ? 8 * span : 128);
        else
            return swizzle ? k_major<swizzle>(s[0]) : k_major<0>(s[0], 128, rows * 16);
    }
    /// Bytes from one product's k to the next.
    static constexpr std::uint32_t step(std::uint32_t rows) {
        return mn_major ? (swizzle ? 16 * span : 256) : swizzle ? 32 : 2 * 16 * rows;
    }

private:
    static auto linear(const auto& r, const auto& k, [[maybe_unused]] std::uint32_t rows,
                       [[maybe_unused]] std::uint32_t depth) {
        if constexpr (mn_major)
            return k * span + r % span + r / span * (depth * span);
        else if constexpr (swizzle)
            return r * span + k;
        else
            return r * 16 + k / 16 * (rows * 16) + k % 16;
    }
};

/// Sums of the products of `steps` pieces of k, one group each, added to what is in y. A from registers, if so.
template <class W, class LayA, class LayB, bool from_registers>
auto warpgroup_kernel(int steps, auto with) {
    using C = DeviceTypeOf<decltype(std::declval<const typename W::C&>()[0])>;
    using A = DeviceTypeOf<decltype(std::declval<const typename W::A&>()[0])>;
    return kernel("product", params("x", "w", "y"), [=](In<std::uint32_t> x, In<std::uint32_t> w, InOut<C> y) {
        constexpr std::uint32_t bytes_of_k = 32, n = W::n, max_steps = 4;
        const std::uint32_t depth = bytes_of_k * std::uint32_t(steps);
        Shared<std::uint32_t, W::m * bytes_of_k * max_steps / 4> a;
        Shared<std::uint32_t, n * bytes_of_k * max_steps / 4> b;
        // Rows of k, or, mn_major, for each k a row.
        const auto fill = [&](const auto& s, const auto& from, auto lay, std::uint32_t rows) {
            using Lay = decltype(lay);
            const std::uint32_t across = Lay::mn_major ? rows / 2 : depth / 4;  // words
            const std::uint32_t down = Lay::mn_major ? depth / 2 : rows;
            for (auto i : range(thread_id().x, across * down, 128u)) {
                const auto far = 4 * (i % across), line = i / across;
                if constexpr (Lay::mn_major)
                    s[Lay::word(far, line, rows, depth / 2)] = from[i];
                else
                    s[Lay::word(line, far, rows, depth)] = from[i];
            }
        };
        fill(a, x, LayA(), W::m), fill(b, w, LayB(), n);
        fence_async_shared();
        sync_block();
        constexpr int in_c = W::C::elements_per_register, in_a = W::A::elements_per_register;
        const auto at = [&](int r) { return W::C::row(r * in_c) * (n / in_c) + W::C::column(r * in_c) / in_c; };
        typename W::C sums;
        for (int r = 0; r < int(W::C::size); ++r) sums[r] = y[at(r)];
        const auto of_a = LayA::matrix(a, W::m, depth / 2);
        const auto of_b = LayB::matrix(b, n, depth / 2);
        for (int step = 0; step < steps; ++step) {
            const auto next_b = of_b.offset(step * int(LayB::step(n)));
            if constexpr (from_registers) {
                typename W::A held;
                for (int r = 0; r < int(W::A::size); ++r)
                    held[r] = bit_cast<A>(Leaf<std::uint32_t>(
                        x[W::A::row(r * in_a) * (depth / 4) + (W::A::column(r * in_a) / in_a + 8 * step)].recorded()));
                wgmma_fence();
                with(sums, held, next_b);
                wgmma_commit();
                wgmma_wait<0>();
            } else {
                if (step == 0) wgmma_fence();
                with(sums, of_a.offset(step * int(LayA::step(W::m))), next_b);
                wgmma_commit();
                if (step > 0) wgmma_wait<1>();
            }
        }
        wgmma_wait<0>();
        for (int r = 0; r < int(W::C::size); ++r) y[at(r)] = sums[r];
    });
}

constexpr auto adds = [](auto& sums, const auto& a, const auto& b) { wgmma(sums, a, b); };

template <class T>
std::vector<int> transposed(const std::vector<int>& from, int rows) {
    std::vector<int> out;
    const int columns = int(from.size()) / rows;
    for (int c = 0; c < columns; ++c)
        for (int r = 0; r < rows; ++r) out.push_back(from[std::size_t(r * columns + c)]);
    return out;
}

template <class W, class T, class Sum, class LayA, class LayB, class T2 = T, bool from_registers = false>
void check_wgmma(int steps, auto with, auto&& product, auto&& sum) {
    const int k = W::k * steps;
    const auto a = random_matrix<T>(W::m * k), b = random_matrix<T2>(W::n * k), c = random_matrix<Sum>(W::m * W::n);
    using C = DeviceTypeOf<decltype(std::declval<const typename W::C&>()[0])>;
    const auto made = warpgroup_kernel<W, LayA, LayB, from_registers>(steps, with);
    const std::string ptx = compile(made.ast(), {.target = "sm_90a"}).ptx;
    std::vector<double> wanted;
    for (int row = 0; row < W::m; ++row)
        for (int column = 0; column < W::n; ++column) {
            double total = 0;
            for (int i = 0; i < k; ++i) total += product(a[std::size_t(row * k + i)], b[std::size_t(column * k + i)]);
            wanted.push_back(sum(c[std::size_t(row * W::n + column)], total));
        }
    INFO(ptx);
    for (const char* schedule : {"0", "1", "2", "3"}) {
        runtime::Device device = open_device({.schedule = schedule, .check = "registers"});
        const auto x = device.upload(packed<T, std::uint32_t>(LayA::mn_major ? transposed<T>(a, W::m) : a), "x");
        const auto w = device.upload(packed<T2, std::uint32_t>(LayB::mn_major ? transposed<T2>(b, W::n) : b), "w");
        const auto y = device.upload(packed<Sum, C>(c), "y");
        const std::uint64_t addresses[] = {x.address(), w.address(), y.address()};
        device.launch(device.load(ptx, "product"), "product", {{1}, {128}}, std::as_bytes(std::span(addresses)));
        CHECK(numbers<Sum>(y.download()) == wanted);
    }
    if (tests::skip_without_ptxas()) return;
    const tests::PtxasReport report = tests::assemble(ptx, "sm_90a");
    INFO(report.log);
    CHECK(report.assembled);
    CHECK_FALSE(report.warned);
}

/// C = A * B, of A by rows and B by columns, with one warpgroup that copies tiles into a ring, and two that multiply:
/// 128 x 64 of C for each block.
template <int stages, bool keeps_one_in_flight>
const auto ring_of_tiles = kernel(
    "ring_of_tiles", params("a", "b", "c", "m", "n", "k"),
    [](TensorMap<half, Box<128, 64>, 128> a, TensorMap<half, Box<64, 64>, 128> b, Out<float> c, u32 m, u32 n, u32 k) {
        using W = Wgmma<64, 64, 16, half, float>;
        require_threads(384);
        Shared<half, stages, 128, 64> of_a;
        Shared<half, stages, 64, 64> of_b;
        Shared<Barrier, stages> full, empty;
        const u32 row = block_id().y * 128, column = block_id().x * 64, tiles = (k + 63) / 64;
        if_(thread_id().x == 0, [&] {
            for (int s = 0; s < stages; ++s) full[s].init(1), empty[s].init(256);
            fence_barrier_init();
        });
        sync_block();
        if_(thread_id().x / 128 == 0, [&] {
            if_(thread_id().x == 0, [&] {
                for (auto i : range(tiles)) {
                    const u32 stage = i % stages;
                    empty[stage].wait(i / stages % 2 ^ 1);
                    full[stage].arrive_expect(a.bytes + b.bytes);
                    tma_load(of_a[stage, 0, 0], a[row, i * 64], full[stage]);
                    tma_load(of_b[stage, 0, 0], b[column, i * 64], full[stage]);
                }
            });
        }).else_([&] {
            const u32 half_tile = (thread_id().x / 128 - 1) * 64;
            W::C sums(0.0f);
            for (auto i : range(tiles)) {
                const u32 stage = i % stages;
                full[stage].wait(i / stages % 2);
                const auto x = k_major<128>(of_a[stage, half_tile, 0]), y = k_major<128>(of_b[stage, 0, 0]);
                wgmma_fence();
                for (int at = 0; at < 64; at += W::k) wgmma(sums, x.offset(2 * at), y.offset(2 * at));
                wgmma_commit();
                if constexpr (keeps_one_in_flight) {
                    wgmma_wait<1>();
                    if_(i > 0, [&] { empty[(i - 1) % stages].arrive(); });
                } else {
                    wgmma_wait<0>();
                    empty[stage].arrive();
                }
            }
            wgmma_wait<0>();
            for (int i = 0; i < W::C::elements; ++i) {
                const u32 r = row + half_tile + W::C::row(i), at = column + W::C::column(i);
                if_((r < m) & (at < n), [&] { c[r * n + at] = sums[i]; });
            }
        });
    });

void check_ring(const auto& made, std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    const auto a = random_matrix<half>(int(m * k)), b = random_matrix<half>(int(n * k));
    std::vector<float> wanted;
    for (std::uint32_t row = 0; row < m; ++row)
        for (std::uint32_t column = 0; column < n; ++column) {
            float sum = 0;
            for (std::uint32_t i = 0; i < k; ++i) sum += float(a[row * k + i] * b[column * k + i]);
            wanted.push_back(sum);
        }
    for (const char* schedule : {"0", "1", "2", "3", "4", "5", "6", "7"}) {
        runtime::Device device = open_device({.target = "sm_90a", .schedule = schedule});
        const auto x = device.upload(packed<half, half>(a), "a"), w = device.upload(packed<half, half>(b), "b");
        auto y = device.upload(std::vector<float>(m * n, -1), "c");
        device.launch(made, runtime::Grid{{(n + 63) / 64, (m + 127) / 128}, {384}}, x.view(m, k), w.view(n, k), y, m, n,
                      k);
        CHECK(y.download() == wanted);
    }
}

constexpr auto times = [](int a, int b) { return a * b; };
constexpr auto added = [](double c, double product) { return c + product; };

}  // namespace

TEST_CASE("products by a warpgroup: matrices in shared memory, with each swizzle") {
    using W = Wgmma<64, 64, 16, half, float>;
    check_wgmma<W, half, float, Lay<128>, Lay<128>>(4, adds, times, added);
    check_wgmma<W, half, float, Lay<64>, Lay<32>>(1, adds, times, added);
    check_wgmma<W, half, float, Lay<64>, Lay<64>>(2, adds, times, added);
    check_wgmma<W, half, float, Lay<0>, Lay<0>>(3, adds, times, added);
}

TEST_CASE("products by a warpgroup: matrices whose rows, or columns of B, are contiguous") {
    using W = Wgmma<64, 128, 16, bfloat16, float>;
    check_wgmma<W, bfloat16, float, Lay<128>, Lay<128, true>>(4, adds, times, added);
    check_wgmma<W, bfloat16, float, Lay<128, true>, Lay<64, true>>(2, adds, times, added);
    check_wgmma<W, bfloat16, float, Lay<32, true>, Lay<0, true>>(2, adds, times, added);
    check_wgmma<W, bfloat16, float, Lay<0, true>, Lay<32, true>>(3, adds, times, added);
}

TEST_CASE("products by a warpgroup: A in registers") {
    check_wgmma<Wgmma<64, 32, 16, half, half>, half, half, Lay<0>, Lay<128>, half, true>(4, adds, times, added);
    check_wgmma<Wgmma<64, 64, 16, half, float>, half, float, Lay<0>, Lay<128, true>, half, true>(4, adds, times, added);
    check_wgmma<Wgmma<64, 8, 8, tf32, float>, tf32, float, Lay<0>, Lay<128>, tf32, true>(4, adds, times, added);
    check_wgmma<Wgmma<64, 24, 32, std::int8_t, std::int32_t>, std::int8_t, std::int32_t, Lay<0>, Lay<64>, std::int8_t,
                true>(2, adds, times, added);
}

TEST_CASE("products by a warpgroup: all elements") {
    check_wgmma<Wgmma<64, 40, 8, tf32, float>, tf32, float, Lay<128>, Lay<128>>(4, adds, times, added);
    check_wgmma<Wgmma<64, 16, 32, e4m3, float, e5m2>, e4m3, float, Lay<128>, Lay<128>, e5m2>(4, adds, times, added);
    check_wgmma<Wgmma<64, 16, 32, e5m2, half>, e5m2, half, Lay<64>, Lay<128>>(2, adds, times, added);
    check_wgmma<Wgmma<64, 48, 32, std::uint8_t, std::int32_t>, std::uint8_t, std::int32_t, Lay<128>, Lay<128>>(
        4, adds, times, added);
    check_wgmma<Wgmma<64, 16, 32, std::int8_t, std::int32_t, std::uint8_t>, std::int8_t, std::int32_t, Lay<128>,
                Lay<128>, std::uint8_t>(4, adds, times, added);
    check_wgmma<Wgmma<64, 16, 256, b1, std::int32_t>, b1, std::int32_t, Lay<64>, Lay<64>>(
        2, adds, [](int a, int b) { return a & b; }, added);
    check_wgmma<Wgmma<64, 256, 16, half, half>, half, half, Lay<128>, Lay<128>>(1, adds, times, added);
}

TEST_CASE("products by a warpgroup: what is subtracted, overwritten, or added under a condition") {
    using W = Wgmma<64, 16, 16, half, float>;
    const auto subtracted = [](double c, double product) { return c - product; };
    const auto product_alone = [](double, double product) { return product; };
    check_wgmma<W, half, float, Lay<128>, Lay<128>>(
        4, [](auto& sums, const auto& a, const auto& b) { wgmma(sums, -a, b); }, times, subtracted);
    check_wgmma<W, half, float, Lay<128>, Lay<128>, half, true>(
        4, [](auto& sums, const auto& a, const auto& b) { wgmma(sums, a, -b); }, times, subtracted);
    check_wgmma<W, half, float, Lay<64>, Lay<64>>(
        1, [](auto& sums, const auto& a, const auto& b) { wgmma(sums, a, b, false); }, times, product_alone);
    check_wgmma<W, half, float, Lay<64>, Lay<64>>(
        1, [](auto& sums, const auto& a, const auto& b) { wgmma(sums, a, b, block_dim().x < 128); }, times,
        product_alone);
    check_wgmma<W, half, float, Lay<64>, Lay<64>>(
        1, [](auto& sums, const auto& a, const auto& b) { wgmma(sums, a, b, block_dim().x == 128); }, times, added);
    check_wgmma<Wgmma<64, 16, 32, std::int8_t, std::int32_t>, std::int8_t, std::int32_t, Lay<64>, Lay<64>>(
        1, [](auto& sums, const auto& a, const auto& b) { wgmma_saturating(sums, a, b); }, times, added);
}

TEST_CASE("products by warpgroups, of tiles that another warpgroup copies into a ring") {
    check_ring(ring_of_tiles<2, false>, 200, 72, 328);
    check_ring(ring_of_tiles<3, true>, 130, 64, 456);
    check_ring(ring_of_tiles<3, true>, 8, 8, 8);
    for (const auto& ptx : {compile(ring_of_tiles<2, false>.ast(), {.target = "sm_90a"}).ptx,
                            compile(ring_of_tiles<3, true>.ast(), {.target = "sm_90a"}).ptx}) {
        if (tests::skip_without_ptxas()) return;
        const tests::PtxasReport report = tests::assemble(ptx, "sm_90a");
        INFO(report.log << "\n" << ptx);
        CHECK(report.assembled);
        CHECK_FALSE(report.warned);
    }
}

}  // namespace ikat::test
