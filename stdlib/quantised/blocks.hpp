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
#include "stdlib/quantised/stored.hpp"
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

/// Words of a block's integers, of which a stage may be asked for some only: a lane's, see TensorProductKernel.
template <int N, std::uint32_t alignment = 2>
auto integers(const auto& stage, const U& at, std::uint32_t skip = 0) {
    if constexpr (requires { stage.template integers<N, alignment>(at, skip); })
        return stage.template integers<N, alignment>(at, skip);
    else
        return stage.template words<N, alignment>(at, skip);
}

/// 32 neighbouring weights.
struct Unit {
    Words q;                   // four weights to a word, unsigned
    std::uint32_t offset = 0;  // at most 128
    F scale;
    std::optional<F> scale_of_second_half{};  // where it is another one
    std::optional<F> minimum{};
    std::optional<F> minimum_of_second_half{};
    bool is_signed = false;  // of with_signs(): q - offset in signed bytes

    /// The same for products with several rows of activations, each of which is cheaper then: the offset is subtracted
    /// here. It has no lanes().
    Unit with_signs() const {
        Unit out = *this;
        out.is_signed = true;
        if (offset == 128)
            out.q = eight([&](std::size_t k) { return q[k] ^ four(128); });
        else if (offset != 0)  // no byte borrows from the next
            out.q = eight([&](std::size_t k) { return ((q[k] | four(128)) - four(offset)) ^ four(128); });
        return out;
    }

    /// Weights 4 k ... 4 k + 3.
    Lanes<4> lanes(std::size_t k) const {
        const bool is_second = k >= 4;
        const F& factor = is_second && scale_of_second_half ? *scale_of_second_half : scale;
        const auto& less = is_second && minimum_of_second_half ? minimum_of_second_half : minimum;
        const auto weight = [&](std::uint32_t lane) {
            const F scaled = value(factor * byte_of(q[k], lane, offset));
            return less ? F(value(scaled - *less)) : scaled;
        };
        Lanes<4> out;
        for (std::uint32_t lane = 0; lane < 4; ++lane) out.set(lane, value(weight(lane)).recorded());
        return out;
    }

    /// The sum of weight times activation. Sums of integers are exact; scales and the minimum are applied to them in
    /// f32.
    F product(const Activations& u) const {
        const F scaled = scale_of_second_half
                             ? F(value(scale * whole_product(u, 0, 4) + *scale_of_second_half * whole_product(u, 4, 8)))
                             : F(value(scale * whole_product(u, 0, 8)));
        if (!minimum) return scaled;
        if (!minimum_of_second_half) return value(scaled - *minimum * cast<f32>(sum_of(u, 0, 8)));
        return value(scaled - *minimum * cast<f32>(sum_of(u, 0, 4)) -
                     *minimum_of_second_half * cast<f32>(sum_of(u, 4, 8)));
    }

private:
    /// The sum of (q - offset) u over words begin ... end - 1.
    F whole_product(const Activations& u, std::size_t begin, std::size_t end) const {
        i32 sum = 0;
        for (std::size_t k = begin; k < end; ++k)
            if (is_signed)
                sum = dp4a(cast<i32>(q[k]), u[k], sum);
            else
                sum = dp4a(q[k], u[k], sum);
        if (offset != 0 && !is_signed) sum -= sum_of(u, begin, end) * std::int32_t(offset);
        return value(cast<f32>(sum));
    }
    static Leaf<std::int32_t> sum_of(const Activations& u, std::size_t begin, std::size_t end) {
        i32 sum = 0;
        for (std::size_t k = begin; k < end; ++k) sum = dp4a(value(u32(four(1))), u[k], sum);
        return value(sum);
    }
};

/// 32 weights of four bits: the lower ones of 16 bytes, and then the upper ones.
inline Words two_rows(const std::array<U, 4>& q) {
    return eight([&](std::size_t k) { return (k < 4 ? q[k] : U(value(q[k - 4] >> 4))) & four(15); });
}

/// A block of 32 weights: d (q - 8).
struct Q4_0 {
    static constexpr std::uint32_t weights = 32, bytes = 18;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        const auto q = integers<4>(stage, value(at + 2u));
        return {.q = two_rows(q), .offset = 8, .scale = lower_half(stage.template words<1>(at)[0])};
    }
};

