// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/views/views.hpp"

#include <bit>

#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

namespace views {

namespace {

// How far a read may go into the padding of its row: less than a vector, or than what a bulk copy is a multiple of.
constexpr std::uint64_t reach_of_lanes = 32, reach_of_bulk_copies = 16;

}  // namespace

bool BlockViews::judge(Warp* w, const MicroOp* op, const Access& access, Run& run) {
    const bool reads = access.direction == Direction::Read;
    if (const auto around = regions_.around(access.address, reads)) {
        run = *around;
        if (run.has(access.address, access.bytes)) return true;
    }
    const auto outside =
        regions_.outside(access.address, access.bytes, reads, access.is_bulk ? reach_of_bulk_copies : reach_of_lanes);
    if (!outside) return true;
    found_ = Found{access, *outside};
    return passes(w, op,
                  {.code = FaultCode::OutsideView,
                   .store = !reads,
                   .lane = access.lane,
                   .bytes = std::uint32_t(access.bytes),
                   .address = access.address});
}

bool BlockViews::access_lanes(Warp* w, const MicroOp* op, const std::uint64_t* addresses, std::uint32_t lanes) {
    const AccessForm form = AccessForm::of(op->c);
    Run& run = this->run(op->d);
    for (; lanes; lanes &= lanes - 1) {
        const auto lane = unsigned(std::countr_zero(lanes));
        const std::uint64_t address = addresses[lane];
        const bool is_misaligned = (address & (form.bytes - 1u)) != 0;  // then the access itself is a finding
        if (is_misaligned || run.has(address, form.bytes)) continue;
        if (!judge(w, op, {lane, address, form.bytes, form.direction}, run)) return false;
    }
    return true;
}

bool BlockViews::access(const AgentAccess& access) {
    const bool is_bulk = access.of == AgentAccess::Of::BulkCopy;
    if (access.owner || access.of_tensor || !(is_bulk || access.of == AgentAccess::Of::Copy)) return true;
    Run run;
    std::uint32_t lanes = access.lanes;
    for (const AgentAccess::Range& range : access.ranges) {
        const auto lane = unsigned(std::countr_zero(lanes));
        if (!judge(access.w, access.op, {lane, range.address, range.bytes, access.direction, is_bulk}, run))
            return false;
        if (!is_bulk) lanes &= lanes - 1;
    }
    return true;
}

}  // namespace views

namespace {

using views::BlockViews;

class Finder final : public Tool {
public:
    std::string_view name() const override { return "views"; }

    void before_op(Lowering& code, Micro& op) const override {
        const MicroInfo::Access& access = op.info.access;
        if (!access.bytes || (access.space != Space::Global && access.space != Space::Generic)) return;
        const views::AccessForm form{.slot = std::uint8_t(code.asked),
                                     .bytes = std::uint8_t(access.bytes),
                                     .direction = access.direction,
                                     .space = access.space};
        const auto number = std::uint32_t(code.micros.size()) % BlockViews::runs;
        code.put({.run = views::select_note_access(),
                  .fields = {number, op.fields[1], access.lanes, form.bits(), std::uint32_t(access.offset)},
                  .reads = A});
    }

    std::unique_ptr<LaunchTool> of(LaunchState& launch, std::size_t) const override {
        struct OfLaunch final : LaunchTool {
            explicit OfLaunch(const LaunchState& launch) : regions(launch.launch.views, launch.memory) {}
            std::unique_ptr<BlockTool> of(ThreadBlock& block) override {
                return std::make_unique<BlockViews>(block, regions);
            }
            views::Regions regions;
        };
        return std::make_unique<OfLaunch>(launch);
    }
};

}  // namespace

const Tool& in_views() {
    static const Finder finder;
    return finder;
}

}  // namespace ikat::emulator
