// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/races/races.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ikat::emulator::races {

namespace {

unsigned first_of(std::uint32_t lanes) { return unsigned(std::countr_zero(lanes)) % warp_size; }

Context context_of(const Access& access, std::uint64_t block) {
    return {.block = block,
            .stamp = access.stamp,
            .op = access.op,
            .lanes = access.lanes,
            .agent = access.agent,
            .writes = access.writes,
            .is_strong = access.is_strong,
            .is_of_all = access.is_of_all};
}

}  // namespace

std::unique_ptr<BlockTool> LaunchRaces::of(ThreadBlock& block) {
    return std::make_unique<BlockRaces>(block, *this, slot_);
}

bool LaneAccess::stores(unsigned lane, std::uint64_t offset, std::uint64_t count, const std::byte* are) const {
    if (!stores()) return false;
    for (std::uint64_t i = 0; i < count; ++i)
        if (stored(lane, offset + i) != are[i]) return false;
    return true;
}

void BlockRaces::start() {
    written_ = block_.shared_written().data();
    if (order_.start() || shadow_.words() == 0)
        shadow_.clear(2 * block_.shared_written().size() + 4, launch_.facts.exact);
    if (wide_) wide_->clear();
    has_peer_writes_ = false;
    has_phases_ = !wide_ && !launch_.facts.exact && 4 * shadow_.words() <= Phase::max_bytes;
    phase_.start();
    alone_.locations.clear();
    found_.reset();
}

/// Whether it is the write of one of the block's copies that is not over: using its bytes is a finding of its own.
bool BlockRaces::is_in_flight(const Context& access, std::uint32_t lanes) const {
    return access.block == block_.index() && access.writes && order_.is_in_flight(access.agent, access.stamp, lanes);
}

/// An access to bytes of the block's shared memory, from one on. Calls f(conflict) for each race, until it returns
/// false.
template <class F>
bool BlockRaces::touch(const Access& access, const Knower& by, std::size_t byte, std::uint32_t bytes,
                       Shadow::Memo* memo, F f) {
    const std::size_t end = byte + bytes;
    Access now = access;
    const auto races = [&](std::size_t word, const Access& before) {
        const unsigned both = now.bytes & before.bytes;
        const std::size_t where = 4 * word + unsigned(std::countr_zero(both)) - byte;
        return f(Shadow::Conflict{before, where, unsigned(std::popcount(both))});
    };
    for (std::size_t at = byte; at < end;) {
        const std::size_t first = at % 4, here = std::min(4 - first, end - at), word = at / 4;
        if (here == 4) {
            now.bytes = Access::whole;
            if (!shadow_.access_words(word, end / 4, now, by, memo, races)) return false;
            at = end / 4 * 4;
            continue;
        }
        now.bytes = std::uint8_t(((1u << here) - 1) << first);
        const Access* const before = shadow_.access(word, now, by);
        if (before && !races(word, *before)) return false;
        at += here;
    }
    return true;
}

void BlockRaces::finish() {
    const std::lock_guard lock(launch_.mutex);
    if (wide_) counts_.unsure += wide_->unsure;
    launch_.counts += counts_;
    counts_ = {};
}

// ---- asynchronous work

