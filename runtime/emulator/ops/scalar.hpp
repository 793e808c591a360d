// SPDX-License-Identifier: Apache-2.0
// Handlers that compute lane by lane, and how the video instructions are packed into an op.
#pragma once
#include "runtime/emulator/ops/handlers.hpp"

namespace ikat::emulator {

enum class Scalar : std::uint8_t {
    FindNthSet,            // d = fns a, b, c
    MaskWrapped,           // d = bmsk.wrap a, b
    Extended,              // d = szext a, b; x: the bits below
    ProductHighSaturated,  // d = saturated((a * b >> x) + c), of 24-bit operands if x is 16
    Packed,                // cvt.pack: a, b, c; x bits each, y: signed
    Video,                 // a, b, c; x: a Video, y: selectors of a, b and d, 3 bits each
    VideoParts,            // a, b, c; x: a Video, y: 4 x 3 bits for a, 4 x 3 for b, 4 of the mask
    ShortPair,             // a, b; x: a ShortPair, y: ShortSigned, ShortRelu
    Tf32,                  // d = a as tf32; x: a Tf32Rounding, y: ReluResult, FiniteResult
    ToMiniFloats,          // d = a above b, of f32; x: a MiniFloat, y: ReluResult
    FromMiniFloats,        // d = f16x2 of a; x: a MiniFloat, y: ReluResult
    ToScales,              // d = a above b as ue8m0, of f32 or, a alone, of bf16x2; x: the flags below
    FromScales,            // d = bf16x2 of a
    CoarseReciprocal,      // f64
    CoarseReciprocalRoot,  // f64
};
Behaviour select_scalar(Scalar scalar);
inline constexpr std::uint32_t ExtendSigned = 1, ExtendClamped = 2;

enum class ShortPair : std::uint32_t { Add, Min, Max };
inline constexpr std::uint32_t ShortSigned = 1, ShortRelu = 2;
enum class Tf32Rounding : std::uint32_t { Away, Even, Zero };

/// The floats of 4 and 6 bits: they have neither infinity nor NaN.
enum class MiniFloat : std::uint32_t { E2M1, E2M3, E3M2 };
inline constexpr std::uint32_t ScaleUp = 1, ScaleFinite = 2, ScaleOfPair = 4;

enum VideoComparison : std::uint32_t { VideoEq, VideoNe, VideoLt, VideoLe, VideoGt, VideoGe };

/// The operation of a video instruction, in 32 bits.
struct Video {
    enum Kind : std::uint32_t {
        Add,
        Subtract,
        Difference,
        Minimum,
        Maximum,
        Average,
        Compare,
        ShiftLeft,
        ShiftRight,
        MultiplyAdd,
    };
    enum Secondary : std::uint32_t { None, ThenAdd, ThenMinimum, ThenMaximum };
    Kind kind = Add;
    Secondary secondary = None;
    std::uint32_t comparison = VideoEq;
    int parts = 1, scale = 0;
    bool a_signed = false, b_signed = false, d_signed = false, saturates = false, wraps = false;
    bool negates_product = false, negates_addend = false, plus_one = false;

    std::uint32_t bits() const {
        const bool flags[] = {a_signed, b_signed,        d_signed,       saturates,
                              wraps,    negates_product, negates_addend, plus_one};
        std::uint32_t all = 0;
        for (unsigned i = 0; i < 8; ++i) all |= std::uint32_t(flags[i]) << i;
        return all | kind << 8 | secondary << 12 | comparison << 14 | std::uint32_t(parts) << 17 |
               std::uint32_t(scale) << 20;
    }
    static Video of(std::uint32_t bits) {
        const auto flag = [&](int i) { return (bits >> i & 1) != 0; };
        return {.kind = Kind(bits >> 8 & 15),
                .secondary = Secondary(bits >> 12 & 3),
                .comparison = bits >> 14 & 7,
                .parts = int(bits >> 17 & 7),
                .scale = int(bits >> 20 & 15),
                .a_signed = flag(0),
                .b_signed = flag(1),
                .d_signed = flag(2),
                .saturates = flag(3),
                .wraps = flag(4),
                .negates_product = flag(5),
                .negates_addend = flag(6),
                .plus_one = flag(7)};
    }
};

}  // namespace ikat::emulator
