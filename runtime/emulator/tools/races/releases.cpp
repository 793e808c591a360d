// SPDX-License-Identifier: Apache-2.0
// Fences, and what they order around the accesses between them: release and acquire.
#include <algorithm>

#include "runtime/emulator/tools/races/order.hpp"

namespace ikat::emulator::races {

void Order::fence(const Warp& warp, std::uint32_t lanes, const Synchronises& how) {
    if (how.acquires) see(warp, lanes, how);
    if (how.releases) remember(warp, lanes, how);
}

/// What lanes know now is what others will who see what they write strongly from now on.
void Order::remember(const Warp& warp, std::uint32_t lanes, const Synchronises& how) {
    OfWarp& of = warps_[warp.index];
    for (Fence& each : of.fences)
        if (each.scope <= how.scope && (each.of_access || !how.of_access)) each.lanes &= ~lanes;
    std::erase_if(of.fences, [](const Fence& each) { return !each.lanes; });
    Fence common{.scope = how.scope, .of_access = how.of_access, .stamp = agents_[warp.index].stamp};
    if (of.copies_agent != max_agents) common.awaited = of.awaited;
    each_lane(lanes, [&](unsigned lane) {
        if (!of.more[lane]) return void(common.lanes |= 1u << lane);
        Fence own = common;
        own.lanes = 1u << lane;
        own.base = std::make_shared<Clock>(*of.more[lane]);
        of.fences.push_back(own);
    });
    if (common.lanes) {
        common.base = std::make_shared<Clock>(of.common);
        of.fences.push_back(common);
    }
    agents_[warp.index].stamp = tick();
}

/// What lanes have seen they know from now on.
void Order::see(const Warp& warp, std::uint32_t lanes, const Synchronises& how) {
    OfWarp& of = warps_[warp.index];
    lanes &= of.sees;
    if (!lanes) return;
    each_lane(lanes, [&](unsigned lane) {
        std::vector<Seen>& seen = of.seen[lane];
        std::erase_if(seen, [&](const Seen& each) {
            const auto [first, end] = of.last_used[lane];
            if (how.of_access && (each.location < first || each.location >= end)) return false;
            const Scope scope = std::min(each.by, how.scope);
            if (launch_.reaches(scope, block_.index(), each.release.block) &&
                launch_.reaches(each.release.scope, each.release.block, block_.index()))
                clock_of(warp.index, lane).join(each.release.known, block_.index());
            else if (std::ranges::find(of.refused, each.release.known) == of.refused.end() && of.refused.size() < 16)
                of.refused.push_back(each.release.known);
            return true;
        });
        if (seen.empty()) of.sees &= ~(1u << lane);
    });
    agents_[warp.index].stamp = tick();
}

/// Calls f(location) for each word that is accessed, or for the place of a smaller one.
template <class F>
void each_location(std::uint64_t location, std::uint32_t bytes, F f) {
    for (std::uint32_t at = 0; at < bytes; at += 4) f(location + at);
}

void Order::overwrite(std::uint64_t location, std::uint32_t bytes) {
    if (launch_.locations.empty()) return;
    each_location(location, bytes, [&](std::uint64_t at) { launch_.locations.erase(at); });
}

/// A lane sees what others have released at a location.
void Order::see_at(OfWarp& of, unsigned lane, std::uint64_t location, Scope scope) {
    const auto found = launch_.locations.find(location);
    if (found == launch_.locations.end()) return;
    for (const Release& release : found->second) {
        std::vector<Seen>& seen = of.seen[lane];
        const auto same = std::ranges::find_if(seen, [&](const Seen& each) {
            return each.location == location && each.by == scope && each.release.scope == release.scope &&
                   each.release.block == release.block;
        });
        if (same == seen.end())
            seen.push_back({location, scope, release});
        else
            same->release.known = joined(same->release.known, release.known);
        of.sees |= 1u << lane;
    }
}

void Order::release_at(std::uint64_t location, Scope reach, const KnownBlocks& known) {
    Releases& releases = launch_.locations[location];
    const auto same = std::ranges::find_if(releases, [&](const Release& each) {
        return each.scope == reach && (reach >= Scope::Device || each.block == block_.index());
    });
    if (same == releases.end()) return void(releases.push_back({reach, block_.index(), known}));
    same->known = joined(same->known, known);
    if (same->block != block_.index()) same->block = Release::several;
}

void Order::use(const Warp& warp, unsigned lane, std::uint64_t location, std::uint32_t bytes, Direction direction,
                Scope scope) {
    OfWarp& of = warps_[warp.index];
    const std::uint32_t self = 1u << lane;
    of.last_used[lane] = {location, location + bytes};
    if (direction != Direction::Write)
        each_location(location, bytes, [&](std::uint64_t at) { see_at(of, lane, at, scope); });
    if (direction == Direction::Read) return;
    if (direction == Direction::Write) overwrite(location, bytes);
    std::vector<Fence> kept;
    for (Fence& fence : of.fences) {
        if (!(fence.lanes & self) || (fence.only && fence.only != location)) continue;
        Clock clock = *fence.base;
        clock.learn(warp.index, self, fence.stamp);
        if (of.copies_agent != max_agents && fence.awaited[lane])
            clock.learn(of.copies_agent, self, fence.awaited[lane]);
        const KnownBlocks known = clock.blocks(block_.index());
        each_location(location, bytes, [&](std::uint64_t at) { release_at(at, std::min(fence.scope, scope), known); });
        if (!fence.of_access) continue;
        // What its thread stores there later is of the same release.
        kept.push_back(fence);
        kept.back().lanes = self;
        kept.back().of_access = false;
        kept.back().only = location;
        fence.lanes &= ~self;
    }
    constexpr std::size_t max_fences = 256;
    const bool are_many = of.fences.size() > max_fences;
    for (Fence& each : of.fences)
        if (each.only && (are_many || (!kept.empty() && each.only == location))) each.lanes &= ~self;
    std::erase_if(of.fences, [](const Fence& each) { return !each.lanes; });
    of.fences.insert(of.fences.end(), kept.begin(), kept.end());
}

bool Order::is_refused(unsigned warp, std::uint64_t block, unsigned agent, std::uint32_t lanes, Stamp stamp) const {
    return std::ranges::any_of(warps_[warp].refused, [&](const KnownBlocks& known) {
        const auto found = known->find(block);
        return found != known->end() && !found->second->unknown(agent, lanes, stamp);
    });
}

}  // namespace ikat::emulator::races
