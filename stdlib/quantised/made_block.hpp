// SPDX-License-Identifier: Apache-2.0
// How eight lanes make a block of 32 numbers, each from four neighbours. The arithmetic is that of quantise.cpp,
// operation for operation, so that the bytes are the same.
#pragma once
#include <array>

#include "dsl/values/bits.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib::blocks {

/// What eight lanes make of a block: its first bytes, `head`, which all of them have, and then four bytes of each lane;
/// of formats of four bits only those of the first four lanes count.
struct Made {
    Leaf<std::uint32_t> head, word;
};
/// The numbers of a lane.
using FourNumbers = std::array<Leaf<float>, 4>;

/// The bits of infinity.
inline constexpr std::uint32_t infinity = 0x7f800000;

/// The largest of the absolute values of a block, as bits: any that is not finite is the largest.
inline Leaf<std::uint32_t> largest_bits(const FourNumbers& x) {
    Leaf<std::uint32_t> out = value(u32(0u));
    for (const Leaf<float>& each : x) out = value(max(out, bit_cast<u32>(each) & 0x7fffffffu));
    return value(warp_reduce<8>(out, maximum));
}
/// 1 / d, or 0 for 0.
inline Leaf<float> inverse_of(const Leaf<float>& d) { return value(select(d == 0.0f, 0.0f, 1.0f / d)); }
/// Bytes 0 ... 3 of a word.
Leaf<std::uint32_t> word_of(auto&& byte) {
    u32 out = 0;
    for (std::uint32_t k = 0; k < 4; ++k) out |= value(byte(k)) << (8 * k);
    return value(out);
}
/// f16 of a scale: NaN where something is not finite.
inline Leaf<std::uint32_t> scale_bits(const Leaf<float>& d, const Leaf<bool>& is_finite) {
    return value(select(is_finite, bit_cast<u32>(pack<f16x2>(d, f32(0.0f))), 0x7e00u));
}

/// A block of Q8_0: the lanes' words are its bytes.
inline Made made_q8_0(const FourNumbers& x) {
    const Leaf<std::uint32_t> largest = largest_bits(x);
    const auto is_finite = value(largest < infinity);
    const Leaf<float> d = value(bit_cast<f32>(largest) / 127.0f), inverse = inverse_of(d);
    const auto byte = [&](std::uint32_t k) {
        const Leaf<float> scaled = value(x[k] * inverse), kept = value(select(abs(scaled) < 0x1p31f, scaled, 0.0f));
        const auto towards_0 = value(cast<i32>(kept));
        const Leaf<float> rest = value(kept - cast<f32>(towards_0));  // exact; halves go away from 0
        const auto q = value(towards_0 + select(rest >= 0.5f, 1, select(rest <= -0.5f, -1, 0)));
        return value(select(is_finite, cast<u32>(q) & 255u, 0u));
    };
    return {scale_bits(d, is_finite), word_of(byte)};
}

}  // namespace ikat::stdlib::blocks