/// d and -m, f16 that follow each other: a weight is d q + m.
struct ScaleAndSum {
    F scale, minimum;
};
inline ScaleAndSum scale_and_sum(const auto& stage, const U& at) {
    const U word = stage.template words<1, 4>(at)[0];
    return {lower_half(word), value(-upper_half(word))};
}

/// A block of 32 weights: d q + m.
struct Q4_1 {
    static constexpr std::uint32_t weights = 32, bytes = 20;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        const auto [scale, minimum] = scale_and_sum(stage, at);
        return {.q = two_rows(integers<4, 4>(stage, at, 1)), .scale = scale, .minimum = minimum};
    }
};

/// Word number k of the fifth bits of 32 weights, which are the bits of a word: bit 4 of each byte.
inline U fifth_bits(const U& all, std::size_t k) {
    return value(((all >> std::uint32_t(4 * k) & 15u) * 0x00204081u & four(1)) << 4);
}
/// Weights of five bits: `words` are the fifth ones, and then the others.
inline Words five_bits(const std::array<U, 5>& words) {
    const Words low = two_rows({words[1], words[2], words[3], words[4]});
    return eight([&](std::size_t k) { return low[k] | fifth_bits(words[0], k); });
}

/// A block of 32 weights: d (q - 16).
struct Q5_0 {
    static constexpr std::uint32_t weights = 32, bytes = 22;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        return {.q = five_bits(integers<5>(stage, value(at + 2u))),
                .offset = 16,
                .scale = lower_half(stage.template words<1>(at)[0])};
    }
};

/// A block of 32 weights: d q + m, and q has a fifth bit.
struct Q5_1 {
    static constexpr std::uint32_t weights = 32, bytes = 24;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        const auto [scale, minimum] = scale_and_sum(stage, at);
        return {.q = five_bits(integers<5, 4>(stage, at, 1)), .scale = scale, .minimum = minimum};
    }
};

/// A block of 32 weights: d q.
struct Q8_0 {
    static constexpr std::uint32_t weights = 32, bytes = 34;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        const auto q = integers<8>(stage, value(at + 2u));
        return {.q = eight([&](std::size_t k) { return q[k] ^ four(128); }),  // signed bytes
                .offset = 128,
                .scale = lower_half(stage.template words<1>(at)[0])};
    }
};

/// A block of 256 weights: d scale q - dmin minimum, with a scale and a minimum for each 16.
struct Q2_K {
    static constexpr std::uint32_t weights = 256, bytes = 84;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U& n) {
        const U both = value(stage.template words<1>(value(at + n * 2u))[0]);  // scales, and minima in the upper bits
        const U head = stage.template words<1, 4>(at, 20)[0], scales = value(both & four(15));
        const U minima = value(both >> 4 & four(15));
        const auto q = integers<8, 4>(stage, value(at + n / 4u * 32u), 4);
        const F d = lower_half(head), dmin = upper_half(head);
        return {.q = eight([&](std::size_t k) { return q[k] >> (n % 4u * 2u) & four(3); }),
                .scale = value(d * byte_of(scales, 0u, 0)),
                .scale_of_second_half = value(d * byte_of(scales, 1u, 0)),
                .minimum = value(dmin * byte_of(minima, 0u, 0)),
                .minimum_of_second_half = value(dmin * byte_of(minima, 1u, 0))};
    }
};

