// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reduce/dot.hpp"

#include "stdlib/families.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/reduce/reduction.hpp"
#include "stdlib/reduce/shares.hpp"
#include "stdlib/size.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;

/// The sum over the block of f(i as lanes), stored by its first thread.
template <class T>
void store_sum(const Out<float>& partial, const u32& n, auto&& term) {
    require_linear_grid();
    f32 sum = 0;
    for_each_vec<T>(n, [&](auto width, const auto& i) { sum += term(width, i); });
    sum = block_sum(sum);
    if_(thread_id().x == 0, [&] { partial[block_id().x] = sum; });
}

/// A largest element so far and its index.
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
    static const auto made = kernel(name_of<T>("dot", "dot_f16", "dot_bf16"), params("x", "y", "partial", "n"),
                                    [](In<T> x, In<T> y, Out<float> partial, u32 n) {
                                        store_sum<T>(partial, n, [&]<int N>(Width<N>, const auto& i) {
                                            const auto a = load_lanes<N>(x, i), b = load_lanes<N>(y, i);
                                            auto sum = value(a[0] * b[0]);
                                            for (std::size_t k = 1; k < N; ++k) sum = value(fma(a[k], b[k], sum));
                                            return sum;
                                        });
                                    })
                                 .require(aligned<16>("x"), aligned<16>("y"))
                                 .launch_bounds(1024);
    return made;
}
template <class T>
const SquaresKernel<T>& norm2_kernel() {
    static const auto made = kernel(name_of<T>("norm2", "norm2_f16", "norm2_bf16"), params("x", "partial", "n"),
                                    [](In<T> x, Out<float> partial, u32 n) {
                                        store_sum<T>(partial, n, [&]<int N>(Width<N>, const auto& i) {
                                            const auto a = load_lanes<N>(x, i);
                                            auto sum = value(a[0] * a[0]);
                                            for (std::size_t k = 1; k < N; ++k) sum = value(fma(a[k], a[k], sum));
                                            return sum;
                                        });
                                    })
                                 .require(aligned<16>("x"))
                                 .launch_bounds(1024);
    return made;
}
template <class T>
const ArgmaxKernel<T>& argmax_kernel() {
    static const auto made =
        kernel(name_of<T>("argmax", "argmax_f16", "argmax_bf16"), params("x", "value", "index", "n"),
               [](In<T> x, Out<float> best_value, Out<std::uint32_t> best_index, u32 n) {
                   Best best;
                   for_each_vec<T>(n, [&]<int N>(Width<N>, const auto& i) {
                       const auto lanes = load_lanes<N>(x, i);
                       for (std::size_t k = 0; k < N; ++k)
                           best.consider(lanes[k], value(i * unsigned(N) + unsigned(k)));
                   });
                   store_best(best, best_value, best_index);
               })
            .require(aligned<16>("x"))
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
                                 .launch_bounds(1024);
    return made;
}

template <class T>
void dot(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::Buffer<T>& y,
         const runtime::BufferSlice<float>& total, const WorkspaceSlice& workspace) {
    require_equal_sizes("dot", "x", x.size(), "y", y.size());
    const std::uint32_t n = u32_size("dot", "x", x.size());
    const auto shares = [&](const runtime::Grid& grid, const auto& partial) {
        queue.launch(dot_kernel<T>(), grid, x, y, partial, n);
    };
    detail::launch_shares(queue, "dot", n, total, workspace, shares, sum_kernel<float>());
}
template <class T>
void norm2(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::BufferSlice<float>& total,
           const WorkspaceSlice& workspace) {
    const std::uint32_t n = u32_size("norm2", "x", x.size());
    const auto shares = [&](const runtime::Grid& grid, const auto& partial) {
        queue.launch(norm2_kernel<T>(), grid, x, partial, n);
    };
    detail::launch_shares(queue, "norm2", n, total, workspace, shares, sum_kernel<float>());
}
template <class T>
void argmax(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::BufferSlice<float>& value,
            const runtime::BufferSlice<std::uint32_t>& index, const WorkspaceSlice& workspace) {
    const std::uint32_t n = u32_size("argmax", "x", x.size());
    require_size("argmax", "value", value.size(), 1);
    require_size("argmax", "index", index.size(), 1);
    const runtime::Grid grid = reduction_grid(n);
    const std::uint32_t blocks = grid.blocks.x;
    if (blocks == 1) return queue.launch(argmax_kernel<T>(), grid, x, value, index, n);
    Workspace space(queue, "argmax", workspace, reduction_workspace(n));
    const auto values = space.take<float>(blocks);
    const auto indices = space.take<std::uint32_t>(blocks);
    queue.launch(argmax_kernel<T>(), grid, x, values, indices, n);
    queue.launch(argmax_final_kernel(), runtime::grid(1, threads), values, indices, value, index, blocks);
}

#define IKAT_INSTANTIATE(T)                                                                                    \
    template const DotKernel<T>& dot_kernel();                                                                 \
    template const SquaresKernel<T>& norm2_kernel();                                                           \
    template const ArgmaxKernel<T>& argmax_kernel();                                                           \
    template void dot(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::Buffer<T>&,             \
                      const runtime::BufferSlice<float>&, const WorkspaceSlice&);                              \
    template void norm2(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::BufferSlice<float>&,  \
                        const WorkspaceSlice&);                                                                \
    template void argmax(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::BufferSlice<float>&, \
                         const runtime::BufferSlice<std::uint32_t>&, const WorkspaceSlice&);
IKAT_INSTANTIATE(float)
IKAT_INSTANTIATE(half)
IKAT_INSTANTIATE(bfloat16)
#undef IKAT_INSTANTIATE

namespace {

constexpr std::string_view sum_document =
    "partial[b] is the sum over the elements that block b visits, in f32; with one block, which is the default,\n"
    "partial[0] is that over all n. The same in every run. Blocks are a multiple of 32 threads.";
constexpr std::string_view argmax_document =
    "value[b] and index[b] are the largest element that block b visits and where it is, of equal ones the first; with\n"
    "one block, which is the default, of all n. NaNs are passed over; without any number, -infinity and 2^32 - 1.";

runtime::Grid one_block(Arguments, std::uint32_t block) { return {{1}, {block ? block : threads}}; }

constexpr Entry entries[] = {
    IKAT_ENTRIES("dot", "the sum of x[i] y[i], in f32", sum_document, dot_kernel, (), one_block(a, block)),
    IKAT_ENTRIES("norm2", "the sum of squares, in f32", sum_document, norm2_kernel, (), one_block(a, block)),
    IKAT_ENTRIES("argmax", "the largest element and its index", argmax_document, argmax_kernel, (),
                 one_block(a, block)),
    IKAT_ENTRY("argmax_final", "the largest of the results of argmax", argmax_document, argmax_final_kernel(),
               one_block(a, block)),
};

}  // namespace

std::span<const Entry> dot_entries() { return entries; }

}  // namespace ikat::stdlib
