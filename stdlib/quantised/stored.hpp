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

/// 32 weights, d q: q is -128 ... 127.
struct Q8_0 {
    static constexpr Quantised format = Quantised::Q8_0;
    half d{};
    std::array<std::int8_t, 32> q{};
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

/// The bytes of blocks, to upload them. They are those of the vector.
template <class Block>
std::span<const std::uint8_t> bytes_of(const std::vector<Block>& blocks) {
    static_assert(sizeof(Block) == runtime::find_info(Block::format)->bytes);
    return {reinterpret_cast<const std::uint8_t*>(blocks.data()), blocks.size() * sizeof(Block)};
}

}  // namespace ikat::stdlib::stored
