// SPDX-License-Identifier: Apache-2.0
// Happens-before by vector clocks. The agents of a block are its warps and their asynchronous work: the
// copies of a warp, the copies that arrive at a barrier, the products of a warpgroup. All stamps of a block come from
// one counter. An access carries its agent's stamp, which grows whenever the agent releases what it has done, so that
// it is known to who has a larger or equal stamp of that agent in its clock.
//
//     warp 0   st [x] (stamp 4)   arrive: publishes 4                      from now on stamp 7
//     warp 1                      wait: its clock has 4 for warp 0         ld [x]: 4 <= 4, ordered
// A clock is of a warp. What only some of its lanes know, or what is known of only some lanes of another, is kept
// beside it. What is known of other blocks is a clock for each of them, shared by all who know the same.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace ikat::emulator::races {

using Stamp = std::uint32_t;
inline constexpr Stamp max_stamp = (1 << 28) - 2;
inline constexpr unsigned max_agents = 64;
/// Instead of an agent: what is known of all warps.
inline constexpr std::uint8_t several_warps = max_agents - 1;

/// What is known of the agents of a block.
class BlockClock {
public:
    /// All that has been done up to a stamp is known.
    explicit BlockClock(Stamp stamp = 0) { agents_.fill(stamp); }
    /// The stamp up to which all that an agent has done is known.
    Stamp of(unsigned agent) const { return agents_[agent]; }
    /// Of these lanes of an agent those of which it is not known what they have done up to a stamp.
    std::uint32_t unknown(unsigned agent, std::uint32_t lanes, Stamp stamp) const {
        if (stamp <= agents_[agent]) return 0;
        for (const OfLanes& each : lanes_)
            if (each.agent == agent && each.stamp >= stamp) lanes &= ~each.lanes;
        return lanes;
    }
    /// Whether the other clock knows nothing more.
    bool covers(const BlockClock& other) const {
        const auto is_known = [&](const OfLanes& each) { return !unknown(each.agent, each.lanes, each.stamp); };
        return std::ranges::equal(other.agents_, agents_, std::ranges::less_equal()) &&
               std::ranges::all_of(other.lanes_, is_known);
    }
    /// What the other knows, too, is left, but for what is kept beside it.
    void keep_common(const BlockClock& other) {
        for (unsigned i = 0; i < max_agents; ++i) agents_[i] = std::min(agents_[i], other.agents_[i]);
        lanes_.clear();
    }
    void learn(unsigned agent, Stamp stamp) { agents_[agent] = std::max(agents_[agent], stamp); }
    void learn(unsigned agent, std::uint32_t lanes, Stamp stamp) {
        if (stamp <= agents_[agent]) return;
        for (OfLanes& each : lanes_) {
            if (each.agent != agent) continue;
            if (each.stamp == stamp) return void(each.lanes |= lanes);
            if (each.stamp < stamp) each.lanes &= ~lanes;
        }
        std::erase_if(lanes_,
                      [&](const OfLanes& each) { return each.lanes == 0 || each.stamp <= agents_[each.agent]; });
        lanes_.push_back({std::uint8_t(agent), lanes, stamp});
    }
    void join(const BlockClock& other) {
        for (unsigned i = 0; i < max_agents; ++i) agents_[i] = std::max(agents_[i], other.agents_[i]);
        for (const OfLanes& each : other.lanes_) learn(each.agent, each.lanes, each.stamp);
    }

private:
    struct OfLanes {
        std::uint8_t agent = 0;
        std::uint32_t lanes = 0;
        Stamp stamp = 0;
    };
    std::array<Stamp, max_agents> agents_{};
    std::vector<OfLanes> lanes_;
};

/// What a fence of proxies shows to the asynchronous proxy of what its thread knows: accesses of global memory, of the
/// shared memory of the cluster, of that of its block of a rank.
inline constexpr unsigned shows_global = 1, shows_shared = 2, shows_shared_of = 3;
/// The number, among blocks, of what is known of one after such a fence. 0: without.
constexpr std::uint64_t shown(std::uint64_t block, unsigned by) { return block | std::uint64_t{by} << 56; }

/// What is known of blocks, by their numbers. Nobody changes one that others may have; nullptr: nothing.
using Blocks = std::map<std::uint64_t, std::shared_ptr<const BlockClock>>;
using KnownBlocks = std::shared_ptr<const Blocks>;
/// What is in either.
KnownBlocks joined(const KnownBlocks& a, const KnownBlocks& b);

/// What is known of the agents of the own block, and of other blocks.
class Clock : public BlockClock {
public:
    using BlockClock::BlockClock;
    void join(const Clock& other) {
        BlockClock::join(other);
        if (other.others_) others_ = joined(others_, other.others_);
    }
    /// What is known of blocks, one of which is the clock's own.
    void join(const KnownBlocks& blocks, std::uint64_t own);
    /// All of it, for clocks of other blocks.
    KnownBlocks blocks(std::uint64_t own) const;
    /// By a fence, all that is known is shown, too, and what lanes of an agent have done themselves up to a stamp.
    void show(std::uint64_t own, unsigned by, unsigned agent, std::uint32_t lanes, Stamp stamp);
    std::uint32_t unknown_of(std::uint64_t block, unsigned agent, std::uint32_t lanes, Stamp stamp) const {
        if (!others_) return lanes;
        const auto found = others_->find(block);
        return found == others_->end() ? lanes : found->second->unknown(agent, lanes, stamp);
    }

private:
    KnownBlocks others_;
};

/// Who accesses: lanes of an agent, and what they know.
struct Knower {
    const Clock* clock = nullptr;
    const Clock* common = nullptr;  // what all lanes of the warp know
    std::uint64_t block = 0;
    unsigned self = 0;                 // the agent: they know what they have done themselves
    const BlockClock* base = nullptr;  // what all warps of the block know, as far as it is kept
    std::uint32_t lanes = 0;
    unsigned copies = max_agents;  // the agent of their own copies, of which they know those up to a stamp
    Stamp awaited = 0;

    bool is_known_to_all(unsigned agent, Stamp stamp) const { return base && stamp <= base->of(agent); }
    /// Any lane of the warp, in what it knows at least.
    Knower any_lane() const { return {.clock = common, .common = common, .block = block, .self = self}; }
    /// Of lanes of an agent of the own block those of which it is not known what they have done up to a stamp.
    /// `together`: they have done it as one, and each continues when it is over.
    std::uint32_t unknown(unsigned agent, std::uint32_t lanes_then, Stamp stamp, bool together) const {
        if (stamp <= clock->of(agent)) return 0;
        std::uint32_t rest = lanes_then;
        if (agent == self) rest &= together ? 0 : ~lanes;
        if (agent == copies && stamp <= awaited) rest &= ~lanes;
        return clock->unknown(agent, rest, stamp);
    }
};

}  // namespace ikat::emulator::races
