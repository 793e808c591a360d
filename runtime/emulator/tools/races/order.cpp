// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/races/order.hpp"

#include <algorithm>
#include <bit>

#include "runtime/emulator/ops/matrix/warpgroup.hpp"

namespace ikat::emulator::races {

AsyncWork async_work_of(const AgentAccess& access) {
    using Of = AgentAccess::Of;
    const bool reads = access.direction == Direction::Read;
    if (access.of == Of::Copy) return AsyncWork::Copies;
    if (access.of == Of::Product) return AsyncWork::Products;
    if (access.numbered_by) return AsyncWork::Loads;
    if (!access.owner && !reads) return AsyncWork::StoredTo;
    return reads ? AsyncWork::Stores : AsyncWork::Loads;
}

// ---- of a launch

std::uint64_t LaunchOrder::cluster_of(std::uint64_t block) const {
    const auto &grid = state_.launch.grid, &size = state_.kernel.cluster;
    const std::uint64_t x = block % grid[0], y = block / grid[0] % grid[1], z = block / grid[0] / grid[1];
    return x / size[0] + grid[0] / size[0] * (y / size[1] + grid[1] / size[1] * (z / size[2]));
}

bool LaunchOrder::reaches(Scope scope, std::uint64_t one, std::uint64_t other) const {
    switch (scope) {
        case Scope::Thread: return false;
        case Scope::Block: return one == other;
        case Scope::Cluster: return one == other || (other != Release::several && cluster_of(one) == cluster_of(other));
        case Scope::Device:
        case Scope::System: break;
    }
    return true;
}

bool Order::start() {
    const bool again = now_ > max_stamp / 2;
    if (again) now_ = 0, is_spent_ = false;
    // What blocks before this one have done is known to all.
    warps_.clear();
    for (std::size_t i = 0; i < block_.warps().size(); ++i) warps_.emplace_back(now_);
    ended_ = Clock(now_);
    base_ = BlockClock(now_);
    agents_.assign(warps_.size(), {.is_warp = true, .stamp = now_ + 1});
    tick();
    async_agents_.clear();
    operations_.clear();
    meetings_.clear();
    return again;
}

// ---- what warps know

unsigned Order::agent_of(AsyncWork kind, std::uint64_t number) {
    const auto [found, is_new] = async_agents_.try_emplace({kind, number}, unsigned(agents_.size()));
    constexpr unsigned max_count = several_warps;
    if (is_new && agents_.size() < max_count) agents_.emplace_back();
    // If there are more, the last ones share agents: what one has ended counts as ended by all of these.
    found->second = std::min(found->second, max_count - 1);
    return found->second;
}

Clock& Order::clock_of(unsigned warp, unsigned lane) {
    OfWarp& of = warps_[warp];
    if (!of.more[lane]) of.more[lane] = std::make_unique<Clock>(of.common);
    return *of.more[lane];
}

const Clock* Order::common_clock(unsigned warp) const {
    const OfWarp& of = warps_[warp];
    const auto knows_more = [](const auto& more) { return more != nullptr; };
    return std::ranges::any_of(of.more, knows_more) ? nullptr : &of.common;
}

Knower Order::knower(unsigned warp, unsigned lane) const {
    const OfWarp& of = warps_[warp];
    return {.clock = of.more[lane] ? of.more[lane].get() : &of.common,
            .common = &of.common,
            .block = block_.index(),
            .self = warp,
            .base = keeps_base_ ? &base_ : nullptr,
            .lanes = 1u << lane,
            .copies = of.copies_agent,
            .awaited = of.awaited[lane]};
}

/// Of the copies of a warp those that lanes have awaited.
void Order::publish_copies(unsigned warp, std::uint32_t lanes, bool is_all, Clock& to) {
    const OfWarp& of = warps_[warp];
    const unsigned agent = of.copies_agent;
    if (agent == max_agents) return;
    if (!is_all)
        return each_lane(lanes, [&](unsigned lane) {
            if (of.awaited[lane]) to.learn(agent, 1u << lane, of.awaited[lane]);
        });
    to.learn(agent, of.all_awaited);
    for (const std::uint64_t number : of.copies) {
        const Operation& copy = operations_.at(key_of(number, false));
        if (copy.awaited) to.learn(agent, copy.awaited, copy.stamp);
    }
}

/// Lanes release what they know and what they have done.
void Order::publish(const Warp& warp, std::uint32_t lanes, Clock& to) {
    OfWarp& of = warps_[warp.index];
    const bool is_all = this->is_all(warp, lanes);
    const auto with_more = [&](unsigned lane) { return of.more[lane] != nullptr; };
    bool needs_common = is_all;
    each_lane(is_all ? all_lanes : lanes, [&](unsigned lane) {
        if (with_more(lane))
            to.join(*of.more[lane]);
        else
            needs_common = true;
    });
    if (needs_common) to.join(of.common);
    if (is_all)
        to.learn(warp.index, agents_[warp.index].stamp);
    else
        to.learn(warp.index, lanes, agents_[warp.index].stamp);
    publish_copies(warp.index, lanes, is_all, to);
}

/// All lanes of a warp meet.
void Order::gather(const Warp& warp) {
    OfWarp& of = warps_[warp.index];
    for (auto& more : of.more) {
        if (!more) continue;
        of.common.join(*more);
        more.reset();
    }
    of.common.learn(warp.index, agents_[warp.index].stamp);
    publish_copies(warp.index, all_lanes, true, of.common);
}

/// Up to which stamp all that warps have done, or ever will do with such a stamp, is known to the warp.
void Order::find_several(unsigned warp) {
    Clock& clock = warps_[warp].common;
    Stamp known = now_;
    for (unsigned each = 0; each < warps_.size(); ++each)
        if (agents_[each].last > clock.of(each))
            known = std::min(known, clock.of(each));
        else if (!agents_[each].has_ended)
            known = std::min(known, agents_[each].stamp - 1);
    clock.learn(several_warps, known);
}

// ---- meetings

void Order::meet(const Warp& warp, std::uint32_t lanes) {
    if (is_all(warp, lanes)) {
        gather(warp);
    } else {
        Clock together;
        publish(warp, lanes, together);
        each_lane(lanes, [&](unsigned lane) { clock_of(warp.index, lane) = together; });
    }
    agents_[warp.index].stamp = tick();
    find_several(warp.index);
}

void Order::exchange(const Warp& warp, std::uint32_t lanes) {
    OfAgent& agent = agents_[warp.index];
    OfWarp& of = warps_[warp.index];
    if (lanes == all_lanes)
        of.exchange_of_all = agent.last;
    else
        each_lane(lanes, [&](unsigned lane) { of.exchanges[lane] = {lanes, agent.last}; });
    if (agent.last == agent.stamp) agent.stamp = tick();
}

void Order::arrive(const Warp& warp, std::uint32_t lanes, const Meeting& meeting, bool waits) {
    if (meeting.kind == Meeting::Kind::Cluster) return;  // see release
    Known& known = at(meeting);
    if (Order& theirs = launch_.order_of(block_of(&warp)); &theirs != this) {
        Clock clock;
        theirs.publish(warp, lanes, clock);
        theirs.agents_[warp.index].stamp = theirs.tick();
        return known.arrived.join(clock.blocks(theirs.block_.index()), block_.index());
    }
    OfWarp& of = warps_[warp.index];
    if (waits) {
        gather(warp);
        known.arrived.join(of.common);
        known.waiting |= std::uint64_t{1} << warp.index;
    } else {
        publish(warp, lanes, known.arrived);
        agents_[warp.index].stamp = tick();
    }
}

/// At the cluster's barrier.
void Order::release(const Warp& warp) {
    gather(warp);
    LaunchOrder::Cluster& cluster = launch_.clusters[launch_.cluster_of(block_.index())];
    cluster.arrived = joined(cluster.arrived, warps_[warp.index].common.blocks(block_.index()));
    agents_[warp.index].stamp = tick();
}

void Order::complete(const Meeting& meeting, bool of_all) {
    if (meeting.kind == Meeting::Kind::Cluster) {
        LaunchOrder::Cluster& cluster = launch_.clusters[launch_.cluster_of(block_.index())];
        cluster.over = cluster.arrived;
        return;
    }
    Known& known = at(meeting);
    if (meeting.kind == Meeting::Kind::Mbarrier) return known.over.join(known.arrived);
    // Who waits does nothing until it leaves, with a larger stamp.
    const Stamp now = tick(), next = tick();
    for (std::uint64_t rest = known.waiting; rest; rest &= rest - 1) {
        known.arrived.learn(unsigned(std::countr_zero(rest)), now);
        agents_[std::size_t(std::countr_zero(rest))].stamp = next;
    }
    if (of_all) known.arrived.join(ended_);
    known.over = known.arrived;
    known.leaving = of_all ? known.waiting : 0;
    known.waiting = 0;
}

/// What all lanes of all warps know.
void Order::find_base() {
    bool is_first = true;
    for (std::size_t i = 0; i < warps_.size(); ++i) {
        if (agents_[i].has_ended) continue;
        if (is_first)
            base_ = warps_[i].common;
        else
            base_.keep_common(warps_[i].common);
        is_first = false;
    }
}

void Order::leave(const Warp& warp, std::uint32_t lanes, const Meeting& meeting) {
    OfWarp& of = warps_[warp.index];
    if (meeting.kind == Meeting::Kind::Cluster) {
        gather(warp);
        of.common.join(launch_.clusters[launch_.cluster_of(block_.index())].over, block_.index());
        agents_[warp.index].stamp = tick();
        return find_several(warp.index);
    }
    Known& known = at(meeting);
    if (meeting.kind == Meeting::Kind::Mbarrier && !is_all(warp, lanes))
        return each_lane(lanes, [&](unsigned lane) { clock_of(warp.index, lane).join(known.over); });
    of.common.join(known.over);
    for (auto& more : of.more)
        if (more) more->join(known.over);
    find_several(warp.index);
    if (!keeps_base_ || !known.leaving) return;
    known.leaving &= ~(std::uint64_t{1} << warp.index);
    if (!known.leaving) find_base();
}

void Order::end_warp(const Warp& warp) {
    gather(warp);
    const Clock& clock = warps_[warp.index].common;
    ended_.join(clock);
    agents_[warp.index].has_ended = true;
    if (block_.peers() == 1) return;
    LaunchOrder::Cluster& cluster = launch_.clusters[launch_.cluster_of(block_.index())];
    cluster.arrived = joined(cluster.arrived, clock.blocks(block_.index()));
}

// ---- asynchronous work

const Order::Operation& Order::begin(std::uint64_t number, AsyncWork kind, unsigned warp, std::uint32_t lanes,
                                     std::uint64_t barrier) {
    const auto [found, is_new] = operations_.try_emplace(key_of(number, kind == AsyncWork::StoredTo));
    Operation& operation = found->second;
    if (is_new) {
        const unsigned agent = agent_of(kind, kind == AsyncWork::Loads      ? barrier
                                              : kind == AsyncWork::Products ? warp / warps_of_group
                                                                            : warp);
        operation = {.agent = std::uint8_t(agent),
                     .kind = kind,
                     .lanes = lanes,
                     .left = kind == AsyncWork::Products ? warps_of_group : lanes,
                     .stamp = tick()};
        if (kind == AsyncWork::Copies) {
            constexpr std::size_t max_copies = 4096;  // of those that arrive at barriers nobody may await any
            auto& copies = warps_[warp].copies;
            if (copies.size() == max_copies) {
                operations_.erase(key_of(copies.front(), false));
                copies.pop_front();
            }
            copies.push_back(number);
            warps_[warp].copies_agent = agent;
        }
        agents_[agent].last = operation.stamp;
        return operations_.at(key_of(number, kind == AsyncWork::StoredTo));
    }
    return operation;
}

void Order::await(const Warp& warp, std::uint32_t lanes, std::uint64_t number, bool reads) {
    await_one(warp, lanes, key_of(number, false));
    if (!reads) await_one(warp, lanes, key_of(number, true));
}

void Order::await_one(const Warp& warp, std::uint32_t lanes, std::uint64_t key) {
    const auto found = operations_.find(key);
    if (found == operations_.end()) return;
    Operation& operation = found->second;
    OfWarp& of = warps_[warp.index];
    if (operation.kind != AsyncWork::Products) operation.left &= ~lanes;
    switch (operation.kind) {
        case AsyncWork::Copies:
            each_lane(lanes, [&](unsigned lane) { of.awaited[lane] = std::max(of.awaited[lane], operation.stamp); });
            operation.awaited |= lanes;
            while (!of.copies.empty()) {
                const auto oldest = operations_.find(key_of(of.copies.front(), false));
                if (oldest->second.awaited != oldest->second.lanes) break;
                of.all_awaited = oldest->second.stamp;
                operations_.erase(oldest);
                of.copies.pop_front();
            }
            return;
        case AsyncWork::Products:
            of.common.learn(operation.agent, operation.stamp);
            for (auto& more : of.more)
                if (more) more->learn(operation.agent, operation.stamp);
            if (--operation.left == 0) operations_.erase(found);
            return;
        case AsyncWork::Stores:
        case AsyncWork::StoredTo:
            each_lane(lanes, [&](unsigned lane) {
                clock_of(warp.index, lane).learn(operation.agent, 1u << lane, operation.stamp);
            });
            operations_.erase(found);
            return;
        case AsyncWork::Loads: return;
    }
}

void Order::arrive_for(std::uint64_t number, std::uint32_t lanes, const Meeting& meeting) {
    const auto found = operations_.find(key_of(number, false));
    if (found == operations_.end()) return;
    Operation& operation = found->second;
    Clock& arrived = at(meeting).arrived;
    operation.left &= ~lanes;
    if (operation.kind == AsyncWork::Copies) return arrived.learn(operation.agent, lanes, operation.stamp);
    arrived.learn(operation.agent, operation.stamp);
    operations_.erase(found);
}

bool Order::is_in_flight(unsigned agent, Stamp stamp, std::uint32_t lanes) const {
    if (is_warp(agent)) return false;
    return std::ranges::any_of(operations_, [&](const auto& each) {
        const Operation& operation = each.second;
        return operation.agent == agent && operation.stamp == stamp && (operation.left & lanes);
    });
}

}  // namespace ikat::emulator::races
