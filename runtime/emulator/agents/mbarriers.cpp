// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/mbarriers.hpp"

#include <bit>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/agents/async_copies.hpp"
#include "runtime/emulator/agents/bulk/bulk_copies.hpp"

namespace ikat::emulator {

namespace {

Meeting meeting_at(std::uint64_t address) { return {Meeting::Kind::Mbarrier, address}; }

}  // namespace

void Mbarriers::start() {
    barriers_.clear();
    questions_.clear();
    missed_ = made_ = 0;
    left_.clear();
    chances_.state = block_.schedule().missed_waits ? block_.chosen_seed(1u << 30) : block_.seed_of(1u << 30);
}

Mbarriers::Barrier* Mbarriers::find(std::uint64_t address) {
    const auto found = barriers_.find(address);
    return found == barriers_.end() ? nullptr : &found->second;
}

const Mbarriers::Barrier* Mbarriers::over(std::uint64_t address, std::uint64_t bytes) const {
    for (const auto& [at, barrier] : barriers_)
        if (at < address + bytes && address < at + mbarrier_bytes) return &barrier;
    return nullptr;
}

std::optional<FaultCode> Mbarriers::claim(std::uint64_t address, std::uint64_t bytes, bool writes) const {
    if (!over(address, bytes)) return {};
    return writes ? FaultCode::MbarrierOverwritten : FaultCode::MbarrierRead;
}

Mbarriers::Barrier& Mbarriers::make(const Barrier& barrier) {
    Barrier& made = barriers_[barrier.address] = barrier;
    made.tag = ++made_ & max_mbarrier_count;
    block_.each_tool([&](BlockTool& tool) { tool.forget(meeting_at(barrier.address)); });
    return made;
}

/// The phase is over when nothing is pending any more.
void Mbarriers::settle(Barrier& barrier) {
    if (barrier.pending || barrier.bytes) return;
    ++barrier.phase;
    barrier.pending = barrier.expected;
    block_.each_tool([&](BlockTool& tool) { tool.complete(meeting_at(barrier.address), false); });
    block_.wake();
}

std::optional<FaultCode> Mbarriers::arrive(Barrier& barrier, std::uint32_t count, bool drops) {
    if (count == 0 || count > max_mbarrier_count) return FaultCode::MbarrierCount;
    if (count > barrier.pending || (drops && count > barrier.expected)) return FaultCode::MbarrierArrivals;
    if (drops) barrier.expected -= count;
    barrier.pending -= count;
    settle(barrier);
    return {};
}

std::optional<FaultCode> Mbarriers::add_bytes(Barrier& barrier, std::int64_t bytes) {
    const std::int64_t sum = barrier.bytes + bytes;
    if (sum > std::int64_t(max_mbarrier_count) || -sum > std::int64_t(max_mbarrier_count))
        return FaultCode::MbarrierBytes;
    barrier.bytes = sum;
    settle(barrier);
    return {};
}

/// Whether a warp is told no instead of yes: by chance, but not twice in a row, or on demand once to three times before
/// each yes.
bool Mbarriers::misses(const Warp* w) {
    const std::uint32_t self = 1u << w->index;
    if (!block_.schedule().missed_waits) {
        const bool misses = chances_ && !(missed_ & self) && chances_.draw(4) == 0;
        missed_ = misses ? missed_ | self : missed_ & ~self;
        return misses;
    }
    if (w->index >= left_.size()) left_.resize(w->index + 1);
    std::uint8_t& left = left_[w->index];
    if (!(missed_ & self)) left = std::uint8_t(1 + chances_.draw(3));
    missed_ = left ? missed_ | self : missed_ & ~self;
    return left && left--;
}

std::uint32_t Mbarriers::missing(Warp* w, std::uint32_t lanes) {
    if (!misses(w)) return 0;
    if (!w->by_chance || std::has_single_bit(lanes) || chances_.draw(2) == 0) return lanes;
    // So the lanes of a warp do not always arrive together, each after what all of them have done.
    std::uint32_t rest = lanes;
    for (unsigned skip = chances_.draw(unsigned(std::popcount(lanes))); skip; --skip) rest &= rest - 1;
    auto* const warp = static_cast<ScheduledWarp*>(w);
    warp->late = rest & -rest;
    warp->strayed = true;
    return warp->late;
}

void Mbarriers::note(const Warp* w, const Question& question) {
    if (w->index >= questions_.size()) questions_.resize(w->index + 1);
    questions_[w->index] = question;
}

namespace {

/// The operation of one lane on a barrier.
class OnBarrier {
public:
    OnBarrier(const MicroOp* op, Warp* w, const std::byte* frame, unsigned lane)
        : form_(MbarrierForm::of(op->y)), op_(op), w_(w), frame_(frame), lane_(lane) {}

