// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reduce/reduction.hpp"

#include <algorithm>

#include "stdlib/families.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/reduce/shares.hpp"
#include "stdlib/size.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;

/// The kernel of one element type and one way to combine.
template <class T>
ReductionKernel<T> make_reduction(const char* name, float neutral, auto combine) {
    return kernel(name, params("x", "partial", "n"),
                  [=](In<T> x, Out<float> partial, u32 n) {
                      require_linear_grid();
                      f32 total = neutral;
                      for_each_vec<T>(n, [&](auto width, const auto& i) {
                          for (const auto& v : load_lanes<width>(x, i)) total = combine(total, v);
                      });
                      total = block_reduce(total, neutral, combine);
                      if_(thread_id().x == 0, [&] { partial[block_id().x] = total; });
                  })
        .require(aligned<16>("x"))
        .launch_bounds(1024);
}

template <class T>
void reduce(const runtime::Queue& queue, const ReductionKernel<T>& shares, const ReductionKernel<float>& rest,
            const runtime::Buffer<T>& x, const runtime::BufferSlice<float>& total, const WorkspaceSlice& workspace) {
    const std::uint32_t n = u32_size(shares.name(), "x", x.size());
    const auto first = [&](const runtime::Grid& grid, const auto& partial) {
        queue.launch(shares, grid, x, partial, n);
    };
    detail::launch_shares(queue, shares.name(), n, total, workspace, first, rest);
}

}  // namespace

template <class T>
const ReductionKernel<T>& sum_kernel() {
    static const auto made = make_reduction<T>(name_of<T>("sum_f32", "sum_f16", "sum_bf16"), 0, plus);
    return made;
}
template <class T>
const ReductionKernel<T>& max_kernel() {
    static const auto made = make_reduction<T>(name_of<T>("max_f32", "max_f16", "max_bf16"), lowest<float>(), maximum);
    return made;
}

runtime::Grid reduction_grid(std::uint64_t n) {
    constexpr std::uint64_t per_block = 2048, most = 1024;
    const std::uint64_t blocks = std::clamp<std::uint64_t>((n + per_block - 1) / per_block, 1, most);
    return runtime::grid(blocks * threads, threads);
}

std::uint64_t reduction_workspace(std::uint64_t n) {
    return 2 * Workspace::rounded(reduction_grid(n).blocks.x * sizeof(float));  // argmax has values and indices
}

template <class T>
void sum(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::BufferSlice<float>& total,
         const WorkspaceSlice& workspace) {
    reduce(queue, sum_kernel<T>(), sum_kernel<float>(), x, total, workspace);
}
template <class T>
void max(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::BufferSlice<float>& total,
         const WorkspaceSlice& workspace) {
    reduce(queue, max_kernel<T>(), max_kernel<float>(), x, total, workspace);
}

#define IKAT_INSTANTIATE(T)                                                                                 \
    template const ReductionKernel<T>& sum_kernel();                                                        \
    template const ReductionKernel<T>& max_kernel();                                                        \
    template void sum(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::BufferSlice<float>&, \
                      const WorkspaceSlice&);                                                               \
    template void max(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::BufferSlice<float>&, \
                      const WorkspaceSlice&);
IKAT_INSTANTIATE(float)
IKAT_INSTANTIATE(half)
IKAT_INSTANTIATE(bfloat16)
#undef IKAT_INSTANTIATE

namespace {

constexpr std::string_view document =
    "partial[b] is the result over the elements that block b visits, in f32; with one block, which is the default,\n"
    "partial[0] is the result over x[n]. The same in every run. Blocks have one dimension, a multiple of 32.\n"
    "x begins at a multiple of 16 bytes.";

/// A run is one launch: one block of it gives the whole result, in partial[0].
runtime::Grid one_block(Arguments, std::uint32_t block) { return {{1}, {block ? block : threads}}; }

#define IKAT_REDUCTIONS(type, T)                                                                  \
    IKAT_ENTRY("sum_" type, "the sum of an array of " type ", in f32", document, sum_kernel<T>(), \
               one_block(a, block)),                                                              \
        IKAT_ENTRY("max_" type, "the maximum of an array of " type, document, max_kernel<T>(), one_block(a, block))
constexpr Entry entries[] = {
    IKAT_REDUCTIONS("f32", float),
    IKAT_REDUCTIONS("f16", half),
    IKAT_REDUCTIONS("bf16", bfloat16),
};

}  // namespace

std::span<const Entry> reduction_entries() { return entries; }

}  // namespace ikat::stdlib
