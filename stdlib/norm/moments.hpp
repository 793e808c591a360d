// SPDX-License-Identifier: Apache-2.0
// The mean and the variance of a row in a kernel, without overflow: for the norms and their gradients.
#pragma once
#include <limits>
#include <type_traits>

#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib::detail {

using F = Leaf<float>;

inline F reciprocal_root(const auto& mean_of_squares, const auto& epsilon) {
    return value(rcp(sqrt(mean_of_squares + epsilon)));
}

F mean_of(const auto& row, const u32& columns, auto&& f) {
    f32 sum = 0;
    row.each([&](const auto& v, const auto&) {
        for (const auto& x : v) sum += f(x);
    });
    return value(row.group.sum(sum) / cast<f32>(columns));
}

/// The mean and the sum of the squares of the distances from it, of what a thread has had so far of a row. Numbers are
/// counted from the mean of the first vector, so that those of a small deviation around a large mean are exact.
/// Source: Chan, Golub, LeVeque, "Algorithms for Computing the Sample Variance", 1983.
struct RunningMoments {
    f32 count = 0, from = 0, mean = 0, squares = 0;

    /// Adds a vector; gives by how much the mean has changed.
    template <int N>
    F add(const Regs<f32, N>& v) {
        from = select(count == 0.0f, sum_of<0, N>(v) * (1.0f / N), from);
        Regs<f32, N> distance;
        for (std::size_t k = 0; k < N; ++k) distance[k] = v[k] - from;
        const F of_vector = value(sum_of<0, N>(distance) * (1.0f / N)), far = value(of_vector - mean);
        f32 distances = 0;
        for (std::size_t k = 0; k < N; ++k)
            distances = fma(distance[k] - of_vector, distance[k] - of_vector, distances);
        const F next = value(count + float(N)), change = value(far * (float(N) / next));
        squares += fma(far * count, change, distances);
        mean += change, count = next;
        return change;
    }
    /// Of an element from the mean so far.
    F distance(const F& x) const { return value((x - from) - mean); }
    /// Of all threads; `far` is how far this thread's mean is from that.
    struct All {
        F mean, far, squares;
    };
    All all(const auto& group, const u32& columns) const {
        const auto sum = [&](const auto& v) { return value(group.sum(f32(v))); };
        const F number = value(cast<f32>(columns)), near = value(sum((from + mean) * count) / number);
        // Its rounding may be all that equal elements differ from it.
        const F of_all = value(near + sum(((from - near) + mean) * count) / number);
        const F far = value((from - of_all) + mean);
        return {of_all, far, sum(fma(far * count, far, squares))};
    }

private:
    /// By halves: the sum of equal elements is exact.
    template <int from, int count>
    static F sum_of(const auto& v) {
        if constexpr (count == 1)
            return value(v[from]);
        else
            return value(sum_of<from, count / 2>(v) + sum_of<from + count / 2, count / 2>(v));
    }
};
/// f(x) of each element of a vector.
template <int N>
Regs<f32, N> each_of(const auto& v, auto&& f) {
    Regs<f32, N> out;
    for (std::size_t k = 0; k < N; ++k) out[k] = f(value(v[k]));
    return out;
}

/// If the variance or what it is made from overflows, all is found again by find() with a scale for the row; what then
/// underflows is negligible, since the largest element is at least 2^48. Of equal elements nothing but their sum
/// overflows: they need no scale.
void if_overflowed(const f32& variance, f32& mean, f32& scale, auto&& find) {
    if_(!(variance <= std::numeric_limits<float>::max()), [&] {
        scale = 0x1p-100f;
        find();
        mean = select(variance == 0.0f, mean * 0x1p100f, mean);
        scale = select(variance == 0.0f, 1.0f, scale);
    });
}

/// What normalises a row: y = (x * scale - mean) * factor.
struct Moments {
    f32 scale = 1, mean = 0, factor = 0;
};

/// The mean and 1 / sqrt(variance + epsilon); if not centred, 0 and 1 / sqrt(mean of the squares + epsilon). A row that
/// is not kept is read once for both.
inline void find_moments(Moments& out, bool centred, const auto& row, const u32& columns, const f32& epsilon) {
    f32 variance;
    const auto find_at_once = [&](auto&& scaled) {
        RunningMoments running;
        row.each([&](const auto& v, const auto&) {
            constexpr int N = std::remove_cvref_t<decltype(v)>::lane_shape::lanes;
            running.add<N>(each_of<N>(v, scaled));
        });
        const auto all = running.all(row.group, columns);
        out.mean = all.mean, variance = all.squares / cast<f32>(columns);
    };
    const auto find = [&](auto&& scaled, bool is_again) {
        if (centred && row.is_read_again) return find_at_once(scaled);
        const auto from_mean = [&](const F& x) { return centred ? value(scaled(x) - out.mean) : scaled(x); };
        if (centred) {
            out.mean = mean_of(row, columns, scaled);
            // Its rounding may be all that equal elements differ from it.
            if (is_again) out.mean += mean_of(row, columns, from_mean);
        }
        variance = mean_of(row, columns, [&](const F& x) {
            const F v = from_mean(x);
            return v * v;
        });
    };
    find([](const F& x) { return x; }, false);
    if_overflowed(variance, out.mean, out.scale, [&] { find([](const F& x) { return value(x * 0x1p-100f); }, true); });
    out.factor = reciprocal_root(variance, epsilon * out.scale * out.scale);
}

}  // namespace ikat::stdlib::detail
