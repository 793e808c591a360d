// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/async_copies.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/agents/mbarriers.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

void arrive(AsyncCopies::Copy& copy) {
    if (copy.taken) std::memcpy(copy.at, copy.from, copy.taken);
    std::memset(copy.at + copy.taken, 0, copy.bytes - copy.taken);
    copy.arrival = AsyncCopies::Copy::Arrival::Over;
}

}  // namespace

void AsyncCopies::start() {
    chances_.state = block_.seed_of(0);
    followers_.clear();
    warps_.clear();
}

AsyncCopies::OfWarp& AsyncCopies::of(const Warp* w) {
    if (w->index >= warps_.size()) warps_.resize(w->index + 1);
    return warps_[w->index];
}

AsyncCopies::Copy::Arrival AsyncCopies::draw_arrival() {
    return drawn_arrival(block_.schedule(), chances_, Copy::Arrival::AtWait);
}

void AsyncCopies::arrive_by_chance(OfWarp& of) {
    if (!chances_ || chances_.draw(4) != 0) return;
    for (Copy& copy : of.flying)
        if (copy.arrival == Copy::Arrival::Later) arrive(copy);
}

bool AsyncCopies::start(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    arrive_by_chance(of(w));
    const auto arrival = draw_arrival();
    const std::size_t before = of(w).flying.size();
    operation_ = block_.next_operation();
    for (std::uint32_t rest = mask; rest; rest &= rest - 1)
        if (!start_lane(op, w, frame, unsigned(std::countr_zero(rest)), arrival)) return false;
    return tell(op, w, std::span(of(w).flying).subspan(before));
}

/// Tells the tools what copies that have just been started write and read.
bool AsyncCopies::tell(const MicroOp* op, Warp* w, std::span<const Copy> started) {
    AgentAccess::Range to[warp_size], from[warp_size];
    AgentAccess access{.code = w->kernel, .op = op, .w = w, .operation = operation_, .by_async_proxy = false};
    AgentAccess reads = access;
    std::size_t count = 0, sources = 0;
    for (const Copy& copy : started) {
        access.lanes |= 1u << copy.lane;
        to[count++] = {copy.to, copy.bytes, copy.bits, copy.offset, copy.to};
        if (!copy.taken) continue;
        reads.lanes |= 1u << copy.lane;
        from[sources++] = {.address = copy.source, .bytes = copy.taken};
    }
    access.direction = Direction::Write;
    access.space = Space::Shared;
    access.owner = &block_;
    access.ranges = {to, count};
    reads.ranges = {from, sources};
    return block_.tell(access) && block_.tell(reads);
}

bool AsyncCopies::find_source(const MicroOp* op, Warp* w, Copy& copy) {
    const View from = view_of(*w, Space::Global, copy.source);
    const std::uint64_t offset = copy.source - from.base;
    const bool is_aligned = copy.source % copy.bytes == 0;
    if (!is_aligned || from.bytes < copy.taken || offset > from.bytes - copy.taken) {
        if (!passes_access(w, op, FaultCode::OutOfBounds, Space::Global, copy.lane, copy.source,
                           is_aligned ? copy.taken : copy.bytes, false))
            return false;
        copy.taken = 0;
        return true;
    }
    copy.from = from.host + offset;
    copy.from_bits = from.written;
    copy.from_offset = offset;
    std::memcpy(copy.before.data(), copy.from, copy.taken);
    w->bytes_read += copy.taken;
    return true;
}

bool AsyncCopies::start_lane(const MicroOp* op, Warp* w, const std::byte* frame, unsigned lane, Copy::Arrival arrival) {
    const CopyForm form = CopyForm::of(op->d);
    const auto word = [&](std::uint32_t offset) {
        return reinterpret_cast<const std::uint32_t*>(frame + offset)[lane];
    };
    const auto wide = [&](std::uint32_t offset) {
        return reinterpret_cast<const std::uint64_t*>(frame + offset)[lane];
    };
    Copy copy{{.instruction = w->kernel->instructions[w->index_of(op)], .by = &block_, .warp = w->index, .lane = lane}};
    copy.bytes = copy.taken = form.bytes;
    copy.arrival = arrival;
    copy.op = op;
    copy.code = w->kernel;
    if (form.source == CopyForm::Source::Bytes) copy.taken = word(op->c);
    if (form.source == CopyForm::Source::Ignored && *reinterpret_cast<const std::uint32_t*>(frame + op->c) >> lane & 1)
        copy.taken = 0;
    if (copy.taken > copy.bytes) {
        fail(w, op, {.code = FaultCode::CopySize, .lane = lane, .bytes = copy.bytes, .address = copy.taken});
        return false;
    }
    View view;
    copy.to = with_offset(op, Space::Shared, form.is_wide ? wide(op->a) : word(op->a));
    copy.at = lane_bytes(w, op, Space::Shared, lane, copy.to, copy.bytes, true, &view);
    if (!copy.at) return false;
    if (!view.bytes) return true;  // to no memory
    copy.bits = view.bits;
    copy.offset = copy.to - view.base;

    copy.source = wide(op->b) + std::uint64_t(std::int64_t(std::int32_t(op->y)));
    if (copy.taken && !find_source(op, w, copy)) return false;
    if (agent<InFlight>(block_).any(copy.bits, copy.offset, copy.bytes) &&
        !passes_access(w, op, FaultCode::CopyOverwritten, Space::Shared, lane, copy.to, copy.bytes, true))
        return false;
    if (agent<Mbarriers>(block_).over(copy.to, copy.bytes))
        return fail_access(w, op, FaultCode::MbarrierOverwritten, Space::Shared, lane, copy.to, copy.bytes, true);
    if (!view.written) block_.reopen(copy.to);
    agent<InFlight>(block_).begin(copy.bits, copy.offset, copy.bytes);
    OfWarp& mine = of(w);
    copy.group = mine.groups[lane];
    copy.number = started_++;
    copy.operation = operation_;
    if (arrival == Copy::Arrival::Over) arrive(copy);
    mine.flying.push_back(copy);
    return true;
}

