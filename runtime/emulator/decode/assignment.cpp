// SPDX-License-Identifier: Apache-2.0
// Definite assignment: which registers may be read before anything has been assigned to them. Where there are none,
// and those are almost all kernels, no warp has to track whether its registers are defined (undefined.hpp).
// Forward over the blocks: a register is assigned where it is on all paths. An assignment under a guard counts inside
// of it, in its block also under the same guard as long as that does not change, and everywhere once there is one under
// the opposite guard, too.
#include <map>
#include <unordered_set>
#include <utility>

#include "codegen/support/bitset.hpp"
#include "runtime/emulator/decode/blocks.hpp"

namespace ikat::emulator {

namespace {

class Assignment {
public:
    Assignment(const Lowering& lowering, std::span<const BasicBlock> blocks, std::span<const std::uint32_t> order)
        : lowering_(lowering), blocks_(blocks), order_(order), unassigned_(lowering.values.size()) {}

    std::uint32_t run(std::span<const std::uint32_t> entries) {
        const std::size_t count = lowering_.values.size();
        Bitset all(count);
        for (std::size_t v = 0; v < count; ++v) all.set(v);
        at_begin_.assign(blocks_.size(), all);
        for (const std::uint32_t entry : entries) at_begin_[entry] = Bitset(count);
        for (bool changed = true; changed;) {
            changed = false;
            for (const std::uint32_t b : order_) changed |= pass(b);
        }
        is_final_ = true;
        for (const std::uint32_t b : order_) pass(b);
        return std::uint32_t(unassigned_.count());
    }

private:
    using Guard = std::pair<std::uint32_t, bool>;  // the predicate, and whether it must be false

    /// Whether what is assigned at the beginning of a successor has become less.
    bool pass(std::uint32_t b) {
        assigned_ = at_begin_[b];
        under_.clear();
        guard_ = {nowhere, false};
        for (std::uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i)
            if (!lowering_.micros[i].checks) step(lowering_.micros[i]);
        bool changed = false;
        for (const std::uint32_t successor : blocks_[b].successors) changed |= at_begin_[successor].keep(assigned_);
        return changed;
    }

    void step(const Micro& micro) {
        if (is_final_) reads(micro);
        const Operation operation = micro.info.operation;
        if (operation == OwnOp::Guard || operation == OwnOp::GuardUnless)
            guard_ = {micro.fields[1], operation == OwnOp::GuardUnless};
        else if (operation == OwnOp::Unguard)
            guard_ = {nowhere, false};
        each_result(lowering_, micro, [&](std::uint32_t v) { assign(v, micro.partial); });
    }

    void reads(const Micro& micro) {
        if (micro.info.operation == OwnOp::TouchRegisters)
            return;  // an observer's, of registers that are only written, too
        const auto read = [&](std::uint32_t v) {
            const bool is_register = lowering_.values[v].kind == VRegInfo::Kind::Register;
            if (is_register && !assigned_.test(v) && !is_under(guard_, v)) unassigned_.set(v);
        };
        each_source(lowering_, micro, read);
        if (micro.info.operation != Op::Wgmma) return;
        const VRegInfo& adds = lowering_.values[micro.fields[3]];  // a product that always adds reads its sums
        if (adds.kind == VRegInfo::Kind::Constant && adds.bits) each_result(lowering_, micro, read);
    }

    void assign(std::uint32_t v, bool is_guarded) {
        if (lowering_.values[v].slot == 0)  // perhaps a guard
            for (const bool unless : {false, true}) under_.erase({v, unless});
        if (is_guarded) {
            if (guard_.first != v) under_[guard_].insert(v);
            if (!is_under({guard_.first, !guard_.second}, v)) return;
        }
        assigned_.set(v);
    }

    bool is_under(const Guard& guard, std::uint32_t v) const {
        const auto found = under_.find(guard);
        return found != under_.end() && found->second.contains(v);
    }

    const Lowering& lowering_;
    const std::span<const BasicBlock> blocks_;
    const std::span<const std::uint32_t> order_;
    std::vector<Bitset> at_begin_;  // by block: what is assigned there on all paths
    Bitset unassigned_;
    bool is_final_ = false;
    // Where the walk is
    Bitset assigned_;
    std::map<Guard, std::unordered_set<std::uint32_t>> under_;  // what is assigned under a guard
    Guard guard_{nowhere, false};
};

}  // namespace

std::uint32_t count_unassigned_reads(const Lowering& lowering, std::span<const BasicBlock> blocks,
                                     std::span<const std::uint32_t> order, std::span<const std::uint32_t> entries) {
    return Assignment(lowering, blocks, order).run(entries);
}

}  // namespace ikat::emulator
