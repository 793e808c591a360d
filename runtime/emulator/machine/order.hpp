// SPDX-License-Identifier: Apache-2.0
// The order in which the warps of a block and the blocks of a cluster take turns, and in which clusters start. What is
// chosen, is chosen where warps wait, arrive or end, never between two other instructions.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "runtime/emulator/core/schedule.hpp"

namespace ikat::emulator {

/// A seed that depends on every bit of both.
inline std::uint32_t mixed(std::uint32_t seed, std::uint32_t index) {
    std::uint64_t x = (std::uint64_t(seed) << 32 | index) + 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return std::uint32_t(x >> 32);
}

/// Of warps, or of blocks. By priorities it is probabilistic concurrency testing (Burckhardt et al., 2010) of depth 3:
/// who has the highest priority runs until he waits, and at two points of all at which somebody waits or arrives, who
/// does so there falls behind all others.
class TurnOrder {
public:
    /// Of the round.
    const std::vector<unsigned>& turns() const { return turns_; }

    /// `number` is that of the block, or the cluster.
    void start(std::uint32_t count, const Schedule& schedule, std::uint64_t number, std::minstd_rand& random) {
        turns_.resize(count);
        std::iota(turns_.begin(), turns_.end(), 0u);
        using enum Schedule::Turns;
        shuffles_ = schedule.turns == BySeed && schedule.seed;
        has_priorities_ = schedule.turns == Priorities;
        first_round_ = true;
        forbids_ascending_ = (schedule.seed + number) % 2 == 1;
        if (schedule.turns == Descending) std::ranges::reverse(turns_);
        if (!has_priorities_) return;
        shuffle(random);
        points_ = rounds_ = 0;
        for (std::uint64_t& point : falls_at_) {
            const std::uint32_t bits = 2 + random() % 12;  // how many points there are, is not known
            point = random() % (1u << bits);
        }
        falls_.clear();
    }
    void begin_round(std::minstd_rand& random) {
        if (shuffles_) shuffle(random);
        if (!has_priorities_) return;
        ++rounds_;
        for (const unsigned each : std::exchange(falls_, {})) {
            std::erase(turns_, each);
            turns_.push_back(each);
        }
    }
    /// One of the round waits, arrives or has ended. True: the next round begins, in which he or those who have waited
    /// for him may come first.
    bool ends_round(unsigned index) {
        if (!has_priorities_) return false;
        if (std::ranges::count(falls_at_, points_++)) falls_.push_back(index);
        return rounds_ % fair_round != 0;
    }

private:
    static constexpr std::uint64_t fair_round = 256;  // all have a turn in it: they may wait for each other otherwise

    /// The first order is never ascending, or never descending: with the choice alternating from block to block and
    /// from seed to seed, two launches of two warps see both.
    void shuffle(std::minstd_rand& random) {
        std::shuffle(turns_.begin(), turns_.end(), random);
        if (!std::exchange(first_round_, false)) return;
        if (forbids_ascending_ ? std::ranges::is_sorted(turns_) : std::ranges::is_sorted(turns_, std::greater()))
            std::ranges::reverse(turns_);
    }

    std::vector<unsigned> turns_;
    bool shuffles_ = false, has_priorities_ = false, first_round_ = true, forbids_ascending_ = false;
    std::uint64_t points_ = 0, rounds_ = 0;
    std::array<std::uint64_t, 2> falls_at_{};
    std::vector<unsigned> falls_;  // at the end of the round
};

/// In which clusters start, and how many run at a time.
class StartOrder {
public:
    StartOrder(const Schedule& schedule, std::uint64_t clusters) : clusters_(clusters) {
        if (!schedule.any_blocks || clusters == 0) return;
        const auto drawn = [&](std::uint32_t number) { return mixed(schedule.seed, 0xb10c0000u + number); };
        at_a_time_ = std::size_t(1) << drawn(0) % 6;
        if (clusters > 1) first_ = 1 + drawn(1) % (clusters - 1);  // never that which comes first elsewhere
        if (clusters >> 31) return;                                // a product would not fit
        for (step_ = 1 + drawn(2) % clusters; std::gcd(step_, clusters) != 1;) ++step_;
    }
    /// The number of the cluster that starts after this many.
    std::uint64_t at(std::uint64_t turn) const { return (first_ + turn * step_) % clusters_; }
    /// 0: one, and others beside it when it takes long or waits.
    std::size_t at_a_time() const { return at_a_time_; }

private:
    std::uint64_t clusters_ = 0, first_ = 0, step_ = 1;
    std::size_t at_a_time_ = 0;
};

}  // namespace ikat::emulator
