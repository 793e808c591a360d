// SPDX-License-Identifier: Apache-2.0
// The ops by which warps tell what they access and how it is ordered.
#include <algorithm>
#include <bit>

#include "codegen/ptx/table/modifier.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/tools/races/note_access.hpp"

namespace ikat::emulator {

namespace {

using races::AccessForm;
using races::races_of;

/// Lanes have met; d is the tool's slot.
const MicroOp* note_meeting(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    races_of(w, op->d).meet(*w, mask);
    IKAT_NEXT;
}

/// Lanes have given each other values; d is the tool's slot.
const MicroOp* note_exchange(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    races_of(w, op->d).exchange(*w, mask);
    IKAT_NEXT;
}

/// Lanes execute a fence of scope x, d is the tool's slot; y: 1 it acquires, 2 it releases, 4 it is an access's.
const MicroOp* note_fence(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    races_of(w, op->d).fence(*w, mask,
                             {.acquires = (op->y & 1) != 0,
                              .releases = (op->y & 2) != 0,
                              .of_access = (op->y & 4) != 0,
                              .scope = Scope(op->x)});
    IKAT_NEXT;
}

/// Lanes execute a fence of proxies; d is the tool's slot; y: 1 for global memory, 2 for shared memory, 4 of the
/// cluster.
const MicroOp* note_shown(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    races_of(w, op->d).show(*w, mask, (op->y & 1) != 0, (op->y & 2) != 0, (op->y & 4) != 0);
    IKAT_NEXT;
}

[[gnu::noinline]] void forget_lanes(const MicroOp* op, Warp* w, const std::byte* frame, std::uint32_t mask) {
    const auto* const addresses = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    for (; mask; mask &= mask - 1) races_of(w, op->d).forget_heap(addresses[std::countr_zero(mask)]);
}

/// Before free(a); d is the tool's slot.
const MicroOp* note_free(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    forget_lanes(op, w, frame, mask);
    IKAT_NEXT;
}

bool has_any(const ptx::Module& module, const ptx::Instruction& instruction,
             std::initializer_list<ptx::Modifier> modifiers) {
    return std::ranges::any_of(module.modifiers(instruction.modifiers), [&](ptx::Name spelling) {
        return std::ranges::find(modifiers, ptx::spelled_modifier(module.text(spelling))) != modifiers.end();
    });
}

/// Whether threads may be ordered otherwise than by meeting all of a block at barrier 0, or all of a warp.
bool is_otherwise(const ptx::Module& module, const ptx::Instruction& instruction) {
    const auto has = [&](std::initializer_list<ptx::Modifier> any) { return has_any(module, instruction, any); };
    const auto is_literal = [](const ptx::Operand& operand, std::uint64_t value) {
        return operand.kind == ptx::Operand::Kind::Integer && (operand.value & ~std::uint32_t{0}) == value;
    };
    const auto operands = module.operands(instruction.operands);
    using enum ptx::Modifier;
    switch (instruction.opcode) {
        case ptx::Opcode::Bar:
        case ptx::Opcode::Barrier:
            if (has({Warp})) return operands.size() != 1 || !is_literal(operands[0], ~std::uint32_t{0});
            return operands.size() != 1 || !is_literal(operands[0], 0) || has({Arrive, Cluster});
        case ptx::Opcode::Mbarrier:
        case ptx::Opcode::Membar:
        case ptx::Opcode::Wgmma: return true;
        case ptx::Opcode::Fence: return !has({Proxy});
        case ptx::Opcode::Cp: return has({Bulk, Mbarrier});
        default: return has({Acquire, Release, AcqRel});
    }
}

/// Whether by this threads may be ordered after those of other blocks, unless these are a cluster.
bool orders_blocks(const ptx::Module& module, const ptx::Instruction& instruction) {
    using enum ptx::Modifier;
    const auto has = [&](std::initializer_list<ptx::Modifier> any) { return has_any(module, instruction, any); };
    switch (instruction.opcode) {
        case ptx::Opcode::Bar:
        case ptx::Opcode::Barrier:
        case ptx::Opcode::Mbarrier: return false;
        case ptx::Opcode::Membar: return true;
        case ptx::Opcode::Fence: return has({TensormapGeneric}) || !has({Proxy, MbarrierInit, Release});
        default: return has({Acquire, AcqRel});
    }
}

class Finder final : public Tool {
public:
    Finder(std::string_view name, bool everywhere) : name_(name), everywhere_(everywhere) {}
    std::string_view name() const override { return name_; }

