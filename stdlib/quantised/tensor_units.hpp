// SPDX-License-Identifier: Apache-2.0
// Weights as operands of mma.m16n8k16: what a lane has of a slice, 256 weights of a row, in four stages of two units of
// 32. Of each 16 weights lane q = lane_id() % 4 has number 4 q ... 4 q + 3, in two operands: 4 q and 4 q + 2, 4 q + 1
// and 4 q + 3. These are the same bytes of the two halves of a word, so for weights of four bits
//
//     word & 0x000f000f | 0x64006400          is 1024 plus a weight in each half, as f16
//
// and one fused multiply-add makes an integer of it, or an integer times the integer scale of a group: both are exact.
// For each format, TensorUnits<Format> has
//
//     words(row, stage)                   what both units of a stage are made of, loaded once
//     unit(words, row, stage, u)          unit u of the stage: integers; scales
//
// or, if it is_grouped, each group of 16 or 32 has a small integer as its scale, and the block a factor:
//
//     operands(words, u, scales)          integers times the scales of the unit's halves
//     scales(row)                         those of the groups of stage q, in bytes, plus offset_of_scales
//     factor(row)                         of the block
//
// and, where minima are subtracted, of groups of group_of_minima weights:
//
//     minima(row)                         of the groups of stage q, as f16
//     factor_of_minima(row)               of the block
#pragma once
#include <optional>
#include <vector>

#include "stdlib/quantised/blocks.hpp"

namespace ikat::stdlib::blocks {

/// Two weights, and all of a lane in a unit: of its first half, and of its second.
using H2 = Leaf<half2>;
using Operands = std::array<H2, 4>;
using Memory = Indexable<std::uint32_t, Direction::ReadWrite>;

/// And the scale in f32 that a sum of products of the unit is multiplied by, or those of its halves.
struct ScaledUnit {
    Operands operands;
    std::vector<F> scales;
};

inline H2 two(float number) { return value(pack<f16x2>(value(f32(number)), value(f32(number)))); }

/// A slice of a row in shared memory, or a part of it, as lane q sees it.
class LaneRow {
public:
    /// From word `first` of the memory on, and `shift` bits further: none if `is_aligned`.
    LaneRow(const Memory& memory, const U& first, const U& shift, const U& q, bool is_aligned)
        : memory_(memory), q_(q), first_(first), shift_(shift), is_aligned_(is_aligned) {}

    const U& q() const { return q_; }
    /// What begins further on.
    LaneRow after(const U& bytes, bool is_aligned) const {
        if (is_aligned_ && is_aligned) return {memory_, value(first_ + bytes / 4u), shift_, q_, true};
        const U begin = value(shift_ / 8u + bytes);
        return {memory_, value(first_ + begin / 4u), value(begin % 4u * 8u), q_, false};
    }
    /// The word that begins `words` words, of which `bytes` is no part, and `bytes` bytes further on; shifted to the
    /// right by `further` bits, from 0 to 7, and bits of the next byte follow.
    U word(const U& words, std::uint32_t bytes, const std::optional<U>& further = {}) const {
        const U at = value(first_ + words + bytes / 4);
        const std::uint32_t shift = bytes % 4 * 8;
        const auto next = [&] { return U(value(memory_[at + 1u])); };
        if (is_aligned_ && shift == 0) return further ? U(value(memory_[at] >> *further)) : U(value(memory_[at]));
        if (is_aligned_) {
            const U distance = further ? U(value(*further + shift)) : U(value(u32(shift)));
            return value(funnel_right(memory_[at], next(), distance));
        }
        if (shift != 0) return after(value(words * 4u + bytes), false).word(value(u32(0u)), 0, further);
        return value(funnel_right(memory_[at], next(), further ? U(value(shift_ + *further)) : shift_));
    }
    U word(std::uint32_t bytes) const { return word(value(u32(0u)), bytes); }
    /// Word q from there on.
    U mine(const U& words, std::uint32_t bytes, const std::optional<U>& further = {}) const {
        return word(value(words + q_), bytes, further);
    }
    /// The f16 at `bytes`, an even number, in f32.
    F real(const U& words, std::uint32_t bytes) const {
        if (is_aligned_ && bytes % 4 == 2) return upper_half(word(words, bytes - 2));
        return lower_half(word(words, bytes));
    }

private:
    const Memory& memory_;
    U q_, first_, shift_;
    bool is_aligned_;
};

/// Fields of up to four bits at bit `bit` of each byte of a word, which more bits may be part of, as f16: pair h has
/// bytes h and h + 2. 1024 + 2^bit times the field.
inline U fields(const U& word, std::uint32_t h, std::uint32_t mask) {
    const U there = h == 0 ? word : U(value(word >> 8));
    return value(lop3<(0xf0 & 0xcc) | 0xaa>(there, mask * 0x00010001u, value(u32(0x64006400u))));
}
/// The integers of fields at bit `bit`, less `offset`.
inline H2 integers_of(const U& fields, std::uint32_t bit, std::uint32_t offset) {
    const float unit = 1.0f / float(1u << bit);
    if (bit == 0) return value(bit_cast<f16x2>(fields) - two(1024.0f + float(offset)));
    return value(fma(bit_cast<f16x2>(fields), two(unit), two(-1024.0f * unit - float(offset))));
}
/// Bytes less `offset`, at most 128.
inline H2 integers_of_bytes(const U& word, std::uint32_t h, std::uint32_t offset) {
    const U both = value(byte_permute(word, 0x64646464u, h == 0 ? 0x4240u : 0x4341u));
    return integers_of(both, 0, offset);
}

/// The scale of a group, byte `number` of `bytes` less `offset`, for its two weights; and the integers of fields times
/// it, which f16 holds if they are at most 2048 in size.
class GroupScale {
public:
    GroupScale(const U& bytes, std::uint32_t number, std::uint32_t offset)
        : scale_(integers_of(value(byte_permute(bytes, 0x64646464u, 0x4040u + number * 0x0101u)), 0, offset)) {}

    /// Of fields without an offset, and scales below 64: 1024 times a scale is exact, too.
    H2 product(const U& fields, std::uint32_t bit) const {
        const float unit = 1.0f / float(1u << bit);
        return value(fma(bit_cast<f16x2>(fields), scale_ * two(unit), scale_ * two(-1024.0f * unit)));
    }
    H2 product(const H2& integers) const { return value(integers * scale_); }

private:
    H2 scale_;
};

}  // namespace ikat::stdlib::blocks
