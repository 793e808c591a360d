// SPDX-License-Identifier: Apache-2.0
// What kernels of elements are made of: a function of f32 for each element of some arrays, stored in another.
//
//     kernel("relu", params("x", "y", "n"), [](In<T> x, Out<T> y, u32 n) { map<T>(y, n, relu_of, x); });
#pragma once
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"
#include "stdlib/tile/row_places.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {

/// Of a block.
inline constexpr std::uint32_t elementwise_threads = 256;

/// y[i] = f(x[i], ...) for i < n, where f takes one f32 per array x. E is the widest element type.
template <class E>
void map(const auto& y, const u32& n, auto&& f, const auto&... x) {
    require_linear_grid();
    for_each_vec<E>(n, [&]<int N>(Width<N>, const auto& i) {
        const auto apply = [&](const auto&... lanes) { return each_lane(f, lanes...); };
        store_lanes(y, i, std::apply(apply, std::tuple{load_lanes<N>(x, i)...}));
    });
}

/// The same for the elements of rows at pitches.
template <class E>
void map(const RowPlaces& places, const auto& y, auto&& f, const auto&... x) {
    require_linear_grid();
    for_each_of_rows<E>(places, [&]<int N>(Width<N>, const auto& at, const auto&, const auto&) {
        const auto loaded = [&]<std::size_t... n>(std::index_sequence<n...>) {
            return std::tuple{load_lanes<N>(x, at[n])...};
        };
        const auto apply = [&](const auto&... lanes) { return each_lane(f, lanes...); };
        store_lanes(y, at[RowPlaces::Y], std::apply(apply, loaded(std::index_sequence_for<decltype(x)...>())));
    });
}

/// The contract of such a kernel, and its bounds.
template <class K>
K finished(K&& made) {
    return std::move(made).require(aligned<16>(0), aligned<16>(1)).launch_bounds(elementwise_threads);
}

/// One whose first two arrays have n elements.
template <class K>
K of_n(K&& made) {
    return finished(std::move(made)).require(at_least(0, "n"), at_least(1, "n"));
}

/// The recipe of an enumerator of a table of such kernels. Throws Error for a number that is none.
const Recipe& recipe_of(const Queue& queue, auto what) {
    const std::span<const Recipe> all = recipes(what);
    SizeCheck{"elementwise", queue.where()}.enumerator("what", std::size_t(what), all.size());
    return all[std::size_t(what)];
}

}  // namespace ikat::stdlib
