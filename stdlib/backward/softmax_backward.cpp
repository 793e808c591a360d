// SPDX-License-Identifier: Apache-2.0
#include "stdlib/backward/softmax_backward.hpp"

#include "stdlib/backward/row_variant.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

using Block = BlockGroup<256>;
using Wide = BlockGroup<512>;
/// Wide blocks keep 32 elements of each row in a thread, in up to 128 registers, others 16.
template <class T, class Group>
constexpr int vectors_of = std::is_same_v<Group, Wide> ? kept_vectors<T> : kept_vectors_of_pair<T>;
template <class Group>
constexpr std::uint32_t blocks_of = std::is_same_v<Group, Wide> ? 1 : blocks_with_64_registers<Group>;
using F = Leaf<float>;

/// Of f(y, dy) over two rows.
auto sum_of_pairs(const auto& y, const auto& dy, auto&& f) {
    f32 sum = 0;
    y.each_with(dy, [&](const auto& v, const auto& w, const auto&) {
        const auto terms = each_lane(f, v, w);
        for (const auto& term : terms) sum += term;
    });
    return value(y.group.sum(sum));
}

template <class T, class Group>
void softmax_gradient_of(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx) {
    with_row_pair<Group, T, vectors_of<T, Group>>(y, dy, places, [&](const auto& y, const auto& dy) {
        const auto sum = sum_of_pairs(y, dy, [](const F& p, const F& g) { return p * g; });
        y.map_with(dy, dx, [&](const F& p, const F& g) { return p * (g - sum); });
    });
}
template <class T, class Group>
void log_softmax_gradient_of(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx) {
    with_row_pair<Group, T, vectors_of<T, Group>>(y, dy, places, [&](const auto& y, const auto& dy) {
        const auto sum = sum_of_pairs(y, dy, [](const F&, const F& g) { return g; });
        y.map_with(dy, dx, [&](const F& log_p, const F& g) { return g - exp(log_p) * sum; });
    });
}

template <class T>
using GradientBody = void(const RowPlaces& places, const In<T>& y, const In<T>& dy, const Out<T>& dx);

/// The kernel of a body, for rows that follow each other.
template <class T, class Group>
RowGradientKernel<T> make_packed(const char* name, GradientBody<T>* body) {
    return kernel(
               name_of<T>(name), params("y", "dy", "dx", "rows", "columns"),
               [=](In<T> y, In<T> dy, Out<T> dx, u32 rows, u32 columns) { body(RowPlaces(rows, columns), y, dy, dx); })
        .require(aligned<16>("y"), aligned<16>("dy"), aligned<16>("dx"))
        .require(at_least("y", "rows", "columns"), at_least("dy", "rows", "columns"), at_least("dx", "rows", "columns"))
        .launch_bounds(Group::block, blocks_of<Group>);
}

}  // namespace

template <class T>
const RowGradientKernel<T>& softmax_backward_warp() {
    static const auto made = make_packed<T, WarpGroup>("softmax_backward_warp", softmax_gradient_of<T, WarpGroup>);
    return made;
}
template <class T>
const RowGradientKernel<T>& softmax_backward_block() {
    static const auto made = make_packed<T, Block>("softmax_backward_block", softmax_gradient_of<T, Block>);
    return made;
}
template <class T>
const RowGradientKernel<T>& softmax_backward() {
    static const auto made = make_packed<T, Wide>("softmax_backward", softmax_gradient_of<T, Wide>);
    return made;
}
template <class T>
const RowGradientKernel<T>& log_softmax_backward_warp() {
    static const auto made =
        make_packed<T, WarpGroup>("log_softmax_backward_warp", log_softmax_gradient_of<T, WarpGroup>);
    return made;
}
template <class T>
const RowGradientKernel<T>& log_softmax_backward_block() {
    static const auto made = make_packed<T, Block>("log_softmax_backward_block", log_softmax_gradient_of<T, Block>);
    return made;
}
template <class T>
const RowGradientKernel<T>& log_softmax_backward() {
    static const auto made = make_packed<T, Wide>("log_softmax_backward", log_softmax_gradient_of<T, Wide>);
    return made;
}

