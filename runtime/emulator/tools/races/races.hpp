// SPDX-License-Identifier: Apache-2.0
// Data races: two accesses to a byte, one of them a write, that nothing orders. Accesses of one thread are ordered;
// those of others by what order.hpp says, and by the end of a launch. What is found does not depend on the order in
// which warps are run, where only barriers order them.
#pragma once
#include <bit>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/tools/races/order.hpp"
#include "runtime/emulator/tools/races/phase.hpp"
#include "runtime/emulator/tools/races/shadow.hpp"
#include "runtime/emulator/tools/races/wide_shadow.hpp"

namespace ikat::emulator {

/// Finds those in the shared memory of one block. Used where the class `races-shared` is not off, and `races` is.
const Tool& shared_races();
/// Finds those in all memory. Used where the class `races` is not off.
const Tool& all_races();

namespace races {

/// What is known of a kernel before it runs.
struct Facts {
    bool exact = false;       // threads are ordered by more than all meeting at a barrier
    bool everywhere = false;  // all memory is looked at
    bool in_clusters = false;
    bool blocks_are_apart = false;  // nothing orders them
    bool has_proxies = false;       // what has been written may need fences of proxies between blocks
};

class LaunchRaces final : public LaunchTool {
public:
    LaunchRaces(const LaunchState& launch, const Facts& facts, std::size_t slot)
        : facts(facts), order(launch), contexts(order), global(contexts), slot_(slot) {}
    std::unique_ptr<BlockTool> of(ThreadBlock& block) override;
    void end(Statistics& statistics) override {
        statistics.races = counts;
        statistics.races.unsure += global.unsure;
    }
    /// Blocks tell each other what they know.
    bool in_turn() const override { return facts.everywhere || facts.in_clusters; }

    const Facts facts;
    LaunchOrder order;
    Contexts contexts;
    WideShadow global;
    RaceCounts counts{};  // of blocks that have ended
    std::mutex mutex;     // of the counts

private:
    const std::size_t slot_;
};

/// What lanes are about to do to memory.
struct LaneAccess {
    const MicroOp* op = nullptr;
    Warp* w = nullptr;
    const std::byte* frame = nullptr;
    std::uint32_t lanes = 0;  // that execute it
    std::uint32_t bytes = 0;
    Direction direction = Direction::Read;
    bool is_strong = false, is_of_all = false;
    Scope scope = Scope::Thread;
    const std::uint32_t* values = nullptr;  // the registers that are stored, as Lowering::list has them

    /// What a lane is about to store at `offset` from its address.
    std::byte stored(unsigned lane, std::uint64_t offset) const {
        const std::uint64_t of_each = bytes / values[0];
        const std::uint32_t* const element = values + 1 + 2 * (offset / of_each);
        return frame[element[0] + std::uint64_t(element[1]) * lane + offset % of_each];
    }
    bool stores() const { return values && direction == Direction::Write; }
    /// Whether that is what these bytes are.
    bool stores(unsigned lane, std::uint64_t offset, std::uint64_t bytes, const std::byte* are) const;
};

/// Plain accesses of lanes of a warp to shared memory.
struct RowOf {
    const Warp* w = nullptr;
    const MicroOp* op = nullptr;
    const View& view;
    std::uint64_t at = 0;    // where in the view they begin
    std::uint32_t span = 0;  // from there to the end of the last one
    std::uint32_t lanes = 0;
    std::uint32_t bytes = 0;  // of each
    bool writes = false, is_of_all = false;
    bool are_apart = false;  // no two lanes have a byte in common
    const std::uint32_t* loads = LoadGroup::one;
};

class BlockRaces final : public BlockTool {
public:
    BlockRaces(ThreadBlock& block, LaunchRaces& launch, std::size_t slot)
        : block_(block),
          launch_(launch),
          alone_(block.launch_state()),
          order_(block, launch.in_turn() ? launch.order : alone_, launch.facts.exact),
          slot_(slot) {
        if (launch.facts.in_clusters) wide_.emplace(launch.contexts);
    }

    void start() override;
    void finish() override;
    void arrive(const Warp& warp, std::uint32_t lanes, const Meeting& at, bool waits) override {
        order_.arrive(warp, lanes, at, waits);
    }
    void complete(const Meeting& at, bool of_all) override;
    void leave(const Warp& warp, std::uint32_t lanes, const Meeting& at) override { order_.leave(warp, lanes, at); }
    void forget(const Meeting& at) override { order_.forget(at); }
    void end_warp(const Warp& warp) override { order_.end_warp(warp); }
    void release(const Warp& warp) override { order_.release(warp); }
    bool access(const AgentAccess& access) override;
    void await(const Warp& warp, std::uint32_t lanes, std::uint64_t operation, bool reads) override {
        order_.await(warp, lanes, operation, reads);
    }
    void arrive_for(std::uint64_t operation, std::uint32_t lanes, const Meeting& at) override {
        order_.arrive_for(operation, lanes, at);
    }
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;
    void forget_finding() override { found_.reset(), unfenced_.reset(); }

