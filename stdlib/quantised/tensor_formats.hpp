// SPDX-License-Identifier: Apache-2.0
// TensorUnits of each format, see tensor_units.hpp.
#pragma once
#include "stdlib/quantised/tensor_units.hpp"

namespace ikat::stdlib::blocks {

/// A stage, see blocks.hpp, that gives of 32 integers what a lane has: word q in place of the first four words, and
/// word q + 4 in place of the others.
struct LaneStage {
    const LaneRow& row;

    template <int N, std::uint32_t alignment = 2>
    std::array<U, N> words(const U& at, std::uint32_t skip = 0) const {
        const LaneRow from = row.after(at, alignment % 4 == 0);
        return [&]<std::size_t... k>(std::index_sequence<k...>) {
            return std::array<U, N>{from.word((skip + std::uint32_t(k)) * 4)...};
        }
        (std::make_index_sequence<N>{});
    }
    template <int N, std::uint32_t alignment = 2>
    std::array<U, N> integers(const U& at, std::uint32_t skip = 0) const {
        const LaneRow from = row.after(at, alignment % 4 == 0);
        const U none = value(u32(0u));
        const auto mine = [&](std::uint32_t k) { return from.mine(none, (skip + k) * 4); };
        if constexpr (N == 5) {  // a word of fifth bits, and four of the others
            const U bits = value(from.word(skip * 4) >> (row.q() * 4u)), all = mine(1);
            return {bits, all, all, all, all};
        } else if constexpr (N == 4) {
            const U all = mine(0);
            return {all, all, all, all};
        } else {
            const U low = mine(0), high = mine(4);
            return {low, low, low, low, high, high, high, high};
        }
    }
};

/// Units 2 stage and 2 stage + 1 of a slice, as Format::unit() decodes them.
template <class Format>
class DecodedUnits {
public:
    static constexpr bool is_grouped = false;
    struct Words {};

    static Words words(const LaneRow&, const U&) { return {}; }
    static ScaledUnit unit(const Words&, const LaneRow& row, const U& stage, std::uint32_t u) {
        const U n = value(stage * 2u + u);
        const U at = value(n / (Format::weights / 32) * Format::bytes);
        const Unit of = Format::unit(LaneStage{row}, at, value(n % (Format::weights / 32)));
        const auto pair = [&](std::uint32_t half, std::uint32_t h) {
            return integers_of_bytes(of.q[half * 4], h, of.offset);
        };
        return {{pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)}, {of.scale}};
    }
};

/// The sums of a slice's groups: none is asked for.
struct NoMinima {
    static constexpr std::uint32_t group_of_minima = 0;
};
/// Blocks of 32 weights that begin with d and m: d q + m.
template <class Format>
struct MinimaOfBlocks {
    static constexpr std::uint32_t group_of_minima = 32;
    static std::vector<H2> minima(const LaneRow& row) {
        const U block = value(row.q() * (Format::bytes / 2u));
        const U first = row.word(block, 0), second = row.word(block, Format::bytes);
        return {value(bit_cast<f16x2>(byte_permute(first, second, 0x7632u)))};
    }
    static F factor_of_minima(const LaneRow&) { return value(f32(-1.0f)); }
};

template <class Format>
struct TensorUnits;

template <>
struct TensorUnits<IQ4_NL> : DecodedUnits<IQ4_NL>, NoMinima {};
template <>
struct TensorUnits<IQ4_XS> : DecodedUnits<IQ4_XS>, NoMinima {};
template <>
struct TensorUnits<MXFP4> : DecodedUnits<MXFP4>, NoMinima {};

/// Blocks of 32 weights of four bits: the lower ones of a word are of the first half, and the upper ones of the second.
template <class Format, std::uint32_t header, std::uint32_t offset>
struct FourBitBlocks {
    static constexpr bool is_grouped = false;
    struct Words {};

    static Words words(const LaneRow&, const U&) { return {}; }
    static ScaledUnit unit(const Words&, const LaneRow& row, const U& stage, std::uint32_t u) {
        const U first = value(stage * (Format::bytes / 2u)), word = row.mine(first, Format::bytes * u + header);
        const auto pair = [&](std::uint32_t h, std::uint32_t mask, std::uint32_t bit) {
            return integers_of(fields(word, h, mask), bit, offset);
        };
        return {{pair(0, 0x0f, 0), pair(1, 0x0f, 0), pair(0, 0xf0, 4), pair(1, 0xf0, 4)},
                {row.real(first, Format::bytes * u)}};
    }
};
template <>
struct TensorUnits<Q4_0> : FourBitBlocks<Q4_0, 2, 8>, NoMinima {};
template <>
struct TensorUnits<Q4_1> : FourBitBlocks<Q4_1, 4, 0>, MinimaOfBlocks<Q4_1> {};

