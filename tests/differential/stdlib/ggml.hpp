// SPDX-License-Identifier: Apache-2.0
// A host decoder of GGML's blocks, written element by element from the description of the formats, independently of the
// kernels: every weight is decoded separately.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/support/half.hpp"
#include "stdlib/quantised/quantised.hpp"

namespace ikat::test {

using Block = std::span<const std::uint8_t>;

inline float half_at(Block b, std::size_t offset) {
    return float(half::from_bits(std::uint16_t(b[offset] | b[offset + 1] << 8)));
}

/// The 6-bit scale and minimum of sub-block `sub` of a Q4_K or Q5_K block.
struct Sixes {
    int scale, minimum;
};
inline Sixes sixes_at(Block b, int sub) {
    const auto s = b.subspan(4, 12);
    if (sub < 4) return {s[sub] & 63, s[sub + 4] & 63};
    return {(s[sub + 4] & 15) | s[sub - 4] >> 6 << 4, s[sub + 4] >> 4 | s[sub] >> 6 << 4};
}

inline float k_weight(Block b, int e, int qs, int fifth) {
    const int sub = e / 32, byte = b[std::size_t(qs + 32 * (e / 64) + e % 32)];
    const int q = (sub % 2 ? byte >> 4 : byte & 15) + fifth;
    const Sixes sixes = sixes_at(b, sub);
    const float scale = half_at(b, 0) * float(sixes.scale), minimum = half_at(b, 2) * float(sixes.minimum);
    const float product = scale * float(q);
    return product - minimum;
}

inline float q6_weight(Block b, int e) {
    const int n = e / 128, k = e % 128 / 32, l = e % 32;
    const int byte = b[std::size_t(64 * n + 32 * (k % 2) + l)], low = k >= 2 ? byte >> 4 : byte & 15;
    const int high = b[std::size_t(128 + 32 * n + l)] >> (2 * k) & 3;
    const float factor = half_at(b, 208) * float(std::int8_t(b[std::size_t(192 + 8 * n + 2 * k + l / 16)]));
    return factor * float((low | high << 4) - 32);
}

/// Element e of a block.
inline float weight(stdlib::Quantised format, Block b, int e) {
    using enum stdlib::Quantised;
    switch (format) {
        case Q4_0: return half_at(b, 0) * float((e < 16 ? b[2 + e] & 15 : b[2 + e - 16] >> 4) - 8);
        case Q8_0: return half_at(b, 0) * float(std::int8_t(b[2 + e]));
        case Q4_K: return k_weight(b, e, 16, 0);
        case Q5_K: return k_weight(b, e, 48, b[std::size_t(16 + e % 32)] >> (e / 32) & 1 ? 16 : 0);
        case Q6_K: return q6_weight(b, e);
    }
    return 0;
}

inline std::vector<float> decode(stdlib::Quantised format, std::span<const std::uint8_t> bytes) {
    const std::size_t size = stdlib::bytes_of(format);
    std::vector<float> out;
    for (std::size_t block = 0; block < bytes.size() / size; ++block)
        for (std::uint32_t e = 0; e < stdlib::weights_of(format); ++e)
            out.push_back(weight(format, bytes.subspan(block * size, size), int(e)));
    return out;
}

/// Activations as words of Q8_1, by the rules of GGML, without s.
inline std::vector<std::uint32_t> quantise_q8_1(std::span<const float> x) {
    std::vector<std::uint32_t> out(x.size() / 32 * 9);
    for (std::size_t block = 0; block < x.size() / 32; ++block) {
        float most = 0;
        for (const float v : x.subspan(block * 32, 32)) most = std::max(most, std::abs(v));
        const float d = most / 127;
        out[block * 9] = half(d).bits;
        for (std::size_t i = 0; i < 32; ++i) {
            const int q = most == 0 ? 0 : int(std::round(x[block * 32 + i] / d));
            out[block * 9 + 1 + i / 4] |= std::uint32_t(std::uint8_t(q)) << (i % 4 * 8);
        }
    }
    return out;
}

/// The values that they represent.
inline std::vector<float> decode_q8_1(std::span<const std::uint32_t> words) {
    std::vector<float> out;
    for (std::size_t block = 0; block < words.size() / 9; ++block)
        for (std::size_t i = 0; i < 32; ++i)
            out.push_back(float(half::from_bits(std::uint16_t(words[block * 9]))) *
                          float(std::int8_t(words[block * 9 + 1 + i / 4] >> (i % 4 * 8))));
    return out;
}

}  // namespace ikat::test
