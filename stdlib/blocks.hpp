// SPDX-License-Identifier: Apache-2.0
// How a thread decodes its part of a quantised block: the formats of quantised.hpp, each as a struct with
//
//     weights, bytes     of a block
//     pieces             into which threads divide a block: as many loads side by side
//     each(w, block, piece, f)      calls f(offset, lanes) for each run of neighbouring weights of the piece; offset is
//                                   that of the first one in the block
//
// and, for products with activations of 8 bits,
//
//     packed_pieces
//     each_packed(w, block, piece, f)      calls f(offset, q, scale, minimum) for each four neighbouring weights:
//                                          scale q - minimum, with the four q in the bytes of a u32, or signed of an
//                                          i32
//
// Blocks that are multiples of 16 bytes are loaded by 4 bytes, those that are not by 2.
#pragma once
#include "dsl/bits.hpp"
#include "stdlib/vectors.hpp"

namespace ikat::stdlib::blocks {

using Bytes = In<std::uint8_t>;
using U = Leaf<std::uint32_t>;
using F = Leaf<float>;

/// Bytes N * i ... N * i + N - 1, loaded together.
template <int N>
std::array<U, N> load_bytes(const Bytes& w, const auto& i) {
    const auto v = w.template vec<N>(i);
    return [&]<std::size_t... k>(std::index_sequence<k...>) { return std::array<U, N>{value(cast<u32>(v[int(k)]))...}; }
    (std::make_index_sequence<N>{});
}

/// Four bytes as a word, the first one lowest.
inline U packed(const auto& bytes) { return value((bytes[0] | bytes[1] << 8) | (bytes[2] << 16 | bytes[3] << 24)); }
constexpr std::uint32_t low_halves = 0x0f0f0f0f;
/// The low and the high half of each byte of a word.
inline U half_bytes(const U& word, bool high) { return value((high ? U(value(word >> 4)) : word) & low_halves); }

/// The f16 of two bytes, in f32. The factor moves the exponent's bias, also of subnormal numbers.
inline F half_of(const U& low, const U& high) {
    const U magnitude = value((low | (high << 8 & 0x7f00u)) << 13);
    const F finite = value(bit_cast<f32>(magnitude) * 0x1p+112f);
    const U bits = value(select(magnitude >= 0x0f800000u, magnitude | 0x7f800000u, U(value(bit_cast<u32>(finite)))));
    return value(bit_cast<f32>(bits | (high & 0x80u) << 24));
}

/// An 8-bit number in two's complement, as loaded by u8.
inline F signed_of(const U& byte) { return value(cast<f32>(cast<i32>(byte ^ 0x80u) - 128)); }
inline F float_of(const auto& q) { return value(cast<f32>(q)); }

struct Q4_0 {
    static constexpr std::uint32_t weights = 32, bytes = 18, pieces = 4;
    static void each(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 2));  // in pairs of bytes
        const auto scale = load_bytes<2>(w, first);
        const F d = half_of(scale[0], scale[1]);
        const auto a = load_bytes<2>(w, first + 1u + piece * 2u), b = load_bytes<2>(w, first + 2u + piece * 2u);
        const U q[] = {a[0], a[1], b[0], b[1]};
        const auto weight = [&](const auto& bits) { return value(d * cast<f32>(cast<i32>(bits) - 8)); };
        f(value(piece * 4u), detail::lanes<4>([&](std::size_t k) { return weight(q[k] & 15u); }));
        f(value(piece * 4u + 16u), detail::lanes<4>([&](std::size_t k) { return weight(q[k] >> 4); }));
    }
    static constexpr std::uint32_t packed_pieces = 4;
    static void each_packed(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 2));
        const auto scale = load_bytes<2>(w, first);
        const F d = half_of(scale[0], scale[1]);
        const auto a = load_bytes<2>(w, first + 1u + piece * 2u), b = load_bytes<2>(w, first + 2u + piece * 2u);
        const U word = packed(std::array{a[0], a[1], b[0], b[1]});
        for (std::uint32_t half = 0; half < 2; ++half)
            f(value(piece * 4u + 16u * half), half_bytes(word, half), d, value(8.0f * d));
    }
};