bool BlockRaces::access(const AgentAccess& access) {
    using Of = AgentAccess::Of;
    const bool is_global = !access.owner;
    if (!access.operation || access.of == Of::Arrival || access.of == Of::TensorMap) return true;
    if (is_global && !launch_.facts.everywhere) return true;
    if (is_over()) return counts_.unchecked += access.ranges.size(), true;
    const unsigned warp = access.w->index;
    const bool is_product = access.of == Of::Product, is_copy = access.of == Of::Copy,
               reads = access.direction == Direction::Read;
    BlockRaces& in = access.numbered_by ? races_of(*access.numbered_by) : *this;
    const Order::Operation operation =
        in.order_.begin(access.operation, async_work_of(access), warp, access.lanes, access.barrier);
    const ThreadBlock& issuer = block_of(access.w);
    const Order& order = races_of(issuer).order_;
    const Context context{.block = in.block_.index(),
                          .stamp = operation.stamp,
                          .op = plain_index_of(access.w, access.op),
                          .lanes = is_copy ? access.lanes : 1u << first_of(access.lanes),
                          .agent = operation.agent,
                          .writes = !reads,
                          .is_strong = access.direction == Direction::Atomic,
                          .scope = Scope::Device};
    const LaneAccess how{.op = access.op, .w = access.w, .direction = access.direction};
    WideShadow* const wide = is_global ? &launch_.global : wide_ ? &*wide_ : nullptr;
    const Contexts::Id id = wide ? launch_.contexts.number(context) : 0;
    (is_global ? counts_.global : counts_.shared) += access.ranges.size();
    if (launch_.facts.has_proxies && access.by_async_proxy && (is_global || has_peer_writes_) &&
        !is_after_fences(access, *wide, order.knower(warp, first_of(access.lanes))))
        return false;
    std::uint32_t rest = access.lanes;
    Found found{.now = context, .is_async = true};
    Knower by;
    const auto take_lane = [&] {
        by = order.knower(warp, first_of(rest));
        if (is_product) by.lanes = all_lanes;
        found.now.lanes = rest & -rest;
    };
    take_lane();
    Shadow::Memo memo;
    WideShadow::Memo wide_memo;
    for (const AgentAccess::Range& range : access.ranges) {
        if (is_copy) take_lane(), rest &= rest - 1, memo.reset(), wide_memo = {};  // each by its own lane
        if (is_global && reads && launch_.facts.blocks_are_apart &&
            launch_.global.is_settled(range.address, range.bytes))
            continue;
        if (wide) {
            const auto found_one = [&](const WideShadow::Conflict& conflict) {
                found.before = conflict.before;
                found.before_lanes = conflict.lanes;
                if (!is_global && is_in_flight(conflict.before, conflict.lanes)) return true;
                const std::uint64_t at = is_global ? conflict.address : issuer.address_of(block_, conflict.address);
                return report(how, nullptr, is_global ? Space::Global : Space::Generic, at, conflict.bytes, found);
            };
            const std::uint64_t address = is_global ? range.address : range.place;
            if (!wide->access(address, range.bytes, id, found.now.lanes, by, wide_memo, found_one)) return false;
        } else if (!access_own(access, range, how, found, by, memo)) {
            return false;
        }
    }
    return true;
}

bool BlockRaces::access_own(const AgentAccess& access, const AgentAccess::Range& range, const LaneAccess& how,
                            Found& found, const Knower& by, Shadow::Memo& memo) {
    const Context& by_agent = found.now;
    const Access now{.stamp = by_agent.stamp,
                     .op = by_agent.op,
                     .lanes = by_agent.lanes,
                     .agent = by_agent.agent,
                     .writes = by_agent.writes,
                     .is_strong = by_agent.is_strong};
    const auto found_one = [&](const Shadow::Conflict& conflict) {
        found.before = races::context_of(conflict.before, block_.index());
        found.before_lanes = conflict.before.lanes;
        return is_in_flight(found.before, found.before_lanes) ||
               report(how, nullptr, access.space, range.address + conflict.offset, conflict.bytes, found);
    };
    const std::size_t byte = byte_of(range.bits, range.offset);
    if (has_phases_ && range.bytes) {
        const auto from = std::uint32_t(byte), to = std::uint32_t(byte + range.bytes);
        look_at_rows_if(from, to, true);
        phase_.mark_async(from, to, now.agent, now.lanes, now.stamp);
    }
    return touch(now, by, byte, range.bytes, &memo, found_one);
}

// ---- accesses by threads

Context BlockRaces::context_of(const LaneAccess& how, std::uint32_t lanes) {
    return {.block = block_.index(),
            .stamp = order_.stamp_of(how.w->index),
            .op = plain_index_of(how.w, how.op),
            .lanes = lanes,
            .agent = std::uint8_t(how.w->index),
            .writes = how.direction != Direction::Read,
            .is_strong = how.is_strong,
            .is_of_all = how.is_of_all,
            .scope = how.scope};
}

