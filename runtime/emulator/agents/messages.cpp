// SPDX-License-Identifier: Apache-2.0
// The messages for findings about barriers in shared memory, bulk copies and warpgroups; see messages.hpp.
#include <fmt/format.h>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/agents/async_copies.hpp"
#include "runtime/emulator/agents/async_products.hpp"
#include "runtime/emulator/agents/bulk/bulk_copies.hpp"
#include "runtime/emulator/agents/mbarriers.hpp"
#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

namespace {

bool is_shared(const Fault& fault) {
    return fault.space == Space::Shared ||
           (fault.space == Space::Generic && fault.address >> window_bits == std::uint64_t(Space::Shared));
}

std::string where(const Fault& fault, const ThreadBlock& block) {
    return bytes_text({.space = fault.space, .address = fault.address, .bytes = fault.bytes}, block);
}

/// The barrier that has some of the bytes that a finding is about, and the block whose it is.
struct MbarrierOf {
    const ThreadBlock& owner;
    const Mbarriers::Barrier* barrier = nullptr;
};
MbarrierOf mbarrier_of(const Fault& fault, const ThreadBlock& block) {
    if (!is_shared(fault)) return {block};
    const auto [owner, address] = block.shared_place(fault.address & (window_bytes - 1));
    return {owner, agent<Mbarriers>(owner).over(address, fault.bytes)};
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

bool Mbarriers::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    if (fault.code < FaultCode::MbarrierMissing || fault.code > FaultCode::MbarrierRemote) return false;
    const auto [owner, barrier] = mbarrier_of(fault, block_);
    const std::string where = emulator::where(fault, block_);
    const std::string what = [&] {
        switch (fault.code) {
            case FaultCode::MbarrierMissing: return fmt::format("the 8 bytes {} are not a barrier", where);
            case FaultCode::MbarrierLive: return fmt::format("a barrier is made {}, where there is one", where);
            case FaultCode::MbarrierCount:
                return fmt::format("the barrier {} is to count {} arrivals", where, fault.lanes);
            case FaultCode::MbarrierArrivals:
                return fmt::format("{} at the barrier {}, which lacks {} in phase {}", plural(fault.lanes, "arrival"),
                                   where, barrier ? emulator::missing(*barrier) : "", barrier ? barrier->phase : 0);
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
    diagnostic.message = fmt::format("{}, by {}", what, by);
    if (!barrier) return true;
    const LaunchState& state = block_.launch_state();
    diagnostic.notes.push_back(
        {location(state, *barrier->made), fmt::format("the barrier: {}", text_of(state.module, *barrier->made))});
    return true;
}

bool InFlight::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    if (fault.code < FaultCode::CopyNotAwaited || fault.code > FaultCode::CopySourceChanged) return false;
    const Flight* copy = found;
    if (!copy && is_shared(fault)) {
        const auto [owner, address] = block_.shared_place(fault.address & (window_bytes - 1));
        copy = agent<AsyncCopies>(owner).over(address, fault.bytes);
        if (!copy) copy = agent<BulkCopies>(owner).over(address, fault.bytes);
    }
    const std::string of_copy = copy ? who(*copy->by, copy->by->warps()[copy->warp], copy->lane) : std::string();
    const std::string bytes = plural(fault.bytes, "byte"), at = where(fault, block_);
    if (fault.code == FaultCode::CopyNotAwaited)
        diagnostic.message = fmt::format("{} of {} {}, to which a copy is in flight, by {}",
                                         fault.store ? "an atomic" : "a load", bytes, at, by);
    else if (fault.code == FaultCode::CopyOverwritten)
        diagnostic.message =
            fmt::format("{} {} have been written while a copy to them was in flight, by {}", bytes, at, by);
    else
        diagnostic.message = fmt::format("{} {} have changed while they were being copied by {}", bytes, at, of_copy);
    if (!copy) return true;
    const LaunchState& state = block_.launch_state();
    diagnostic.notes.push_back(
        {location(state, *copy->instruction),
         fmt::format("the copy, by {}: {}", of_copy, text_of(state.module, *copy->instruction))});
    if (copy->is_bulk && fault.code == FaultCode::CopyNotAwaited)
        diagnostic.hint =
            "wait for the phase of the barrier that counts the bytes of the copy; other threads, too, wait for "
            "it or meet one that has";
    return true;
}

/// Of the registers of a warpgroup, too.
bool AsyncProducts::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    const bool is_of_products =
        fault.code >= FaultCode::PartialWarpgroup && fault.code <= FaultCode::DescriptorReserved;
    const bool is_of_registers = fault.code >= FaultCode::RegisterCount && fault.code <= FaultCode::RegistersNotMet;
    const bool is_of_proxies = fault.code == FaultCode::ProductNotVisible || fault.code == FaultCode::CopyNotVisible;
    if ((!is_of_products && !is_of_registers) || is_of_proxies) return false;
    const std::string what = fault.code != FaultCode::ProductSourceChanged
                                 ? block_.finding
                                 : fmt::format("{} {} have changed while a product was reading them",
                                               plural(fault.bytes, "byte"), where(fault, block_));
    diagnostic.message = fmt::format("{}, by {}", what, by);
    if (!found) return true;
    const LaunchState& state = block_.launch_state();
    diagnostic.notes.push_back(
        {location(state, *found), fmt::format("{}: {}", found_is, text_of(state.module, *found))});
    return true;
}

bool BulkCopies::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    const bool is_of_proxies =
        fault.code >= FaultCode::BulkNotVisible && fault.code <= FaultCode::ClusterBarrierNotFenced;
    if (fault.code < FaultCode::BulkSize || fault.code > FaultCode::CopyAtExit || is_of_proxies) return false;
    const auto at = [&] { return where(fault, block_); };
    const std::string what = [&] {
        switch (fault.code) {
            case FaultCode::BulkSize: return fmt::format("a bulk copy of {}", plural(fault.bytes, "byte"));
            case FaultCode::BulkAlignment: return fmt::format("a bulk prefetch from 0x{:x}", fault.address);
            case FaultCode::BulkUnwritten:
                return fmt::format("a bulk copy to global memory of {} {}, which nothing has written",
                                   plural(fault.bytes, "byte"), at());
            case FaultCode::BulkMap: return fmt::format("a tensor map at 0x{:x}: {}", fault.address, block_.finding);
            case FaultCode::BulkPlace: return block_.finding;
            case FaultCode::BulkTail:
                return fmt::format("a store of a box also changes {} {}, after a row of the tensor",
                                   plural(fault.bytes, "byte"), at());
            case FaultCode::MapChange: return fmt::format("a change of the tensor map {}: {}", at(), block_.finding);
            case FaultCode::BulkBarrier:
                return fmt::format("the barrier of a bulk copy is {}, not where the bytes go", at());
            case FaultCode::BulkBlocks: return fmt::format("a multicast to block {} of the cluster", fault.address);
            default:
                return fmt::format("block {} ends while {} {} are in flight", tuple(block_.coordinates()),
                                   plural(fault.bytes, "byte"), at());
        }
    }();
    diagnostic.message = fmt::format("{}, by {}", what, by);
    return true;
}

std::string Mbarriers::polled_by(const Warp& warp) const {
    const Question& asked = last_question(warp);
    const std::string where =
        bytes_text({.space = Space::Shared, .address = asked.address, .bytes = mbarrier_bytes}, block_);
    const Barrier* const barrier = over(asked.address, mbarrier_bytes);
    if (!barrier || barrier->phase != asked.phase) return fmt::format("waits for a phase of the barrier {}", where);
    return fmt::format("waits for phase {} of the barrier {}, which lacks {}", asked.phase, where,
                       emulator::missing(*barrier));
}

}  // namespace ikat::emulator
