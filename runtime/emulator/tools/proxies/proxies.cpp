// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/proxies/proxies.hpp"

#include <fmt/format.h>

#include <bit>

#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

void Proxies::start() {
    found_ = {};
    barriers_.clear();
    order_.clear(block_.warps().size(), of(block_.peer(0)).order_);
    writes_.clear(block_.launch_state().kernel.has_bulk_copies);
}

void Proxies::begin(const Warp& warp, unsigned lane, const Meeting& at, const ptx::Instruction* by) {
    barriers_[at.place] = {warp.index * warp_size + lane, order_.now(), by};
}

void Proxies::land(const AgentAccess& access) {
    const std::uint32_t thread = access.w->index * warp_size + unsigned(std::countr_zero(access.lanes));
    for (const AgentAccess::Range& range : access.ranges)
        if (!access.owner)
            writes_.note_global(thread, *access.code, access.op, range.address, range.bytes);
        else if (access.owner == &block_)
            writes_.note(thread, *access.code, access.op, range.bits, range.offset, range.bytes);
}

// ---- what an operation needs

/// Told to the tool of the issuer's block.
bool Proxies::access(const AgentAccess& access) {
    switch (access.of) {
        case AgentAccess::Of::Arrival: return !access.by_async_proxy || arrive_at_barrier(access);
        case AgentAccess::Of::Copy: return true;
        default: return access.owner ? access_shared(access) : access_global(access);
    }
}

/// Whether a fence has shown a write of this block to the operation.
bool Proxies::is_shown(const AgentAccess& access, Shown shown, const GenericWrites::Write& write) const {
    const WarpOrder& theirs = of(block_of(access.w)).order_;
    const std::uint32_t writer = write.thread / warp_size, first = access.w->index * warp_size;
    // The host's maps need no fence; those that the kernel writes need one by which they are acquired.
    if (shown != Shown::Maps && order_.has_fenced(shown, write.thread, write.when)) return true;
    for (std::uint32_t rest = access.lanes; rest; rest &= rest - 1)
        if (theirs.has_fenced(shown, first + unsigned(std::countr_zero(rest)), write.when)) return true;
    if (&order_ == &theirs) return order_.is_shown(shown, access.w->index, writer, write.when);
    for (std::uint32_t warp = 0; warp < order_.warps(); ++warp)  // how the other block has met it is not known
        if (order_.is_shown(shown, warp, writer, write.when)) return true;
    return false;
}

bool Proxies::find(const AgentAccess& access, Fault fault, std::string what, const ThreadBlock& by,
                   std::uint32_t thread, const ptx::Instruction* instruction) {
    ThreadBlock& reader = block_of(access.w);
    of(reader).found_ = {&by, thread, instruction};
    reader.finding = std::move(what);
    fault.lane = unsigned(std::countr_zero(access.lanes));
    return passes(access.w, access.op, fault);
}

bool Proxies::find(const AgentAccess& access, Fault fault, const GenericWrites::Write& write, std::string_view fence) {
    const ThreadBlock& reader = block_of(access.w);
    const LaunchState& state = block_.launch_state();
    const DecodedKernel& code = write.by_checked ? state.checked() : state.kernel;
    const ptx::Instruction* const writes = code.instructions[write.op];
    const bool is_product = access.of == AgentAccess::Of::Product;
    fault.code = writes->opcode == ptx::Opcode::Cp ? FaultCode::CopyNotVisible
                 : is_product                      ? FaultCode::ProductNotVisible
                                                   : FaultCode::BulkNotVisible;
    fault.bytes = GenericWrites::word_bytes;
    const char* const does = is_product                                ? "a product reads"
                             : access.of == AgentAccess::Of::TensorMap ? "a bulk copy uses a tensor map with"
                             : access.direction == Direction::Read     ? "a bulk copy reads"
                                                                       : "a bulk copy overwrites";
    return find(access, fault,
                fmt::format("{} {} {}, which {} has written without {} before it", does, plural(fault.bytes, "byte"),
                            bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, reader),
                            thread_text(block_, write.thread), fence),
                block_, write.thread, writes);
}