/// A block of 256 weights: d scale (q - 4), with a scale for each 16.
struct Q3_K {
    static constexpr std::uint32_t weights = 256, bytes = 110;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U& n) {
        const auto third = integers<8>(stage, at);
        const auto low = integers<8>(stage, value(at + n / 4u * 32u), 8);
        // The lower four bits of eight scales, those of eight more above them, the upper two bits of all.
        const auto packed = stage.template words<3>(at, 24);
        const U word = value(n / 2u), lower = value(select(word % 2u == 0u, packed[0], packed[1]));
        const U scales = value((lower >> (word / 2u * 4u) & four(15)) | (packed[2] >> (word * 2u) & four(3)) << 4);
        const U first = value(n % 2u * 2u);
        const F d = lower_half(stage.template words<1>(at, 27)[0]);
        return {.q = eight([&](std::size_t k) {
                    return (low[k] >> (n % 4u * 2u) & four(3)) | (third[k] >> n & four(1)) << 2;
                }),
                .offset = 4,
                .scale = value(d * byte_of(scales, first, 32)),
                .scale_of_second_half = value(d * byte_of(scales, first + 1u, 32))};
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
        const auto q = integers<8, 16>(stage, value(at + n / 2u * 32u), 4);
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
        const auto fifth = integers<8, 16>(stage, at, 4);
        const auto q = integers<8, 16>(stage, value(at + n / 2u * 32u), 12);
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
        const auto low = integers<8>(stage, value(at + (n / 4u * 64u + n % 2u * 32u)));
        const auto high = integers<8>(stage, value(at + n / 4u * 32u), 32);
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

/// A table of 16 bytes, the first ones lowest.
using Table = std::array<std::uint32_t, 4>;
constexpr Table table_of(const std::array<std::int8_t, 16>& numbers, int offset) {
    Table out{};
    for (std::size_t i = 0; i < 16; ++i) out[i / 4] |= std::uint32_t(numbers[i] + offset) << (i % 4 * 8);
    return out;
}
/// The bytes for the four bits that are the lower half of `q`, in their order.
inline U looked_up(const Table& table, const U& q) {
    const U first = value(byte_permute(table[0], table[1], q & 0x7777u));  // if the highest of the four is 0
    const U second = value(byte_permute(table[2], table[3], q & 0x7777u));
    return value(byte_permute(first, second, (q & 0x8888u) >> 1 | 0x3210u));
}
/// As two_rows(), with the numbers of a table in place of each four bits.
inline Words two_rows(const std::array<U, 4>& q, const Table& table) {
    std::array<std::optional<U>, 8> out;
    for (std::size_t k = 0; k < 4; ++k) {
        const U lower = looked_up(table, q[k]), upper = looked_up(table, value(q[k] >> 16));
        out[k] = value(byte_permute(lower, upper, 0x6420u));
        out[k + 4] = value(byte_permute(lower, upper, 0x7531u));
    }
    return eight([&](std::size_t k) { return *out[k]; });
}

/// The numbers of IQ4_NL and IQ4_XS, and 128.
inline constexpr Table non_linear = table_of(stored::iq4_numbers, 128);

/// A block of 32 weights: d times the number that q stands for.
struct IQ4_NL {
    static constexpr std::uint32_t weights = 32, bytes = 18;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        return {.q = two_rows(integers<4>(stage, value(at + 2u)), non_linear),
                .offset = 128,
                .scale = lower_half(stage.template words<1>(at)[0])};
    }
};

/// A block of 256 weights: d scale times the number that q stands for, with a scale for each 32.
struct IQ4_XS {
    static constexpr std::uint32_t weights = 256, bytes = 136;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U& n) {
        const auto head = stage.template words<2, 4>(at);  // d, the upper two bits of the scales, and the lower four
        const U scale = value((head[1] >> (n * 4u) & 15u) | (head[0] >> (n * 2u + 16u) & 3u) << 4);
        return {.q = two_rows(integers<4, 4>(stage, value(at + n * 16u), 2), non_linear),
                .offset = 128,
                .scale = value(lower_half(head[0]) * byte_of(scale, 0u, 32))};
    }
};

/// Twice the numbers of e2m1, and 12.
inline constexpr Table doubled_e2m1 = table_of(stored::mxfp4_doubled, 12);

/// A block of 32 weights: numbers of e2m1 times a power of 2.
struct MXFP4 {
    static constexpr std::uint32_t weights = 32, bytes = 17;
    /// Weights 32 n ... 32 n + 31 of the block at byte `at` of a Stage.
    static Unit unit(const auto& stage, const U& at, const U&) {
        const U e = value(stage.template words<1>(at)[0] & 255u);  // 2^(e - 128)
        return {.q = two_rows(integers<4>(stage, value(at + 1u)), doubled_e2m1),
                .offset = 12,
                .scale = value(bit_cast<f32>(select(e < 2u, 0x00200000u << e, (e - 1u) << 23)))};
    }
};

}  // namespace ikat::stdlib::blocks
