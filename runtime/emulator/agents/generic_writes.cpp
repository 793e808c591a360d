// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/generic_writes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/observe/messages.hpp"
#include "runtime/emulator/observe/wording.hpp"

namespace ikat::emulator {

namespace {

constexpr std::uint32_t checked_place = 1u << 20;  // of an op of the checked code
constexpr std::uint64_t word_bytes = 4;

}  // namespace

std::uint32_t GenericWrites::place(const Warp* w, const MicroOp* op) {
    return (w->index_of(op) & (checked_place - 1)) | (w->kernel->is_checked() ? checked_place : 0);
}

void GenericWrites::clear(const std::vector<std::uint8_t>& written, bool is_used, bool has_global) {
    is_used_ = is_used;
    has_global_ = has_global;
    found = {};
    pages_.clear();
    if (!is_used) return;
    written_ = written.data();
    words_.assign(2 * written.size() + 4, 0);  // a bit for each byte
}

std::uint64_t GenericWrites::word_of(std::uint32_t thread, std::uint32_t place) const {
    return std::uint64_t(thread + 1) << thread_at | std::uint64_t(place) << place_at | block_.order_of_warps.now();
}

void GenericWrites::fill(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count, std::uint64_t word) {
    const std::uint64_t first = 8 * std::uint64_t(bits - written_) + at;
    std::fill(words_.begin() + std::ptrdiff_t(first / word_bytes),
              words_.begin() + std::ptrdiff_t((first + count + word_bytes - 1) / word_bytes), word);
}

void GenericWrites::fill_global(std::uint64_t address, std::uint64_t count, std::uint64_t word) {
    for (std::uint64_t at = address / word_bytes, end = (address + count + word_bytes - 1) / word_bytes; at < end;
         ++at) {
        const std::uint64_t number = at * word_bytes >> page_bits;
        auto found = pages_.find(number);
        if (found == pages_.end()) {
            if (!word) continue;
            found = pages_.emplace(number, std::make_unique<Page>()).first;
        }
        (*found->second)[at % found->second->size()] = word;
    }
}

void GenericWrites::note(std::uint32_t thread, std::uint32_t place, const std::uint8_t* bits, std::uint64_t at,
                         std::uint64_t count) {
    if (is_used_) fill(bits, at, count, word_of(thread, place));
}

void GenericWrites::note_global(std::uint32_t thread, std::uint32_t place, std::uint64_t address, std::uint64_t count) {
    if (has_global_) fill_global(address, count, word_of(thread, place));
}

bool GenericWrites::is_shown_word(const Issuer& issuer, Shown shown, std::uint32_t thread, std::uint32_t when) const {
    const WarpOrder &mine = block_.order_of_warps, &theirs = issuer.w->block->order_of_warps;
    const std::uint32_t writer = thread / warp_size, first = issuer.w->index * warp_size;
    // The host's maps need no fence; those that the kernel writes need one by which they are acquired.
    if (shown != Shown::Maps && mine.has_fenced(shown, thread, when)) return true;
    for (unsigned lane = issuer.lane.value_or(0); lane <= issuer.lane.value_or(warp_size - 1); ++lane)
        if (theirs.has_fenced(shown, first + lane, when)) return true;
    if (&mine == &theirs) return mine.is_shown(shown, issuer.w->index, writer, when);
    for (std::uint32_t warp = 0; warp < mine.warps(); ++warp)  // how the other block has met it is not known
        if (mine.is_shown(shown, warp, writer, when)) return true;
    return false;
}

bool GenericWrites::find(const Issuer& issuer, Fault fault, std::string what, std::uint64_t word) {
    const auto place = std::uint32_t(word >> place_at) & (2 * checked_place - 1);
    const LaunchState& state = block_.launch_state();
    const DecodedKernel& code = place & checked_place ? state.checked() : state.kernel;
    ThreadBlock& reader = *issuer.w->block;
    const nvptx::Instruction* const writes = code.instructions[place & (checked_place - 1)];
    reader.generic_writes.found = {&block_, thread_of(word), writes};
    const bool is_visibility = fault.code == FaultCode::BulkNotVisible || fault.code == FaultCode::ProductNotVisible;
    if (is_visibility && writes->opcode == nvptx::Opcode::Cp) fault.code = FaultCode::CopyNotVisible;
    reader.finding = std::move(what);
    fault.lane = issuer.lane.value_or(0);
    return passes(issuer.w, issuer.op, fault);
}

bool GenericWrites::is_shown(const Issuer& issuer, FaultCode code, const char* does, const std::uint8_t* bits,
                             std::uint64_t at, std::uint64_t count, Space space, std::uint64_t address) {
    if (!is_used_) return true;
    const std::uint64_t first = 8 * std::uint64_t(bits - written_) + at;
    for (std::uint64_t i = 0; i < count; i += word_bytes) {
        std::uint64_t& word = words_[(first + i) / word_bytes];
        if (!word) continue;
        if (block_.order_of_warps.has_fenced(Shown::Shared, thread_of(word), std::uint32_t(word))) {
            word = 0;
            continue;
        }
        if (is_shown_word(issuer, Shown::Shared, thread_of(word), std::uint32_t(word))) continue;
        const Fault fault{.code = code, .space = space, .bytes = word_bytes, .address = address + i};
        return find(
            issuer, fault,
            fmt::format("{} {} {}, which {} has written without `fence.proxy.async` before it", does,
                        plural(word_bytes, "byte"),
                        bytes_text({.space = space, .address = address + i, .bytes = word_bytes}, *issuer.w->block),
                        thread_text(block_, thread_of(word))),
            word);
    }
    return true;
}

bool GenericWrites::is_shown_global(const Issuer& issuer, Shown shown, const char* does, std::uint64_t address,
                                    std::uint64_t count) {
    if (pages_.empty()) return true;
    // Of a word at the edge of a box, others may have written the rest.
    const std::uint64_t end = (address + count) / word_bytes * word_bytes;
    for (std::uint64_t at = (address + word_bytes - 1) / word_bytes * word_bytes; at < end; at += word_bytes) {
        const auto page = pages_.find(at >> page_bits);
        if (page == pages_.end()) {
            at |= (std::uint64_t{1} << page_bits) - word_bytes;
            continue;
        }
        const std::uint64_t word = (*page->second)[at / word_bytes % page->second->size()];
        if (!word) continue;
        const std::uint32_t thread = thread_of(word), when = std::uint32_t(word);
        const bool is_map = shown == Shown::Maps,
                   is_released = !is_map || is_shown_word(issuer, Shown::ReleasedMaps, thread, when),
                   is_acquired = !is_map || block_.order_of_warps.is_acquired(address, when);
        if (is_released && is_acquired && is_shown_word(issuer, shown, thread, when)) continue;
        const Fault fault{
            .code = FaultCode::BulkNotVisible, .space = Space::Global, .bytes = word_bytes, .address = at};
        const char* const fence = !is_map       ? "`fence.proxy.async`"
                                  : is_released ? "fence.proxy.tensormap::generic.acquire"
                                                : "fence.proxy.tensormap::generic.release";
        return find(
            issuer, fault,
            fmt::format("{} {} {}, which {} has written without {} before it", does, plural(word_bytes, "byte"),
                        bytes_text({.space = Space::Global, .address = at, .bytes = word_bytes}, *issuer.w->block),
                        thread_text(block_, thread), fence),
            word);
    }
    return true;
}

bool GenericWrites::is_shown_barrier(const Issuer& issuer, std::uint32_t thread, std::uint32_t when,
                                     const nvptx::Instruction* made, std::uint64_t address) {
    ThreadBlock& reader = *issuer.w->block;
    if (!is_used_) return true;
    // fence.mbarrier_init is for barriers of its own thread only.
    if (block_.order_of_warps.has_fenced(Shown::Barriers, thread, when)) return true;
    if (is_shown_word(issuer, Shown::Shared, thread, when)) return true;
    const bool is_own = &block_ == &reader;
    reader.generic_writes.found = {&block_, thread, made};
    reader.finding = fmt::format(
        "a bulk copy arrives at the barrier {}, which {} has made without `fence.mbarrier_init` or {} behind it",
        bytes_text({.space = Space::Generic, .address = address, .bytes = 8}, reader), thread_text(block_, thread),
        is_own ? "`fence.proxy.async`" : "a release at the cluster's barrier");
    return passes(issuer.w, issuer.op,
                  {.code = is_own ? FaultCode::BulkBarrierNotFenced : FaultCode::ClusterBarrierNotFenced,
                   .space = Space::Generic,
                   .lane = issuer.lane.value_or(0),
                   .bytes = 8,
                   .address = address});
}

namespace {

[[gnu::noinline]] void note_write(const MicroOp* op, const Warp* w, const std::byte* frame, std::uint32_t mask) {
    GenericWrites& writes = w->block->generic_writes;
    const std::uint32_t place = GenericWrites::place(w, op);
    for (std::uint32_t rest = mask & op->b; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const std::uint32_t thread = w->index * warp_size + lane;
        const std::uint64_t base = op->y == 8 ? reinterpret_cast<const std::uint64_t*>(frame + op->a)[lane]
                                              : reinterpret_cast<const std::uint32_t*>(frame + op->a)[lane];
        std::uint64_t address = with_offset(op, Space(op->c), base);
        if (Space(op->c) != Space::Shared) {
            if (const std::uint64_t window = address >> window_bits; window != std::uint64_t(Space::Shared)) {
                if (window == 0 || window > std::uint64_t(Space::Const))
                    writes.note_global(thread, place, address, op->d);
                continue;
            }
            address &= window_bytes - 1;
        }
        const View& view = w->windows[int(Space::Shared)].at(address);
        const std::uint64_t at = address - view.base;
        if (view.bytes < op->d || at > view.bytes - op->d) continue;  // of another block, or a finding
        writes.note(thread, place, view.bits, at, op->d);
    }
}

}  // namespace

const MicroOp* note_generic_write(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    note_write(op, w, frame, mask);
    IKAT_NEXT;
}

}  // namespace ikat::emulator
