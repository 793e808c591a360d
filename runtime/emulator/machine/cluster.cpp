// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/cluster.hpp"

#include <algorithm>
#include <bit>

#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/ops/control.hpp"

namespace ikat::emulator {

namespace {

using Coordinates = std::array<std::uint32_t, 3>;

Coordinates coordinates_in(const Coordinates& extents, std::uint64_t index) {
    return {std::uint32_t(index % extents[0]), std::uint32_t(index / extents[0] % extents[1]),
            std::uint32_t(index / extents[0] / extents[1])};
}

}  // namespace

Cluster::Cluster(LaunchState& state) : state_(state) {
    for (std::uint32_t rank = 0; rank < state.kernel.blocks_in_cluster(); ++rank)
        blocks_.emplace_back(state, rank, blocks_);
}

void Cluster::start(std::uint64_t number, std::uint64_t turn) {
    const Coordinates &size = state_.kernel.cluster, &grid = state_.launch.grid;
    const Coordinates at = coordinates_in({grid[0] / size[0], grid[1] / size[1], grid[2] / size[2]}, number);
    for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank) {
        const Coordinates in = coordinates_in(size, rank);
        blocks_[rank].start({at[0] * size[0] + in[0], at[1] * size[1] + in[1], at[2] * size[2] + in[2]},
                            turn * blocks_.size() + rank);
    }
    for (ThreadBlock& block : blocks_) block.see_cluster();
    running_ = (1u << blocks_.size()) - 1;
    const Options& options = state_.options;
    random_.seed(mixed(options.seed, std::uint32_t(number)));
    order_.start(std::uint32_t(blocks_.size()), options, number, random_);
    starved_ = nobody;
    if (!options.starved_block || blocks_.size() < 2) return;
    starved_ = mixed(options.seed, ~std::uint32_t(number)) % unsigned(blocks_.size());
    starved_since_ = executed_by_others();
    starved_rounds_ = 0;
}

std::uint64_t Cluster::executed_by_others() const {
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank)
        if (rank != starved_) sum += blocks_[rank].executed();
    return sum;
}

/// Whether another block goes before the starved one. Not for ever: they may wait for it in a way that is not seen.
/// Then it takes turns with them from now on.
bool Cluster::starves() {
    constexpr std::uint64_t max_executed = 1 << 22, max_rounds = 1 << 10;  // warp instructions
    const auto goes_on = [&](std::uint32_t rank) {
        return (running_ >> rank & 1) && blocks_[rank].last_turn() != ThreadBlock::Turn::Waits;
    };
    const std::uint64_t executed = executed_by_others();
    bool others = false;
    for (std::uint32_t rank = 0; rank < blocks_.size(); ++rank) others |= rank != starved_ && goes_on(rank);
    if (others && executed - starved_since_ < max_executed && ++starved_rounds_ < max_rounds) return true;
    if (others) starved_ = nobody;
    starved_since_ = executed;
    starved_rounds_ = 0;
    return false;
}

// ---- what a block has to do with the others

void ThreadBlock::meet_cluster(ScheduledWarp& warp, bool arrives, bool releases) {
    const std::uint32_t self = 1u << warp.index;
    if (arrives == (((cluster_.came | cluster_.passed) & self) != 0))
        throw barrier_error(*this, warp, FaultCode::ClusterBarrier,
                            arrives ? "a thread arrives at the cluster's barrier again without having waited"
                                    : "a thread waits at the cluster's barrier without having arrived");
    if (arrives) {
        cluster_.came |= self;
        each_tool([&](BlockTool& tool) {
            tool.arrive(warp, warp.live, {Meeting::Kind::Cluster}, false);
            if (releases) tool.release(warp);
        });
        warp.pass_barrier();
        return pass_cluster();
    }
    if (cluster_.passed & self) {
        cluster_.passed &= ~self;
        each_tool([&](BlockTool& tool) { tool.leave(warp, warp.live, {Meeting::Kind::Cluster}); });
        return warp.pass_barrier();
    }
    cluster_.waiting |= self;
    waiting_[warp.index] = cluster_barrier;
}

/// Whether all of its warps that have not exited have arrived.
bool ThreadBlock::is_at_cluster_barrier() const {
    return unsigned(std::popcount(cluster_.came | ended_)) == warps_.size();
}

bool ThreadBlock::waits_for_cluster() const { return cluster_.waiting && is_at_cluster_barrier(); }

/// When all blocks of the cluster have arrived, the waiting warps continue.
void ThreadBlock::pass_cluster() {
    if (!std::ranges::all_of(peers_, &ThreadBlock::is_at_cluster_barrier)) return;
    for (ThreadBlock& each : peers_) each.leave_cluster_barrier();
}

void ThreadBlock::leave_cluster_barrier() {
    if (!has_met_) open_cluster();
    each_tool([](BlockTool& tool) {
        tool.complete({Meeting::Kind::Cluster}, true);
        tool.acquire_released();
    });
    for (std::uint32_t rest = cluster_.waiting; rest; rest &= rest - 1) {
        const int index = std::countr_zero(rest);
        each_tool([&](BlockTool& tool) {
            const ScheduledWarp& left = warps_[std::size_t(index)];
            tool.leave(left, left.live, {Meeting::Kind::Cluster});
        });
        warps_[std::size_t(index)].pass_barrier();
        waiting_[std::size_t(index)] = runs;
    }
    cluster_.passed |= cluster_.came & ~cluster_.waiting;
    cluster_.came = cluster_.waiting = 0;
}

ThreadBlock::SharedPlace ThreadBlock::shared_place(std::uint64_t address) const {
    // The last cell of a part is empty. An index before the first variable of the next part leads there.
    constexpr std::uint64_t cell = std::uint64_t{1} << Cells::bits;
    const std::uint64_t part = shared_span_ ? (address + cell) / shared_span_ : 0;
    if (part == 0 || part > peers_.size()) return {peers_[rank_], address};
    return {peers_[part - 1], std::uint32_t(address - part * shared_span_)};
}

std::uint64_t ThreadBlock::address_of(const ThreadBlock& owner, std::uint64_t place) const {
    return window_address(Space::Shared) + place + (&owner == this ? 0 : (owner.rank_ + 1) * shared_span_);
}

void ThreadBlock::see_cluster() {
    if (!shared_span_) return;
    for (ThreadBlock& each : peers_) {
        const std::uint64_t first = (each.rank_ + 1) * shared_span_;
        View* to = &shared_views_[first >> Cells::bits];
        for (View view : each.own_shared()) {
            view.base += first;
            view.written = view.bits;  // whether all is written, only its block keeps track of
            view.writable = &each == this;
            view.denial = FaultCode::BlockNotStarted;
            *to++ = view;
        }
    }
}

/// All blocks have started: they may store into the memory of each other.
void ThreadBlock::open_cluster() {
    has_met_ = true;
    if (!shared_span_) return;
    const auto others = shared_views_.begin() + std::ptrdiff_t(shared_span_ >> Cells::bits);
    std::for_each(others, shared_views_.end(), [](View& view) { view.writable = true; });
}

/// The block has ended: an access to its shared memory is a finding.
void ThreadBlock::leave_cluster() {
    if (!shared_span_) return;
    for (ThreadBlock& each : peers_)
        std::fill_n(each.shared_views_.begin() + std::ptrdiff_t((rank_ + 1) * shared_span_ >> Cells::bits),
                    shared_variables_.cells, View{});
}

}  // namespace ikat::emulator