/// The same with fifth bits, which are those of a word.
template <class Format, std::uint32_t header, std::uint32_t offset>
struct FiveBitBlocks {
    static constexpr bool is_grouped = false;
    struct Words {};

    static Words words(const LaneRow&, const U&) { return {}; }
    static ScaledUnit unit(const Words&, const LaneRow& row, const U& stage, std::uint32_t u) {
        const U first = value(stage * (Format::bytes / 2u));
        const U word = row.mine(first, Format::bytes * u + header + 4);
        const U fifth = value(row.word(first, Format::bytes * u + header) >> (row.q() * 4u));
        const auto pair = [&](std::uint32_t half, std::uint32_t h) {
            // Bits h and h + 2 of four to bit 4 + 4 half of each half of a word.
            const U four_bits = value((half == 0 ? fifth : U(value(fifth >> 16))) & 15u);
            const U there = value(four_bits * ((0x00040010u >> h) << (4 * half)));
            const U bits = value(there & (0x00100010u << (4 * half)));
            return integers_of(value(fields(word, h, half == 0 ? 0x0f : 0xf0) | bits), 4 * half, offset);
        };
        return {{pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)}, {row.real(first, Format::bytes * u)}};
    }
};
template <>
struct TensorUnits<Q5_0> : FiveBitBlocks<Q5_0, 2, 16>, NoMinima {};
template <>
struct TensorUnits<Q5_1> : FiveBitBlocks<Q5_1, 4, 0>, MinimaOfBlocks<Q5_1> {};

template <>
struct TensorUnits<Q8_0> : NoMinima {
    static constexpr bool is_grouped = false;
    struct Words {};

    static Words words(const LaneRow&, const U&) { return {}; }
    static ScaledUnit unit(const Words&, const LaneRow& row, const U& stage, std::uint32_t u) {
        const U first = value(stage * 17u);
        const U low = value(row.mine(first, 34 * u + 2) ^ four(128));
        const U high = value(row.mine(first, 34 * u + 18) ^ four(128));
        return {{integers_of_bytes(low, 0, 128), integers_of_bytes(low, 1, 128), integers_of_bytes(high, 0, 128),
                 integers_of_bytes(high, 1, 128)},
                {row.real(first, 34 * u)}};
    }
};

/// Bits of the bytes of `word` moved to bit `to` from bit `from`, for pair h, in place of others' there.
inline U with_bits(const U& all, const U& word, std::uint32_t h, std::uint32_t from, std::uint32_t to,
                   std::uint32_t mask) {
    const std::uint32_t place = from + 8 * h;  // of the lower byte of the pair
    const U there = place <= to ? U(value(word << (to - place))) : U(value(word >> (place - to)));
    return value(all | (there & (mask << to) * 0x00010001u));
}

template <>
struct TensorUnits<Q6_K> : NoMinima {
    static constexpr bool is_grouped = false;
    struct Words {
        std::array<U, 2> high;
        U scales;  // bytes less 128
        F d;
    };

    static Words words(const LaneRow& row, const U& stage) {
        const U shift = value(stage % 2u * 4u), high = value(stage / 2u * 8u), none = value(u32(0u));
        return {{row.mine(high, 128, shift), row.mine(high, 144, shift)},
                value(row.word(stage, 192) ^ four(128)),
                row.real(none, 208)};
    }
    static ScaledUnit unit(const Words& words, const LaneRow& row, const U& stage, std::uint32_t u) {
        const U shift = value(stage % 2u * 4u), first = value(stage / 2u * 16u + u * 8u);
        const U low[2] = {row.mine(first, 0, shift), row.mine(first, 16, shift)};
        const auto pair = [&](std::uint32_t half, std::uint32_t h) {
            return integers_of(with_bits(fields(low[half], h, 0x0f), words.high[half], h, 2 * u, 4, 3), 0, 32);
        };
        const auto scale = [&](std::uint32_t half) {
            return F(value(words.d * byte_of(words.scales, 2 * u + half, 128)));
        };
        return {{pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)}, {scale(0), scale(1)}};
    }
};

/// Blocks of 256 weights that begin with d and dmin, and 12 bytes of scales and minima, each for 32.
struct GroupsOf32 {
    static constexpr bool is_grouped = true;
    static constexpr std::uint32_t group = 32, group_of_minima = 32, offset_of_scales = 0;

    static U scales(const LaneRow& row) {
        return mine(row, value(row.word(4) & four(63)),
                    value((row.word(12) & four(15)) | (row.word(4) >> 2 & four(48))));
    }
    static F factor(const LaneRow& row) { return lower_half(row.word(0)); }
    static std::vector<H2> minima(const LaneRow& row) {
        const U both = mine(row, value(row.word(8) & four(63)),
                            value((row.word(12) >> 4 & four(15)) | (row.word(8) >> 2 & four(48))));
        return {integers_of(value(byte_permute(both, 0x64646464u, 0x4140u)), 0, 0)};
    }
    static F factor_of_minima(const LaneRow& row) { return upper_half(row.word(0)); }

private:
    /// Bytes 2 q and 2 q + 1 of eight.
    static U mine(const LaneRow& row, const U& first, const U& second) {
        return value(select(row.q() < 2u, first, second) >> (row.q() % 2u * 16u));
    }
};

