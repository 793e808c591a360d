// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reduction/dot.hpp"

#include "stdlib/reduce/reduce.hpp"
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/reduction/shares.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

/// The sum over the block of f(i as lanes), stored by its first thread.
template <class T>
void store_sum(const Out<float>& partial, const u32& n, auto&& term) {
    require_linear_grid();
    f32 sum = 0;
    for_each_vec<T>(n, [&](auto width, const auto& i) { sum += term(width, i); });
    sum = block_sum(sum);
    if_(thread_id().x == 0, [&] { partial[block_id().x] = sum; });
}

/// The largest element so far, and its index.
struct Best {
    f32 value = -std::numeric_limits<float>::infinity();
    u32 index = ~0u;

    void consider(const auto& v, const auto& i) {
        const auto better = value_of((v > value) | ((v == value) & (i < index)));
        const auto old_value = value_of(value), new_value = value_of(v);
        const auto old_index = value_of(index), new_index = value_of(i);
        value = select(better, new_value, old_value);
        index = select(better, new_index, old_index);
    }

private:
    static auto value_of(const auto& v) { return ikat::value(v); }
};

void reduce_warp(Best& best) {
    for (unsigned distance = 16; distance > 0; distance /= 2) {
        const auto value = ikat::value(shuffle_xor(best.value, distance));
        const auto index = ikat::value(shuffle_xor(best.index, distance));
        best.consider(value, index);
    }
}

/// The best of the block, stored by its first thread.
void store_best(Best& best, const Out<float>& value, const Out<std::uint32_t>& index) {
    require_whole_warps();
    require_linear_grid();
    Shared<float, 32> values;
    Shared<std::uint32_t, 32> indices;
    reduce_warp(best);
    if_(lane_id() == 0, [&] {
        values[warp_id()] = best.value;
        indices[warp_id()] = best.index;
    });
    sync_block();
    Best of_warp;
    if_(lane_id() < block_dim().x / 32, [&] {
        of_warp.value = values[lane_id()];
        of_warp.index = indices[lane_id()];
    });
    reduce_warp(of_warp);
    if_(thread_id().x == 0, [&] {
        value[block_id().x] = of_warp.value;
        index[block_id().x] = of_warp.index;
    });
}

}  // namespace

template <class T>
const DotKernel<T>& dot_kernel() {
    static const auto made = kernel(name_of<T>("dot"), params("x", "y", "partial", "n"),
                                    [](In<T> x, In<T> y, Out<float> partial, u32 n) {
                                        store_sum<T>(partial, n, [&]<int N>(Width<N>, const auto& i) {
                                            const auto a = load_lanes<N>(x, i), b = load_lanes<N>(y, i);
                                            auto sum = value(a[0] * b[0]);
                                            for (std::size_t k = 1; k < N; ++k) sum = value(fma(a[k], b[k], sum));
                                            return sum;
                                        });
                                    })
                                 .require(aligned<16>("x"), aligned<16>("y"), at_least("x", "n"), at_least("y", "n"))
                                 .launch_bounds(1024);
    return made;
}
template <class T>
const SquaresKernel<T>& norm2_kernel() {
    static const auto made = kernel(name_of<T>("norm2"), params("x", "partial", "n"),
                                    [](In<T> x, Out<float> partial, u32 n) {
                                        store_sum<T>(partial, n, [&]<int N>(Width<N>, const auto& i) {
                                            const auto a = load_lanes<N>(x, i);
                                            auto sum = value(a[0] * a[0]);
                                            for (std::size_t k = 1; k < N; ++k) sum = value(fma(a[k], a[k], sum));
                                            return sum;
                                        });
                                    })
                                 .require(aligned<16>("x"), at_least("x", "n"))
                                 .launch_bounds(1024);
    return made;
}
template <class T>
const ArgmaxKernel<T>& argmax_kernel() {
    static const auto made = kernel(name_of<T>("argmax"), params("x", "value", "index", "n"),
                                    [](In<T> x, Out<float> best_value, Out<std::uint32_t> best_index, u32 n) {
                                        Best best;
                                        for_each_vec<T>(n, [&]<int N>(Width<N>, const auto& i) {
                                            const auto lanes = load_lanes<N>(x, i);
                                            for (std::size_t k = 0; k < N; ++k)
                                                best.consider(lanes[k], value(i * unsigned(N) + unsigned(k)));
                                        });
                                        store_best(best, best_value, best_index);
                                    })
                                 .require(aligned<16>("x"), at_least("x", "n"))
                                 .launch_bounds(1024);
    return made;
}
const ArgmaxFinalKernel& argmax_final_kernel() {
    static const auto made = kernel("argmax_final", params("values", "indices", "value", "index", "n"),
                                    [](In<float> values, In<std::uint32_t> indices, Out<float> best_value,
                                       Out<std::uint32_t> best_index, u32 n) {
                                        Best best;
                                        for (auto i : grid_stride(n))
                                            best.consider(value(values[i]), value(indices[i]));
                                        store_best(best, best_value, best_index);
                                    })
                                 .require(at_least("values", "n"), at_least("indices", "n"))
                                 .launch_bounds(1024);
    return made;
}

