// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/grids/grids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/machine/messages.hpp"

namespace ikat::emulator {

std::shared_ptr<GridRecord> GridsInFlight::begin(std::string kernel) {
    return running_ = std::make_shared<GridRecord>(std::move(kernel));
}

void GridsInFlight::end(bool began_early) {
    const bool has_waited = !running_ || running_->has_waited;
    if (!began_early || has_waited)
        older_.clear();
    else if (last_)
        older_.push_back(std::move(last_));
    last_ = running_ && running_->launches_next ? std::move(running_) : nullptr;
    running_ = nullptr;
}

namespace {

/// Field c of note_access.
struct AccessForm {
    std::uint8_t slot = 0;  // of the tool
    std::uint8_t bytes = 4;
    Direction direction = Direction::Read;

    std::uint32_t bits() const { return slot | std::uint32_t(bytes) << 8 | std::uint32_t(direction) << 16; }
    static AccessForm of(std::uint32_t bits) {
        return {std::uint8_t(bits), std::uint8_t(bits >> 8), Direction(bits >> 16 & 3)};
    }
};

struct LaunchGrids final : LaunchTool {
    LaunchGrids(LaunchState& state, std::size_t at)
        : launch(state),
          slot(at),
          before(*state.launch.grids),
          may_overlap(state.launch.begins_early && before.any()),
          record(state.launch.grids->begin(std::string(state.launch.entry))) {}
    std::unique_ptr<BlockTool> of(ThreadBlock& block) override;

    LaunchState& launch;
    const std::size_t slot;
    const GridsInFlight& before;
    const bool may_overlap;
    const std::shared_ptr<GridRecord> record;
};

/// What is told in a message.
struct Overlap {
    const GridRecord* grid = nullptr;
    std::uint64_t address = 0, bytes = 0;
    Direction direction = Direction::Read;
    bool is_written = false;  // there, by that grid
    bool has_waited = false;
};

class BlockGrids final : public BlockTool {
public:
    BlockGrids(LaunchGrids& grids, ThreadBlock& block) : grids_(grids), block_(block) {}
    void start() override {
        waited_ = {};
        told_.clear(), over_.clear();
    }

    struct Bytes {
        unsigned lane = 0;
        std::uint64_t address = 0, count = 0;
        Direction direction = Direction::Read;
    };
    /// False after a finding that stops the warp.
    bool note(Warp* w, const MicroOp* op, const Bytes& bytes);
    bool access(const AgentAccess& access) override;

    void wait(const Warp& w, std::uint32_t lanes) {
        grids_.record->has_waited = true;
        waited_[w.index] |= lanes;
    }
    void launch_next() { grids_.record->launches_next = true; }
    void meet(const Warp& w, std::uint32_t lanes) {
        if (waited_[w.index] & lanes) waited_[w.index] |= lanes;
    }

    void arrive(const Warp& warp, std::uint32_t lanes, const Meeting& at, bool) override {
        if (!(waited_[warp.index] & lanes)) return;
        if (at.kind != Meeting::Kind::Cluster) return void(told_.insert(key(at)));
        for (std::uint32_t rank = 0; rank < block_.peers(); ++rank)
            static_cast<BlockGrids&>(*block_.peer(rank).tool(grids_.slot)).told_.insert(key(at));
    }
    void complete(const Meeting& at, bool) override {
        if (told_.erase(key(at))) over_.insert(key(at));
    }
    void leave(const Warp& warp, std::uint32_t lanes, const Meeting& at) override {
        if (over_.contains(key(at))) waited_[warp.index] |= lanes;
    }
    void forget(const Meeting& at) override { told_.erase(key(at)), over_.erase(key(at)); }

    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;
    void forget_finding() override { found_.reset(); }

private:
    using Key = std::pair<Meeting::Kind, std::uint64_t>;
    static Key key(const Meeting& at) { return {at.kind, at.place}; }
    std::optional<Overlap> overlap(const GridRecord& grid, const Bytes& bytes) const;
    void record(const Bytes& bytes);

