// SPDX-License-Identifier: Apache-2.0
// A matrix plus a bias for each column, and an activation.
#include <algorithm>
#include <string>
#include <vector>

#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/row_places.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t bias_threads = 256;
constexpr const char* activation_names[activation_count] = {"bias_activation_none", "bias_activation_relu",
                                                            "bias_activation_gelu", "bias_activation_gelu_tanh",
                                                            "bias_activation_silu"};

/// Goes over the matrix as one array: by vectors if rows are whole vectors, else by elements.
template <class T>
BiasActivationKernel<T> make_bias_activation(Activation activation) {
    return kernel(name_of<T>(activation_names[std::size_t(activation)]), params("x", "bias", "y", "rows", "columns"),
                  [=](In<T> x, In<T> bias, Out<T> y, u32 rows, u32 columns) {
                      require_linear_grid();
                      with_width<T>(columns, [&]<int N>(Width<N>) {
                          const auto length = value(columns / std::uint32_t(N));
                          for (auto i : grid_stride(rows * length)) {
                              const auto lanes = load_lanes<N>(x, i), more = load_lanes<N>(bias, i % length);
                              const auto apply = [&](const Leaf<float>& v, const Leaf<float>& b) {
                                  return activated<float>(activation, value(v + b));
                              };
                              store_lanes(y, i, each_lane(apply, lanes, more));
                          }
                      });
                  })
        .require(aligned<16>("x"), aligned<16>("bias"), aligned<16>("y"), at_least("bias", "columns"))
        .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"))
        .launch_bounds(bias_threads);
}

template <class T>
auto make_pitched_bias_activation(Activation activation) {
    return kernel(
               name_of<T>(activation_names[std::size_t(activation)] + std::string("_pitched")),
               params("x", "bias", "y", "rows", "columns", "pitches"),
               [=](In<T> x, In<T> bias, Out<T> y, u32 rows, u32 columns, Struct<RowPitches> pitches) {
                   require_linear_grid();
                   const RowPlaces places(rows, columns, pitches);
                   for_each_of_rows<T>(places, [&]<int N>(Width<N>, const auto& at, const auto& column, const auto&) {
                       const auto apply = [&](const Leaf<float>& v, const Leaf<float>& b) {
                           return activated<float>(activation, value(v + b));
                       };
                       store_lanes(y, at[RowPlaces::Y],
                                   each_lane(apply, load_lanes<N>(x, at[RowPlaces::X]), load_lanes<N>(bias, column)));
                   });
               })
        .launch_bounds(bias_threads);
}
template <class T>
const auto& pitched_bias_activation(Activation activation) {
    static const auto made = [] {
        std::vector<decltype(make_pitched_bias_activation<T>(activation))> out;
        for (std::size_t i = 0; i < std::size(activation_names); ++i)
            out.push_back(make_pitched_bias_activation<T>(Activation(i)));
        return out;
    }();
    return made[std::size_t(activation)];
}

Grid grid_of_matrix(const Call& call) {
    return elementwise_grid(call.count(), call.widest(), call.threads(bias_threads));
}

}  // namespace

template <class T>
const BiasActivationKernel<T>& bias_activation_kernel(Activation activation) {
    static const auto made = [] {
        std::vector<BiasActivationKernel<T>> out;
        for (std::size_t i = 0; i < std::size(activation_names); ++i)
            out.push_back(make_bias_activation<T>(Activation(i)));
        return out;
    }();
    SizeCheck{"bias_activation_kernel"}.enumerator("activation", std::size_t(activation), made.size());
    return made[std::size_t(activation)];
}

void bias_activation(const Queue& queue, Activation activation, const TensorView& x, const TensorView& bias,
                     const MutableTensorView& y) {
    run_rows({queue, bias_activation_recipe, {x, bias, y}}, {}, std::size_t(activation));
}

// ---- the recipe

IKAT_INSTANTIATE(bias_activation_kernel, Activation)

#define IKAT_BIAS(id)                                                                                \
    {                                                                                                \
        .summary = "y = " #id "(x + a bias for each column)",                                        \
        .instances = IKAT_FLOATS(bias_activation_kernel<T>(Activation::id)), .grid = grid_of_matrix, \
        .pitched = IKAT_FLOATS(pitched_bias_activation<T>(Activation::id))                           \
    }
constexpr Recipe bias_activation_recipe{
    .call = "bias_activation(queue, activation, x, bias, y)",
    .kernels = {IKAT_BIAS(none), IKAT_BIAS(relu), IKAT_BIAS(gelu), IKAT_BIAS(gelu_tanh), IKAT_BIAS(silu)},
    .operands = {{"x", "... columns"}, {"bias", "columns"}, {"y", "... columns", Access::Out}},
    .settings = {{"activation", "none, relu, gelu, gelu_tanh or silu; none if it is not set"}},
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
            constexpr std::string_view names[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
            const auto activation = Activation(settings.one_of("activation", names));
            bias_activation(queue, activation, arrays[0], arrays[1], arrays[2]);
        },
    .document =
        "y[row, column] = f(x[row, column] + bias[column]). x and y are row-major, rows x columns, with fewer\n"
        "than 2^32 elements; bias has `columns`. Computed in f32 and rounded once. The arrays begin at\n"
        "multiples of 16 bytes.",
    .sizes = {{"x", "rows columns"}, {"bias", "columns"}, {"y", "rows columns"}},
    .reference = reference::bias_activation,
    .magnitude = 4,
    .traffic = "2 E s",
    .note = "a matrix plus a bias for each column, then `none`, `relu`, `gelu`, `gelu_tanh` or `silu`"};

}  // namespace ikat::stdlib