struct Q8_0 {
    static constexpr std::uint32_t weights = 32, bytes = 34, pieces = 8;
    static void each(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 2));
        const auto scale = load_bytes<2>(w, first);
        const F d = half_of(scale[0], scale[1]);
        const auto a = load_bytes<2>(w, first + 1u + piece * 2u), b = load_bytes<2>(w, first + 2u + piece * 2u);
        const U q[] = {a[0], a[1], b[0], b[1]};
        f(value(piece * 4u), detail::lanes<4>([&](std::size_t k) { return value(d * signed_of(q[k])); }));
    }
    static constexpr std::uint32_t packed_pieces = 8;
    static void each_packed(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 2));
        const auto scale = load_bytes<2>(w, first);
        const auto a = load_bytes<2>(w, first + 1u + piece * 2u), b = load_bytes<2>(w, first + 2u + piece * 2u);
        const U word = packed(std::array{a[0], a[1], b[0], b[1]});
        f(value(piece * 4u), value(cast<i32>(word)), half_of(scale[0], scale[1]), 0.0f);
    }
};

/// d sc and dmin m of sub-blocks 2 c and 2 c + 1 of a Q4_K or Q5_K block, which begins at byte 4 `first`.
struct Scales {
    F scale[2], minimum[2];
};
inline Scales scales_of(const Bytes& w, const U& first, const U& c) {
    const auto head = load_bytes<4>(w, first);
    const F d = half_of(head[0], head[1]), dmin = half_of(head[2], head[3]);
    const U pair = value(first * 2u + 2u + c);  // s[2 c], in pairs of bytes
    const auto low = value(c < 2u);
    const auto a = load_bytes<2>(w, pair), e = load_bytes<2>(w, pair + 2u),
               z = load_bytes<2>(w, pair - select(low, 0u, 2u));
    const auto number = [&](std::size_t k, bool minimum) {
        const U whole = value((minimum ? e[k] : a[k]) & 63u);
        const U split = value(minimum ? U(value(e[k] >> 4 | a[k] >> 6 << 4)) : U(value((e[k] & 15u) | z[k] >> 6 << 4)));
        return value(cast<f32>(select(low, whole, split)));
    };
    return {{value(d * number(0, false)), value(d * number(1, false))},
            {value(dmin * number(0, true)), value(dmin * number(1, true))}};
}

/// Four bytes of a piece: their low halves belong to sub-block 2 c, their high halves to the next. `fifth` gives the
/// upper bit of weight k of either, as 0 or 16.
inline void each_of_k(const Scales& scales, const auto& q, const U& c, const U& l, auto&& fifth, auto&& f) {
    for (int half = 0; half < 2; ++half)
        f(value(c * 64u + (std::uint32_t(half) * 32u + l)), detail::lanes<4>([&](std::size_t k) {
              const U bits = value((half ? U(value(q[k] >> 4)) : U(value(q[k] & 15u))) | fifth(half, k));
              return value(scales.scale[half] * float_of(bits) - scales.minimum[half]);
          }));
}

struct Q4_K {
    static constexpr std::uint32_t weights = 256, bytes = 144, pieces = 32;
    static void each(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 4)), c = value(piece / 8u), l = value(piece % 8u * 4u);
        const Scales scales = scales_of(w, first, c);
        const auto q = load_bytes<4>(w, first + 4u + piece);
        each_of_k(
            scales, q, c, l, [](int, std::size_t) { return 0u; }, f);
    }
    static constexpr std::uint32_t packed_pieces = 32;
    static void each_packed(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 4)), c = value(piece / 8u), l = value(piece % 8u * 4u);
        const Scales scales = scales_of(w, first, c);
        const U word = packed(load_bytes<4>(w, first + 4u + piece));
        for (std::uint32_t half = 0; half < 2; ++half)
            f(value(c * 64u + (half * 32u + l)), half_bytes(word, half), scales.scale[half], scales.minimum[half]);
    }
};

