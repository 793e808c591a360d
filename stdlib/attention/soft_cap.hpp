// SPDX-License-Identifier: Apache-2.0
// Scores that are capped: cap * tanh(scale * product / cap). With E = exp(2 x), tanh x = 1 - 2 / (1 + E); where x is
// small, E is near 1, and its rounding becomes an error of cap * 2^-24 or some more. That is little for the caps of
// models, but not for one that is much larger than the scores:
//
//     narrow    cap <= 64: 5 operations, within cap * 2^-21
//     wide      any cap: 14 operations, by a polynomial where |x| < ln(2) / 2; within |score| * 2^-19
//
// Scores may then be so large that a rounding of their exponents of 2 is more than exponentials have: of a wide cap,
// scores become exponents before the largest is found, and the softmax subtracts them exactly.
//
// What a launch has for each is in score_numbers().
#pragma once
#include <numbers>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/tile/online_softmax.hpp"

namespace ikat::stdlib {

/// What finished scores are multiplied with for the exponents of 2, where there is a cap.
inline Leaf<float> exponent_of_capped(bool is_wide) {
    return value(f32(is_wide ? 1.0f : std::numbers::log2e_v<float>));
}

/// For factor = 2 log2(e) * scale / cap.
template <class Score>
Leaf<float> narrow_cap(const Score& product, const Leaf<float>& factor, const Leaf<float>& cap) {
    return value(fma(approx::rcp(exp2_or_zero(product * factor) + 1.0f), -2.0f * cap, cap));
}

/// For factor = scale. What overflows is capped, too.
template <class Score>
Leaf<float> wide_cap(const Score& product, const Leaf<float>& factor, const Leaf<float>& cap) {
    constexpr float twice_log2e = 2 * std::numbers::log2e_v<float>;
    const auto score = value(product * factor), exponent = value(score * value(twice_log2e / cap));
    // tanh(x) / x - 1 = z p(z) for z = exponent^2 <= 1, within 2^-22.
    const auto z = value(exponent * exponent);
    const auto p = value(fma(fma(z, -0x1.6d1cdep-14f, 0x1.f7a3f8p-10f), z, -0x1.47fcf8p-5f));
    const auto near_zero = value(fma(score * z, p, score));
    const auto tanh = value(fma(approx::rcp(exp2_or_zero(exponent) + 1.0f), -2.0f, 1.0f));
    return value(select(abs(exponent) < 1.0f, near_zero, tanh * cap));
}

}  // namespace ikat::stdlib
