// SPDX-License-Identifier: Apache-2.0
// The messages for findings about barriers in shared memory, bulk copies and warpgroups; see messages.hpp.
#include <fmt/format.h>

#include "runtime/emulator/observe/messages.hpp"
#include "runtime/emulator/observe/wording.hpp"

namespace ikat::emulator {

namespace {

/// The barrier that has some of the bytes that a finding is about, and the block whose it is.
struct MbarrierOf {
    const ThreadBlock& owner;
    const Mbarriers::Barrier* barrier = nullptr;
};
MbarrierOf mbarrier_of(const Fault& fault, const ThreadBlock& block) {
    const bool is_window =
        fault.space == Space::Generic && fault.address >> window_bits == std::uint64_t(Space::Shared);
    if (fault.space != Space::Shared && !is_window) return {block};
    const auto [owner, address] = block.shared_place(fault.address & (window_bytes - 1));
    return {owner, owner.mbarriers.over(address, fault.bytes)};
}

/// "1 of 2 arrivals and 64 bytes"
std::string missing(const Mbarriers::Barrier& barrier) {
    std::string text;
    if (barrier.pending) text = fmt::format("{} of {}", barrier.pending, plural(barrier.expected, "arrival"));
    if (barrier.bytes < 0)
        return fmt::format("{}but has {} more than are expected", text.empty() ? "nothing, " : text + ", ",
                           plural(std::uint64_t(-barrier.bytes), "byte"));
    if (barrier.bytes)
        text +=
            fmt::format("{}{}", text.empty() ? "" : " and ", plural(std::uint64_t(std::abs(barrier.bytes)), "byte"));
    return text;
}

}  // namespace

bool is_of_mbarrier(const Fault& fault, const ThreadBlock& block) {
    return mbarrier_of(fault, block).barrier != nullptr;
}

void describe_mbarrier(Diagnostic& diagnostic, const Fault& fault, const ThreadBlock& block) {
    const auto [owner, barrier] = mbarrier_of(fault, block);
    const std::string where = bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block);
    diagnostic.message = [&] {
        switch (fault.code) {
            case FaultCode::MbarrierMissing: return fmt::format("the 8 bytes {} are no barrier", where);
            case FaultCode::MbarrierLive: return fmt::format("a barrier is made {}, where there is one", where);
            case FaultCode::MbarrierCount:
                return fmt::format("the barrier {} is to count {} arrivals", where, fault.lanes);
            case FaultCode::MbarrierArrivals:
                return fmt::format("{} at the barrier {}, which lacks {} in phase {}", plural(fault.lanes, "arrival"),
                                   where, barrier ? missing(*barrier) : "", barrier ? barrier->phase : 0);
            case FaultCode::MbarrierBytes:
                return fmt::format("{} more for the barrier {}, which has {} in phase {}", plural(fault.lanes, "byte"),
                                   where,
                                   barrier ? plural(std::uint64_t(std::abs(barrier->bytes)), "pending byte") : "",
                                   barrier ? barrier->phase : 0);
            case FaultCode::MbarrierState: return fmt::format("the state waited for is none of the barrier {}", where);
            case FaultCode::MbarrierParity:
                return fmt::format("parity {} is waited for at the barrier {}", fault.lanes, where);
            case FaultCode::MbarrierPhase:
                return fmt::format("a phase is waited for at the barrier {}, which is {} phases further", where,
                                   fault.lanes);
            case FaultCode::MbarrierNoComplete:
                return fmt::format("{} with .noComplete at the barrier {} would complete its phase",
                                   plural(fault.lanes, "arrival"), where);
            case FaultCode::MbarrierRead:
                return fmt::format("{} of {} {}, which are of a barrier", fault.store ? "an atomic" : "a load",
                                   plural(fault.bytes, "byte"), where);
            case FaultCode::MbarrierOverwritten:
                return fmt::format("the {} {}, which are of a barrier, have been written", plural(fault.bytes, "byte"),
                                   where);
            default: return fmt::format("only threads of its own block can wait at the barrier {}", where);
        }
    }();
    if (!barrier) return;
    const nvptx::Module& module = block.launch_state().module;
    diagnostic.notes.push_back({location(block.launch_state(), *barrier->made),
                                fmt::format("the barrier: {}", text_of(module, *barrier->made))});
}

