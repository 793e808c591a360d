// SPDX-License-Identifier: Apache-2.0
// How a thread decodes 32 neighbouring weights of a quantised block, a unit. Each format of quantised.hpp is a struct
// with
//
//     weights, bytes               of a block
//     unit(stage, at, n)           weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage
//
// In every format a weight is (q - offset) scale - minimum. The steps are done in this order and each is rounded, so
// the bits are those of GGML. Unit holds these parts. It gives the weights in f32, or their product with 32 activations
// of 8 bits.
#pragma once
#include <optional>

#include "dsl/values/bits.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib::blocks {

/// Values in the kernel, and the bytes of 32 weights, four to a word.
using U = Leaf<std::uint32_t>;
using F = Leaf<float>;
using Words = std::array<U, 8>;
/// 32 activations, four signed bytes to a word.
using Activations = std::array<Leaf<std::int32_t>, 8>;

/// The same in each byte of a word.
constexpr std::uint32_t four(std::uint32_t byte) { return byte * 0x01010101u; }

/// What a function makes of 0 ... 7, each computed once.
template <class T = U>
std::array<T, 8> eight(auto&& word) {
    return [&]<std::size_t... k>(std::index_sequence<k...>) { return std::array<T, 8>{T(value(word(k)))...}; }
    (std::make_index_sequence<8>{});
}

/// Byte number k of a word, less `offset`. Exact: from 2^23 to 2^24, floats are the integers.
inline F byte_of(const U& word, const auto& k, std::uint32_t offset) {
    return value(bit_cast<f32>(byte_permute(word, 0x4b000000u, k | 0x7440u)) - (0x1p23f + float(offset)));
}
/// The f16 in the lower and the upper half of a word, in f32.
inline F lower_half(const U& word) { return value(cast<f32>(bit_cast<f16x2>(word)[0])); }
inline F upper_half(const U& word) { return value(cast<f32>(bit_cast<f16x2>(word)[1])); }

/// 32 neighbouring weights.
struct Unit {
    Words q;                   // four weights to a word, unsigned
    std::uint32_t offset = 0;  // at most 128
    F scale;
    std::optional<F> scale_of_second_half{};  // where it is another one
    std::optional<F> minimum{};

    /// Weights 4 k ... 4 k + 3.
    Lanes<4> lanes(std::size_t k) const {
        const F factor = k >= 4 && scale_of_second_half ? *scale_of_second_half : scale;
        const auto weight = [&](std::uint32_t lane) {
            const F scaled = value(factor * byte_of(q[k], lane, offset));
            return minimum ? F(value(scaled - *minimum)) : scaled;
        };
        Lanes<4> out;
        for (std::uint32_t lane = 0; lane < 4; ++lane) out.set(lane, value(weight(lane)).recorded());
        return out;
    }

    /// The sum of weight times activation. Sums of integers are exact; scales and the minimum are applied to them in
    /// f32.
    F product(const Activations& u) const {
        if (scale_of_second_half)
            return value(scale * whole_product(u, 0, 4) + *scale_of_second_half * whole_product(u, 4, 8));
        const F scaled = value(scale * whole_product(u, 0, 8));
        return minimum ? F(value(scaled - *minimum * cast<f32>(sum_of(u, 0, 8)))) : scaled;
    }

private:
    /// The sum of (q - offset) u over words begin ... end - 1.
    F whole_product(const Activations& u, std::size_t begin, std::size_t end) const {
        i32 sum = 0;
        for (std::size_t k = begin; k < end; ++k) sum = dp4a(q[k], u[k], sum);
        if (offset != 0) sum -= sum_of(u, begin, end) * std::int32_t(offset);
        return value(cast<f32>(sum));
    }
    static Leaf<std::int32_t> sum_of(const Activations& u, std::size_t begin, std::size_t end) {
        i32 sum = 0;
        for (std::size_t k = begin; k < end; ++k) sum = dp4a(value(u32(four(1))), u[k], sum);
        return value(sum);
    }
};

