// SPDX-License-Identifier: Apache-2.0
#include "stdlib/backward/swiglu_backward.hpp"

#include <algorithm>

#include "stdlib/backward/slopes.hpp"
#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/elementwise/map.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

using F = Leaf<float>;

/// The arrays of a launch; of one in place, what is read is what is written.
template <class Dy, class Read, class Written>
struct SwigluArrays {
    const Dy& dy;
    const Read &gate, &up;
    const Written &dgate, &dup;

    /// The gradients of a vector, by where it is in each array.
    template <int N>
    void store(const auto& at_dy, const auto& at_gate, const auto& at_up, const auto& at_dgate,
               const auto& at_dup) const {
        const auto g = load_lanes<N>(dy, at_dy), x = load_lanes<N>(gate, at_gate), u = load_lanes<N>(up, at_up);
        const auto of_gate = [](const F& dy, const F& x, const F& u) {
            return value(value(dy * u) * silu_and_slope(x).second);
        };
        const auto of_up = [](const F& dy, const F& x) { return value(dy * silu_and_slope(x).first); };
        store_lanes(dgate, at_dgate, each_lane(of_gate, g, x, u));
        store_lanes(dup, at_dup, each_lane(of_up, g, x));
    }
};

template <class T>
void store_packed(const auto& arrays, const u32& n) {
    require_linear_grid();
    for_each_vec<T>(n, [&]<int N>(Width<N>, const auto& i) { arrays.template store<N>(i, i, i, i, i); });
}

/// Of rows at pitches: dy, gate and dup are those of `places`, up and dgate are of `more`.
template <class T>
void store_rows(const auto& arrays, const RowPlaces& places, const RowPlaces& more) {
    require_linear_grid();
    for_each_of_rows<T>(places, [&]<int N>(Width<N>, const auto& at, const auto& column, const auto& number) {
        const auto length = value(places.columns / std::uint32_t(N));
        const auto also = more.further(more.starts<N>(value(number / length), length), column);
        arrays.template store<N>(at[RowPlaces::X], at[RowPlaces::Second], also[RowPlaces::X], also[RowPlaces::Second],
                                 at[RowPlaces::Y]);
    });
}
/// In place there are no more arrays: up is the one that is written last.
template <class T>
void in_place_of(const RowPlaces& places, const In<T>& dy, const InOut<T>& gate, const InOut<T>& up) {
    require_linear_grid();
    const SwigluArrays<In<T>, InOut<T>, InOut<T>> arrays{dy, gate, up, gate, up};
    for_each_of_rows<T>(places, [&]<int N>(Width<N>, const auto& at, const auto&, const auto&) {
        arrays.template store<N>(at[RowPlaces::X], at[RowPlaces::Second], at[RowPlaces::Y], at[RowPlaces::Second],
                                 at[RowPlaces::Y]);
    });
}

template <class T>
const auto& pitched_swiglu() {
    static const auto made =
        kernel(name_of<T>("swiglu_backward_pitched"),
               params("dy", "gate", "up", "dgate", "dup", "rows", "columns", "pitches", "more"),
               [](In<T> dy, In<T> gate, In<T> up, Out<T> dgate, Out<T> dup, u32 rows, u32 columns,
                  Struct<RowPitches> pitches, Struct<RowPitches> more) {
                   store_rows<T>(SwigluArrays<In<T>, In<T>, Out<T>>{dy, gate, up, dgate, dup},
                                 RowPlaces(rows, columns, pitches), RowPlaces(rows, columns, more));
               })
            .launch_bounds(elementwise_threads);
    return made;
}

bool is_same(const TensorView& a, const TensorView& b) {
    return a.type == b.type && a.part.bytes != 0 && b.part.bytes != 0 && a.part.address() == b.part.address() &&
           a.rank == b.rank && a.extents == b.extents && a.strides == b.strides;
}

Grid grid_of(const Call& call) {
    return elementwise_grid(call.count(), call.widest(), call.threads(elementwise_threads));
}

}  // namespace