void softmax_backward(const Queue& queue, const TensorView& y, const TensorView& dy, const MutableTensorView& dx) {
    run_rows({queue, softmax_backward_recipe, {y, dy, dx}}, {});
}
void log_softmax_backward(const Queue& queue, const TensorView& y, const TensorView& dy, const MutableTensorView& dx) {
    run_rows({queue, log_softmax_backward_recipe, {y, dy, dx}}, {});
}

IKAT_INSTANTIATE(softmax_backward_warp)
IKAT_INSTANTIATE(softmax_backward_block)
IKAT_INSTANTIATE(softmax_backward)
IKAT_INSTANTIATE(log_softmax_backward_warp)
IKAT_INSTANTIATE(log_softmax_backward_block)
IKAT_INSTANTIATE(log_softmax_backward)

/// y and dy are read twice, dx is written once; for the logarithm y is read once.
constexpr double passes_of_long_rows = 5.0 / 3, passes_of_logarithms = 4.0 / 3;
#define PITCHED(name, body, Group) IKAT_PITCHED(name, (body<T, Group>), Group::block, blocks_of<Group>, "y", "dy", "dx")

// ---- the recipes

constexpr Recipe softmax_backward_recipe{
    .call = "softmax_backward(queue, y, dy, dx)",
    .kernels = {row_variant("dx = y (dy - sum of y dy), a warp per row: for up to 512 columns",
                            IKAT_FLOATS(softmax_backward_warp<T>()),
                            PITCHED("softmax_backward_warp", softmax_gradient_of, WarpGroup), rows_to<WarpGroup>,
                            passes_of_long_rows, 512),
                row_variant("dx = y (dy - sum of y dy), a block per row: for up to 4096 columns",
                            IKAT_FLOATS(softmax_backward_block<T>()),
                            PITCHED("softmax_backward_block", softmax_gradient_of, Block), rows_to<Block>,
                            passes_of_long_rows, 4096),
                row_variant("dx = y (dy - sum of y dy), a block of 512 threads per row",
                            IKAT_FLOATS(softmax_backward<T>()), PITCHED("softmax_backward", softmax_gradient_of, Wide),
                            rows_to<Wide>, passes_of_long_rows)},
    .operands = {{"y", "... columns"}, {"dy", "... columns"}, {"dx", "... columns", Access::Out}},
    .document =
        "y, dy and dx are row-major, rows x columns, with fewer than 2^32 elements, and begin at multiples of\n"
        "16 bytes. Any sizes. y is what the function gave, dy its gradient. Each row by itself, computed in\n"
        "f32 and rounded once.",
    .sizes = {{"y", "rows columns"}, {"dy", "rows columns"}, {"dx", "rows columns"}},
    .reference = reference::softmax_backward,
    .traffic = "3 E s",
    .note = "the gradient of softmax from its result y; by the number of columns"};
constexpr Recipe log_softmax_backward_recipe{
    .call = "log_softmax_backward(queue, y, dy, dx)",
    .kernels = {row_variant("dx = dy - exp(y) sum of dy, a warp per row: for up to 512 columns",
                            IKAT_FLOATS(log_softmax_backward_warp<T>()),
                            PITCHED("log_softmax_backward_warp", log_softmax_gradient_of, WarpGroup),
                            rows_to<WarpGroup>, passes_of_logarithms, 512),
                row_variant("dx = dy - exp(y) sum of dy, a block per row: for up to 4096 columns",
                            IKAT_FLOATS(log_softmax_backward_block<T>()),
                            PITCHED("log_softmax_backward_block", log_softmax_gradient_of, Block), rows_to<Block>,
                            passes_of_logarithms, 4096),
                row_variant("dx = dy - exp(y) sum of dy, a block of 512 threads per row",
                            IKAT_FLOATS(log_softmax_backward<T>()),
                            PITCHED("log_softmax_backward", log_softmax_gradient_of, Wide), rows_to<Wide>,
                            passes_of_logarithms)},
    .operands = softmax_backward_recipe.operands,
    .document = softmax_backward_recipe.document,
    .sizes = softmax_backward_recipe.sizes,
    .reference = reference::log_softmax_backward,
    .traffic = "3 E s",
    .note = "the gradient of log_softmax from its result y; by the number of columns"};

}  // namespace ikat::stdlib