/// A block of 32 weights: d (q - 8).
struct Q4_0 {
    static constexpr std::uint32_t weights = 32, bytes = 18;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        const auto q = stage.template words<4>(value(at + 2u));
        return {.q = eight([&](std::size_t k) { return (k < 4 ? q[k] : U(value(q[k - 4] >> 4))) & four(15); }),
                .offset = 8,
                .scale = lower_half(stage.template words<1>(at)[0])};
    }
};

/// A block of 32 weights: d q.
struct Q8_0 {
    static constexpr std::uint32_t weights = 32, bytes = 34;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        const auto q = stage.template words<8>(value(at + 2u));
        return {.q = eight([&](std::size_t k) { return q[k] ^ four(128); }),  // signed bytes
                .offset = 128,
                .scale = lower_half(stage.template words<1>(at)[0])};
    }
};

/// d sc and dmin m of sub-block n of a Q4_K or Q5_K block.
struct Scales {
    F scale, minimum;
};
inline Scales scales_of(const auto& stage, const U& at, const U& n) {
    const auto head = stage.template words<4, 16>(at);  // d and dmin, 12 bytes of scales and minima
    const auto low = value(n < 4u);
    const U upper = value((head[3] & four(15)) | (head[1] >> 2 & four(48)));
    const U upper_minima = value((head[3] >> 4 & four(15)) | (head[2] >> 2 & four(48)));
    const U scales = value(select(low, head[1] & four(63), upper));
    const U minima = value(select(low, head[2] & four(63), upper_minima));
    return {value(lower_half(head[0]) * byte_of(scales, n % 4u, 0)),
            value(upper_half(head[0]) * byte_of(minima, n % 4u, 0))};
}

/// The lower or the upper four bits of each byte, by the number of the sub-block.
inline U four_bits(const U& word, const U& n) { return value(word >> (n % 2u * 4u) & four(15)); }

/// A block of 256 weights: d scale q - dmin minimum.
struct Q4_K {
    static constexpr std::uint32_t weights = 256, bytes = 144;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U& n) {
        const Scales scales = scales_of(stage, at, n);
        const auto q = stage.template words<8, 16>(value(at + n / 2u * 32u), 4);
        return {.q = eight([&](std::size_t k) { return four_bits(q[k], n); }),
                .scale = scales.scale,
                .minimum = scales.minimum};
    }
};

/// A block of 256 weights: d scale q - dmin minimum, and q has a fifth bit.
struct Q5_K {
    static constexpr std::uint32_t weights = 256, bytes = 176;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U& n) {
        const Scales scales = scales_of(stage, at, n);
        const auto fifth = stage.template words<8, 16>(at, 4);
        const auto q = stage.template words<8, 16>(value(at + n / 2u * 32u), 12);
        return {.q = eight([&](std::size_t k) { return four_bits(q[k], n) | (fifth[k] >> n & four(1)) << 4; }),
                .scale = scales.scale,
                .minimum = scales.minimum};
    }
};

/// A block of 256 weights: d scale (q - 32).
struct Q6_K {
    static constexpr std::uint32_t weights = 256, bytes = 210;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U& n) {
        const auto low = stage.template words<8>(value(at + (n / 4u * 64u + n % 2u * 32u)));
        const auto high = stage.template words<8>(value(at + n / 4u * 32u), 32);
        const U scales = value(stage.template words<1>(value(at + n * 2u), 48)[0] ^ four(128));  // signed bytes
        const F d = lower_half(stage.template words<1>(at, 52)[0]);
        return {.q = eight([&](std::size_t k) {
                    return (low[k] >> (n % 4u / 2u * 4u) & four(15)) | (high[k] >> (n % 4u * 2u) & four(3)) << 4;
                }),
                .offset = 32,
                .scale = value(d * byte_of(scales, 0u, 128)),
                .scale_of_second_half = value(d * byte_of(scales, 1u, 128))};
    }
};

}  // namespace ikat::stdlib::blocks
