// SPDX-License-Identifier: Apache-2.0
// A thread block: its warps, shared memory and barriers. Warps take turns, each running until it blocks or its slice is
// over, so the registers of one warp stay in the cache.
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulator/core/agent.hpp"
#include "runtime/emulator/core/checks/findings.hpp"
#include "runtime/emulator/core/kernel.hpp"
#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/machine/order.hpp"
#include "runtime/emulator/machine/warp.hpp"

namespace ikat::emulator {

/// The agents of a block, by slot.
using Agents = std::vector<std::unique_ptr<Agent>>;

/// The state shared by all blocks of a launch.
struct LaunchState {
    const ptx::Module& module;
    const DecodedKernel& kernel;
    const std::function<const DecodedKernel&()> checked;  // its checked code
    const Launch& launch;
    const Options& options;
    Memory::State& memory;
    const ModuleMemory& variables;
    const std::vector<Location>& source_lines;
    std::vector<std::byte> parameters;  // the launch's, padded
    Agents (*const make_agents)(ThreadBlock& block);
    std::uint64_t grid_workspace = 0;  // its address, if the kernel uses it
    bool parallel = false;
    std::atomic<std::uint64_t> steps{0};
    std::atomic<bool> stop{false};                   // another block has failed
    std::uint64_t failed_block = ~std::uint64_t{0};  // its place
    std::array<std::once_flag, 2> effects_once{};
    std::array<std::vector<std::uint8_t>, 2> effects{};  // of the ops of plain and checked code, computed on demand
    const std::vector<std::uint8_t>& effects_in(const DecodedKernel& code);
    std::vector<std::unique_ptr<LaunchTool>> tools{};  // by slot; nullptr: is told nothing
    Findings findings{};                               // that do not end it
};

class ThreadBlock final : public Block {
public:
    /// The block of rank `rank` in its cluster, whose blocks are `cluster`.
    ThreadBlock(LaunchState& state, std::uint32_t rank, std::deque<ThreadBlock>& cluster);

    /// Begins the block at these coordinates of the grid, of all those that start in any order after this many.
    void start(std::array<std::uint32_t, 3> coordinates, std::uint64_t turn);
    enum class Turn {
        Over,
        Ended,
        Waits,  // for other blocks: it changed nothing in this turn, and will not until they write what it reads, or
                // reach the cluster's barrier
    };
    /// Runs for about `steps` warp instructions. Throws Error on a finding.
    Turn run(std::uint64_t steps) { return last_turn_ = run_for(steps); }
    Turn last_turn() const { return last_turn_; }

    LaunchState& launch_state() const { return state_; }
    std::uint64_t index() const { return index_; }
    /// Where it comes among all blocks in what is printed and found: its index, or, if they start in any order, when.
    std::uint64_t place() const { return place_; }
    /// Warp instructions since it was made.
    std::uint64_t executed() const;
    std::array<std::uint32_t, 3> coordinates() const override { return coordinates_; }
    std::array<std::uint32_t, 3> thread(const Warp& warp, unsigned lane) const override;
    void print(std::string_view text) override { output += text; }
    unsigned elected(std::uint32_t lanes) const override;
    bool passes(Warp& warp, const MicroOp* op, const Fault& fault) override;
    bool is_stopped_by_agent(Warp& warp, const MicroOp* op, const Fault& access) override;
    void reopen(std::uint64_t address) override;
    const std::deque<ScheduledWarp>& warps() const { return warps_; }
    ScheduledWarp& warp(std::uint32_t index) { return warps_[index]; }
    /// The variables of shared (including dynamic), local or constant memory.
    const Variables& variables(Space space) const;
    /// The barrier it waits at, if any; cluster_barrier is the cluster's.
    static constexpr unsigned cluster_barrier = 16;
    static constexpr unsigned agent_barrier = 17;  // from here on, where a warp waits for an agent, by slot
    /// Warps that wait for the agent continue if they need not wait any more.
    void wake_for(std::size_t agent);
    std::optional<unsigned> barrier_of(const ScheduledWarp& warp) const;
    /// The numbers of threads that have arrived at a barrier, and that it waits for in total.
    std::pair<std::uint32_t, std::uint32_t> barrier_threads(unsigned id) const;
    /// The warp continues in the checked code.
    void start_checking(ScheduledWarp& warp, bool defined) { warp.start_checking(state_.checked(), defined); }
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
    void wake() {
        polling_ = 0, ++wakes_;
        if (schedule().starved_block) quiet_rounds_ = 0;  // that they wait again is to be found soon
    }