bool BlockRaces::access_global(const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes) {
    if (!launch_.facts.everywhere) return true;
    if (is_over()) return counts_.unchecked += unsigned(std::popcount(lanes)), true;
    counts_.global += unsigned(std::popcount(lanes));
    std::uint32_t there = lanes;
    if (launch_.facts.blocks_are_apart && how.direction == Direction::Read && !how.is_strong)
        each_lane(lanes, [&](unsigned lane) {
            if (launch_.global.is_settled(addresses[lane], how.bytes)) there &= ~(1u << lane);
        });
    if (!there) return true;
    const Context context = context_of(how, lanes);
    const Contexts::Id id = launch_.contexts.number(context);
    for (std::uint32_t rest = there; rest; rest &= rest - 1) {
        const unsigned lane = first_of(rest);
        const Knower by = order_.knower(how.w->index, lane);
        const auto found_one = [&](const WideShadow::Conflict& conflict) {
            Found found{.now = context, .before = conflict.before, .before_lanes = conflict.lanes};
            found.now.lanes = 1u << lane;
            return report(how, addresses, Space::Global, conflict.address, conflict.bytes, found);
        };
        WideShadow::Memo memo;
        if (!launch_.global.access(addresses[lane], how.bytes, id, 1u << lane, by, memo, found_one)) return false;
        if (how.is_strong)
            order_.use(*how.w, lane, addresses[lane], how.bytes, how.direction, how.scope);
        else if (context.writes)
            order_.overwrite(addresses[lane], how.bytes);
    }
    return true;
}

void BlockRaces::complete(const Meeting& at, bool of_all) {
    order_.complete(at, of_all);
    if (!of_all || !has_phases_) return;
    phase_.end([&](unsigned agent, std::uint32_t lanes, Stamp stamp) {
        return order_.is_known_after(at, agent, lanes, stamp);
    });
}

/// Tells the shadow of what has been written down. None of it races with the rest.
void BlockRaces::look_at_rows() {
    for (const Phase::Row& row : phase_.rows())
        row.loads.each([&](const LoadGroup::Load& load) { return look_at(row, load), true; });
    phase_.forget_rows();
}

void BlockRaces::look_at(const Phase::Row& row, const LoadGroup::Load& load) {
    std::array<std::uint32_t, warp_size> places;
    for (unsigned lane = 0; lane < warp_size; ++lane) places[lane] = row.byte(lane) + load.offset;
    Access now{.stamp = row.stamp,
               .op = row.op + load.plain_distance,
               .agent = row.warp,
               .writes = row.writes,
               .is_of_all = row.is_of_all};
    for (std::uint32_t rest = access_known(places.data(), row.warp, row.lanes, row.count, now); rest;
         rest &= rest - 1) {
        const unsigned lane = first_of(rest);
        now.lanes = 1u << lane;
        touch(now, order_.knower(row.warp, lane), places[lane], row.count, nullptr,
              [](const Shadow::Conflict&) { return true; });
    }
}

/// Accesses to words, of which all that matters is known to all lanes of the warp. The lanes of others, of which
/// nothing has been kept that may not be kept twice.
std::uint32_t BlockRaces::access_known(const std::uint32_t* places, unsigned warp, std::uint32_t lanes,
                                       std::uint32_t bytes, Access now) {
    const Clock* const clock = order_.common_clock(warp);
    if (!clock || bytes % 4) return lanes;
    std::uint32_t left = 0;
    for (std::uint32_t rest = lanes; rest;) {
        const std::uint32_t byte = places[first_of(rest)];
        now.lanes = rest & -rest;
        rest &= rest - 1;
        for (; rest && !now.writes && places[first_of(rest)] == byte; rest &= rest - 1) now.lanes |= rest & -rest;
        for (std::uint32_t i = 0; i < bytes; i += 4)
            if (byte % 4 || !shadow_.access_known((byte + i) / 4, now, *clock)) {
                left |= now.lanes;
                break;
            }
    }
    return left;
}

bool BlockRaces::access_shared(const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes) {
    if (is_over()) return counts_.unchecked += unsigned(std::popcount(lanes)), true;
    counts_.shared += unsigned(std::popcount(lanes));
    return wide_ ? access_of_cluster(how, addresses, lanes) : access_own(how, addresses, lanes);
}