bool Proxies::access_shared(const AgentAccess& access) {
    constexpr std::uint32_t word_bytes = GenericWrites::word_bytes;
    for (const AgentAccess::Range& range : access.ranges) {
        const bool is_row = range.bytes == 16 && range.offset % 16 == 0;
        if (is_row && writes_.is_clear(range.bits + range.offset / 8)) continue;
        for (std::uint32_t i = 0; access.by_async_proxy && i < range.bytes; i += word_bytes) {
            const auto write = writes_.at(range.bits, range.offset + i);
            if (!write) continue;
            if (order_.has_fenced(Shown::Shared, write->thread, write->when)) {
                writes_.forget(range.bits, range.offset + i, 1);
                continue;
            }
            if (is_shown(access, Shown::Shared, *write)) continue;
            if (!find(access, {.space = access.space, .address = range.address + i}, *write, "`fence.proxy.async`"))
                return false;
            break;
        }
        if (access.direction == Direction::Write) writes_.forget(range.bits, range.offset, range.bytes);
    }
    return true;
}

bool Proxies::access_global(const AgentAccess& access) {
    constexpr std::uint32_t word_bytes = GenericWrites::word_bytes;
    if (!writes_.has_global()) return true;
    const bool is_map = access.of == AgentAccess::Of::TensorMap;
    const Shown shown = is_map ? Shown::Maps : Shown::Global;
    for (const AgentAccess::Range& range : access.ranges) {
        // Of a word at the edge of a box, others may have written the rest.
        const std::uint64_t end = (range.address + range.bytes) / word_bytes * word_bytes;
        std::uint64_t at = (range.address + word_bytes - 1) / word_bytes * word_bytes;
        for (; const auto write = writes_.next_global(at, end); at += word_bytes) {
            const bool is_released = !is_map || is_shown(access, Shown::ReleasedMaps, *write),
                       is_acquired = !is_map || order_.is_acquired(range.address, write->when);
            if (is_released && is_acquired && is_shown(access, shown, *write)) continue;
            const char* const fence = !is_map       ? "`fence.proxy.async`"
                                      : is_released ? "fence.proxy.tensormap::generic.acquire"
                                                    : "fence.proxy.tensormap::generic.release";
            if (!find(access, {.space = Space::Global, .address = at}, *write, fence)) return false;
            break;
        }
        if (access.direction != Direction::Read) writes_.forget_global(range.address, range.bytes);
    }
    return true;
}

/// At a barrier of this block.
bool Proxies::arrive_at_barrier(const AgentAccess& access) {
    const AgentAccess::Range& range = access.ranges.front();
    const auto made = barriers_.find(range.place);
    if (made == barriers_.end()) return true;
    const auto& [thread, when, by] = made->second;
    // fence.mbarrier_init is for barriers of its own thread only.
    if (order_.has_fenced(Shown::Barriers, thread, when)) return true;
    if (is_shown(access, Shown::Shared, {.thread = thread, .when = when})) return true;
    const ThreadBlock& reader = block_of(access.w);
    const bool is_own = &block_ == &reader;
    return find(
        access,
        {.code = is_own ? FaultCode::BulkBarrierNotFenced : FaultCode::ClusterBarrierNotFenced,
         .space = Space::Generic,
         .bytes = range.bytes,
         .address = range.address},
        fmt::format(
            "a bulk copy arrives at the barrier {}, which {} has made without `fence.mbarrier_init` or {} after it",
            bytes_text({.space = Space::Generic, .address = range.address, .bytes = range.bytes}, reader),
            thread_text(block_, thread), is_own ? "`fence.proxy.async`" : "a release at the cluster's barrier"),
        block_, thread, by);
}

bool Proxies::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    if (!found_.by) return false;  // see races/fences.cpp
    const bool is_of_bulk = fault.code >= FaultCode::BulkNotVisible && fault.code <= FaultCode::ClusterBarrierNotFenced;
    if (!is_of_bulk && fault.code != FaultCode::ProductNotVisible && fault.code != FaultCode::CopyNotVisible)
        return false;
    const LaunchState& state = block_.launch_state();
    diagnostic.message = fmt::format("{}, by {}", block_.finding, by);
    diagnostic.notes.push_back(
        {location(state, *found_.instruction),
         fmt::format("the write, by block {} {}: {}", tuple(found_.by->coordinates()),
                     thread_text(*found_.by, found_.thread), text_of(state.module, *found_.instruction))});
    return true;
}

// ---- the ops