template <class T>
const SwigluBackwardKernel<T>& swiglu_backward_kernel() {
    static const auto made =
        of_n(kernel(name_of<T>("swiglu_backward"), params("dy", "gate", "up", "dgate", "dup", "n"),
                    [](In<T> dy, In<T> gate, In<T> up, Out<T> dgate, Out<T> dup, u32 n) {
                        store_packed<T>(SwigluArrays<In<T>, In<T>, Out<T>>{dy, gate, up, dgate, dup}, n);
                    }))
            .require(aligned<16>(2), aligned<16>(3), aligned<16>(4))
            .require(at_least(2, "n"), at_least(3, "n"), at_least(4, "n"));
    return made;
}
template <class T>
const SwigluBackwardInPlaceKernel<T>& swiglu_backward_in_place_kernel() {
    static const auto made =
        of_n(kernel(name_of<T>("swiglu_backward_in_place"), params("dy", "gate", "up", "n"),
                    [](In<T> dy, InOut<T> gate, InOut<T> up, u32 n) {
                        store_packed<T>(SwigluArrays<In<T>, InOut<T>, InOut<T>>{dy, gate, up, gate, up}, n);
                    }))
            .require(aligned<16>(2), at_least(2, "n"));
    return made;
}

void swiglu_backward(const Queue& queue, const TensorView& dy, const TensorView& gate, const TensorView& up,
                     const MutableTensorView& dgate, const MutableTensorView& dup) {
    if (is_same(gate, dgate) && is_same(up, dup)) return swiglu_backward_in_place(queue, dy, dgate, dup);
    run_rows({queue, swiglu_backward_recipe, {dy, gate, up, dgate, dup}}, {});
}
void swiglu_backward_in_place(const Queue& queue, const TensorView& dy, const MutableTensorView& gate,
                              const MutableTensorView& up) {
    run_rows({queue, swiglu_backward_in_place_recipe, {dy, gate, up}}, {});
}

IKAT_INSTANTIATE(swiglu_backward_kernel)
IKAT_INSTANTIATE(swiglu_backward_in_place_kernel)

// ---- the recipes

constexpr Recipe swiglu_backward_recipe{
    .call = "swiglu_backward(queue, dy, gate, up, dgate, dup)",
    .kernels = {{.summary = "dgate = dy up silu'(gate), dup = dy silu(gate)",
                 .instances = IKAT_FLOATS(swiglu_backward_kernel<T>()),
                 .grid = grid_of,
                 .pitched = IKAT_FLOATS(pitched_swiglu<T>())}},
    .operands =
        {{"dy", "..."}, {"gate", "..."}, {"up", "..."}, {"dgate", "...", Access::Out}, {"dup", "...", Access::Out}},
    .document =
        "All arrays have at least n elements. Computed in f32 and rounded once. 16 bytes at a time; the arrays "
        "begin at\nmultiples of 16 bytes. Any n.",
    .sizes = {{"dy", "n"}, {"gate", "n"}, {"up", "n"}, {"dgate", "n"}, {"dup", "n"}},
    .reference = reference::swiglu_backward,
    .magnitude = 8,
    .traffic = "5 E s",
    .note = "the gradients of fused_swiglu"};
constexpr Recipe swiglu_backward_in_place_recipe{
    .call = "swiglu_backward_in_place(queue, dy, gate, up)",
    .kernels = {{.summary = "up = dy silu(gate), gate = dy up silu'(gate)",
                 .instances = IKAT_FLOATS(swiglu_backward_in_place_kernel<T>()),
                 .grid = grid_of,
                 .pitched = IKAT_PITCHED("swiglu_backward_in_place", (in_place_of<T>), elementwise_threads, 0, "dy",
                                         "gate", "up")}},
    .operands = {{"dy", "..."}, {"gate", "...", Access::InOut}, {"up", "...", Access::InOut}},
    .document = swiglu_backward_recipe.document,
    .sizes = swiglu_backward_recipe.sizes,
    .reference = reference::swiglu_backward,
    .magnitude = 8,
    .traffic = "5 E s",
    .note = "the same gradients in the place of gate and up"};

}  // namespace ikat::stdlib
