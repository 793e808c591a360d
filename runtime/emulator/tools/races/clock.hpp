// SPDX-License-Identifier: Apache-2.0
// Happens-before by vector clocks. The agents of a block are its warps and what works behind their instructions: the
// copies of a warp, the copies that arrive at a barrier, the products of a warpgroup. All stamps of a block come from
// one counter. An access carries its agent's stamp, which grows whenever the agent releases what it has done, so that
// it is known to who has a larger or equal stamp of that agent in its clock.
//
//     warp 0   st [x] (stamp 4)   arrive: publishes 4                      from now on stamp 7
//     warp 1                      wait: its clock has 4 for warp 0         ld [x]: 4 <= 4, ordered
// A clock is of a warp. What only some of its lanes know, or what is known of only some lanes of another, stands beside
// it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace ikat::emulator::races {

using Stamp = std::uint32_t;
inline constexpr Stamp most_stamp = (1 << 28) - 2;
inline constexpr unsigned most_agents = 64;
/// Instead of an agent: what is known of all warps.
inline constexpr std::uint8_t several_warps = most_agents - 1;

class Clock {
public:
    /// All that has been done up to a stamp is known.
    explicit Clock(Stamp stamp = 0) { agents_.fill(stamp); }
    /// The stamp up to which all that an agent has done is known.
    Stamp of(unsigned agent) const { return agents_[agent]; }
    /// Whether what these lanes of an agent have done at a stamp is known.
    bool covers(unsigned agent, std::uint32_t lanes, Stamp stamp) const {
        if (stamp <= agents_[agent]) return true;
        for (const OfLanes& each : lanes_)
            if (each.agent == agent && each.stamp >= stamp) lanes &= ~each.lanes;
        return lanes == 0;
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
    void join(const Clock& other) {
        for (unsigned i = 0; i < most_agents; ++i) agents_[i] = std::max(agents_[i], other.agents_[i]);
        for (const OfLanes& each : other.lanes_) learn(each.agent, each.lanes, each.stamp);
    }

private:
    struct OfLanes {
        std::uint8_t agent = 0;
        std::uint32_t lanes = 0;
        Stamp stamp = 0;
    };
    std::array<Stamp, most_agents> agents_{};
    std::vector<OfLanes> lanes_;
};

}  // namespace ikat::emulator::races
