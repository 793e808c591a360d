// SPDX-License-Identifier: Apache-2.0
// Step 6 of the tutorial: a product of matrices on tensor cores, first of one tile, then of tiles in shared memory that
// are copied while others are multiplied.
#include <ikat/ikat.hpp>

#include <ikat/async.hpp>
#include <ikat/mma.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;

using M = Mma<16, 8, 16, bfloat16, float>;

// c = a * b for 16 rows of a and 8 columns of b, by one warp. The columns of b are contiguous, as the rows of a are.
const auto one_tile = kernel("one_tile", params("a", "b", "c", "k"),
                             [](In<bfloat16x2> a, In<bfloat16x2> b, Out<float> c, u32 k) {
                                 M::C accumulators(0.0f);
                                 for (auto from : range(0, k, 16)) {
                                     M::A x;
                                     M::B y;
                                     for (int r = 0; r < 4; ++r)
                                         x[r] = a[(M::A::row(2 * r) * k + from + M::A::column(2 * r)) / 2];
                                     for (int r = 0; r < 2; ++r)
                                         y[r] = b[(M::B::column(2 * r) * k + from + M::B::row(2 * r)) / 2];
                                     accumulators = mma(x, y, accumulators);
                                 }
                                 for (int i = 0; i < M::C::elements; ++i)
                                     c[M::C::row(i) * M::n + M::C::column(i)] = accumulators[i];
                             })
                          .require(multiple_of<16>("k"))
                          .launch_bounds(32);

constexpr int tile = 64, step = 32, pitch = 40;

const auto tiles =
    kernel(
        "tiles", params("a", "b", "c", "n", "k"),
        [](In<bfloat16> a, In<bfloat16> b, Out<float> c, u32 n, u32 k) {
            Shared<bfloat16, 2, tile, pitch> as, bs;
            u32 row = block_id().y * tile, column = block_id().x * tile, thread = thread_id().x;
            // 64 rows of 64 bytes of each matrix: two pieces of 16 bytes for each of 128 threads
            const auto bring = [&](const auto& stage, const auto& from) {
                for (int i = 0; i < 2; ++i) {
                    u32 r = thread / 4 + 32 * i, at = thread % 4 * 8;
                    copy_async<16>(as[stage, r, at], a[(row + r) * k + from + at]);
                    copy_async<16>(bs[stage, r, at], b[(column + r) * k + from + at]);
                }
                copy_commit();
            };
            // each of the four warps has 32 x 32 elements of c: 2 x 4 products
            u32 my_row = warp_id() / 2 * 32, my_column = warp_id() % 2 * 32, lane = lane_id();
            M::C accumulators[2][4];
            for (auto& some : accumulators)
                for (M::C& one : some) one = 0.0f;
            bring(0u, 0u);
            for (auto from : range(0, k, step)) {
                u32 stage = from / step % 2;
                copy_wait<0>();
                sync_block();  // all have brought this stage, and nobody reads the other one
                if_(from + step < k, [&] { bring(1 - stage, from + step); });
                for (int at = 0; at < step; at += M::k) {
                    M::A x[2];
                    for (int i = 0; i < 2; ++i)
                        x[i] = load_matrix<4>(as[stage, my_row + 16 * i + lane % 16, at + lane / 16 * 8]);
                    for (int j = 0; j < 4; ++j) {
                        M::B y = load_matrix<2>(bs[stage, my_column + 8 * j + lane % 8, at + lane / 8 % 2 * 8]);
                        for (int i = 0; i < 2; ++i) accumulators[i][j] = mma(x[i], y, accumulators[i][j]);
                    }
                }
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j)
                    for (int e = 0; e < M::C::elements; ++e)
                        c[(row + my_row + 16 * i + M::C::row(e)) * n + column + my_column + 8 * j + M::C::column(e)] =
                            accumulators[i][j][e];
        })
        .require(multiple_of<step>("k"), aligned<16>("a"), aligned<16>("b"))
        .launch_bounds(128);

std::vector<bfloat16> numbers(std::size_t count, double step) {
    std::vector<bfloat16> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(std::sin(step * double(i)));
    return out;
}

/// Whether each element is the sum of k exact products, in whatever order they were added, and however rounded.
bool check(const char* what, const std::vector<float>& c, const std::vector<bfloat16>& a,
           const std::vector<bfloat16>& b, std::size_t n, std::size_t k) {
    bool right = true;
    for (std::size_t i = 0; i < c.size(); ++i) {
        double sum = 0, magnitude = 0;
        for (std::size_t at = 0; at < k; ++at) {
            const double product = double(a[i / n * k + at]) * double(b[i % n * k + at]);
            sum += product, magnitude += std::abs(product);
        }
        right = right && std::abs(c[i] - sum) <= magnitude * double(k) * 0x1p-23;
    }
    std::printf("%s: %s\n", what, right ? "right" : "WRONG");
    return right;
}

int main() try {
    const auto device = Device::open();
    const std::uint32_t m = 128, n = 192, k = 96;
    const auto a = numbers(m * k, 0.1), b = numbers(n * k, 0.3);
    const auto x = device.upload(a, "a"), y = device.upload(b, "b");
    auto c = device.buffer<float>(m * n, "c");
    device.launch(tiles, Grid{{n / tile, m / tile}, {128}}, x, y, c, n, k);
    bool right = check("128 x 192 in tiles", c.download(), a, b, n, k);

    // The same numbers, two in a word.
    const auto pairs = [&](const std::vector<bfloat16>& of, std::size_t count) {
        std::vector<bfloat16x2> out;
        for (std::size_t i = 0; i < count; i += 2) out.push_back({of[i], of[i + 1]});
        return out;
    };
    const auto x2 = device.upload(pairs(a, 16 * k), "a"), y2 = device.upload(pairs(b, 8 * k), "b");
    auto small = device.buffer<float>(16 * 8, "c");
    device.launch(one_tile, Grid{{1}, {32}}, x2, y2, small, k);
    right = check("one tile of 16 x 8", small.download(), a, b, 8, k) && right;
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