void AsyncCopies::commit(const Warp* w, std::uint32_t mask) {
    OfWarp& mine = of(w);
    arrive_by_chance(mine);
    for (unsigned lane = 0; lane < warp_size; ++lane) mine.groups[lane] += mask >> lane & 1;
}

/// The copy is waited for. False on a finding.
bool AsyncCopies::end(const MicroOp* op, Warp* w, unsigned lane, Copy& copy) {
    const auto wrong = [&](FaultCode code, Space space, std::uint64_t address, std::uint32_t bytes) {
        agent<InFlight>(block_).found = &copy;
        return !passes_access(w, op, code, space, lane, address, bytes, true);
    };
    if (written::any(copy.bits, copy.offset, copy.bytes) &&
        wrong(FaultCode::CopyOverwritten, Space::Shared, copy.to, copy.bytes))
        return false;
    if (copy.taken && std::memcmp(copy.from, copy.before.data(), copy.taken) != 0 &&
        wrong(FaultCode::CopySourceChanged, Space::Global, copy.source, copy.taken))
        return false;
    if (copy.arrival != Copy::Arrival::Over) arrive(copy);
    written::set(copy.bits, copy.offset, copy.bytes, false);
    if (copy.from_bits) written::copy(copy.bits, copy.offset, copy.from_bits, copy.from_offset, copy.taken);
    agent<InFlight>(block_).end(copy.bits, copy.offset, copy.bytes);
    const AgentAccess::Range range{copy.to, copy.bytes, copy.bits, copy.offset, copy.to};
    block_.each_tool([&](BlockTool& tool) {
        tool.land({.code = copy.code,
                   .op = copy.op,
                   .w = &block_.warp(copy.warp),
                   .lanes = 1u << copy.lane,
                   .direction = Direction::Write,
                   .space = Space::Shared,
                   .owner = &block_,
                   .ranges = {&range, 1}});
    });
    return true;
}

bool AsyncCopies::await(const MicroOp* op, Warp* w, std::uint32_t mask) {
    if (w->index >= warps_.size()) return true;
    OfWarp& mine = warps_[w->index];
    const auto is_covered = [&](const Copy& copy) {
        return (mask >> copy.lane & 1) && (op->y || copy.group + std::uint64_t(op->x) < mine.groups[copy.lane]);
    };
    std::uint64_t operation = 0;
    std::uint32_t lanes = 0;
    const auto tell = [&] {
        if (lanes) block_.each_tool([&](BlockTool& tool) { tool.await(*w, lanes, operation, false); });
    };
    for (Copy& copy : mine.flying) {
        if (!is_covered(copy)) continue;
        if (!end(op, w, copy.lane, copy)) return false;
        // An arrival that has not come yet follows it all the same.
        const auto follower = std::ranges::find_if(followers_, [&](const Follower& each) {
            return each.warp == w->index && each.lane == copy.lane && each.number > copy.number;
        });
        if (follower != followers_.end() && !copy.has_barrier)
            block_.each_tool([&](BlockTool& tool) {
                tool.arrive_for(copy.operation, 1u << copy.lane, {Meeting::Kind::Mbarrier, follower->barrier});
            });
        if (copy.operation != operation) tell(), operation = copy.operation, lanes = 0;
        lanes |= 1u << copy.lane;
    }
    tell();
    std::erase_if(mine.flying, is_covered);
    return true;
}

void AsyncCopies::arrive_after(const Warp* w, unsigned lane, const ptx::Instruction* instruction,
                               std::uint64_t barrier) {
    const Follower follower{instruction, w->index, lane, started_++, barrier, draw_arrival()};
    followers_.push_back(follower);
    if (follower.arrival == Copy::Arrival::Over) follow_up_to(followers_.size() - 1);
}

