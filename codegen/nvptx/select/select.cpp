// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/select/select.hpp"

#include <algorithm>
#include <utility>

#include "codegen/nvptx/select/steps.hpp"
#include "codegen/ptx/check/inline.hpp"

namespace ikat::nvptx {

std::vector<std::uint32_t> count_uses(const ir::Function& fn) {
    std::vector<std::uint32_t> uses(fn.value_count());
    const auto count = [&](ir::Value value) { ++uses[index(value)]; };
    for (ir::Block block : fn.blocks()) {
        for (ir::Inst inst : fn[block].instructions) fn.each_use(inst, count);
        ir::Function::each_use(fn[block].terminator, count);
    }
    return uses;
}

/// From the last use backwards, so that a chain goes in one walk; definitions come before uses in the order of blocks.
void sweep(ir::Function& fn) {
    std::vector<std::uint32_t> uses = count_uses(fn);
    for (std::size_t at = fn.block_count(); at-- > 0;) {
        auto& list = fn[ir::Block(at)].instructions;
        const auto unused = [&](ir::Inst inst) {
            return is_pure(fn[inst].op) &&
                   std::ranges::all_of(fn.results(inst), [&](ir::Value value) { return uses[index(value)] == 0; });
        };
        for (auto inst = list.rbegin(); inst != list.rend(); ++inst) {
            if (!unused(*inst)) continue;
            fn.each_use(*inst, [&](ir::Value value) { --uses[index(value)]; });
            *inst = ir::no_inst;
        }
        std::erase(list, ir::no_inst);
    }
}

/// Operands of a text that writes results before it has read all of them live on behind it.
void keep_operands(ir::Function& fn) {
    for (ir::Block block : fn.blocks()) {
        const std::vector<ir::Inst> old = std::exchange(fn[block].instructions, {});
        for (ir::Inst inst : old) {
            fn[block].instructions.push_back(inst);
            const bool text = fn[inst].op == ir::Op::Opaque || fn[inst].op == ir::Op::OpaqueValue;
            if (!text || !writes_early(fn.texts[fn[inst].attribute])) continue;
            const auto read = std::as_const(fn).operands(inst);
            const std::vector<ir::Value> operands(read.begin(), read.end());
            fn.append(block, {.op = ir::Op::Keep, .where = fn[inst].where}, operands, {});
        }
    }
}

void select(ir::Function& fn, const Target& target) {
    expand_atomics(fn, target);
    lay_out(fn);
    expand_prints(fn);
    split_vectors(fn);
    legalise(fn, target);
    sweep(fn);
    widen_accesses(fn);
    fold_addresses(fn);
    sweep(fn);
    fuse_clamps(fn, target);
    fuse(fn);
    sweep(fn);
    materialise_constants(fn);
    keep_operands(fn);
}

}  // namespace ikat::nvptx
