// SPDX-License-Identifier: Apache-2.0
// GGML's blocks as they lie in memory, for programs that fill weights on the host.
//
//     std::vector<stored::Q4_K> blocks(rows * columns / 256);
//     blocks[0].d = half(0.01f);                           then dmin, the scales and the weights
//     blocks[0].scales.set(3, {.scale = 40, .minimum = 7});  of weights 96 ... 127
//     blocks[0].set(100, 13);                              weight 100 is d 40 13 - dmin 7
//     auto w = device.upload(stored::bytes_of(blocks));    for quantised_view(w, Quantised::Q4_K, {rows, columns})
//
// Each struct is a format of quantised.hpp, with the same bytes: a file's blocks can be read into it. set() takes q of
// one weight, as an unsigned number where the format has that. Throws Error for a weight or a number that it does not
// have.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/support/half.hpp"
#include "runtime/quantised_format.hpp"

namespace ikat::stdlib::stored {

using runtime::Quantised;

/// 32 weights, d (q - 8): q is 0 ... 15.
struct Q4_0 {
    static constexpr Quantised format = Quantised::Q4_0;
    half d{};
    std::array<std::uint8_t, 16> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// 32 weights, d q + m: q is 0 ... 15.
struct Q4_1 {
    static constexpr Quantised format = Quantised::Q4_1;
    half d{}, m{};
    std::array<std::uint8_t, 16> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// 32 weights, d (q - 16): q is 0 ... 31.
struct Q5_0 {
    static constexpr Quantised format = Quantised::Q5_0;
    half d{};
    std::array<std::uint8_t, 4> fifth{};
    std::array<std::uint8_t, 16> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// 32 weights, d q + m: q is 0 ... 31.
struct Q5_1 {
    static constexpr Quantised format = Quantised::Q5_1;
    half d{}, m{};
    std::array<std::uint8_t, 4> fifth{};
    std::array<std::uint8_t, 16> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// 32 weights, d q: q is -128 ... 127.
struct Q8_0 {
    static constexpr Quantised format = Quantised::Q8_0;
    half d{};
    std::array<std::int8_t, 32> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// 16 scales and 16 minima of 4 bits, each for 16 weights.
struct FourBitScales {
    /// Both are 0 ... 15.
    struct Pair {
        int scale = 0, minimum = 0;
    };
    std::array<std::uint8_t, 16> bytes{};
    /// Those of weights 16 part ... 16 part + 15.
    void set(std::uint32_t part, const Pair& of_part);
};

/// 256 weights, d scale q - dmin minimum: q is 0 ... 3.
struct Q2_K {
    static constexpr Quantised format = Quantised::Q2_K;
    FourBitScales scales{};
    std::array<std::uint8_t, 64> q{};
    half d{}, dmin{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// 16 signed scales of 6 bits, each for 16 weights. All are -32 where the bytes are 0.
struct SignedSixBitScales {
    std::array<std::uint8_t, 12> bytes{};
    /// That of weights 16 part ... 16 part + 15: it is -32 ... 31.
    void set(std::uint32_t part, int scale);
};

/// 256 weights, d scale (q - 4): q is 0 ... 7.
struct Q3_K {
    static constexpr Quantised format = Quantised::Q3_K;
    std::array<std::uint8_t, 32> third{};
    std::array<std::uint8_t, 64> q{};
    SignedSixBitScales scales{};
    half d{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// Eight scales and eight minima of 6 bits, each for 32 weights.
struct SixBitScales {
    /// Both are 0 ... 63.
    struct Pair {
        int scale = 0, minimum = 0;
    };
    std::array<std::uint8_t, 12> bytes{};
    /// Those of weights 32 part ... 32 part + 31.
    void set(std::uint32_t part, const Pair& of_part);
};

/// 256 weights, d scale q - dmin minimum: q is 0 ... 15.
struct Q4_K {
    static constexpr Quantised format = Quantised::Q4_K;
    half d{}, dmin{};
    SixBitScales scales{};
    std::array<std::uint8_t, 128> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// 256 weights, d scale q - dmin minimum: q is 0 ... 31.
struct Q5_K {
    static constexpr Quantised format = Quantised::Q5_K;
    half d{}, dmin{};
    SixBitScales scales{};
    std::array<std::uint8_t, 32> fifth{};
    std::array<std::uint8_t, 128> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// 256 weights, d scale (q - 32): q is 0 ... 63. Each of the 16 scales is for 16 weights.
struct Q6_K {
    static constexpr Quantised format = Quantised::Q6_K;
    std::array<std::uint8_t, 128> low{};
    std::array<std::uint8_t, 64> high{};
    std::array<std::int8_t, 16> scales{};
    half d{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// The numbers to which q refers in IQ4_NL and IQ4_XS.
inline constexpr std::array<std::int8_t, 16> iq4_numbers = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                            1,    13,   25,  38,  53,  69,  89,  113};

/// 32 weights, d iq4_numbers[q]: q is 0 ... 15.
struct IQ4_NL {
    static constexpr Quantised format = Quantised::IQ4_NL;
    half d{};
    std::array<std::uint8_t, 16> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// Eight signed scales of 6 bits, each for 32 weights. All are -32 where the bytes are 0.
struct DividedScales {
    std::array<std::uint8_t, 2> high{};
    std::array<std::uint8_t, 4> low{};
    /// That of weights 32 part ... 32 part + 31: it is -32 ... 31.
    void set(std::uint32_t part, int scale);
};

/// 256 weights, d scale iq4_numbers[q]: q is 0 ... 15.
struct IQ4_XS {
    static constexpr Quantised format = Quantised::IQ4_XS;
    half d{};
    DividedScales scales{};
    std::array<std::uint8_t, 128> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

/// The numbers to which q refers in MXFP4, doubled: those of e2m1. The sign is the highest bit of q.
inline constexpr std::array<std::int8_t, 16> mxfp4_doubled = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// 32 weights, 2^(exponent - 128) mxfp4_doubled[q]: q is 0 ... 15.
struct MXFP4 {
    static constexpr Quantised format = Quantised::MXFP4;
    std::uint8_t exponent = 0;
    std::array<std::uint8_t, 16> q{};
    /// q of one weight.
    void set(std::uint32_t weight, int q);
};

#define IKAT_ROW(format, name, weights, bytes) static_assert(sizeof(format) == (bytes));
IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW

/// The bytes of blocks, to upload them. They are those of the vector.
template <class Block>
std::span<const std::uint8_t> bytes_of(const std::vector<Block>& blocks) {
    static_assert(sizeof(Block) == runtime::find_info(Block::format)->bytes);
    return {reinterpret_cast<const std::uint8_t*>(blocks.data()), blocks.size() * sizeof(Block)};
}

}  // namespace ikat::stdlib::stored
