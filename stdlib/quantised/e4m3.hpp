// SPDX-License-Identifier: Apache-2.0
// Bytes of e4m3 by integer instructions, which all targets have; those of conversions begin with sm_89.
#pragma once
#include "dsl/values/bits.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {

/// The byte of the nearest number, of two the even one; beyond 448 that is 448. Of NaN it is 127.
inline Leaf<std::uint32_t> e4m3_bits(const Leaf<float>& x) {
    constexpr std::uint32_t largest = 0x7e, exponent_steps = 120 << 3;  // of 448; the exponents' distance, above bits
    const Leaf<std::uint32_t> bits = value(bit_cast<u32>(x)), size = value(bits & 0x7fffffffu);
    const Leaf<std::uint32_t> rounded = value(((size + 0x7ffffu + (size >> 20 & 1u)) >> 20) - exponent_steps);
    // Below 2^-6 numbers are 2^-9 apart, as floats from 2^14 on are.
    const Leaf<std::uint32_t> small = value(bit_cast<u32>(value(abs(x) + 0x1p14f)) & 0xffu);
    const Leaf<std::uint32_t> number = value(select(size < 0x3c800000u, small, min(rounded, largest)));
    return value(select(size > 0x7f800000u, 127u, number | (bits >> 24 & 0x80u)));
}

/// Bytes `first` and `first + 1` of a word, as two f16, exactly: the exponent is moved to where f16 has it, 8 less than
/// it means there. 127 without its sign is NaN: one more is a power of two.
inline Leaf<std::uint32_t> e4m3_pair(const Leaf<std::uint32_t>& word, std::uint32_t first) {
    const Leaf<std::uint32_t> bytes = value(byte_permute(word, 0u, 0x1404u + first * 0x1010u));
    const Leaf<std::uint32_t> size = value((bytes & 0x7f007f00u) >> 1);
    const Leaf<std::uint32_t> or_nan = value(size | ((size + 0x00800080u) & 0x40004000u));
    const auto scaled = value(bit_cast<f16x2>(or_nan | (bytes & 0x80008000u)) * 256);
    return value(bit_cast<u32>(scaled));
}

}  // namespace ikat::stdlib
