// SPDX-License-Identifier: Apache-2.0
// What quantisers of the host share. The order of each sum and product is GGML's, since the bits depend on it.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "stdlib/quantised/stored.hpp"

namespace ikat::stdlib::stored {

/// Parts below this count as zeros.
inline constexpr float smallest_part = 1e-15f;

/// To nearest, halves to even, for |x| < 2^22. Others, and NaN, give some integer of 23 bits.
inline int nearest(float x) { return int(std::bit_cast<std::uint32_t>(x + 0x1.8p23f) & 0x7f'ffff) - 0x40'0000; }
inline int nearest(float x, int lowest, int highest) { return std::clamp(nearest(x), lowest, highest); }

/// Towards 0; 0 where that is no int.
inline int whole(float x) { return std::abs(x) < 0x1p31f ? int(x) : 0; }

inline float inverse_of(float x) { return x != 0 ? 1 / x : 0; }

/// The number that is farthest from 0, the first of several.
inline float farthest(std::span<const float> x) {
    float out = 0;
    for (const float each : x)
        if (std::abs(each) > std::abs(out)) out = each;
    return out;
}

// Each writes a block for as many numbers as it has weights. The block is one of zeros before.
void fit(std::span<const float> x, Q4_0& block);
void fit(std::span<const float> x, Q4_1& block);
void fit(std::span<const float> x, Q5_0& block);
void fit(std::span<const float> x, Q5_1& block);
void fit(std::span<const float> x, Q8_0& block);
void fit(std::span<const float> x, Q2_K& block);
void fit(std::span<const float> x, Q3_K& block);
void fit(std::span<const float> x, Q4_K& block);
void fit(std::span<const float> x, Q5_K& block);
void fit(std::span<const float> x, Q6_K& block);
void fit(std::span<const float> x, IQ4_NL& block);
void fit(std::span<const float> x, IQ4_XS& block);
void fit(std::span<const float> x, MXFP4& block);

}  // namespace ikat::stdlib::stored
