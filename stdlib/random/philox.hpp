// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, a generator of random numbers without state: four words that depend on a counter of four words and a
// key of two. On the device, and the same on the host.
// Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
#pragma once
#include <array>
#include <cstdint>

#include "dsl/lanes/algebra.hpp"
#include "dsl/values/math.hpp"

namespace ikat::stdlib {

/// The constants of Philox 4x32: the factors of a round, and what is added to the key after each.
struct Philox {
    static constexpr std::uint32_t rounds = 10;
    static constexpr std::uint32_t factors[] = {0xd2511f53, 0xcd9e8d57}, steps[] = {0x9e3779b9, 0xbb67ae85};
};

/// Four words of the host.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    for (std::uint32_t round = 0; round < Philox::rounds; ++round) {
        const std::uint64_t a = std::uint64_t(Philox::factors[0]) * counter[0],
                            b = std::uint64_t(Philox::factors[1]) * counter[2];
        counter = {std::uint32_t(b >> 32) ^ counter[1] ^ key[0], std::uint32_t(b),
                   std::uint32_t(a >> 32) ^ counter[3] ^ key[1], std::uint32_t(a)};
        for (std::size_t i = 0; i < 2; ++i) key[i] += Philox::steps[i];
    }
    return counter;
}
/// Four words of the device.
inline std::array<Leaf<std::uint32_t>, 4> philox(std::array<Leaf<std::uint32_t>, 4> counter,
                                                 std::array<Leaf<std::uint32_t>, 2> key) {
    for (std::uint32_t round = 0; round < Philox::rounds; ++round) {
        const auto a_high = value(mul_hi(counter[0], Philox::factors[0])),
                   a_low = value(counter[0] * Philox::factors[0]);
        const auto b_high = value(mul_hi(counter[2], Philox::factors[1])),
                   b_low = value(counter[2] * Philox::factors[1]);
        counter = {value(b_high ^ counter[1] ^ key[0]), b_low, value(a_high ^ counter[3] ^ key[1]), a_low};
        for (std::size_t i = 0; i < 2; ++i) key[i] = value(key[i] + Philox::steps[i]);
    }
    return counter;
}

}  // namespace ikat::stdlib
