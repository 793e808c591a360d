// SPDX-License-Identifier: Apache-2.0
// A thread block: its warps, shared memory and barriers. Warps take turns, each running until it blocks or its slice is
// over, so the registers of one warp stay in the cache.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "runtime/emulator/agents/async_copies.hpp"
#include "runtime/emulator/agents/async_products.hpp"
#include "runtime/emulator/agents/bulk_copies.hpp"
#include "runtime/emulator/agents/generic_writes.hpp"
#include "runtime/emulator/agents/mbarriers.hpp"
#include "runtime/emulator/agents/register_pool.hpp"
#include "runtime/emulator/machine/order.hpp"
#include "runtime/emulator/machine/warp.hpp"
#include "runtime/emulator/observe/findings.hpp"
#include "runtime/emulator/observe/traffic_counter.hpp"

namespace ikat::emulator {

/// The state shared by all blocks of a launch.
struct LaunchState {
    const nvptx::Module& module;
    const DecodedKernel& kernel;
    const std::function<const DecodedKernel&()> checked;  // its checked code
    const Launch& launch;
    const Options& options;
    Memory::State& memory;
    const ModuleMemory& variables;
    const std::vector<Location>& source_lines;
    std::vector<std::byte> parameters;  // the launch's, padded
    std::uint64_t grid_workspace = 0;   // its address, if the kernel uses it
    bool parallel = false;
    std::atomic<std::uint64_t> steps{0};
    std::atomic<bool> stop{false};  // another block has failed
    std::uint64_t failed_block = ~std::uint64_t{0};
    std::array<std::once_flag, 2> effects_once{};
    std::array<std::vector<std::uint8_t>, 2> effects{};  // of the ops of plain and checked code, computed on demand
    const std::vector<std::uint8_t>& effects_in(const DecodedKernel& code);
    TrafficOfLaunch traffic{};  // if the kernel counts it
    Findings findings{};        // that do not end it
};

class ThreadBlock {
public:
    /// The block of rank `rank` in its cluster, whose blocks are `cluster`.
    ThreadBlock(LaunchState& state, std::uint32_t rank, std::deque<ThreadBlock>& cluster);

    /// Begins the block at these coordinates of the grid.
    void start(std::array<std::uint32_t, 3> coordinates);
    enum class Turn {
        Over,
        Ended,
        Waits,  // for other blocks: it changed nothing in this turn, and will not until they write what it reads, or
                // reach the cluster's barrier
    };
    /// Runs for about `steps` warp instructions. Throws Error on a finding.
    Turn run(std::uint64_t steps);

    LaunchState& launch_state() const { return state_; }
    std::uint64_t index() const { return index_; }
    std::array<std::uint32_t, 3> coordinates() const { return coordinates_; }
    std::array<std::uint32_t, 3> thread(const Warp& warp, unsigned lane) const;
    const std::deque<ScheduledWarp>& warps() const { return warps_; }
    ScheduledWarp& warp(std::uint32_t index) { return warps_[index]; }
    /// The variables of shared (including dynamic), local or constant memory.
    const Variables& variables(Space space) const;
    /// The barrier it waits at, if any; cluster_barrier is the cluster's.
    static constexpr unsigned cluster_barrier = 16;
    static constexpr unsigned warpgroup_barrier = 17;  // where a warp waits for the others of its warpgroup
    static constexpr unsigned register_barrier = 18;   // ... for registers
    /// Warps that wait there go on if they need not wait any more.
    void wake_warpgroup(unsigned group);
    void wake_for_registers();
    std::optional<unsigned> barrier_of(const ScheduledWarp& warp) const;
    /// The numbers of threads that have arrived at a barrier, and that it waits for in total.
    std::pair<std::uint32_t, std::uint32_t> barrier_threads(unsigned id) const;
    /// The warp continues in the checked code.
    void start_checking(ScheduledWarp& warp, bool defined) { warp.start_checking(state_.checked(), defined); }
    /// An undefined value is stored at this address of the cluster's shared memory: a completely written variable must
    /// be tracked again.
    void reopen(std::uint64_t address);
    bool has_ended(const ScheduledWarp& warp) const { return waiting_[warp.index] == ended; }
    bool has_ended() const { return running_ == 0; }
    /// Makes the shared memory of the whole cluster accessible, whose blocks have all been started.
    void see_cluster();
    /// The block to whose shared memory an address belongs, and the address as that block's own instructions see it.
    struct SharedPlace {
        ThreadBlock& owner;
        std::uint64_t address = 0;
    };
    SharedPlace shared_place(std::uint64_t address) const;
    /// The generic address, in this block, of a place in the shared memory of a block of the cluster.
    std::uint64_t address_of(const ThreadBlock& owner, std::uint64_t place) const;
    /// Whether all blocks of its cluster have started, as far as barriers tell.
    bool has_met_cluster() const { return has_met_; }
    /// The variable of its shared memory at a place.
    View shared_view(std::uint64_t place) const { return cells_of(shared_views_.data(), shared_variables_).at(place); }
    std::uint32_t peers() const { return std::uint32_t(peers_.size()); }
    ThreadBlock& peer(std::uint32_t rank) const { return peers_[rank]; }
    /// Whether it has reached the cluster's barrier, and another block has not.
    bool waits_for_cluster() const;