// ---- the recipes

IKAT_INSTANTIATE(dot_kernel)
IKAT_INSTANTIATE(norm2_kernel)
IKAT_INSTANTIATE(argmax_kernel)

constexpr Recipe dot_recipe{.call = "dot(queue, x, y, total, workspace)",
                            .kernels = {{"the sum of x[i] y[i], in f32", IKAT_FLOATS(dot_kernel<T>()), one_block}},
                            .document = reduction_document,
                            .shapes = "x: n, y: n",
                            .steps = sum_shares,
                            .workspace = workspace_of_n,
                            .reference = reference::dot,
                            .traffic = "2 E s",
                            .note = "the sum of products; as sum"};
constexpr Recipe norm2_recipe{.call = "norm2(queue, x, total, workspace)",
                              .kernels = {{"the sum of squares, in f32", IKAT_FLOATS(norm2_kernel<T>()), one_block}},
                              .document = reduction_document,
                              .shapes = "x: n",
                              .steps = sum_shares,
                              .workspace = workspace_of_n,
                              .reference = reference::norm2,
                              .traffic = "E s",
                              .note = "the sum of squares; as sum"};
constexpr Recipe argmax_recipe{
    .call = "argmax(queue, x, value, index, workspace)",
    .kernels = {{"the largest element and its index", IKAT_FLOATS(argmax_kernel<T>()), one_block}},
    .document =
        "value[b] and index[b] are the largest element that block b visits and its index, the first of equal\n"
        "ones; with one block, the default, those of all n. NaNs are ignored; without any number, -infinity\n"
        "and 2^32 - 1.",
    .shapes = "x: n, value: 1, index: 1",
    .steps =
        [](Steps& steps) {
            const Grid grid = reduction_grid(steps["n"]);
            const std::uint32_t blocks = grid.blocks.x;
            if (blocks == 1) return steps.launch(grid);
            const auto values = steps.take<float>(blocks);
            const auto indices = steps.take<std::uint32_t>(blocks);
            steps.launch(grid, {{"value", values}, {"index", indices}});
            steps.launch(argmax_final_kernel().handle(), {{1}, grid.threads},
                         {values, indices, steps.floats("value"), steps.words("index"), blocks});
        },
    .workspace = workspace_of_n,
    .reference = reference::argmax,
    .traffic = "E s",
    .note = "the largest element and its index, the first of equal ones"};
constexpr Recipe argmax_final_recipe{
    .kernels = {{"the largest of the results of argmax", IKAT_KERNEL(argmax_final_kernel()), one_block}},
    .document = argmax_recipe.document,
    .shapes = "values: n, indices: n, value: 1, index: 1",
    .reference = reference::argmax_final,
    .traffic = "8 s"};

}  // namespace ikat::stdlib
