// SPDX-License-Identifier: Apache-2.0
// The ops by which warps tell what they access, and what is said about a race.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/ptx/table/modifier.hpp"
#include "runtime/emulator/core/wording.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/tools/races/races.hpp"

namespace ikat::emulator {

namespace races {

bool BlockRaces::report(const MicroOp* op, Warp* w, const Access& now, const Access& before, std::uint64_t address) {
    found_ = {now, before};
    const auto first = unsigned(std::countr_zero(unsigned(now.bytes & before.bytes)));
    return passes(w, op,
                  {.code = FaultCode::SharedRace,
                   .space = Space::Shared,
                   .store = now.writes,
                   .lane = unsigned(std::countr_zero(now.lanes)),
                   .bytes = unsigned(std::popcount(unsigned(now.bytes & before.bytes))),
                   .address = address / 4 * 4 + first});
}

bool BlockRaces::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    if (fault.code != FaultCode::SharedRace || !found_) return false;
    const auto& [now, before] = *found_;
    const auto what = [&](const Access& access) {
        const bool is_behind = access.agent < agents_.size() && !agents_[access.agent].is_warp;
        return is_behind          ? (access.writes ? "the write of what goes on behind an instruction"
                                                   : "the read of what goes on behind an instruction")
               : access.is_strong ? "an atomic"
               : access.writes    ? "a store"
                                  : "a load";
    };
    const LaunchState& state = block_.launch_state();
    const std::string where =
        bytes_text({.space = Space::Shared, .address = fault.address, .bytes = fault.bytes}, block_);
    const nvptx::Instruction* const other =
        before.op < state.kernel.instructions.size() ? state.kernel.instructions[before.op] : nullptr;
    const bool is_of_warp = before.agent < agents_.size() && agents_[before.agent].is_warp;
    std::string whose = "another thread";
    if (is_of_warp) {
        std::uint32_t lanes = before.lanes;
        if (before.agent == now.agent) lanes &= ~now.lanes;
        whose = thread_text(block_, before.agent * warp_size + unsigned(std::countr_zero(lanes)) % warp_size);
    }
    diagnostic.message = fmt::format("a race: {} and {} of {} {} are not ordered, by {} and {}", what(before),
                                     what(now), plural(fault.bytes, "byte"), where, whose, by);
    if (other)
        diagnostic.notes.push_back(
            {location(state, *other), fmt::format("the one before, by {}: {}", whose, text_of(state.module, *other))});
    return true;
}

}  // namespace races

namespace {

using races::BlockRaces;

BlockRaces& races_of(const Warp* w, std::uint32_t slot) { return static_cast<BlockRaces&>(*w->tools[slot]); }

struct AccessForm {
    std::uint8_t bytes = 4;
    Direction direction = Direction::Read;
    bool is_strong = false, is_of_all = false;
    Space space = Space::Shared;

    std::uint32_t bits() const {
        return bytes | std::uint32_t(direction) << 8 | std::uint32_t(is_strong) << 12 | std::uint32_t(is_of_all) << 13 |
               std::uint32_t(space) << 16;
    }
    static AccessForm of(std::uint32_t bits) {
        return {std::uint8_t(bits), Direction(bits >> 8 & 15), (bits >> 12 & 1) != 0, (bits >> 13 & 1) != 0,
                Space(bits >> 16)};
    }
};

// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.
[[gnu::noinline]] bool note_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    const AccessForm form = AccessForm::of(op->d);
    std::uint64_t addresses[warp_size];
    std::uint32_t lanes = 0;
    for (std::uint32_t rest = mask & op->b; rest; rest &= rest - 1) {
        const auto lane = unsigned(std::countr_zero(rest));
        const std::uint64_t base = op->y == 8 ? reinterpret_cast<const std::uint64_t*>(frame + op->a)[lane]
                                              : reinterpret_cast<const std::uint32_t*>(frame + op->a)[lane];
        const std::uint64_t address = with_offset(op, form.space, base);
        if (form.space == Space::Generic && address >> window_bits != std::uint64_t(Space::Shared)) continue;
        addresses[lane] = address & (window_bytes - 1);
        lanes |= 1u << lane;
    }
    if (!lanes) return true;
    return races_of(w, op->c).access(op, w, {form.bytes, form.direction, form.is_strong, form.is_of_all}, addresses,
                                     lanes);
}

/// Before an access: d is the AccessForm, a + x its address, of y bytes, b the lanes that give one, c the tool's slot.
const MicroOp* note_access(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!note_lanes(op, w, frame, mask)) return nullptr;
    IKAT_NEXT;
}

/// Lanes have met; d is the tool's slot.
const MicroOp* note_meeting(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    races_of(w, op->d).meet(*w, mask);
    IKAT_NEXT;
}

/// Whether threads may meet otherwise than all of a block at barrier 0, or all of a warp.
bool meets_otherwise(const nvptx::Module& module, const nvptx::Instruction& instruction) {
    const auto has = [&](std::initializer_list<nvptx::Modifier> any) {
        return std::ranges::any_of(module.modifiers(instruction.modifiers), [&](nvptx::Name spelling) {
            return std::ranges::find(any, nvptx::spelled_modifier(module.text(spelling))) != any.end();
        });
    };
    const auto is_literal = [](const nvptx::Operand& operand, std::uint64_t value) {
        return operand.kind == nvptx::Operand::Kind::Integer && (operand.value & ~std::uint32_t{0}) == value;
    };
    const auto operands = module.operands(instruction.operands);
    using enum nvptx::Modifier;
    switch (instruction.opcode) {
        case nvptx::Opcode::Bar:
        case nvptx::Opcode::Barrier:
            if (has({Warp})) return operands.size() != 1 || !is_literal(operands[0], ~std::uint32_t{0});
            return operands.size() != 1 || !is_literal(operands[0], 0) || has({Arrive, Cluster});
        case nvptx::Opcode::Mbarrier:
        case nvptx::Opcode::Wgmma: return true;
        case nvptx::Opcode::Cp: return has({Bulk, Mbarrier});
        default: return has({Acquire, Release, AcqRel});
    }
}

class Finder final : public Tool {
public:
    std::string_view name() const override { return "shared races"; }

    void before_op(Lowering& code, Micro& op) const override {
        const MicroInfo::Access& access = op.info.access;
        if (!access.bytes || (access.space != Space::Shared && access.space != Space::Generic)) return;
        const AccessForm form{std::uint8_t(access.bytes), access.direction, access.is_strong, access.is_of_all,
                              access.space};
        code.put({.run = note_access,
                  .fields = {form.bits(), op.fields[1], access.lanes, code.asked, std::uint32_t(access.offset),
                             code.values[op.fields[1]].slot},
                  .reads = A});
    }
    void after_op(Lowering& code, const Micro& op) const override {
        if (op.info.synchronises.meets_warp) code.put({.run = note_meeting, .fields = {code.asked}});
    }

    std::unique_ptr<LaunchTool> of(LaunchState& launch, std::size_t) const override {
        struct OfLaunch final : LaunchTool {
            std::unique_ptr<BlockTool> of(ThreadBlock& block) override {
                return std::make_unique<BlockRaces>(block, facts);
            }
            races::Facts facts;
        };
        auto of = std::make_unique<OfLaunch>();
        of->facts.exact = std::ranges::any_of(launch.kernel.instructions, [&](const nvptx::Instruction* each) {
            return each && meets_otherwise(launch.module, *each);
        });
        return of;
    }
};

}  // namespace

const Tool& shared_races() {
    static const Finder finder;
    return finder;
}

}  // namespace ikat::emulator