    /// A phase of a barrier in its shared memory is over: warps that asked for that run again.
    void wake() { polling_ = 0, ++wakes_; }

    /// Some of what may arrive at any time does so, by chance.
    void some_arrive() { copies.some_arrive(), bulk.some_arrive(); }
    /// A copy in flight to any of these bytes of its shared memory, or nullptr.
    const Flight* flight_over(std::uint64_t address, std::uint64_t bytes) const;

    InFlight in_flight;          // bytes of its shared memory
    AsyncCopies copies{*this};   // to its shared memory
    BulkCopies bulk{*this};      // to and from its shared memory
    Mbarriers mbarriers{*this};  // in its shared memory
    AsyncProducts products;      // in flight
    WarpOrder order_of_warps;
    GenericWrites generic_writes{*this};
    RegisterPool registers;
    std::string output;   // the kernel's output
    std::string finding;  // text of a finding under construction
    /// Throws a finding unless its severity lets the launch go on.
    void report(const Error& error);
    void forget_finding();
    Statistics statistics() const;
    /// Adds its counts to the launch's.
    void finish_traffic() const;

private:
    struct Barrier {
        std::uint32_t arrived = 0, expected = 0;  // in warps
        std::uint32_t came = 0;                   // the warps that arrived, as a set
        bool counted = false;                     // with a number of threads; else all that have not exited
        std::uint32_t yes = 0;                    // threads whose predicate holds
        std::uint32_t threads = 0;                // threads that arrived
        std::vector<unsigned> waiting;            // warps
    };
    /// This block's state at the cluster barrier: sets of warps.
    struct ClusterBarrier {
        std::uint32_t came = 0;     // have arrived, and not all others have
        std::uint32_t passed = 0;   // all have arrived, and they have not waited yet
        std::uint32_t waiting = 0;  // of `came`
    };
    bool run_warp(ScheduledWarp& warp, std::uint64_t steps);
    bool only_polls() const;
    bool deliver();
    bool comes_round();
    void watch_meetings();
    void arrive(ScheduledWarp& warp);
    void meet_cluster(ScheduledWarp& warp, bool arrives, bool releases);
    bool is_at_cluster_barrier() const;
    void pass_cluster();
    void leave_cluster_barrier();
    void open_cluster();
    void leave_cluster();
    std::span<View> own_shared() { return std::span(shared_views_).first(shared_variables_.cells); }
    bool is_met(const Barrier& barrier) const;
    void complete(Barrier& barrier);
    void end(const ScheduledWarp& warp);
    std::uint32_t special(Special special, const Warp& warp, unsigned lane) const;
    std::byte* frame_of(const Warp& warp) const;
    void fill_constants(const Warp& warp);
    void start_warp(ScheduledWarp& warp);

    LaunchState& state_;
    const std::uint32_t rank_;
    std::deque<ThreadBlock>& peers_;  // the blocks of its cluster, including itself
    std::uint64_t index_ = 0;         // x fastest
    std::array<std::uint32_t, 3> coordinates_{};
    std::uint32_t threads_ = 0, running_ = 0;
    std::uint32_t ended_ = 0;  // warps, as a set
    void close_written();
    void forget_written();

    std::uint64_t quiet_rounds_ = 0;  // since a warp last exited or reached a barrier
    static constexpr std::uint64_t first_watch = 64;
    std::uint64_t meetings_ = 0, next_watch_ = first_watch;  // of all its warps, at a barrier
    bool waits_ = false;                                     // for other blocks, when last asked
    std::uint32_t polling_ = 0;  // warps that would only ask again whether a phase is over, as a set
    std::uint64_t wakes_ = 0;
    std::vector<std::byte> shared_, local_, frames_;
    std::vector<std::uint8_t> shared_written_, local_written_;  // a bit for each byte
    Variables shared_variables_;
    std::vector<View> shared_views_, parameter_views_;
    std::uint64_t shared_span_ = 0;               // of each block in the cluster's window; 0: it has only its own
    std::vector<std::vector<View>> local_views_;  // by warp
    std::span<std::uint8_t> reserved_written_;
    std::span<std::byte> reserved_shared_;  // for the system, if the kernel uses it
    std::uint32_t reserved_address_ = 0;
    std::byte* frame_base_ = nullptr;
    std::deque<ScheduledWarp> warps_;
    std::optional<TrafficCounter> traffic_;
    TurnOrder order_;
    static constexpr int runs = -1, ended = -2;
    std::vector<int> waiting_;  // by warp: the barrier it waits at, or one of the above
    std::array<Barrier, 16> barriers_;
    ClusterBarrier cluster_;
    bool has_met_ = false;  // with the other blocks of its cluster
    std::minstd_rand random_;
};

/// Runs all blocks of the grid over the host threads of the options.
Statistics run_grid(LaunchState& state);

}  // namespace ikat::emulator