    LaunchGrids& grids_;
    ThreadBlock& block_;
    std::array<std::uint32_t, 32> waited_{};  // lanes that know the grids before to have ended, by warp
    std::set<Key> told_, over_;               // meetings to which one of them has come; ... that are complete
    Footprint::Part* part_ = nullptr;         // the buffer touched last
    std::optional<Overlap> found_;
};

std::unique_ptr<BlockTool> LaunchGrids::of(ThreadBlock& block) { return std::make_unique<BlockGrids>(*this, block); }

/// What is not the same in both grids is read by one and written by the other, or written by both.
std::optional<Overlap> BlockGrids::overlap(const GridRecord& grid, const Bytes& bytes) const {
    const Footprint::Part* const part = grid.footprint.find(bytes.address);
    if (!part) return {};
    const std::uint64_t first = bytes.address - part->base, count = std::min(bytes.count, part->bytes - first);
    Overlap out{.grid = &grid, .direction = bytes.direction, .is_written = true};
    auto at = part->written.find(first, count);
    if (!at && bytes.direction != Direction::Read) at = part->read.find(first, count), out.is_written = false;
    if (!at) return {};
    out.address = part->base + *at, out.bytes = bytes.count;
    return out;
}

void BlockGrids::record(const Bytes& bytes) {
    if (!part_ || !part_->has(bytes.address))
        part_ = grids_.record->footprint.part(bytes.address, grids_.launch.memory);
    if (!part_ || !part_->has(bytes.address)) return;
    const std::uint64_t first = bytes.address - part_->base, count = std::min(bytes.count, part_->bytes - first);
    if (bytes.direction != Direction::Write) part_->read.add(first, count);
    if (bytes.direction != Direction::Read) part_->written.add(first, count);
}

bool BlockGrids::note(Warp* w, const MicroOp* op, const Bytes& bytes) {
    if (grids_.launch.kernel.launches_next) record(bytes);
    if (!grids_.may_overlap) return true;
    const bool has_waited = waited_[w->index] >> bytes.lane & 1;
    std::optional<Overlap> found;
    if (grids_.before.last() && !has_waited) found = overlap(*grids_.before.last(), bytes);
    for (const auto& each : grids_.before.older())
        if (!found) found = overlap(*each, bytes);
    if (!found) return true;
    found->has_waited = has_waited;
    found_ = found;
    return passes(w, op,
                  {.code = FaultCode::GridNotAwaited,
                   .store = bytes.direction != Direction::Read,
                   .lane = bytes.lane,
                   .bytes = std::uint32_t(bytes.count),
                   .address = found->address});
}

bool BlockGrids::access(const AgentAccess& access) {
    const bool is_bulk = access.of == AgentAccess::Of::BulkCopy;
    if (access.owner || !(is_bulk || access.of == AgentAccess::Of::Copy)) return true;
    std::uint32_t lanes = access.lanes;
    for (const AgentAccess::Range& range : access.ranges) {
        const auto lane = unsigned(std::countr_zero(lanes));
        if (!note(access.w, access.op, {lane, range.address, range.bytes, access.direction})) return false;
        if (!is_bulk) lanes &= lanes - 1;
    }
    return true;
}

bool BlockGrids::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    if (!found_ || fault.code != FaultCode::GridNotAwaited) return false;
    constexpr std::string_view names[] = {"load", "store", "atomic"};
    const bool is_last = found_->grid == grids_.before.last();
    diagnostic.message =
        fmt::format("global {} of {} {}, which kernel '{}' {}, {}, by {}", names[std::size_t(found_->direction)],
                    plural(found_->bytes, "byte"),
                    bytes_text({.address = found_->address, .bytes = std::uint32_t(found_->bytes)}, block_),
                    found_->grid->kernel, found_->is_written ? "writes" : "reads",
                    is_last ? "before `griddepcontrol.wait`" : "which no kernel between has waited for", by);
    diagnostic.notes.push_back(
        {{},
         fmt::format("on a device '{}' may still run: it has executed `griddepcontrol.launch_dependents`, and this "
                     "launch may begin early",
                     found_->grid->kernel)});
    if (!is_last)
        diagnostic.hint =
            "`griddepcontrol.wait` waits for one launch; let at least one thread of each kernel execute it, on every "
            "path";
    return true;
}

BlockGrids& grids_of(const Warp* w, std::uint32_t slot) { return static_cast<BlockGrids&>(*w->tools[slot]); }

[[gnu::noinline]] bool note_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    const AccessForm form = AccessForm::of(op->c);
    const auto* const from = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    BlockGrids& grids = grids_of(w, form.slot);
    for (mask &= op->b; mask; mask &= mask - 1) {
        const auto lane = unsigned(std::countr_zero(mask));
        const std::uint64_t address = from[lane] + std::uint64_t(std::int64_t(std::int32_t(op->x)));
        if (!grids.note(w, op, {lane, address, form.bytes, form.direction})) return false;
    }
    return true;
}

/// Before an access: a + x is its address, b the lanes that give one, c the form.
const MicroOp* note_access(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!note_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}
/// After griddepcontrol.wait and .launch_dependents, and where lanes of a warp have met; d is the tool's slot.
const MicroOp* note_wait(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    grids_of(w, op->d).wait(*w, mask);
    IKAT_NEXT;
}
const MicroOp* note_launch(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    grids_of(w, op->d).launch_next();
    IKAT_NEXT;
}
const MicroOp* note_meeting(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    grids_of(w, op->d).meet(*w, mask);
    IKAT_NEXT;
}

class Finder final : public Tool {
public:
    std::string_view name() const override { return "grids"; }

    void before_op(Lowering& code, Micro& op) const override {
        const MicroInfo::Access& access = op.info.access;
        if (!access.bytes || (access.space != Space::Global && access.space != Space::Generic)) return;
        const AccessForm form{
            .slot = std::uint8_t(code.asked), .bytes = std::uint8_t(access.bytes), .direction = access.direction};
        code.put({.run = note_access,
                  .fields = {0, op.fields[1], access.lanes, form.bits(), std::uint32_t(access.offset)},
                  .reads = A});
    }
    void after_op(Lowering& code, const Micro& op) const override {
        if (op.info.operation == Op::GridWait) code.put({.run = note_wait, .fields = {code.asked}});
        if (op.info.operation == Op::LaunchNext) code.put({.run = note_launch, .fields = {code.asked}});
        if (op.info.synchronises.meets_warp) code.put({.run = note_meeting, .fields = {code.asked}});
    }
    std::unique_ptr<LaunchTool> of(LaunchState& launch, std::size_t slot) const override {
        return std::make_unique<LaunchGrids>(launch, slot);
    }
};

}  // namespace

const Tool& overlapping_grids() {
    static const Finder finder;
    return finder;
}

}  // namespace ikat::emulator
