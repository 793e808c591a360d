// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/stored.hpp"

#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"

namespace ikat::stdlib::stored {
namespace {

void check(const char* what, std::int64_t number, std::int64_t first, std::int64_t last) {
    if (number >= first && number <= last) return;
    throw Error(fmt::format("{} {} of a quantised block", what, number),
                fmt::format("it is from {} to {}", first, last));
}
/// The number of a weight, and its q.
void check(Quantised format, std::uint32_t weight, int q, int first, int last) {
    check("weight", weight, 0, runtime::find_info(format)->weights - 1);
    check("q", q, first, last);
}

/// Sets some bits of a byte.
void put(std::uint8_t& byte, int bits, int shift, int mask) {
    byte = std::uint8_t((byte & ~(mask << shift)) | (bits & mask) << shift);
}

/// The four lower bits of 32 weights: the second half of them is in the upper bits.
void put_four(std::span<std::uint8_t, 16> bytes, std::uint32_t weight, int q) {
    put(bytes[weight % 16], q, weight < 16 ? 0 : 4, 15);
}
/// The fifth bits of 32 weights.
void put_fifth(std::array<std::uint8_t, 4>& bytes, std::uint32_t weight, int q) {
    put(bytes[weight / 8], q >> 4, int(weight % 8), 1);
}

/// The two lower bits of K formats: four rows of 32 weights in the bytes of one.
void put_two(std::array<std::uint8_t, 64>& bytes, std::uint32_t weight, int q) {
    put(bytes[weight / 128 * 32 + weight % 32], q, int(weight % 128 / 32 * 2), 3);
}

/// The four lower bits of K formats: two rows of 32 weights in the bytes of one.
void put_four(std::array<std::uint8_t, 128>& bytes, std::uint32_t weight, int q) {
    put(bytes[weight / 64 * 32 + weight % 32], q, weight / 32 % 2 ? 4 : 0, 15);
}

}  // namespace

void Q4_0::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 15);
    put_four(q, weight, value);
}

void Q4_1::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 15);
    put_four(q, weight, value);
}

void Q5_0::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 31);
    put_four(q, weight, value);
    put_fifth(fifth, weight, value);
}

void Q5_1::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 31);
    put_four(q, weight, value);
    put_fifth(fifth, weight, value);
}

void Q8_0::set(std::uint32_t weight, int value) {
    check(format, weight, value, -128, 127);
    q[weight] = std::int8_t(value);
}

void FourBitScales::set(std::uint32_t part, const Pair& of_part) {
    check("part", part, 0, 15);
    check("scale", of_part.scale, 0, 15);
    check("minimum", of_part.minimum, 0, 15);
    bytes[part] = std::uint8_t(of_part.scale | of_part.minimum << 4);
}

void Q2_K::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 3);
    put_two(q, weight, value);
}

void SignedSixBitScales::set(std::uint32_t part, int scale) {
    check("part", part, 0, 15);
    check("scale", scale, -32, 31);
    put(bytes[part % 8], scale + 32, part < 8 ? 0 : 4, 15);
    put(bytes[8 + part % 4], (scale + 32) >> 4, int(part / 4 * 2), 3);
}

void Q3_K::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 7);
    put_two(q, weight, value);
    put(third[weight % 32], value >> 2, int(weight / 32), 1);
}

void SixBitScales::set(std::uint32_t part, const Pair& of_part) {
    check("part", part, 0, 7);
    check("scale", of_part.scale, 0, 63);
    check("minimum", of_part.minimum, 0, 63);
    if (part < 4) {
        put(bytes[part], of_part.scale, 0, 63);
        put(bytes[part + 4], of_part.minimum, 0, 63);
        return;
    }
    put(bytes[part + 4], of_part.scale, 0, 15);
    put(bytes[part + 4], of_part.minimum, 4, 15);
    put(bytes[part - 4], of_part.scale >> 4, 6, 3);
    put(bytes[part], of_part.minimum >> 4, 6, 3);
}

void Q4_K::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 15);
    put_four(q, weight, value);
}

void Q5_K::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 31);
    put_four(q, weight, value);
    put(fifth[weight % 32], value >> 4, int(weight / 32), 1);
}

void Q6_K::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 63);
    const std::uint32_t half = weight / 128, row = weight % 128 / 32, column = weight % 32;
    put(low[64 * half + 32 * (row % 2) + column], value, row < 2 ? 0 : 4, 15);
    put(high[32 * half + column], value >> 4, int(2 * row), 3);
}

void IQ4_NL::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 15);
    put_four(q, weight, value);
}

void DividedScales::set(std::uint32_t part, int scale) {
    check("part", part, 0, 7);
    check("scale", scale, -32, 31);
    put(low[part / 2], scale + 32, part % 2 ? 4 : 0, 15);
    put(high[part / 4], (scale + 32) >> 4, int(part % 4 * 2), 3);
}

void IQ4_XS::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 15);
    put_four(std::span(q).subspan(weight / 32 * 16).first<16>(), weight % 32, value);
}

void MXFP4::set(std::uint32_t weight, int value) {
    check(format, weight, value, 0, 15);
    put_four(q, weight, value);
}

}  // namespace ikat::stdlib::stored
