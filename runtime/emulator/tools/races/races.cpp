// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/races/races.hpp"

#include <algorithm>
#include <bit>

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/ops/warpgroup.hpp"

namespace ikat::emulator::races {

namespace {

template <class F>
void each_lane(std::uint32_t lanes, F f) {
    for (; lanes; lanes &= lanes - 1) f(unsigned(std::countr_zero(lanes)));
}

/// The op as the plain code has it.
std::uint32_t place_of(const Warp* w, const MicroOp* op) {
    const std::uint32_t at = w->index_of(op);
    return w->definedness ? w->definedness->plain_of[at] : at;
}

}  // namespace

void BlockRaces::start() {
    const std::size_t count = block_.warps().size();
    written_ = block_.shared_written().data();
    if (shadow_.words() == 0 || now_ > most_stamp / 2) {
        shadow_.clear(2 * block_.shared_written().size() + 4, facts_.exact);
        now_ = 0;
        is_spent_ = false;
    }
    // What blocks before this one have done is known to all.
    warps_.clear();
    for (std::size_t i = 0; i < count; ++i) warps_.emplace_back(now_);
    ended_ = Clock(now_);
    tick();
    agents_.assign(count, {.is_warp = true});
    behind_.clear();
    operations_.clear();
    meetings_.clear();
    found_.reset();
}

// ---- what warps know

unsigned BlockRaces::agent_of(Behind kind, std::uint64_t number) {
    const auto [found, is_new] = behind_.try_emplace({kind, number}, unsigned(agents_.size()));
    constexpr unsigned most = several_warps;
    if (is_new && agents_.size() < most) agents_.emplace_back();
    // If there are more, the last ones share agents: what one has ended counts as ended by all of these.
    found->second = std::min(found->second, most - 1);
    return found->second;
}

Clock& BlockRaces::clock_of(unsigned warp, unsigned lane) {
    OfWarp& of = warps_[warp];
    if (!of.more[lane]) of.more[lane] = std::make_unique<Clock>(of.common);
    return *of.more[lane];
}

Knower BlockRaces::knower(unsigned warp, unsigned lane) const {
    const OfWarp& of = warps_[warp];
    return {.clock = of.more[lane] ? of.more[lane].get() : &of.common,
            .self = warp,
            .lanes = 1u << lane,
            .copies = of.copies_agent,
            .awaited = of.awaited[lane]};
}

/// Of the copies of a warp those that lanes have awaited.
void BlockRaces::publish_copies(unsigned warp, std::uint32_t lanes, bool is_all, Clock& to) {
    const OfWarp& of = warps_[warp];
    const unsigned agent = of.copies_agent;
    if (agent == most_agents) return;
    if (!is_all)
        return each_lane(lanes, [&](unsigned lane) {
            if (of.awaited[lane]) to.learn(agent, 1u << lane, of.awaited[lane]);
        });
    to.learn(agent, of.all_awaited);
    for (const std::uint64_t number : of.copies) {
        const Operation& copy = operations_.at(number);
        if (copy.awaited) to.learn(agent, copy.awaited, copy.stamp);
    }
}

/// Lanes release what they know and what they have done.
void BlockRaces::publish(const Warp& warp, std::uint32_t lanes, Clock& to) {
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
        to.learn(warp.index, of.stamp);
    else
        to.learn(warp.index, lanes, of.stamp);
    publish_copies(warp.index, lanes, is_all, to);
}

/// All lanes of a warp meet.
void BlockRaces::gather(const Warp& warp) {
    OfWarp& of = warps_[warp.index];
    for (auto& more : of.more) {
        if (!more) continue;
        of.common.join(*more);
        more.reset();
    }
    of.common.learn(warp.index, of.stamp);
    publish_copies(warp.index, all_lanes, true, of.common);
}

/// Up to which stamp all that warps have done, or ever will do with such a stamp, is known to the warp.
void BlockRaces::find_several(unsigned warp) {
    Clock& clock = warps_[warp].common;
    Stamp known = now_;
    for (unsigned each = 0; each < warps_.size(); ++each)
        if (agents_[each].last > clock.of(each))
            known = std::min(known, clock.of(each));
        else if (!agents_[each].has_ended)
            known = std::min(known, warps_[each].stamp - 1);
    clock.learn(several_warps, known);
}

// ---- meetings

void BlockRaces::meet(const Warp& warp, std::uint32_t lanes) {
    OfWarp& of = warps_[warp.index];
    if (is_all(warp, lanes)) {
        gather(warp);
    } else {
        Clock together;
        publish(warp, lanes, together);
        each_lane(lanes, [&](unsigned lane) { clock_of(warp.index, lane) = together; });
    }
    of.stamp = tick();
    find_several(warp.index);
}

void BlockRaces::arrive(const Warp& warp, std::uint32_t lanes, const Meeting& meeting, bool waits) {
    OfWarp& of = warps_[warp.index];
    Known& known = at(meeting);
    if (waits) {
        gather(warp);
        known.arrived.join(of.common);
        known.waiting |= std::uint64_t{1} << warp.index;
    } else {
        publish(warp, lanes, known.arrived);
        of.stamp = tick();
    }
}

void BlockRaces::complete(const Meeting& meeting, bool of_all) {
    Known& known = at(meeting);
    if (meeting.kind == Meeting::Kind::Mbarrier) return known.over.join(known.arrived);
    // Who waits does nothing until it leaves, with a larger stamp.
    const Stamp now = tick(), next = tick();
    for (std::uint64_t rest = known.waiting; rest; rest &= rest - 1) {
        known.arrived.learn(unsigned(std::countr_zero(rest)), now);
        warps_[std::size_t(std::countr_zero(rest))].stamp = next;
    }
    if (of_all) known.arrived.join(ended_);
    known.over = known.arrived;
    known.waiting = 0;
}

void BlockRaces::leave(const Warp& warp, std::uint32_t lanes, const Meeting& meeting) {
    OfWarp& of = warps_[warp.index];
    const Known& known = at(meeting);
    if (meeting.kind == Meeting::Kind::Mbarrier && !is_all(warp, lanes))
        return each_lane(lanes, [&](unsigned lane) { clock_of(warp.index, lane).join(known.over); });
    of.common.join(known.over);
    for (auto& more : of.more)
        if (more) more->join(known.over);
    find_several(warp.index);
}

void BlockRaces::end_warp(const Warp& warp) {
    gather(warp);
    ended_.join(warps_[warp.index].common);
    agents_[warp.index].has_ended = true;
}

// ---- what goes on behind instructions

void BlockRaces::await(const Warp& warp, std::uint32_t lanes, std::uint64_t number, bool) {
    const auto found = operations_.find(number);
    if (found == operations_.end()) return;
    Operation& operation = found->second;
    OfWarp& of = warps_[warp.index];
    if (operation.kind != Behind::Products) operation.left &= ~lanes;
    switch (operation.kind) {
        case Behind::Copies:
            each_lane(lanes, [&](unsigned lane) { of.awaited[lane] = std::max(of.awaited[lane], operation.stamp); });
            operation.awaited |= lanes;
            while (!of.copies.empty()) {
                const auto oldest = operations_.find(of.copies.front());
                if (oldest->second.awaited != oldest->second.lanes) break;
                of.all_awaited = oldest->second.stamp;
                operations_.erase(oldest);
                of.copies.pop_front();
            }
            return;
        case Behind::Products:
            of.common.learn(operation.agent, operation.stamp);
            for (auto& more : of.more)
                if (more) more->learn(operation.agent, operation.stamp);
            if (--operation.left == 0) operations_.erase(found);
            return;
        case Behind::Stores:
            each_lane(lanes, [&](unsigned lane) {
                clock_of(warp.index, lane).learn(operation.agent, 1u << lane, operation.stamp);
            });
            operations_.erase(found);
            return;
        case Behind::Loads: return;
    }
}

void BlockRaces::arrive_for(std::uint64_t number, std::uint32_t lanes, const Meeting& meeting) {
    const auto found = operations_.find(number);
    if (found == operations_.end()) return;
    Operation& operation = found->second;
    Clock& arrived = at(meeting).arrived;
    operation.left &= ~lanes;
    if (operation.kind == Behind::Copies) return arrived.learn(operation.agent, lanes, operation.stamp);
    arrived.learn(operation.agent, operation.stamp);
    operations_.erase(found);
}

/// Whether it is a copy's write that has not ended: using its bytes is a finding of its own.
bool BlockRaces::is_in_flight(const Access& access) const {
    if (!access.writes || agents_[access.agent].is_warp) return false;
    return std::ranges::any_of(operations_, [&](const auto& each) {
        const Operation& operation = each.second;
        return operation.agent == access.agent && operation.stamp == access.stamp && (operation.left & access.lanes);
    });
}

bool BlockRaces::access(const AgentAccess& access) {
    if (is_spent_ || access.owner != &block_ || !access.operation || access.of == AgentAccess::Of::Arrival) return true;
    if (&block_of(access.w) != &block_) return true;  // what other blocks of the cluster do is not known
    const unsigned warp = access.w->index;
    const bool is_product = access.of == AgentAccess::Of::Product, is_copy = access.of == AgentAccess::Of::Copy;
    const Behind kind = is_copy                               ? Behind::Copies
                        : is_product                          ? Behind::Products
                        : access.direction == Direction::Read ? Behind::Stores
                                                              : Behind::Loads;
    const unsigned agent = kind == Behind::Loads      ? agent_of(kind, access.barrier)
                           : kind == Behind::Products ? agent_of(kind, warp / warps_of_group)
                                                      : agent_of(kind, warp);
    const auto [found, is_new] = operations_.try_emplace(access.operation);
    Operation& operation = found->second;
    if (is_new) {
        operation = {
            .agent = std::uint8_t(agent), .kind = kind, .lanes = access.lanes, .left = access.lanes, .stamp = tick()};
        if (is_copy) {
            constexpr std::size_t most = 4096;  // of those that arrive at barriers nobody may await any
            auto& copies = warps_[warp].copies;
            if (copies.size() == most) {
                operations_.erase(copies.front());
                copies.pop_front();
            }
            copies.push_back(access.operation);
            warps_[warp].copies_agent = agent;
        }
        if (is_product) operation.left = warps_of_group;
    }
    agents_[agent].last = operation.stamp;
    const Stamp stamp = operation.stamp;
    std::uint32_t rest = access.lanes;
    for (const AgentAccess::Range& range : access.ranges) {
        const auto lane = unsigned(std::countr_zero(rest));
        if (is_copy) rest &= rest - 1;
        Knower by = knower(warp, lane);
        if (is_product) by.lanes = all_lanes;
        const Access now{.stamp = stamp,
                         .op = place_of(access.w, access.op),
                         .lanes = 1u << lane,
                         .agent = std::uint8_t(agent),
                         .writes = access.direction != Direction::Read,
                         .is_strong = access.direction == Direction::Atomic};
        const std::size_t byte = 8 * std::size_t(range.bits - written_) + range.offset;
        if (!touch(access.op, access.w, now, by, byte, range.bytes, range.address)) return false;
    }
    return true;
}

// ---- accesses

bool BlockRaces::access(const MicroOp* op, Warp* w, const LaneAccess& how, const std::uint64_t* addresses,
                        std::uint32_t lanes) {
    if (is_spent_) return true;
    const OfWarp& of = warps_[w->index];
    agents_[w->index].last = of.stamp;
    Access now{.stamp = of.stamp,
               .op = place_of(w, op),
               .agent = std::uint8_t(w->index),
               .writes = how.direction != Direction::Read,
               .is_strong = how.is_strong,
               .is_of_all = how.is_of_all};
    const View* view = nullptr;
    std::size_t first = 0;  // byte of the view, in the shadow
    for (; lanes; lanes &= lanes - 1) {
        const auto lane = unsigned(std::countr_zero(lanes));
        if (!view || addresses[lane] - view->base >= view->bytes) {
            view = &w->windows[int(Space::Shared)].at(addresses[lane]);
            first = 8 * std::size_t(view->bits - written_);
        }
        const std::uint64_t at = addresses[lane] - view->base;
        if (!view->bits || view->bytes < how.bytes || at > view->bytes - how.bytes) continue;  // a finding of its own
        if (view->bits == block_.reserved_written().data()) continue;  // which cooperative groups use in their own way
        now.lanes = 1u << lane;
        if (!touch(op, w, now, knower(w->index, lane), first + at, how.bytes, addresses[lane])) return false;
    }
    return true;
}

/// Bytes of the block's shared memory, from one on. False after a finding that stops the warp.
bool BlockRaces::touch(const MicroOp* op, Warp* w, const Access& access, const Knower& by, std::size_t byte,
                       std::uint32_t bytes, std::uint64_t address) {
    if (byte % 4 == 0 && bytes % 4 == 0) {
        for (std::uint32_t i = 0; i < bytes; i += 4)
            if (const Access* const before = shadow_.access((byte + i) / 4, access, by);
                before && !is_in_flight(*before))
                return report(op, w, access, *before, address + i);
        return true;
    }
    Access now = access;
    for (std::size_t end = byte + bytes; byte < end;) {
        const std::size_t first = byte % 4, here = std::min(4 - first, end - byte);
        now.bytes = std::uint8_t(((1u << here) - 1) << first);
        if (const Access* const before = shadow_.access(byte / 4, now, by); before && !is_in_flight(*before))
            return report(op, w, now, *before, address);
        byte += here;
        address += here;
    }
    return true;
}

}  // namespace ikat::emulator::races