struct Q5_K {
    static constexpr std::uint32_t weights = 256, bytes = 176, pieces = 32;
    static void each(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 4)), c = value(piece / 8u), l = value(piece % 8u * 4u);
        const Scales scales = scales_of(w, first, c);
        const auto high = load_bytes<4>(w, first + 4u + piece % 8u), q = load_bytes<4>(w, first + 12u + piece);
        each_of_k(
            scales, q, c, l,
            [&](int half, std::size_t k) { return (high[k] >> (c * 2u + std::uint32_t(half)) & 1u) << 4; }, f);
    }
    static constexpr std::uint32_t packed_pieces = 32;
    static void each_packed(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 4)), c = value(piece / 8u), l = value(piece % 8u * 4u);
        const Scales scales = scales_of(w, first, c);
        const U high = packed(load_bytes<4>(w, first + 4u + piece % 8u));
        const U word = packed(load_bytes<4>(w, first + 12u + piece));
        for (std::uint32_t half = 0; half < 2; ++half) {
            const U fifth = value((high >> (c * 2u + half) & 0x01010101u) << 4);
            f(value(c * 64u + (half * 32u + l)), value(half_bytes(word, half) | fifth), scales.scale[half],
              scales.minimum[half]);
        }
    }
};

struct Q6_K {
    static constexpr std::uint32_t weights = 256, bytes = 210, pieces = 32;
    static void each(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 2)), n = value(piece / 16u),
                i = value(piece % 16u);  // in pairs of bytes
        const auto a = load_bytes<2>(w, first + n * 32u + i), b = load_bytes<2>(w, first + n * 32u + 16u + i);
        const auto high = load_bytes<2>(w, first + 64u + n * 16u + i), scale = load_bytes<2>(w, first + 104u);
        const F d = half_of(scale[0], scale[1]);
        for (std::uint32_t k = 0; k < 4; ++k) {
            const F sc = signed_of(value(cast<u32>(w[block * bytes + 192u + n * 8u + k * 2u + i / 8u])));
            const F factor = value(d * sc);
            f(value(n * 128u + k * 32u + i * 2u), detail::lanes<2>([&](std::size_t lane) {
                  const U low = value(k & 1 ? b[lane] : a[lane]);
                  const U four = value(k >= 2 ? U(value(low >> 4)) : U(value(low & 15u)));
                  const U q = value(four | (high[lane] >> (2 * k) & 3u) << 4);
                  return value(factor * cast<f32>(cast<i32>(q) - 32));
              }));
        }
    }
    static constexpr std::uint32_t packed_pieces = 16;
    static void each_packed(const Bytes& w, const U& block, const U& piece, auto&& f) {
        const U first = value(block * (bytes / 2)), n = value(piece / 8u), i = value(piece % 8u * 2u);
        const auto word = [&](const U& at) {
            const auto a = load_bytes<2>(w, at), b = load_bytes<2>(w, at + 1u);
            return packed(std::array{a[0], a[1], b[0], b[1]});
        };
        const U a = word(value(first + n * 32u + i)), b = word(value(first + n * 32u + 16u + i));
        const U high = word(value(first + 64u + n * 16u + i));
        const auto scale = load_bytes<2>(w, first + 104u);
        const F d = half_of(scale[0], scale[1]);
        for (std::uint32_t k = 0; k < 4; ++k) {
            const F sc = signed_of(value(cast<u32>(w[block * bytes + 192u + n * 8u + k * 2u + i / 8u])));
            const F factor = value(d * sc);
            const U upper = value((high >> (2 * k) & 0x03030303u) << 4);
            f(value(n * 128u + k * 32u + i * 2u), value(half_bytes(k & 1 ? b : a, k >= 2) | upper), factor,
              value(32.0f * factor));
        }
    }
};

}  // namespace ikat::stdlib::blocks