namespace {

Proxies& proxies_of(const Warp* w, std::uint32_t slot) { return static_cast<Proxies&>(*w->tools[slot]); }

/// d bytes are about to be written at address a + x, which has y bytes, by the lanes b; c is the space, with the tool's
/// slot above 8 bits.
[[gnu::noinline]] void note_lanes(const MicroOp* op, const Warp* w, const std::byte* frame, std::uint32_t mask) {
    GenericWrites& writes = proxies_of(w, op->c >> 8).writes();
    const Space space = Space(op->c & 255);
    for (std::uint32_t rest = mask & op->b; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const std::uint32_t thread = w->index * warp_size + lane;
        const std::uint64_t base = op->y == 8 ? reinterpret_cast<const std::uint64_t*>(frame + op->a)[lane]
                                              : reinterpret_cast<const std::uint32_t*>(frame + op->a)[lane];
        std::uint64_t address = with_offset(op, space, base);
        if (space != Space::Shared) {
            if (const std::uint64_t window = address >> window_bits; window != std::uint64_t(Space::Shared)) {
                if (window == 0 || window > std::uint64_t(Space::Const))
                    writes.note_global(thread, *w->kernel, op, address, op->d);
                continue;
            }
            address &= window_bytes - 1;
        }
        const View& view = w->windows[int(Space::Shared)].at(address);
        const std::uint64_t at = address - view.base;
        if (view.bytes < op->d || at > view.bytes - op->d) continue;  // of another block, or a finding
        writes.note(thread, *w->kernel, op, view.bits, at, op->d);
    }
}

const MicroOp* note_write(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    note_lanes(op, w, frame, mask);
    IKAT_NEXT;
}

/// Lanes execute a fence that shows what the set x says. d is the tool's slot.
const MicroOp* note_fence(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    proxies_of(w, op->d).order().fence(w->index, mask, op->x);
    IKAT_NEXT;
}

/// The lanes of a warp meet.
const MicroOp* note_meeting(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    proxies_of(w, op->d).order().meet(w->index);
    IKAT_NEXT;
}

/// Tensor maps at addresses a, of 8 bytes, are acquired.
const MicroOp* note_acquired(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    WarpOrder& order = proxies_of(w, op->d).order();
    order.fence(w->index, mask, bit(Shown::Maps));
    const auto* const addresses = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) order.acquire(addresses[std::countr_zero(rest)]);
    IKAT_NEXT;
}

class Finder final : public Tool {
public:
    std::string_view name() const override { return "proxies"; }
    bool watches(const DecodedKernel& kernel) const override { return kernel.has_products || kernel.has_bulk_copies; }

    void before_op(Lowering& code, Micro& op) const override {
        const MicroInfo::Access& access = op.info.access;
        if (!access.bytes || access.direction == Direction::Read) return;
        const bool is_global = access.space == Space::Global && code.kernel.has_bulk_copies;
        if (access.space != Space::Shared && access.space != Space::Generic && !is_global) return;
        code.put({.run = note_write,
                  .fields = {access.bytes, op.fields[1], access.lanes, std::uint32_t(access.space) | code.asked << 8,
                             std::uint32_t(access.offset), code.values[op.fields[1]].slot},
                  .reads = A});
    }

    void after_op(Lowering& code, const Micro& op) const override {
        const Synchronises& how = op.info.synchronises;
        if (how.meets_warp) code.put({.run = note_meeting, .fields = {code.asked}});
        if (how.shows_maps && how.acquires)
            code.put({.run = note_acquired, .fields = {code.asked, op.fields[1]}, .reads = A});
        const std::uint32_t shown = (how.shows_shared ? bit(Shown::Shared) : 0) |
                                    (how.shows_global ? bit(Shown::Global) : 0) |
                                    (how.shows_barriers ? bit(Shown::Barriers) : 0) |
                                    (how.shows_maps && how.releases ? bit(Shown::ReleasedMaps) : 0);
        if (shown) code.put({.run = note_fence, .fields = {code.asked, 0, 0, 0, shown}});
    }

    std::unique_ptr<LaunchTool> of(LaunchState&, std::size_t slot) const override {
        struct OfLaunch final : LaunchTool {
            explicit OfLaunch(std::size_t at) : slot(at) {}
            std::unique_ptr<BlockTool> of(ThreadBlock& block) override {
                return std::make_unique<Proxies>(block, slot);
            }
            std::size_t slot;
        };
        return std::make_unique<OfLaunch>(slot);
    }
};

}  // namespace

const Tool& proxies() {
    static const Finder finder;
    return finder;
}

}  // namespace ikat::emulator
