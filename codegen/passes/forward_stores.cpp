// SPDX-License-Identifier: Apache-2.0
// Replaces loads by values that this thread has just stored or loaded.
//
//     store.f32 shared [%0], %1              store.f32 shared [%0], %1
//     store.f32 shared [%2], %3              store.f32 shared [%2], %3     (no overlap: another array, another offset)
//     %4 = load.f32 shared [%0]     ==>      %5 = add.f32 %1, %1
//     %5 = add.f32 %4, %4
//
// Works within a block. Another thread may write in between only after a barrier, a fence, an atomic, an ordered or a
// volatile access: without one that is a data race. So all of those, and other collective operations, invalidate what
// is known; a store invalidates what it may overwrite, and so does an asynchronous copy: what it writes is known
// again after the wait for it, which orders. Only weak, unguarded accesses of the same type and width take part. The
// stores themselves stay.
//
// Needs: equal addresses to be one value (cse). Keeps: blocks and edges. Removes the loads.
#include "codegen/analysis/memory.hpp"
#include "codegen/ir/edit/replacement.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;
using analysis::Alias;

constexpr std::size_t remembered = 32;  // accesses; older ones are forgotten to keep the time linear

class Forwarding {
public:
    explicit Forwarding(Function& fn) : fn_(fn) {}

    bool run() {
        for (Block block : fn_.blocks()) {
            known_.clear();
            std::erase_if(fn_[block].instructions, [&](Inst inst) { return visit(inst); });
        }
        replacement_.apply(fn_);
        return !replacement_.empty();
    }

private:
    struct Known {
        Inst access;  // its operands (of a store) or results (of a load) are what memory holds
        analysis::Address address;
    };

    /// Whether the instruction is a load whose values are known.
    bool visit(Inst inst) {
        const Instruction& it = fn_[inst];
        const Effects does = effects(it);
        if (does.orders || does.convergent)
            known_.clear();
        else if (it.op == Op::Load)
            return load(inst);
        else
            for (const MemoryAccess& access : accesses(it))
                if (access.writes) write(inst, analysis::address_of(fn_, inst, access));
        return false;
    }

    bool load(Inst inst) {
        if (fn_[inst].guard != no_value) return false;
        const analysis::Address address = analysis::address_of(fn_, inst);
        for (const Known& known : known_) {
            if (!same_kind(known.access, inst)) continue;
            if (analysis::alias(fn_, known.address, address) != Alias::Must) continue;
            const auto values = held(known.access), results = std::span<const Value>(fn_.results(inst));
            for (std::size_t i = 0; i < results.size(); ++i) replacement_.replace(results[i], replacement_(values[i]));
            return true;
        }
        remember(inst, address);
        return false;
    }
    void write(Inst inst, const analysis::Address& address) {
        std::erase_if(known_,
                      [&](const Known& known) { return analysis::alias(fn_, known.address, address) != Alias::No; });
        if (fn_[inst].op == Op::Store && fn_[inst].guard == no_value) remember(inst, address);
    }

    void remember(Inst inst, const analysis::Address& address) {
        if (known_.size() == remembered) known_.erase(known_.begin());
        known_.push_back({inst, address});
    }
    bool same_kind(Inst a, Inst b) const {
        return fn_[a].type == fn_[b].type && fn_[a].memory.count == fn_[b].memory.count;
    }
    std::span<const Value> held(Inst access) const {
        return fn_[access].op == Op::Store ? std::as_const(fn_).operands(access).subspan(1) : fn_.results(access);
    }

    Function& fn_;
    Replacement replacement_;
    std::vector<Known> known_;  // in the order of the block
};

}  // namespace

Changed forward_stores(Function& fn, Context&) { return analysis::instructions_if(Forwarding(fn).run()); }

}  // namespace ikat::passes