template <>
struct TensorUnits<Q4_K> : GroupsOf32 {
    using Words = std::array<U, 2>;

    static Words words(const LaneRow& row, const U& stage) {
        const U first = value(stage * 8u);
        return {row.mine(first, 16), row.mine(first, 32)};
    }
    static Operands operands(const Words& words, std::uint32_t u, const std::array<GroupScale, 2>& scales) {
        const auto pair = [&](std::uint32_t half, std::uint32_t h) {
            return scales[half].product(fields(words[half], h, u == 0 ? 0x0f : 0xf0), u * 4);
        };
        return {pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)};
    }
};

template <>
struct TensorUnits<Q5_K> : GroupsOf32 {
    struct Words {
        std::array<U, 2> low, fifth;
    };

    static Words words(const LaneRow& row, const U& stage) {
        const U first = value(stage * 8u), shift = value(stage * 2u), none = value(u32(0u));
        return {{row.mine(first, 48), row.mine(first, 64)}, {row.mine(none, 16, shift), row.mine(none, 32, shift)}};
    }
    static Operands operands(const Words& words, std::uint32_t u, const std::array<GroupScale, 2>& scales) {
        const auto pair = [&](std::uint32_t half, std::uint32_t h) {
            const U low = fields(words.low[half], h, u == 0 ? 0x0f : 0xf0);
            return scales[half].product(with_bits(low, words.fifth[half], h, u, 4 + 4 * u, 1), u * 4);
        };
        return {pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)};
    }
};

template <>
struct TensorUnits<Q2_K> {
    static constexpr bool is_grouped = true;
    static constexpr std::uint32_t group = 16, group_of_minima = 16, offset_of_scales = 0;
    using Words = std::array<U, 2>;

    static U scales(const LaneRow& row) { return value(bytes(row) & four(15)); }
    static F factor(const LaneRow& row) { return lower_half(row.word(80)); }
    static std::vector<H2> minima(const LaneRow& row) {
        const U all = value(bytes(row) >> 4 & four(15));
        return {integers_of(value(byte_permute(all, 0x64646464u, 0x4140u)), 0, 0),
                integers_of(value(byte_permute(all, 0x64646464u, 0x4342u)), 0, 0)};
    }
    static F factor_of_minima(const LaneRow& row) { return upper_half(row.word(80)); }

    static Words words(const LaneRow& row, const U& stage) {
        const U first = value(stage / 2u * 8u), shift = value(stage % 2u * 4u);
        return {row.mine(first, 16, shift), row.mine(first, 32, shift)};
    }
    static Operands operands(const Words& words, std::uint32_t u, const std::array<GroupScale, 2>& scales) {
        const auto pair = [&](std::uint32_t half, std::uint32_t h) {
            return scales[half].product(fields(words[half], h, u == 0 ? 0x03 : 0x0c), u * 2);
        };
        return {pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)};
    }

private:
    static U bytes(const LaneRow& row) { return row.mine(value(u32(0u)), 0); }
};

template <>
struct TensorUnits<Q3_K> : NoMinima {
    static constexpr bool is_grouped = true;
    static constexpr std::uint32_t group = 16, offset_of_scales = 32;
    struct Words {
        std::array<U, 2> low, third;
    };

    static U scales(const LaneRow& row) {
        const U& q = row.q();
        const U lower = value(select(q % 2u == 0u, row.word(96), row.word(100)) >> (q / 2u * 4u) & four(15));
        return value(lower | (row.word(104) >> (q * 2u) & four(3)) << 4);
    }
    static F factor(const LaneRow& row) { return row.real(value(u32(0u)), 108); }

    static Words words(const LaneRow& row, const U& stage) {
        const U first = value(stage / 2u * 8u), shift = value(stage % 2u * 4u), none = value(u32(0u));
        const U third = value(stage * 2u);
        return {{row.mine(first, 32, shift), row.mine(first, 48, shift)},
                {row.mine(none, 0, third), row.mine(none, 16, third)}};
    }
    static Operands operands(const Words& words, std::uint32_t u, const std::array<GroupScale, 2>& scales) {
        const auto pair = [&](std::uint32_t half, std::uint32_t h) {
            const U low = fields(words.low[half], h, u == 0 ? 0x03 : 0x0c);
            return scales[half].product(integers_of(with_bits(low, words.third[half], h, u, 2 + 2 * u, 1), 2 * u, 4));
        };
        return {pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)};
    }
};

}  // namespace ikat::stdlib::blocks
