// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reduction/dot.hpp"

#include "dsl/threads/grids.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/reduction/shares.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/row_places.hpp"

namespace ikat::stdlib {
namespace {

/// The sum over the block of a[i] * b[i], vector by vector, stored by its first thread.
template <class T>
void store_sum(const Elements& elements, const Out<float>& partial, auto&& factors) {
    require_linear_grid();
    f32 sum = 0;
    elements.each<T>([&]<int N>(Width<N> width, const auto& at, const auto&) {
        const auto [a, b] = factors(width, at);
        auto term = value(a[0] * b[0]);
        for (std::size_t k = 1; k < N; ++k) term = value(fma(a[k], b[k], term));
        sum += term;
    });
    launch_next();
    sum = block_sum(sum);
    if_(thread_id().x == 0, [&] { partial[block_id().x] = sum; });
}
template <class T>
void store_dot(const Elements& elements, const In<T>& x, const In<T>& y, const Out<float>& partial) {
    store_sum<T>(elements, partial, [&]<int N>(Width<N>, const auto& at) {
        return std::pair{load_lanes<N>(x, at[RowPlaces::X]), load_lanes<N>(y, at[RowPlaces::Second])};
    });
}
template <class T>
void store_squares(const Elements& elements, const In<T>& x, const Out<float>& partial) {
    store_sum<T>(elements, partial, [&]<int N>(Width<N>, const auto& at) {
        const auto a = load_lanes<N>(x, at[RowPlaces::X]);
        return std::pair{a, a};
    });
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

/// `index_of(number)` is the index of an element.
template <class T>
void store_argmax(const Elements& elements, const In<T>& x, const Out<float>& best_value,
                  const Out<std::uint32_t>& best_index, auto&& index_of) {
    Best best;
    elements.each<T>([&]<int N>(Width<N>, const auto& at, const auto& i) {
        const auto lanes = load_lanes<N>(x, at[RowPlaces::X]);
        for (std::size_t k = 0; k < N; ++k) best.consider(lanes[k], index_of(value(i * unsigned(N) + unsigned(k))));
    });
    launch_next();
    store_best(best, best_value, best_index);
}
constexpr auto itself = [](const auto& number) { return number; };

// For rows at pitches.
template <class T>
void dot_of(const RowPlaces& places, const In<T>& x, const In<T>& y, const Out<float>& partial) {
    store_dot(Elements(places), x, y, partial);
}
template <class T>
void squares_of(const RowPlaces& places, const In<T>& x, const Out<float>& partial) {
    store_squares(Elements(places), x, partial);
}
template <class T>
void argmax_of(const RowPlaces& places, const In<T>& x, const Out<float>& value, const Out<std::uint32_t>& index) {
    require_linear_grid();
    store_argmax(Elements(places), x, value, index, itself);
}
/// Of elements after that many others.
template <class T>
void argmax_of_part(const RowPlaces& places, const In<T>& x, const Out<float>& best_value,
                    const Out<std::uint32_t>& best_index, const u32& before) {
    require_linear_grid();
    store_argmax(Elements(places), x, best_value, best_index,
                 [&](const auto& number) { return value(before + number); });
}

}  // namespace

template <class T>
const DotKernel<T>& dot_kernel() {
    static const auto made =
        kernel(name_of<T>("dot"), params("x", "y", "partial", "n"),
               [](In<T> x, In<T> y, Out<float> partial, u32 n) { store_dot(Elements(n), x, y, partial); })
            .require(aligned<16>("x"), aligned<16>("y"), at_least("x", "n"), at_least("y", "n"))
            .launch_bounds(1024);
    return made;
}
template <class T>
const SquaresKernel<T>& norm2_kernel() {
    static const auto made = kernel(name_of<T>("norm2"), params("x", "partial", "n"),
                                    [](In<T> x, Out<float> partial, u32 n) { store_squares(Elements(n), x, partial); })
                                 .require(aligned<16>("x"), at_least("x", "n"))
                                 .launch_bounds(1024);
    return made;
}
template <class T>
const ArgmaxKernel<T>& argmax_kernel() {
    static const auto made = kernel(name_of<T>("argmax"), params("x", "value", "index", "n"),
                                    [](In<T> x, Out<float> value, Out<std::uint32_t> index, u32 n) {
                                        store_argmax(Elements(n), x, value, index, itself);
                                    })
                                 .require(aligned<16>("x"), at_least("x", "n"))
                                 .launch_bounds(1024);
    return made;
}
const ArgmaxFinalKernel& argmax_final_kernel() {
    static const auto made = kernel("argmax_final", params("values", "indices", "value", "index", "n"),
                                    [](In<float> values, In<std::uint32_t> indices, Out<float> best_value,
                                       Out<std::uint32_t> best_index, u32 n) {
                                        grid_wait();
                                        Best best;
                                        for (auto i : grid_stride(n))
                                            best.consider(value(values[i]), value(indices[i]));
                                        store_best(best, best_value, best_index);
                                    })
                                 .require(at_least("values", "n"), at_least("indices", "n"))
                                 .launch_bounds(1024);
    return made;
}

void dot(const Queue& queue, const TensorView& x, const TensorView& y, const MutableTensorView& total,
         const WorkspaceSlice& workspace) {
    run_rows({queue, dot_recipe, {x, y, total}, workspace}, {});
}
void norm2(const Queue& queue, const TensorView& x, const MutableTensorView& total, const WorkspaceSlice& workspace) {
    run_rows({queue, norm2_recipe, {x, total}, workspace}, {});
}
void argmax(const Queue& queue, const TensorView& x, const MutableTensorView& value, const MutableTensorView& index,
            const WorkspaceSlice& workspace) {
    const ViewCall call(queue, argmax_recipe, {x, value, index}, workspace);
    std::uint64_t n = 1;
    for (std::size_t d = 0; d < x.rank; ++d) n *= x.extents[d];
    call.check().reached("x", n);
    run_rows(call, {});
}
float dot(const DeviceQueue& device, const TensorView& x, const TensorView& y) {
    return result<float>(device, [&](auto& total) { dot(device, x, y, total); });
}
float norm2(const DeviceQueue& device, const TensorView& x) {
    return result<float>(device, [&](auto& total) { norm2(device, x, total); });
}
std::uint32_t argmax(const DeviceQueue& device, const TensorView& x) {
    auto value = device.device().buffer<float>(1, "value");
    return result<std::uint32_t>(device, [&](auto& index) { argmax(device, x, value, index); });
}

static void argmax_steps(Steps& steps) {
    for (const char* result : {"value", "index"}) steps.check().at_least(result, steps.argument(result).elements(), 1);
    const std::uint32_t count = number_of_shares(steps);
    if (count == 1) return steps.launch(reduction_grid(steps.count()));
    const auto values = steps.take<float>(count);
    const auto indices = steps.take<std::uint32_t>(count);
    each_part(steps, [&](const Steps::Part& part, const Grid& grid, std::uint32_t before) {
        const std::uint32_t blocks = grid.blocks.x;
        steps.launch(part, grid, {{"value", values.slice(before, blocks)}, {"index", indices.slice(before, blocks)}});
    });
    steps.launch(argmax_final_kernel().handle(), {{1}, reduction_grid(1).threads},
                 {values, indices, steps.floats("value"), steps.words("index"), count});
}

// ---- the recipes

IKAT_INSTANTIATE(dot_kernel)
IKAT_INSTANTIATE(norm2_kernel)
IKAT_INSTANTIATE(argmax_kernel)

constexpr Recipe dot_recipe{.call = "dot(queue, x, y, total, workspace)",
                            .kernels = {{.summary = "the sum of x[i] y[i], in f32",
                                         .instances = IKAT_FLOATS(dot_kernel<T>()),
                                         .grid = one_block,
                                         .pitched = IKAT_PITCHED("dot", (dot_of<T>), 1024, 0, "x", "y", "partial")}},
                            .operands = {{"x", "..."}, {"y", "..."}, {"total", {}, Access::Out, ir::Type::F32}},
                            .document = reduction_document,
                            .sizes = {{"x", "n"}, {"y", "n"}},
                            .steps = sum_shares,
                            .workspace = workspace_of_n,
                            .reference = reference::dot,
                            .traffic = "2 E s",
                            .note = "the sum of products; as sum"};
constexpr Recipe norm2_recipe{.call = "norm2(queue, x, total, workspace)",
                              .kernels = {{.summary = "the sum of squares, in f32",
                                           .instances = IKAT_FLOATS(norm2_kernel<T>()),
                                           .grid = one_block,
                                           .pitched = IKAT_PITCHED("norm2", (squares_of<T>), 1024, 0, "x", "partial")}},
                              .operands = {{"x", "..."}, {"total", {}, Access::Out, ir::Type::F32}},
                              .document = reduction_document,
                              .sizes = {{"x", "n"}},
                              .steps = sum_shares,
                              .workspace = workspace_of_n,
                              .reference = reference::norm2,
                              .traffic = "E s",
                              .note = "the sum of squares; as sum"};
constexpr Recipe argmax_recipe{
    .call = "argmax(queue, x, value, index, workspace)",
    .kernels = {{.summary = "the largest element and its index",
                 .instances = IKAT_FLOATS(argmax_kernel<T>()),
                 .grid = one_block,
                 .pitched = IKAT_PITCHED("argmax", (argmax_of<T>), 1024, 0, "x", "value", "index"),
                 .parts = IKAT_PITCHED("argmax_part", (argmax_of_part<T>), 1024, 0, "x", "value", "index", "before")}},
    .operands = {{"x", "..."}, {"value", {}, Access::Out, ir::Type::F32}, {"index", {}, Access::Out, ir::Type::U32}},
    .document =
        "value[b] and index[b] are the largest element that block b visits and its index, the first of equal\n"
        "ones; with one block, the default, those of all n. NaNs are ignored; without any number, -infinity\n"
        "and 2^32 - 1.",
    .sizes = {{"x", "n"}, {"value", "1"}, {"index", "1"}},
    .steps = argmax_steps,
    .workspace = workspace_of_n,
    .reference = reference::argmax,
    .traffic = "E s",
    .note = "the largest element and its index, the first of equal ones"};
constexpr Recipe argmax_final_recipe{
    .kernels = {{"the largest of the results of argmax", IKAT_KERNEL(argmax_final_kernel()), one_block}},
    .document = argmax_recipe.document,
    .sizes = {{"values", "n"}, {"indices", "n"}, {"value", "1"}, {"index", "1"}},
    .reference = reference::argmax_final,
    .traffic = "8 s"};

}  // namespace ikat::stdlib
