// SPDX-License-Identifier: Apache-2.0
// What the kernels of the norms do, for rows of any group of threads.
#pragma once
#include "dsl/kernel/optional.hpp"
#include "stdlib/norm/moments.hpp"
#include "stdlib/tile/shared_rows.hpp"

namespace ikat::stdlib::norm_rows {

using detail::F, detail::find_moments, detail::Moments;

/// Stores the mean and 1 / sqrt(variance + epsilon) of the group's row, if they are wanted.
template <class Group>
void store_statistics(const RowPlaces& places, const Moments& of, const Out<float>* statistics) {
    if (!statistics) return;
    const auto row = Group::row();
    if_((Group::thread() == 0u) & (row < places.rows), [&] {
        const auto at = places.starts<1>(row, 2u)[RowPlaces::Second];
        (*statistics)[at] = select(of.scale == 1.0f, of.mean, of.mean * 0x1p100f);
        (*statistics)[at + 1u] = of.factor * of.scale;
    });
}

template <class T, class Group>
void layernorm_row(const RowPlaces& places, const In<T>& x, const In<T>& gamma, const In<T>& beta,
                   const Out<float>* statistics, const Out<T>& y, const f32& epsilon) {
    with_row<Group, T, kept_vectors<T>>(x, places, [&](const auto& row) {
        Moments of;
        find_moments(of, true, row, places.columns, epsilon);
        store_statistics<Group>(places, of, statistics);
        const F scale = value(of.scale), mean = value(of.mean), factor = value(of.factor);
        row.map(
            y,
            [&](const F& x, const F& weight, const F& bias) {
                return fma(fma(x, scale, -mean) * factor, weight, bias);
            },
            gamma, beta);
    });
}

template <class T, class Group>
void layernorm_of(const RowPlaces& places, const In<T>& x, const In<T>& gamma, const In<T>& beta, const Out<T>& y,
                  const f32& epsilon) {
    layernorm_row<T, Group>(places, x, gamma, beta, nullptr, y, epsilon);
}

template <class T, class Group>
void layernorm_plain_of(const RowPlaces& places, const In<T>& x, const Out<T>& y, const f32& epsilon) {
    with_row<Group, T, kept_vectors<T>>(x, places, [&](const auto& row) {
        Moments of;
        find_moments(of, true, row, places.columns, epsilon);
        const F scale = value(of.scale), mean = value(of.mean), factor = value(of.factor);
        row.map(y, [&](const F& x) { return fma(x, scale, -mean) * factor; });
    });
}

/// y = the root-mean-square norm of a row.
template <class T, class Group>
void store_rmsnorm(const RowPlaces& places, const auto& row, const In<T>& gamma, const Out<float>* statistics,
                   const Out<T>& y, const f32& epsilon) {
    Moments of;
    find_moments(of, false, row, places.columns, epsilon);
    store_statistics<Group>(places, of, statistics);
    const F scale = value(of.scale), factor = value(of.factor);
    row.map(
        y, [&](const F& x, const F& weight) { return x * scale * factor * weight; }, gamma);
}
template <class T, class Group>
void rmsnorm_of(const RowPlaces& places, const In<T>& x, const In<T>& gamma, const Out<T>& y, const f32& epsilon) {
    with_row<Group, T, kept_vectors<T>>(
        x, places, [&](const auto& row) { store_rmsnorm<T, Group>(places, row, gamma, nullptr, y, epsilon); });
}
/// Without beta it is rmsnorm.
template <class T, class Group>
void saving_norm_of(const RowPlaces& places, const In<T>& x, const In<T>& gamma, const Optional<In<T>>& beta,
                    const Out<float>& statistics, const Out<T>& y, const f32& epsilon) {
    if (beta) return layernorm_row<T, Group>(places, x, gamma, *beta, &statistics, y, epsilon);
    with_row<Group, T, kept_vectors<T>>(
        x, places, [&](const auto& row) { store_rmsnorm<T, Group>(places, row, gamma, &statistics, y, epsilon); });
}
/// A row of x + total, rounded, which total becomes in the first pass, by each(). Others read total.
template <class Group, class E>
class SummedRow : public StreamedRow<Group, E, InOut<E>> {
    using Base = StreamedRow<Group, E, InOut<E>>;

public:
    SummedRow(const In<E>& x, const InOut<E>& total, const RowPlaces& places, const auto& row, const auto& active)
        : Base(total, places, row, active, RowPlaces::Second), x_(x), total_(total) {}

    /// As that of a StreamedRow.
    void each(auto&& body) const {
        if (is_summed_) return Base::each(body);
        is_summed_ = true;
        Base::walk([&]<int N>(Width<N>, const auto& at, const auto& column) {
            const auto& i = at[RowPlaces::Second];
            const Lanes<N> sums =
                value(cast<f32>(cast<E>(load_lanes<N>(x_, at[RowPlaces::X]) + load_lanes<N>(total_, i))));
            store_lanes(total_, i, sums);
            body(sums, column);
        });
    }

private:
    const In<E>& x_;
    const InOut<E>& total_;
    mutable bool is_summed_ = false;
};

template <class T, class Group>
void fused_residual_rmsnorm_of(const RowPlaces& places, const In<T>& x, const InOut<T>& residual, const In<T>& gamma,
                               const Out<T>& y, const f32& epsilon) {
    const auto norm = [&](const auto& row) { store_rmsnorm<T, Group>(places, row, gamma, nullptr, y, epsilon); };
    if constexpr (KeepsInShared<Group>) {
        with_sum_of_rows<Group, T, 0>(x, residual, places, norm);
    } else {
        stdlib::detail::choose_row<Group, T, kept_vectors<T>>(
            places,
            [&](const auto& row, const auto& active) {
                KeptRow<Group, T, kept_vectors<T>> sums(x, places, row, active);
                sums.add_to(residual);
                norm(sums);
            },
            [&](const auto& row, const auto& active) { norm(SummedRow<Group, T>(x, residual, places, row, active)); });
    }
}

}  // namespace ikat::stdlib::norm_rows