/// Accesses that are not only written down.
bool BlockRaces::access_own(const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes) {
    const Context context = context_of(how, lanes);
    std::array<std::uint32_t, warp_size> places;
    std::uint32_t there = 0, from = ~std::uint32_t{0}, to = 0;
    const View* view = nullptr;
    for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = first_of(rest);
        const std::uint64_t address = addresses[lane];
        if (!view || address - view->base >= view->bytes) view = &how.w->generic[int(Space::Shared)].at(address);
        const std::uint64_t at = address - view->base;
        if (!view->bits || view->bytes < how.bytes || at > view->bytes - how.bytes) continue;  // a finding of its own
        if (view->bits == block_.reserved_written().data()) continue;  // which cooperative groups use in their own way
        const std::uint32_t byte = places[lane] = std::uint32_t(byte_of(view->bits, at));
        there |= 1u << lane;
        from = std::min(from, byte), to = std::max(to, byte + how.bytes);
    }
    if (!there) return true;
    if (has_phases_) {
        look_at_rows_if(from, to, context.writes);
        phase_.mark(from, to, context.writes);
    }
    Access now{.stamp = context.stamp,
               .op = context.op,
               .agent = context.agent,
               .writes = context.writes,
               .is_strong = how.is_strong,
               .is_of_all = how.is_of_all};
    if (!how.is_strong && !(context.writes && order_.has_locations()))
        there = access_known(places.data(), how.w->index, there, how.bytes, now);
    for (std::uint32_t rest = there; rest; rest &= rest - 1) {
        const unsigned lane = first_of(rest);
        now.lanes = 1u << lane;
        Found found{.now = context};
        found.now.lanes = now.lanes;
        const auto found_one = [&](const Shadow::Conflict& conflict) {
            found.before = races::context_of(conflict.before, block_.index());
            found.before_lanes = conflict.before.lanes;
            return is_in_flight(found.before, found.before_lanes) ||
                   report(how, addresses, Space::Shared, addresses[lane] + conflict.offset, conflict.bytes, found);
        };
        if (!touch(now, order_.knower(how.w->index, lane), places[lane], how.bytes, nullptr, found_one)) return false;
        note_location(how, lane, addresses[lane]);
    }
    return true;
}

/// ... which may be to the memory of any block of the cluster.
bool BlockRaces::access_of_cluster(const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes) {
    const Context context = context_of(how, lanes);
    const Contexts::Id id = launch_.contexts.number(context);
    for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
        const unsigned lane = first_of(rest);
        const std::uint64_t address = addresses[lane];
        const View& view = how.w->generic[int(Space::Shared)].at(address);
        const std::uint64_t at = address - view.base;
        if (!view.bits || view.bytes < how.bytes || at > view.bytes - how.bytes) continue;  // a finding of its own
        if (view.bits == block_.reserved_written().data()) continue;
        const auto [owner, place] = block_.shared_place(address);
        BlockRaces& its = races_of(owner);
        Found found{.now = context};
        found.now.lanes = 1u << lane;
        const auto found_one = [&](const WideShadow::Conflict& conflict) {
            found.before = conflict.before;
            found.before_lanes = conflict.lanes;
            return its.is_in_flight(conflict.before, conflict.lanes) ||
                   report(how, addresses, Space::Shared, address + (conflict.address - place), conflict.bytes, found);
        };
        its.has_peer_writes_ |= context.writes && &its != this;
        const Knower by = order_.knower(how.w->index, lane);
        WideShadow::Memo memo;
        if (!its.wide_->access(place, how.bytes, id, 1u << lane, by, memo, found_one)) return false;
        note_location(how, lane, address);
    }
    return true;
}

/// What a lane's access to shared memory means for the locations by which threads tell each other something.
void BlockRaces::note_location(const LaneAccess& how, unsigned lane, std::uint64_t address) {
    const bool writes = how.direction != Direction::Read;
    if (!how.is_strong && !writes) return;
    const auto [owner, place] = block_.shared_place(address);
    if (how.is_strong)
        order_.use(*how.w, lane, place_in(owner, place), how.bytes, how.direction, how.scope);
    else
        order_.overwrite(place_in(owner, place), how.bytes);
}