std::string thread_text(const ThreadBlock& block, std::uint32_t number) {
    return fmt::format("thread {}", tuple(block.thread(block.warps()[number / warp_size], number % warp_size)));
}

namespace {

/// The ordinary write that has not been fenced.
void note_write(Diagnostic& diagnostic, const ThreadBlock& block) {
    const GenericWrites::Found& write = block.generic_writes.found;
    const nvptx::Module& module = block.launch_state().module;
    diagnostic.notes.push_back(
        {location(block.launch_state(), *write.instruction),
         fmt::format("the write, by block {} {}: {}", tuple(write.by->coordinates()),
                     thread_text(*write.by, write.thread), text_of(module, *write.instruction))});
}

}  // namespace

bool is_of_warpgroup(FaultCode code) {
    return (code >= FaultCode::PartialWarpgroup && code <= FaultCode::DescriptorReserved) ||
           (code >= FaultCode::RegisterCount && code <= FaultCode::RegistersNotMet);
}

void describe_warpgroup(Diagnostic& diagnostic, const Fault& fault, const ThreadBlock& block) {
    diagnostic.message = block.finding;
    if (fault.code == FaultCode::ProductSourceChanged)
        diagnostic.message =
            fmt::format("{} {} have changed while a product was reading them", plural(fault.bytes, "byte"),
                        bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block));
    if (fault.code == FaultCode::ProductNotVisible || fault.code == FaultCode::CopyNotVisible)
        return note_write(diagnostic, block);
    const nvptx::Instruction* const other = block.products.found;
    if (!other) return;
    const nvptx::Module& module = block.launch_state().module;
    diagnostic.notes.push_back({location(block.launch_state(), *other),
                                fmt::format("{}: {}", block.products.found_is, text_of(module, *other))});
}

void describe_bulk_copy(Diagnostic& diagnostic, const Fault& fault, const ThreadBlock& block) {
    const auto where = [&] {
        return bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block);
    };
    if (fault.code >= FaultCode::BulkNotVisible && fault.code <= FaultCode::ClusterBarrierNotFenced)
        note_write(diagnostic, block);
    diagnostic.message = [&] {
        switch (fault.code) {
            case FaultCode::BulkNotVisible:
            case FaultCode::BulkBarrierNotFenced:
            case FaultCode::ClusterBarrierNotFenced: return block.finding;
            case FaultCode::BulkSize: return fmt::format("a bulk copy of {}", plural(fault.bytes, "byte"));
            case FaultCode::BulkAlignment: return fmt::format("a bulk prefetch from 0x{:x}", fault.address);
            case FaultCode::BulkUnwritten:
                return fmt::format("a bulk copy to global memory of {} {}, which nothing has written",
                                   plural(fault.bytes, "byte"), where());
            case FaultCode::BulkMap: return fmt::format("a tensor map at 0x{:x}: {}", fault.address, block.finding);
            case FaultCode::MapChange: return fmt::format("a change of the tensor map {}: {}", where(), block.finding);
            case FaultCode::BulkBarrier:
                return fmt::format("the barrier of a bulk copy is {}, not where the bytes go", where());
            case FaultCode::BulkBlocks: return fmt::format("a multicast to block {} of the cluster", fault.address);
            default:
                return fmt::format("block {} ends while {} {} are in flight", tuple(block.coordinates()),
                                   plural(fault.bytes, "byte"), where());
        }
    }();
}

std::string awaited_phase(const ThreadBlock& block, const Warp& warp) {
    const Mbarriers::Question& asked = block.mbarriers.last_question(warp);
    const std::string where =
        bytes_text({.space = Space::Shared, .address = asked.address, .bytes = mbarrier_bytes}, block);
    const Mbarriers::Barrier* const barrier = block.mbarriers.over(asked.address, mbarrier_bytes);
    if (!barrier || barrier->phase != asked.phase) return fmt::format("waits for a phase of the barrier {}", where);
    return fmt::format("waits for phase {} of the barrier {}, which lacks {}", asked.phase, where, missing(*barrier));
}

}  // namespace ikat::emulator