    void before_op(Lowering& code, Micro& op) const override {
        const auto slot = std::uint8_t(code.asked);
        if (everywhere_ && op.info.operation == OwnOp::Free)
            code.put({.run = note_free, .fields = {slot, op.fields[1]}, .reads = A});
        const MicroInfo::Access& access = op.info.access;
        const bool is_global = everywhere_ && access.space == Space::Global;
        if (!access.bytes || (access.space != Space::Shared && access.space != Space::Generic && !is_global)) return;
        std::vector<VReg> values;
        if (op.info.operation == Op::Store)
            for (const unsigned field : {0u, 2u, 3u, 5u})
                if (op.reads >> field & 1) values.push_back(VReg(op.fields[field]));
        const AccessForm form{.slot = slot,
                              .is_wide = code.values[op.fields[1]].slot == 8,
                              .bytes = std::uint8_t(access.bytes),
                              .direction = access.direction,
                              .is_strong = access.is_strong,
                              .is_of_all = access.is_of_all,
                              .has_values = !values.empty(),
                              .scope = access.scope,
                              .space = access.space};
        code.put({.run = races::select_note_access(form),
                  .fields = {0, op.fields[1], access.lanes, form.bits(), std::uint32_t(access.offset)},
                  .reads = A,
                  .list = code.list({}, values)});
    }
    void after_op(Lowering& code, const Micro& op) const override {
        const Synchronises& how = op.info.synchronises;
        if (how.meets_warp) code.put({.run = note_meeting, .fields = {code.asked}});
        if (how.exchanges_in_warp) code.put({.run = note_exchange, .fields = {code.asked}});
        if (op.info.operation == Op::Fence && (how.acquires || how.releases))
            code.put({.run = note_fence,
                      .fields = {code.asked, 0, 0, 0, std::uint32_t(how.scope),
                                 how.acquires * 1u + how.releases * 2u + how.of_access * 4u}});
        if (everywhere_ && (how.shows_shared || how.shows_global))
            code.put({.run = note_shown,
                      .fields = {code.asked, 0, 0, 0, 0,
                                 how.shows_global * 1u + how.shows_shared * 2u + how.shows_peers * 4u}});
    }

    void after_block(Lowering& code, std::uint32_t begin, std::uint32_t end) const override {
        races::join_notes(code, begin, end);
    }

    std::unique_ptr<LaunchTool> of(LaunchState& launch, std::size_t slot) const override {
        const DecodedKernel& kernel = launch.kernel;
        const auto any = [&](auto f) {
            return std::ranges::any_of(kernel.instructions,
                                       [&](const ptx::Instruction* each) { return each && f(launch.module, *each); });
        };
        const bool in_clusters = kernel.blocks_in_cluster() > 1, are_apart = !in_clusters && !any(orders_blocks);
        const bool meets_others = !are_apart && (kernel.has_bulk_copies || (in_clusters && kernel.has_products));
        return std::make_unique<races::LaunchRaces>(launch,
                                                    races::Facts{.exact = any(is_otherwise),
                                                                 .everywhere = everywhere_,
                                                                 .in_clusters = in_clusters,
                                                                 .blocks_are_apart = are_apart,
                                                                 .has_proxies = everywhere_ && meets_others},
                                                    slot);
    }

private:
    std::string_view name_;
    bool everywhere_;
};

}  // namespace

const Tool& shared_races() {
    static const Finder finder("shared races", false);
    return finder;
}

const Tool& all_races() {
    static const Finder finder("races", true);
    return finder;
}

}  // namespace ikat::emulator
