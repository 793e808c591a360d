// SPDX-License-Identifier: Apache-2.0
// Units of 32 weights in stages of blocks, and what they are multiplied with: tokens, each a row of activations.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "stdlib/quantised/blocks.hpp"
#include "stdlib/tile/stage.hpp"

namespace ikat::stdlib {

/// Blocks are decoded in units of 32 weights.
template <class Format>
constexpr std::uint32_t units_of = Format::weights / 32;
/// The bytes before unit i, which begins a block.
template <class Format>
auto bytes_before(const auto& i) {
    return value(i / units_of<Format> * Format::bytes);
}
/// Unit i of a stage, which begins with a block.
template <class Format>
blocks::Unit unit_of(const auto& stage, const auto& i) {
    return Format::unit(stage, stage.at(bytes_before<Format>(i)), value(i % units_of<Format>));
}

/// A stage of an array that begins at no multiple of 16 bytes, and so do blocks whose size is one.
template <class Stage>
struct Unaligned {
    const Stage& stage;

    auto at(const auto& i) const { return stage.at(i); }
    template <int N, std::uint32_t = 2>
    auto words(const auto& at, std::uint32_t skip = 0) const {
        return stage.template words<N, 2>(at, skip);
    }
};
/// body(unit i of a stage), whose array begins at byte `begin` after a multiple of 16.
template <class Format>
void with_unit(const auto& stage, const auto& begin, const auto& i, auto&& body) {
    const auto aligned = [&] { body(unit_of<Format>(stage, i)); };
    const auto unaligned = [&] { body(unit_of<Format>(Unaligned{stage}, i)); };
    if constexpr (Format::bytes % 16 == 0)
        if_(begin == 0u, aligned).else_(unaligned);
    else if constexpr (Format::bytes % 4 == 0)
        if_(begin % 4u == 0u, aligned).else_(unaligned);
    else
        aligned();
}

/// Stages of blocks of an even number of bytes, or of an odd one.
template <class Format, class Group, std::uint32_t max_bytes>
using BlockStage = Stage<Group, max_bytes, 0, std::conditional_t<Format::bytes % 2 == 0, std::uint16_t, std::uint8_t>>;

/// Four activations of a token, number 4 k ... 4 k + 3 of a unit's.
using FourActivations = std::function<std::array<blocks::U, 4>(std::size_t token, std::size_t k)>;
/// The sums of products with activations in f32, token after token for each unit: eight sums of four, in pairs.
std::vector<blocks::F> single_products(std::span<const blocks::Unit> units, std::size_t tokens,
                                       const FourActivations& four);

/// A token's block of Q8_1: its head, and 32 bytes.
using PackedBlock = std::function<std::array<blocks::U, 9>(std::size_t token)>;
/// The same with activations in Q8_1.
std::vector<blocks::F> packed_products(std::span<const blocks::Unit> units, std::size_t tokens,
                                       const PackedBlock& block);

}  // namespace ikat::stdlib
