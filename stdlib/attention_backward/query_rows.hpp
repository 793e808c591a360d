// SPDX-License-Identifier: Apache-2.0
// What all other kernels need of each query: its log_sum, and the sum of dO * O, which is that of P * dP over all keys.
#pragma once
#include "stdlib/attention_backward/score_gradients.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib::gradient {

/// The sum of the products of two rows of d elements, of which `width` are read at once, by a warp; 0 unless they are
/// there.
template <int width, class T>
auto product_of_rows(const In<T, 2>& x, const In<T, 2>& y, const U32& row, const Leaf<bool>& are_there,
                     std::uint32_t d) {
    f32 sum = 0;
    const auto lane = value(lane_id());
    for (std::uint32_t first = 0; first < d / width; first += 32) {
        const auto at = value(lane + first);
        const auto is_there = value(are_there & (at < d / width));
        const auto a = load_lanes_if<width>(is_there, x.row(row), at, 0.0f),
                   b = load_lanes_if<width>(is_there, y.row(row), at, 0.0f);
        for (std::size_t k = 0; k < width; ++k) sum = fma(a[k], b[k], sum);
    }
    return value(warp_sum(sum));
}

template <class T>
void query_rows(const GradientKernel& is, const Scoring<T>& with, const In<T, 4>& O, const In<T, 4>& dO,
                const In<float, 3>& log_sum, const Out<float>& sums) {
    constexpr std::uint32_t all = GradientKernel::rows, warps = GradientTile::warps;
    constexpr float none = -std::numeric_limits<float>::infinity();
    require_linear_blocks();
    require_threads(GradientTile::threads);
    const auto at = place_of_block(with, is.has_offsets, all);
    const auto of_head = sums_of_head(sums, is, with, at);
    const auto o = rows_of_head(O, at.sequence, at.head, at.queries, is.head_dim, at.query_row),
               gradient = rows_of_head(dO, at.sequence, at.head, at.queries, is.head_dim, at.query_row);
    const auto log_sums_of_head = log_sum[at.sequence, at.head];
    const auto log_sums = at.query_row ? log_sums_of_head.slice(*at.query_row) : log_sums_of_head;
    const auto first = value(at.first_query + warp_id() * (all / warps)), lane = value(lane_id());
    for (auto step : range(all / warps).unroll(4)) {
        const auto query = value(first + step);
        const auto is_there = value(query < at.queries);
        const auto product = is.access >= 4 ? product_of_rows<2>(o, gradient, query, is_there, is.head_dim)
                                            : product_of_rows<1>(o, gradient, query, is_there, is.head_dim);
        const auto of_query = value(log_sums.load_if(is_there, query, none));
        const auto place = place_of_sums(query);
        for (const std::uint32_t copy : {0u, 2u}) of_head.store_if(lane == 0u, place + copy, -product);
        of_head.store_if(lane == 0u, place + 4u,
                         select(of_query == none, none, of_query * -std::numbers::log2e_v<float>));
    }
}

}  // namespace ikat::stdlib::gradient