    bool init() {
        if (!find_bytes(true)) return false;
        if (const auto* const live = mbarriers().over(place_, mbarrier_bytes))
            return wrong(FaultCode::MbarrierLive, 0, live->address);
        const std::uint32_t count = word(op_->b);
        if (count == 0 || count > max_mbarrier_count) return wrong(FaultCode::MbarrierCount, count);
        const std::uint64_t offset = address_ - view_.base;
        if (!view_.written) w_->block->reopen(address_ & (window_bytes - 1));
        written::set(view_.bits, offset, mbarrier_bytes, false, false);
        mbarriers().make({.made = instruction(),
                          .address = place_,
                          .bits = view_.bits,
                          .offset = offset,
                          .expected = count,
                          .pending = count});
        owner_->each_tool([&](BlockTool& tool) { tool.begin(*w_, lane_, meeting_at(place_), instruction()); });
        return true;
    }

    bool invalidate() {
        if (!find(true)) return false;
        mbarriers().remove(place_);
        return true;
    }

    /// Gives back the state before it.
    bool arrive(std::uint64_t* states) {
        if (!find(true)) return false;
        states[lane_] = MbarrierState::of(barrier_->pending, barrier_->phase, barrier_->tag);
        const std::uint32_t amount = form_.has_b ? word(op_->b) : 1;
        if (form_.expects && !add_bytes(amount)) return false;
        const std::uint32_t count = form_.expects ? 1 : amount;
        if (form_.never_completes && barrier_->pending == count && barrier_->bytes == 0)
            return wrong(FaultCode::MbarrierNoComplete, count);
        owner_->each_tool([&](BlockTool& tool) { tool.arrive(*w_, 1u << lane_, meeting_at(place_), false); });
        const auto code = mbarriers().arrive(*barrier_, count, form_.drops);
        return !code || wrong(*code, count);
    }

    bool transact() { return find(true) && add_bytes(form_.completes ? -std::int64_t(word(op_->b)) : word(op_->b)); }

    /// Whether the phase that is asked for is over.
    std::optional<bool> test() {
        if (!find(false)) return {};
        if (!is_own()) return wrong(FaultCode::MbarrierRemote), std::nullopt;
        if (form_.has_parity) {
            const std::uint32_t parity = word(op_->b);
            if (parity > 1) return wrong(FaultCode::MbarrierParity, parity), std::nullopt;
            return (barrier_->phase & 1) != parity;
        }
        const auto state = reinterpret_cast<const std::uint64_t*>(frame_ + op_->b)[lane_];
        const std::uint64_t before = (barrier_->phase - (state >> MbarrierState::phase_at)) % MbarrierState::phases;
        if (state >> MbarrierState::tag_at != barrier_->tag || before > MbarrierState::phases / 2)
            return wrong(FaultCode::MbarrierState), std::nullopt;
        if (before > 1) return wrong(FaultCode::MbarrierPhase, std::uint32_t(before)), std::nullopt;
        return before == 1;
    }

    bool arrive_later(bool counts) {
        if (!find(true)) return false;
        if (!is_own()) return wrong(FaultCode::MbarrierRemote);
        if (counts && ++barrier_->pending > max_mbarrier_count)
            return wrong(FaultCode::MbarrierCount, barrier_->pending);
        agent<AsyncCopies>(w_).arrive_after(w_, lane_, instruction(), place_);
        return true;
    }

    const Mbarriers::Barrier& barrier() const { return *barrier_; }

private:
    Mbarriers& mbarriers() const { return agent<Mbarriers>(*owner_); }
    bool is_own() const { return owner_ == &block_of(w_); }
    std::uint32_t word(std::uint32_t offset) const {
        return reinterpret_cast<const std::uint32_t*>(frame_ + offset)[lane_];
    }
    const ptx::Instruction* instruction() const { return w_->kernel->instructions[w_->index_of(op_)]; }

    bool wrong(FaultCode code, std::uint32_t count = 0, std::uint64_t instead = 0) {
        fail(w_, op_,
             {.code = code,
              .space = form_.space,
              .lane = lane_,
              .bytes = mbarrier_bytes,
              .address = address_,
              .lanes = count,
              .other = std::uint32_t(instead)});
        return false;
    }

    bool find_bytes(bool changes) {
        address_ = with_offset(op_, form_.space, reinterpret_cast<const std::uint64_t*>(frame_ + op_->a)[lane_]);
        if (form_.space == Space::Generic && address_ >> window_bits != std::uint64_t(Space::Shared))
            return wrong(FaultCode::NotShared);
        if (!lane_bytes(w_, op_, form_.space, lane_, address_, mbarrier_bytes, changes, &view_)) return false;
        if (!view_.bytes) return wrong(FaultCode::MbarrierMissing);
        const auto [owner, place] = block_of(w_).shared_place(address_ & (window_bytes - 1));
        owner_ = &owner;
        place_ = place;
        return true;
    }

