// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reduction/reduction.hpp"

#include <algorithm>

#include "dsl/threads/grids.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/reduction/shares.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/row_places.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;

/// What a block makes of its share of the elements.
template <class T>
void reduce_share(const Elements& elements, const In<T>& x, const Out<float>& partial, float neutral, auto combine) {
    require_linear_grid();
    f32 total = neutral;
    elements.each<T>([&](auto width, const auto& at, const auto&) {
        for (const auto& v : load_lanes<width>(x, at[RowPlaces::X])) total = combine(total, v);
    });
    launch_next();
    total = block_reduce(total, neutral, combine);
    if_(thread_id().x == 0, [&] { partial[block_id().x] = total; });
}
template <class T>
void sum_of(const RowPlaces& places, const In<T>& x, const Out<float>& partial) {
    reduce_share(Elements(places), x, partial, 0, plus);
}
template <class T>
void max_of(const RowPlaces& places, const In<T>& x, const Out<float>& partial) {
    reduce_share(Elements(places), x, partial, lowest<float>(), maximum);
}

/// The kernel for an element type and an operation.
template <class T>
ReductionKernel<T> make_reduction(const char* name, float neutral, auto combine) {
    return kernel(name, params("x", "partial", "n"),
                  [=](In<T> x, Out<float> partial, u32 n) {
                      if (std::is_same_v<T, float>) grid_wait();  // x may be the shares of another launch
                      reduce_share(Elements(n), x, partial, neutral, combine);
                  })
        .require(aligned<16>("x"), at_least("x", "n"))
        .launch_bounds(1024);
}

void launch_shares(Steps& steps, const ReductionKernel<float>& of_shares) {
    steps.check().at_least("total", steps.argument("partial").elements(), 1);
    const std::uint32_t count = number_of_shares(steps);
    if (count == 1) return steps.launch(reduction_grid(steps.count()));
    const auto shares = steps.take<float>(count);
    each_part(steps, [&](const Steps::Part& part, const Grid& grid, std::uint32_t before) {
        steps.launch(part, grid, {{"partial", shares.slice(before, grid.blocks.x)}});
    });
    steps.launch(of_shares.handle(), {{1}, {threads}}, {shares, steps.floats("partial"), count});
}

}  // namespace

template <class T>
const ReductionKernel<T>& sum_kernel() {
    static const auto made = make_reduction<T>(name_of<T>("sum", "_f32"), 0, plus);
    return made;
}
template <class T>
const ReductionKernel<T>& max_kernel() {
    static const auto made = make_reduction<T>(name_of<T>("max", "_f32"), lowest<float>(), maximum);
    return made;
}

Grid reduction_grid(std::uint64_t n) {
    constexpr std::uint64_t per_block = 2048, max_blocks = 1024;
    const std::uint64_t blocks = std::clamp<std::uint64_t>((n + per_block - 1) / per_block, 1, max_blocks);
    return runtime::grid(blocks * threads, threads);
}

namespace {

/// Of one launch, of fewer than 2^32 elements.
std::uint64_t workspace_of_launch(std::uint64_t n) {
    return 2 * Workspace::rounded(reduction_grid(n).blocks.x * sizeof(float));  // argmax has values and indices
}
std::uint64_t workspace_of(const RowLayout& layout) {
    std::uint64_t out = 0;
    layout.each_launch(
        [&](const RowLayout& part) { out += workspace_of_launch(part.columns * part.number_of_rows()); });
    return out;
}

}  // namespace

std::uint64_t reduction_workspace(std::uint64_t n) {
    TensorView view;
    view.rank = 1, view.extents[0] = n, view.strides[0] = 1;
    return reduction_workspace(view);
}
std::uint64_t reduction_workspace(const TensorView& x) {
    return workspace_of(RowLayout({&x, nullptr, nullptr}, false));
}
std::uint64_t reduction_workspace(const TensorView& x, const TensorView& y) {
    return workspace_of(RowLayout({&x, &y, nullptr}, false));
}

void sum(const Queue& queue, const TensorView& x, const MutableTensorView& total, const WorkspaceSlice& workspace) {
    run_rows({queue, sum_recipe, {x, total}, workspace}, {});
}
void max(const Queue& queue, const TensorView& x, const MutableTensorView& total, const WorkspaceSlice& workspace) {
    run_rows({queue, max_recipe, {x, total}, workspace}, {});
}
float sum(const DeviceQueue& device, const TensorView& x) {
    return result<float>(device, [&](auto& total) { sum(device, x, total); });
}
float max(const DeviceQueue& device, const TensorView& x) {
    return result<float>(device, [&](auto& total) { max(device, x, total); });
}

// ---- the recipes

IKAT_INSTANTIATE(sum_kernel)
IKAT_INSTANTIATE(max_kernel)

void sum_shares(Steps& steps) { launch_shares(steps, sum_kernel<float>()); }

constexpr Recipe sum_recipe{
    .call = "sum(queue, x, total, workspace)",
    .kernels = {{.summary = "the sum of an array, in f32",
                 .instances = IKAT_FLOATS(sum_kernel<T>()),
                 .grid = one_block,
                 .pitched = IKAT_PITCHED("sum", (sum_of<T>), 1024, 0, "x", "partial")}},
    .operands = {{"x", "..."}, {"total", {}, Access::Out, ir::Type::F32}},
    .document = reduction_document,
    .sizes = {{"x", "n"}},
    .steps = sum_shares,
    .workspace = workspace_of_n,
    .reference = reference::sum,
    .traffic = "E s",
    .note = "of an array of any length; two launches, no atomics, the same result in every run"};
constexpr Recipe max_recipe{.call = "max(queue, x, total, workspace)",
                            .kernels = {{.summary = "the maximum of an array",
                                         .instances = IKAT_FLOATS(max_kernel<T>()),
                                         .grid = one_block,
                                         .pitched = IKAT_PITCHED("max", (max_of<T>), 1024, 0, "x", "partial")}},
                            .operands = sum_recipe.operands,
                            .document = reduction_document,
                            .sizes = {{"x", "n"}},
                            .steps = [](Steps& steps) { launch_shares(steps, max_kernel<float>()); },
                            .workspace = workspace_of_n,
                            .reference = reference::max,
                            .traffic = "E s",
                            .note = "likewise; NaNs are ignored"};

}  // namespace ikat::stdlib