/// The arrivals of a thread come in their order.
void AsyncCopies::follow_up_to(std::size_t last) {
    const Follower of = followers_[last];
    std::vector<Follower> now;
    const auto is_now = [&](const Follower& each) {
        return each.warp == of.warp && each.lane == of.lane && each.number <= of.number;
    };
    std::ranges::copy_if(followers_, std::back_inserter(now), is_now);
    std::erase_if(followers_, is_now);
    for (const Follower& each : now) follow(each);
}

/// The copies before it are there.
void AsyncCopies::follow(const Follower& follower) {
    ScheduledWarp& warp = block_.warp(follower.warp);
    const auto wrong = [&](FaultCode code, std::uint32_t count) {
        warp.fault = {.code = code,
                      .space = Space::Shared,
                      .lane = follower.lane,
                      .bytes = mbarrier_bytes,
                      .address = follower.barrier,
                      .lanes = count};
        return fault_error(block_, warp, follower.instruction);
    };
    Mbarriers::Barrier* const barrier = agent<Mbarriers>(block_).find(follower.barrier);
    if (!barrier) throw wrong(FaultCode::MbarrierMissing, 0);
    if (follower.warp < warps_.size())
        for (Copy& copy : warps_[follower.warp].flying) {
            if (copy.lane != follower.lane || copy.number > follower.number || copy.has_barrier) continue;
            if (copy.arrival != Copy::Arrival::Over) arrive(copy);
            copy.has_barrier = true;
            block_.each_tool([&](BlockTool& tool) {
                tool.arrive_for(copy.operation, 1u << copy.lane, {Meeting::Kind::Mbarrier, follower.barrier});
            });
            copy.barrier = follower.barrier;
            copy.phase = barrier->phase;
        }
    if (const auto code = agent<Mbarriers>(block_).arrive(*barrier, 1, false)) throw wrong(*code, 1);
}

void AsyncCopies::some_arrive() {
    if (followers_.empty() || !chances_ || chances_.draw(4) != 0) return;
    const auto is_due = [](const Follower& each) { return each.arrival == Copy::Arrival::Later; };
    for (auto due = followers_.begin(); (due = std::ranges::find_if(followers_, is_due)) != followers_.end();)
        follow_up_to(std::size_t(due - followers_.begin()));
}

bool AsyncCopies::last_arrives() {
    if (followers_.empty()) return false;
    follow_up_to(chances_ ? chances_.draw(unsigned(followers_.size())) : 0);
    return true;
}

void AsyncCopies::finish() {
    for (const OfWarp& each : warps_)
        for (const Copy& copy : each.flying) {
            ScheduledWarp& warp = block_.warp(copy.warp);
            warp.fault = {.code = FaultCode::CopyAtExit,
                          .space = Space::Shared,
                          .lane = copy.lane,
                          .bytes = copy.bytes,
                          .address = copy.to};
            agent<InFlight>(block_).found = &copy;
            block_.report(fault_error(block_, warp, copy.instruction));
        }
}

bool AsyncCopies::end_phase(const MicroOp* op, Warp* w, unsigned lane, std::uint64_t barrier, std::uint64_t phase) {
    const auto is_covered = [&](const Copy& copy) {
        return copy.has_barrier && copy.barrier == barrier && copy.phase < phase;
    };
    for (OfWarp& each : warps_) {
        for (Copy& copy : each.flying)
            if (is_covered(copy) && !end(op, w, lane, copy)) return false;
        std::erase_if(each.flying, is_covered);
    }
    return true;
}

const AsyncCopies::Copy* AsyncCopies::over(std::uint64_t address, std::uint64_t bytes) const {
    for (const OfWarp& each : warps_)
        for (const Copy& copy : each.flying)
            if (copy.to < address + bytes && address < copy.to + copy.bytes) return &copy;
    return nullptr;
}

std::optional<FaultCode> AsyncCopies::claim(std::uint64_t address, std::uint64_t bytes, bool writes) const {
    if (!over(address, bytes)) return {};
    return writes ? FaultCode::CopyOverwritten : FaultCode::CopyNotAwaited;
}

namespace {

// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.
[[gnu::noinline]] bool start(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    return agent<AsyncCopies>(w).start(op, w, frame, mask);
}
[[gnu::noinline]] bool await(const MicroOp* op, Warp* w, std::uint32_t mask) {
    return agent<AsyncCopies>(w).await(op, w, mask);
}

}  // namespace

const MicroOp* start_copies(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!start(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

const MicroOp* commit_copies(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    agent<AsyncCopies>(w).commit(w, mask);
    IKAT_NEXT;
}

const MicroOp* await_copies(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    if (!await(op, w, mask)) return nullptr;
    IKAT_NEXT;
}

}  // namespace ikat::emulator