    bool find(bool changes) {
        if (!find_bytes(changes)) return false;
        barrier_ = mbarriers().find(place_);
        if (!barrier_) return wrong(FaultCode::MbarrierMissing);
        return !written::any(barrier_->bits, barrier_->offset, mbarrier_bytes) || wrong(FaultCode::MbarrierOverwritten);
    }

    bool add_bytes(std::int64_t bytes) {
        const auto code = mbarriers().add_bytes(*barrier_, bytes);
        return !code || wrong(*code, std::uint32_t(std::abs(bytes)));
    }

    const MbarrierForm form_;
    const MicroOp* const op_;
    Warp* const w_;
    const std::byte* const frame_;
    const unsigned lane_;
    std::uint64_t address_ = 0, place_ = 0;  // as the instruction sees it, and the owner
    View view_{};
    ThreadBlock* owner_ = nullptr;
    Mbarriers::Barrier* barrier_ = nullptr;
};

/// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.
template <class F>
[[gnu::noinline]] bool each_lane(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask, F f) {
    block_of(w).some_arrive();
    for (std::uint32_t rest = mask; rest; rest &= rest - 1)
        if (!f(OnBarrier(op, w, frame, unsigned(std::countr_zero(rest))))) return false;
    if (block_of(w).schedule().turns == Schedule::Turns::Priorities) {  // at the next branch, others may go first
        w->gives_way = true;
        w->slice_end = w->leave_at = w->instructions;
    }
    return true;
}

[[gnu::noinline]] bool test_lanes(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    ThreadBlock& block = block_of(w);
    Mbarriers& mbarriers = agent<Mbarriers>(block);
    block.some_arrive();
    std::uint32_t over = 0;
    const Mbarriers::Barrier* barriers[warp_size];
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        OnBarrier on(op, w, frame, unsigned(lane));
        const auto is_over = on.test();
        if (!is_over) return false;
        over |= std::uint32_t(*is_over) << lane;
        barriers[lane] = &on.barrier();
    }
    if (!over) {
        const Mbarriers::Barrier& first = *barriers[std::countr_zero(mask)];
        mbarriers.note(w, {first.address, first.phase});
        w->polls = true;
        w->slice_end = w->leave_at = w->instructions;
    } else if (MbarrierForm::of(op->y).may_miss) {
        if (const std::uint32_t missing = mbarriers.missing(w, over)) {
            over &= ~missing;
            ++w->changes;  // asking again helps
        }
    }
    for (std::uint32_t rest = over, lanes = 0; rest; rest &= ~lanes) {
        const auto lane = unsigned(std::countr_zero(rest));
        const Mbarriers::Barrier& known = *barriers[lane];
        lanes = 0;
        for (std::uint32_t each = rest; each; each &= each - 1)
            if (barriers[std::countr_zero(each)] == &known) lanes |= each & -each;
        block.each_tool([&](BlockTool& tool) { tool.leave(*w, lanes, meeting_at(known.address)); });
        if (!agent<AsyncCopies>(block).end_phase(op, w, lane, known.address, known.phase)) return false;
        if (!agent<BulkCopies>(block).end_phase(op, w, lane, known.address, known.phase)) return false;
    }
    auto& d = *reinterpret_cast<std::uint32_t*>(frame + op->d);
    d = (d & ~mask) | over;
    return true;
}

}  // namespace

#define IKAT_ON_BARRIER(name, ...)                                                          \
    const MicroOp* name(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) { \
        if (!each_lane(op, w, frame, mask, __VA_ARGS__)) return nullptr;                    \
        IKAT_NEXT;                                                                          \
    }
IKAT_ON_BARRIER(init_mbarrier, [](OnBarrier on) { return on.init(); })
IKAT_ON_BARRIER(invalidate_mbarrier, [](OnBarrier on) { return on.invalidate(); })
IKAT_ON_BARRIER(arrive_at_mbarrier,
                [states = reinterpret_cast<std::uint64_t*>(frame + op->d)](OnBarrier on) { return on.arrive(states); })
IKAT_ON_BARRIER(transact_mbarrier, [](OnBarrier on) { return on.transact(); })
IKAT_ON_BARRIER(arrive_after_copies, [counts = !op->c](OnBarrier on) { return on.arrive_later(counts); })
#undef IKAT_ON_BARRIER

const MicroOp* test_mbarrier(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!test_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

}  // namespace ikat::emulator
