// SPDX-License-Identifier: Apache-2.0
// The random order in which the warps of a block, and the blocks of a cluster, take turns.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace ikat::emulator {

/// A seed that depends on every bit of both.
inline std::uint32_t mixed(std::uint32_t seed, std::uint32_t index) {
    std::uint64_t x = (std::uint64_t(seed) << 32 | index) + 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return std::uint32_t(x >> 32);
}

struct TurnOrder {
    std::vector<unsigned> turns;  // ascending until it is shuffled

    void start(std::uint32_t count, bool forbids_ascending) {
        turns.resize(count);
        std::iota(turns.begin(), turns.end(), 0u);
        first_round_ = true;
        forbids_ascending_ = forbids_ascending;
    }
    /// The first order is never ascending, or never descending: with the choice alternating from block to block and
    /// from seed to seed, two launches of two warps see both.
    void shuffle(std::minstd_rand& random) {
        std::shuffle(turns.begin(), turns.end(), random);
        if (!std::exchange(first_round_, false)) return;
        if (forbids_ascending_ ? std::ranges::is_sorted(turns) : std::ranges::is_sorted(turns, std::greater()))
            std::ranges::reverse(turns);
    }

private:
    bool first_round_ = true, forbids_ascending_ = false;
};

}  // namespace ikat::emulator