    void meet(const Warp& warp, std::uint32_t lanes) { order_.meet(warp, lanes); }
    void exchange(const Warp& warp, std::uint32_t lanes) { order_.exchange(warp, lanes); }
    void fence(const Warp& warp, std::uint32_t lanes, const Synchronises& how) { order_.fence(warp, lanes, how); }
    /// ... one of proxies, for what lanes know of memory of these kinds.
    void show(const Warp& warp, std::uint32_t lanes, bool of_global, bool of_shared, bool of_peers);
    /// Lanes access memory at addresses in the window of shared memory, or at others. False after a finding that stops
    /// the warp.
    bool access_shared(const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes);
    bool access_global(const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes);
    /// What plain accesses of lanes are written down in, if they need nothing else; else nullptr. Their distances from
    /// the first one are left to the caller, who then keeps it.
    Phase::Row* new_row(const RowOf& of) {
        if (!has_phases_ || order_.is_spent() || of.span > Phase::max_distance ||
            (of.writes && order_.has_locations()) || of.view.bits == block_.reserved_written().data())
            return nullptr;
        Phase::Row* const row = phase_.new_row();
        if (!row) return nullptr;
        row->loads = LoadGroup(of.loads);
        row->first = std::uint32_t(byte_of(of.view.bits, of.at)), row->count = of.bytes, row->lanes = of.lanes;
        row->op = plain_index_of(of.w, of.op), row->stamp = order_.stamp_of(of.w->index);
        row->warp = std::uint8_t(of.w->index);
        row->writes = of.writes, row->is_of_all = of.is_of_all;
        return row;
    }
    /// False if they may race with others of the phase.
    bool keep(const Phase::Row& row, const RowOf& of) {
        if (!phase_.keep(row.first + of.span, of.are_apart)) return false;
        counts_.shared += unsigned(std::popcount(of.lanes)) * row.loads.size();
        return true;
    }
    /// Memory is given back to the heap.
    void forget_heap(std::uint64_t address);

private:
    struct Found {
        Context now{}, before{};
        std::uint32_t before_lanes = 0;
        bool is_async = false, was_async = false;  // the work of an instruction, not of its thread
        bool is_refused = false;
        std::optional<std::uint64_t> value{}, stored{};  // of the bytes, and what the access makes of them
    };
    /// Whether both accesses are by lanes of one warp.
    static bool is_by_lanes(const Found& found) {
        return found.before.block == found.now.block && found.before.agent == found.now.agent && !found.is_async &&
               !found.was_async;
    }
    /// An ordinary write of another block that no fence has shown.
    struct Unfenced {
        Context write{};
        std::uint32_t lanes = 0;
    };
    BlockRaces& races_of(const ThreadBlock& block) const { return static_cast<BlockRaces&>(*block.tool(slot_)); }
    bool is_over() const { return order_.is_spent() || launch_.contexts.is_full(); }
    std::size_t byte_of(const std::uint8_t* bits, std::uint64_t offset) const {
        return 8 * std::size_t(bits - written_) + offset;
    }
    template <class F>
    bool touch(const Access& access, const Knower& by, std::size_t byte, std::uint32_t bytes, Shadow::Memo* memo, F f);
    /// An asynchronous access to the block's own shared memory.
    bool access_own(const AgentAccess& access, const AgentAccess::Range& range, const LaneAccess& how, Found& found,
                    const Knower& by, Shadow::Memo& memo);
    bool is_in_flight(const Context& access, std::uint32_t lanes) const;
    bool is_after_fences(const AgentAccess& access, WideShadow& wide, const Knower& by);
    std::optional<Unfenced> unfenced(const AgentAccess& access, const Knower& by, Contexts::Id writes,
                                     std::uint32_t lanes) const;
    bool report_unfenced(const AgentAccess& access, std::uint64_t address, std::uint64_t bytes,
                         const Unfenced& unfenced);
    void describe_unfenced(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const;
    /// "block (1,0,0)"
    std::string block_text(std::uint64_t block) const;
    bool access_own(const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes);
    bool access_of_cluster(const LaneAccess& how, const std::uint64_t* addresses, std::uint32_t lanes);
    std::uint32_t access_known(const std::uint32_t* places, unsigned warp, std::uint32_t lanes, std::uint32_t bytes,
                               Access now);
    void look_at_rows();
    void look_at(const Phase::Row& row, const LoadGroup::Load& load);
    /// If an access to bytes may race with one of them, or there is no room for more.
    void look_at_rows_if(std::uint32_t from, std::uint32_t to, bool writes) {
        if (phase_.is_full() || phase_.rows_may_race(from, to, writes)) look_at_rows();
    }
    void note_location(const LaneAccess& how, unsigned lane, std::uint64_t address);
    Context context_of(const LaneAccess& how, std::uint32_t lanes);
    bool report(const LaneAccess& how, const std::uint64_t* addresses, Space space, std::uint64_t address,
                std::uint64_t bytes, const Found& found);
    void find_values(const LaneAccess& how, const std::uint64_t* addresses, Space space, std::uint64_t address,
                     std::uint64_t bytes, Found& found) const;
    bool is_same_value(const LaneAccess& how, const std::uint64_t* addresses, Space space, std::uint64_t address,
                       std::uint64_t bytes, const Found& found) const;

    ThreadBlock& block_;
    LaunchRaces& launch_;
    LaunchOrder alone_;  // of a block that tells others nothing
    Order order_;
    const std::size_t slot_;
    const std::uint8_t* written_ = nullptr;
    bool has_phases_ = false;
    Phase phase_;                     // of what the shadow has not been told
    Shadow shadow_;                   // of shared memory
    std::optional<WideShadow> wide_;  // ... that the other blocks of a cluster may use
    bool has_peer_writes_ = false;    // ... and have stored to
    std::optional<Found> found_;
    std::optional<Unfenced> unfenced_;
    RaceCounts counts_{};
};

}  // namespace races

}  // namespace ikat::emulator