    Agent& agent(std::size_t slot) const { return *agents_[slot]; }
    std::span<const std::unique_ptr<Agent>> agents() const { return agents_; }
    /// Some of what may arrive at any time does so, by chance.
    void some_arrive() {
        for (const auto& each : agents_) each->some_arrive();
    }
    const Schedule& schedule() const { return state_.options; }
    /// The seed of random choices, for an agent or a tool with this number; 0: there are none. chosen_seed() is the
    /// same where there are some even without a seed.
    std::uint32_t seed_of(std::uint32_t number) const { return schedule().seed ? chosen_seed(number) : 0; }
    std::uint32_t chosen_seed(std::uint32_t number) const;
    BlockTool* tool(std::size_t slot) const { return tools_[slot]; }
    /// Calls f(tool) for each tool that is told what happens in the block.
    template <class F>
    void each_tool(F f) const {
        for (BlockTool* const each : told_tools_) f(*each);
    }
    /// ... until one returns false.
    bool tell(const AgentAccess& access) const {
        for (BlockTool* const each : tools_)
            if (each && !each->access(access)) return false;
        return true;
    }
    /// Numbers asynchronous work, for tools.
    std::uint64_t next_operation() { return ++operations_; }
    /// Of the part of its shared memory that the system reserves.
    std::span<const std::uint8_t> reserved_written() const { return reserved_written_; }
    /// The bits of written bytes of its shared memory, and how many bytes of them there are.
    std::span<std::uint8_t> shared_written() { return shared_written_; }

    std::string output;  // the kernel's output
    /// Throws a finding unless its severity lets the launch continue.
    void report(const Error& error);
    void forget_finding();
    Statistics statistics() const;
    /// All blocks have ended.
    void finish_tools();

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
    Turn run_for(std::uint64_t steps);
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
    std::uint64_t place_ = 0;
    std::array<std::uint32_t, 3> coordinates_{};
    std::uint32_t threads_ = 0, running_ = 0;
    std::uint32_t ended_ = 0;  // warps, as a set
    void close_written();
    void forget_written();

    std::uint64_t quiet_rounds_ = 0;  // since a warp last exited or reached a barrier
    static constexpr std::uint64_t first_watch = 64;
    std::uint64_t meetings_ = 0, next_watch_ = first_watch;  // of all its warps, at a barrier
    bool waits_ = false;                                     // for other blocks, when last asked
    Turn last_turn_ = Turn::Over;
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
    Agents agents_;
    std::vector<std::unique_ptr<BlockTool>> own_tools_;
    std::vector<BlockTool*> tools_;       // by slot
    std::vector<BlockTool*> told_tools_;  // those that are told of everything
    std::uint64_t operations_ = 0;
    TurnOrder order_;
    static constexpr int runs = -1, ended = -2;
    std::vector<int> waiting_;  // by warp: the barrier it waits at, or one of the above
    std::array<Barrier, 16> barriers_;
    ClusterBarrier cluster_;
    bool has_met_ = false;  // with the other blocks of its cluster
    std::minstd_rand random_;
};

/// The block of a warp.
inline ThreadBlock& block_of(const Warp* w) { return static_cast<ThreadBlock&>(*w->block); }

/// Runs all blocks of the grid over the host threads of the options.
Statistics run_grid(LaunchState& state);

}  // namespace ikat::emulator
