// SPDX-License-Identifier: Apache-2.0
// The formats whose q refer to 16 numbers at unequal distances, closer around 0.
#include <array>

#include "stdlib/quantised/fit.hpp"

namespace ikat::stdlib::stored {
namespace {

constexpr float lowest = iq4_numbers.front(), highest = iq4_numbers.back();

/// The place of the nearest number, the upper of two.
int place_of(float x) {
    if (x <= lowest) return 0;
    if (!(x < highest)) return int(iq4_numbers.size()) - 1;
    const auto above = std::ranges::upper_bound(iq4_numbers, x, {}, [](int number) { return float(number); });
    const auto place = int(above - iq4_numbers.begin());
    return x - float(above[-1]) < float(*above) - x ? place - 1 : place;
}

/// The best scale for the numbers nearest to x * inverse, with errors weighted by x².
struct Fit {
    float xq = 0, qq = 0;
    Fit(std::span<const float> x, float inverse) {
        for (const float each : x) {
            const auto number = float(iq4_numbers[std::size_t(place_of(inverse * each))]);
            xq += each * each * number * each;
            qq += each * each * number * number;
        }
    }
    float scale() const { return xq / qq; }
};

/// The scale of 32 numbers, from those with which the number farthest from 0 becomes -127 - 7 ... -127 + 7.
float best_scale(std::span<const float> x) {
    const float extreme = farthest(x);
    if (std::abs(extreme) < smallest_part) return 0;
    const Fit first(x, 1 / (-extreme / lowest));
    float scale = first.scale(), best = scale * first.xq;
    for (int i = -7; i <= 7; ++i) {
        const Fit fit(x, (float(i) + lowest) / extreme);
        if (!(fit.qq > 0 && fit.xq * fit.xq > best * fit.qq)) continue;
        scale = fit.scale();
        best = scale * fit.xq;
    }
    return scale;
}

}  // namespace

void fit(std::span<const float> x, IQ4_NL& block) {
    const float extreme = farthest(x);
    if (std::abs(extreme) < smallest_part) return;
    const float inverse = 1 / (extreme / lowest);
    block.d = half(Fit(x, inverse).scale());
    for (std::uint32_t i = 0; i < x.size(); ++i) block.set(i, place_of(inverse * x[i]));
}

void fit(std::span<const float> x, IQ4_XS& block) {
    std::array<float, 8> scales;
    for (std::size_t part = 0; part < 8; ++part) scales[part] = best_scale(x.subspan(part * 32, 32));
    const float d = -farthest(scales) / 32, inverse = inverse_of(d);
    block.d = half(d);
    for (std::uint32_t part = 0; part < 8; ++part) {
        const int scale = nearest(inverse * scales[part], -32, 31);
        block.scales.set(part, scale);
        const float inverse_of_part = inverse_of(d * float(scale));
        for (std::uint32_t i = part * 32; i < (part + 1) * 32; ++i) block.set(i, place_of(inverse_of_part * x[i]));
    }
}

}  // namespace ikat::stdlib::stored
