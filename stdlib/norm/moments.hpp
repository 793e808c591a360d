// SPDX-License-Identifier: Apache-2.0
// The mean and the variance of a row in a kernel, without overflow: for the norms and their gradients.
#pragma once
#include <limits>

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

/// What normalises a row: y = (x * scale - mean) * factor.
struct Moments {
    f32 scale = 1, mean = 0, factor = 0;
};

/// The mean and 1 / sqrt(variance + epsilon); if not centred, 0 and 1 / sqrt(mean of the squares + epsilon). If squares
/// or sums overflow, all is computed again for x * 2^-100; what then underflows is negligible, since the largest
/// element is at least 2^48, or, of equal elements, multiplied with 0.
inline void find_moments(Moments& out, bool centred, const auto& row, const u32& columns, const f32& epsilon) {
    f32 variance;
    const auto from_mean = [&](const F& x) { return centred ? value(x - out.mean) : x; };
    const auto find_variance = [&](auto&& scaled) {
        variance = mean_of(row, columns, [&](const F& x) {
            const F v = from_mean(scaled(x));
            return v * v;
        });
    };
    const auto same = [](const F& x) { return x; };
    if (centred) out.mean = mean_of(row, columns, same);
    find_variance(same);
    if_(!(variance <= std::numeric_limits<float>::max()), [&] {
        const auto scaled = [](const F& x) { return value(x * 0x1p-100f); };
        out.scale = 0x1p-100f;
        if (centred) {
            out.mean = mean_of(row, columns, scaled);
            // Its rounding may be all that equal elements differ from it.
            out.mean += mean_of(row, columns, [&](const F& x) { return from_mean(scaled(x)); });
        }
        find_variance(scaled);
        if (centred) variance = select(variance == 0.0f, std::numeric_limits<float>::min(), variance);
    });
    out.factor = reciprocal_root(variance, epsilon * out.scale * out.scale);
}

}  // namespace ikat::stdlib::detail