void BlockRaces::forget_heap(std::uint64_t address) {
    if (const auto buffer = block_.launch_state().memory.describe(address))
        launch_.global.forget(buffer->address, buffer->bytes);
}

/// Whether two writes write the same.
bool BlockRaces::is_same_value(const LaneAccess& how, const std::uint64_t* addresses, Space space,
                               std::uint64_t address, std::uint64_t bytes, const Found& found) const {
    if (!addresses || !how.values || !found.before.writes || found.was_async) return false;
    const unsigned lane = first_of(found.now.lanes);
    const View view =
        space == Space::Shared ? how.w->generic[int(Space::Shared)].at(address) : view_of(*how.w, space, address);
    const std::uint64_t at = address - view.base;
    if (view.bytes < bytes || at > view.bytes - bytes) return false;
    const bool is_same_op = found.before.op == found.now.op && found.before.agent == found.now.agent &&
                            found.before.block == found.now.block && found.before.stamp == found.now.stamp;
    const unsigned other = first_of(found.before_lanes);
    if (!is_same_op || other >= lane || !(how.lanes >> other & 1))
        return how.stores(lane, address - addresses[lane], bytes, view.host + at);
    // Another lane of the same op, which has not yet written its value.
    const std::uint64_t offset = address - addresses[other];
    if (offset >= how.bytes || how.bytes - offset < bytes) return false;
    std::array<std::byte, 16> value{};
    for (std::uint64_t i = 0; i < bytes; ++i) value[i] = how.stored(other, offset + i);
    return how.stores(lane, address - addresses[lane], bytes, value.data());
}

/// What the bytes are, and what they will be.
void BlockRaces::find_values(const LaneAccess& how, const std::uint64_t* addresses, Space space, std::uint64_t address,
                             std::uint64_t bytes, Found& found) const {
    const View view =
        space == Space::Shared ? how.w->generic[int(Space::Shared)].at(address) : view_of(*how.w, space, address);
    const std::uint64_t at = address - view.base;
    if (bytes > sizeof(std::uint64_t) || view.bytes < bytes || at > view.bytes - bytes) return;
    const auto number = [&](auto byte) {
        std::uint64_t value = 0;
        for (std::uint64_t i = 0; i < bytes; ++i) value |= std::uint64_t(byte(i)) << 8 * i;
        return value;
    };
    found.value = number([&](std::uint64_t i) { return view.host[at + i]; });
    if (!addresses || !how.stores()) return;
    const unsigned lane = first_of(found.now.lanes);
    found.stored = number([&](std::uint64_t i) { return how.stored(lane, address - addresses[lane] + i); });
}

bool BlockRaces::report(const LaneAccess& how, const std::uint64_t* addresses, Space space, std::uint64_t address,
                        std::uint64_t bytes, const Found& found) {
    const ThreadBlock& block = block_of(how.w);
    const Checks& checks = block.launch_state().options.checks;
    const bool is_of_block = space != Space::Global && found.before.block == found.now.block;
    FaultCode code =
        is_of_block && checks.of(FaultCode::SharedRace) != Action::Off ? FaultCode::SharedRace : FaultCode::Race;
    BlockRaces& its = races_of(block);
    its.found_ = found;
    its.found_->was_async = found.before.agent >= block.warps().size();
    if (is_same_value(how, addresses, space, address, bytes, *its.found_))
        code = FaultCode::BenignRace;
    else if (is_by_lanes(*its.found_) &&
             its.order_.has_exchanged(how.w->index, first_of(found.now.lanes), found.before_lanes, found.before.stamp))
        code = FaultCode::ShuffleRace;
    if (checks.of(code) == Action::Off) return true;
    find_values(how, addresses, space, address, bytes, *its.found_);
    its.found_->is_refused = its.order_.is_refused(how.w->index, found.before.block, found.before.agent,
                                                   found.before_lanes, found.before.stamp);
    return passes(how.w, how.op,
                  {.code = code,
                   .space = space,
                   .store = found.now.writes,
                   .lane = first_of(found.now.lanes),
                   .bytes = std::uint32_t(bytes),
                   .address = address});
}

}  // namespace ikat::emulator::races
