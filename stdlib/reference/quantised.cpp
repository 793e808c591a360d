// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reference/quantised.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "codegen/support/half.hpp"

namespace ikat::stdlib::reference {
namespace {

using Block = std::span<const std::uint8_t>;

float half_at(Block b, std::size_t offset) {
    return float(half::from_bits(std::uint16_t(b[offset] | b[offset + 1] << 8)));
}

QuantisedWeight of(float scale, int q, float minimum = 0) { return {scale * float(q), minimum, scale, q}; }

/// The 6-bit scale and minimum of sub-block `sub` of a Q4_K or Q5_K block.
struct Sixes {
    int scale, minimum;
};
Sixes sixes_at(Block b, std::size_t sub) {
    const Block s = b.subspan(4, 12);
    if (sub < 4) return {s[sub] & 63, s[sub + 4] & 63};
    return {(s[sub + 4] & 15) | s[sub - 4] >> 6 << 4, s[sub + 4] >> 4 | s[sub] >> 6 << 4};
}

QuantisedWeight k_weight(Block b, std::size_t e, std::size_t qs, int fifth) {
    const std::size_t sub = e / 32;
    const int byte = b[qs + 32 * (e / 64) + e % 32], q = (sub % 2 ? byte >> 4 : byte & 15) + fifth;
    const Sixes sixes = sixes_at(b, sub);
    const float scale = half_at(b, 0) * float(sixes.scale);
    return of(scale, q, half_at(b, 2) * float(sixes.minimum));
}

QuantisedWeight q6_weight(Block b, std::size_t e) {
    const std::size_t n = e / 128, k = e % 128 / 32, l = e % 32;
    const int byte = b[64 * n + 32 * (k % 2) + l], low = k >= 2 ? byte >> 4 : byte & 15;
    const int high = b[128 + 32 * n + l] >> (2 * k) & 3;
    const float factor = half_at(b, 208) * float(std::int8_t(b[192 + 8 * n + 2 * k + l / 16]));
    return of(factor, (low | high << 4) - 32);
}

/// Bit `number` of the bytes from `offset` on.
int bit_at(Block b, std::size_t offset, std::size_t number) { return b[offset + number / 8] >> (number % 8) & 1; }
/// Four bits of 32 weights in 16 bytes.
int four_at(Block b, std::size_t offset, std::size_t e) {
    return e < 16 ? b[offset + e] & 15 : b[offset + e - 16] >> 4;
}
int five_at(Block b, std::size_t fifth, std::size_t offset, std::size_t e) {
    return four_at(b, offset, e) | bit_at(b, fifth, e) << 4;
}
/// Two bits of 256 weights in 64 bytes.
int two_at(Block b, std::size_t offset, std::size_t e) {
    return b[offset + e / 128 * 32 + e % 32] >> (e % 128 / 32 * 2) & 3;
}

QuantisedWeight q2_weight(Block b, std::size_t e) {
    const int scales = b[e / 16];
    return of(half_at(b, 80) * float(scales & 15), two_at(b, 16, e), half_at(b, 82) * float(scales >> 4));
}

QuantisedWeight q3_weight(Block b, std::size_t e) {
    const std::size_t sub = e / 16;
    const int low = sub < 8 ? b[96 + sub] & 15 : b[96 + sub - 8] >> 4;
    const int scale = low | (b[104 + sub % 4] >> (sub / 4 * 2) & 3) << 4;
    const int third = b[e % 32] >> (e / 32) & 1;
    return of(half_at(b, 108) * float(scale - 32), (two_at(b, 32, e) | third << 2) - 4);
}

constexpr int non_linear[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

QuantisedWeight iq4_weight(Block b, std::size_t e) {
    const std::size_t sub = e / 32;
    const int high = int(unsigned(b[2] | b[3] << 8) >> (2 * sub) & 3), low = b[4 + sub / 2] >> (sub % 2 * 4) & 15;
    return of(half_at(b, 0) * float((low | high << 4) - 32), non_linear[four_at(b, 8 + 16 * sub, e % 32)]);
}

QuantisedWeight mxfp4_weight(Block b, std::size_t e) {
    constexpr int numbers[] = {0, 1, 2, 3, 4, 6, 8, 12};
    const int q = four_at(b, 1, e), number = q < 8 ? numbers[q] : -numbers[q - 8];
    return of(std::ldexp(1.0f, int(b[0]) - 128), number);
}

/// Element e of a block.
QuantisedWeight weight(Quantised format, Block b, std::size_t e) {
    using enum Quantised;
    switch (format) {
        case Q4_0: return of(half_at(b, 0), four_at(b, 2, e) - 8);
        case Q4_1: return of(half_at(b, 0), four_at(b, 4, e), -half_at(b, 2));
        case Q5_0: return of(half_at(b, 0), five_at(b, 2, 6, e) - 16);
        case Q5_1: return of(half_at(b, 0), five_at(b, 4, 8, e), -half_at(b, 2));
        case Q8_0: return of(half_at(b, 0), std::int8_t(b[2 + e]));
        case Q2_K: return q2_weight(b, e);
        case Q3_K: return q3_weight(b, e);
        case Q4_K: return k_weight(b, e, 16, 0);
        case Q5_K: return k_weight(b, e, 48, b[16 + e % 32] >> (e / 32) & 1 ? 16 : 0);
        case Q6_K: return q6_weight(b, e);
        case IQ4_NL: return of(half_at(b, 0), non_linear[four_at(b, 2, e)]);
        case IQ4_XS: return iq4_weight(b, e);
        case MXFP4: return mxfp4_weight(b, e);
    }
    return {};
}

/// The sum of 32 elements in the order of the kernel: eight threads add four elements each, then exchange their sums.
float sum_of_block(std::span<const float> x) {
    std::array<float, 8> sums;
    for (std::size_t i = 0; i < 8; ++i) sums[i] = (x[4 * i] + x[4 * i + 1]) + (x[4 * i + 2] + x[4 * i + 3]);
    for (std::size_t distance = 4; distance > 0; distance /= 2)
        for (std::size_t i = 0; i < distance; ++i) sums[i] += sums[i + distance];
    return sums[0];
}

}  // namespace

std::vector<QuantisedWeight> quantised_weights(Quantised format, std::span<const std::uint8_t> blocks) {
    const std::size_t size = bytes_of(format);
    std::vector<QuantisedWeight> out;
    for (std::size_t at = 0; at + size <= blocks.size(); at += size)
        for (std::size_t e = 0; e < weights_of(format); ++e) out.push_back(weight(format, blocks.subspan(at, size), e));
    return out;
}

std::vector<float> dequantise(Quantised format, std::span<const std::uint8_t> blocks) {
    std::vector<float> out;
    for (const QuantisedWeight& w : quantised_weights(format, blocks)) out.push_back(w.product - w.minimum);
    return out;
}

std::vector<std::uint32_t> quantise_q8_1(std::span<const float> x) {
    std::vector<std::uint32_t> out(x.size() / 32 * 9);
    for (std::size_t block = 0; block < x.size() / 32; ++block) {
        const std::span<const float> values = x.subspan(block * 32, 32);
        float largest = 0;
        for (const float v : values) largest = std::max(largest, std::abs(v));
        const float d = largest / 127;
        out[block * 9] = half(d).bits | std::uint32_t(half(sum_of_block(values)).bits) << 16;
        for (std::size_t i = 0; i < 32; ++i) {
            const int q = largest == 0 ? 0 : int(std::round(values[i] / d));
            out[block * 9 + 1 + i / 4] |= std::uint32_t(std::uint8_t(q)) << (i % 4 * 8);
        }
    }
    return out;
}

std::vector<float> dequantise_q8_1(std::span<const std::uint32_t> words) {
    std::vector<float> out;
    for (std::size_t block = 0; block < words.size() / 9; ++block)
        for (std::size_t i = 0; i < 32; ++i)
            out.push_back(float(half::from_bits(std::uint16_t(words[block * 9]))) *
                          float(std::int8_t(words[block * 9 + 1 + i / 4] >> (i % 4 * 8))));
    return out;
}

}  // namespace ikat::stdlib::reference
