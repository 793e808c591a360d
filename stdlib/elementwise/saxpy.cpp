// SPDX-License-Identifier: Apache-2.0
#include "stdlib/elementwise/saxpy.hpp"

#include "stdlib/spec/families.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/row_places.hpp"

namespace ikat::stdlib {
namespace {

void saxpy_of(const RowPlaces& places, const f32& a, const In<float>& x, const InOut<float>& y) {
    require_linear_grid();
    for_each_of_rows<float>(places, [&]<int N>(Width<N>, const auto& at, const auto&, const auto&) {
        const auto& i = at[RowPlaces::Y];
        const auto factor = value(a);
        const auto apply = [&](const auto& v, const auto& old) { return value(fma(factor, v, old)); };
        store_lanes(y, i, each_lane(apply, load_lanes<N>(x, at[RowPlaces::X]), load_lanes<N>(y, i)));
    });
}

}  // namespace

const Kernel<f32, In<float>, InOut<float>, u32>& saxpy() {
    static const auto made = kernel("saxpy", params("a", "x", "y", "n"), [](f32 a, In<float> x, InOut<float> y, u32 n) {
                                 require_linear_grid();
                                 u32 i = global_id().x;
                                 if_(i < n, [&] { y[i] = fma(a, x[i], y[i]); });
                             }).launch_bounds(256);
    return made;
}
// Without a contract about sizes, as other kernels have: with this one the pages show what the emulator finds.

runtime::Grid saxpy_grid(std::uint64_t n, std::uint32_t threads) { return runtime::grid(n, threads); }

void saxpy(const Queue& queue, float a, const TensorView& x, const MutableTensorView& y) {
    run_rows({queue, saxpy_recipe, {x, y}}, {a});
}

// ---- the recipe

constexpr Recipe saxpy_recipe{
    .call = "saxpy(queue, a, x, y)",
    .kernels = {{.summary = "y = a x + y",
                 .instances = IKAT_KERNEL(saxpy()),
                 .grid = [](const Call& call) { return saxpy_grid(call.count(), call.threads(256)); },
                 .pitched = IKAT_KERNEL(pitched_kernel<saxpy_of>("saxpy_pitched", 256, 0, "a", "x", "y"))}},
    .operands = {{"x", "...", Access::In, ir::Type::F32}, {"y", "...", Access::InOut, ir::Type::F32}},
    .settings = {{"a", "a number, by which x is multiplied"}},
    .document = "x and y have at least n elements. Each element is one fused multiply-add. One thread per element.",
    .sizes = {{"x", "n"}, {"y", "n"}},
    .reference = reference::saxpy,
    .traffic = "3 E s"};

}  // namespace ikat::stdlib
