// SPDX-License-Identifier: Apache-2.0
// Step 9 of the tutorial: attention by tiles. Scores, their exponentials and the sums of V stay in registers: the
// weights of a warp's queries are the factor of its second product.
#include <ikat/ikat.hpp>

#include <ikat/mma.hpp>
#include <ikat/tile.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

// A block of four warps has 64 queries, a warp 16 of them. Keys and values come 64 at a time.
constexpr std::uint32_t dim = 64, extent = 64, rows = 16, threads = 128;
using M = Mma<16, 8, 16, bfloat16, float>;
using QueryTile = SharedTile<bfloat16, 1, extent, dim>;
using KeyTile = SharedTile<bfloat16, 3, extent, dim>;
using Scores = WarpTiles<M, rows, extent>;
using Accumulators = WarpTiles<M, rows, dim>;

// O = softmax(Q K^T / sqrt(dim)) V, where query i sees keys 0 to i.
const auto causal_attention =
    kernel("causal_attention", params("Q", "K", "V", "O"),
           [](In<bfloat16, 2> Q, In<bfloat16, 2> K, In<bfloat16, 2> V, Out<float, 2> O) {
               require_threads(threads);
               require_linear_blocks();
               QueryTile q;
               KeyTile k, v;
               u32 first = block_id().x * extent, my_row = warp_id() * rows;

               const TileSource<QueryTile, threads, Along::Columns> from_q(Q, first, {.bytes = 16});
               from_q.load(q[0], 0);
               copy_commit();
               copy_wait<0>();
               sync_block();
               const RegisterOperand<M, rows, dim> queries(LeftOperand<M, QueryTile, Major::K>(q, my_row), q[0]);

               const TileSource<KeyTile, threads, Along::Rows> from_k(K, 0, {.bytes = 16}), from_v(V, 0, {.bytes = 16});
               const RightOperand<M, KeyTile, Major::K> keys(k, 0);     // as n x k: a key is a column of K^T
               const RightOperand<M, KeyTile, Major::MN> values(v, 0);  // as k x n
               Accumulators accumulators(0.0f);
               OnlineSoftmax<rows> softmax;
               u32 key = 0;
               const auto tiles = value(block_id().x + 1);  // what comes after all of the block's queries is not copied
               pipeline<3>(
                   tiles,
                   [&](const auto& stage, const auto& slice) {
                       from_k.load(k[stage], slice);
                       from_v.load(v[stage], slice);
                   },
                   [&](const auto& stage) {
                       Scores scores(0.0f);
                       scores.accumulate(queries, keys, k[stage]);
                       if_(key == first, [&] {  // the last tile: the others are seen by all queries
                           mask(scores,
                                [&](const auto& query, const auto& column) { return column <= my_row + query; });
                       });
                       softmax.take(scores, float(std::log2(std::exp(1.0)) / std::sqrt(double(dim))), accumulators);
                       accumulators.accumulate(RegisterOperand<M, rows, extent>(scores), values, v[stage]);
                       key += extent;
                   });
               softmax.finish(accumulators);

               const auto scratch = k.bytes().as<float>().slice(warp_id() * row_scratch<Accumulators>);
               each_row<4>(accumulators, scratch, [&](const auto& i, const auto& j, const auto& four) {
                   u32 row = first + my_row + i;
                   if_(row < O.extent(0), [&] { O.vec<4>(row, j / 4) = four; });
               });
           })
        .require(aligned<16>("Q"), multiple_of<8>("Q_extent1"), multiple_of<8>("Q_pitch"))
        .require(aligned<16>("K"), multiple_of<8>("K_extent1"), multiple_of<8>("K_pitch"))
        .require(aligned<16>("V"), multiple_of<8>("V_extent1"), multiple_of<8>("V_pitch"))
        .require(aligned<16>("O"), multiple_of<4>("O_extent1"), multiple_of<4>("O_pitch"))
        .launch_bounds(threads);

std::vector<bfloat16> numbers(std::size_t count, double step) {
    std::vector<bfloat16> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(std::sin(step * double(i)));
    return out;
}

/// The largest difference to attention by plain loops.
double difference(const std::vector<float>& o, const std::vector<bfloat16>& q, const std::vector<bfloat16>& k,
                  const std::vector<bfloat16>& v) {
    double worst = 0;
    for (std::size_t i = 0; i < o.size() / dim; ++i) {
        double total = 0, wanted[dim] = {};
        for (std::size_t j = 0; j <= i; ++j) {
            double score = 0;
            for (std::size_t e = 0; e < dim; ++e) score += double(q[i * dim + e]) * double(k[j * dim + e]);
            const double weight = std::exp(score / std::sqrt(double(dim)));
            total += weight;
            for (std::size_t e = 0; e < dim; ++e) wanted[e] += weight * double(v[j * dim + e]);
        }
        for (std::size_t e = 0; e < dim; ++e)
            worst = std::max(worst, std::abs(double(o[i * dim + e]) - wanted[e] / total));
    }
    return worst;
}

int main() try {
    const auto device = Device::open();
    bool right = true;
    for (const std::uint32_t n : {128u, 200u}) {
        const auto q = numbers(n * dim, 0.7), k = numbers(n * dim, 0.3), v = numbers(n * dim, 0.11);
        const auto Q = device.upload(q, "Q"), K = device.upload(k, "K"), V = device.upload(v, "V");
        auto O = device.buffer<float>(n * dim, "O");
        device.launch(causal_attention, Grid{{(n - 1) / extent + 1}, {threads}}, Q.view(n, dim), K.view(n, dim),
                      V.view(n, dim), O.view(n, dim));
        const bool is_right = difference(O.download(), q, k, v) <= 0x1p-8;  // weights are rounded to 8 bits
        std::printf("attention of %u queries: %s\n", n, is_right ? "right" : "WRONG");
        right = right && is_right;
    }
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
