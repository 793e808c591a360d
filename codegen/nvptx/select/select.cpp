// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/select/select.hpp"

#include <algorithm>
#include <iterator>

#include "codegen/legalise/legalise.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

constexpr unsigned most_elements = 4;  // of a vector in memory

/// The types that every target has an atomic for.
struct Native {
    ir::Op op;
    ir::TypeSet types;
};
constexpr ir::TypeSet numbers = ir::Int | ir::set(ir::Type::F16, ir::Type::F32, ir::Type::F64, ir::Type::F16x2);
constexpr Native native[] = {
    {ir::Op::AtomicAdd, numbers},
    {ir::Op::AtomicMin, ir::Int},
    {ir::Op::AtomicMax, ir::Int},
    {ir::Op::AtomicAnd, ir::Words},
    {ir::Op::AtomicOr, ir::Words},
    {ir::Op::AtomicXor, ir::Words},
    {ir::Op::AtomicExchange, ir::Words | ir::Packed | ir::set(ir::Type::F32, ir::Type::F64)},
};

/// Whether PTX has the atomic, or the reduction of a vector, for this target.
bool has_atomic(const ir::Instruction& it, const Target& target) {
    if (it.op == ir::Op::VectorReduce) {
        const bool adds_singles = it.attribute == 0 || it.type != ir::Type::F32;
        return it.memory.space == ir::Space::Global && adds_singles && supports(target, Feature::VectorReduction);
    }
    const auto row = std::ranges::find(native, it.op, &Native::op);
    const bool adds_bfloats = it.op == ir::Op::AtomicAdd && lane(it.type) == ir::Type::BF16;
    return row == std::end(native) || contains(row->types, it.type) ||
           (adds_bfloats && supports(target, Feature::Bfloat16Math));
}

}  // namespace

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
            return effects(fn[inst]).none() &&
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

void select(ir::Function& fn, const Target& target) {
    legalise::expand_atomics(fn, [&](const ir::Instruction& it) { return has_atomic(it, target); });
    legalise::lay_out(fn);
    expand_prints(fn);
    legalise::split_vectors(fn, most_elements);
    legalise(fn, target);
    sweep(fn);
    chain_carries(fn);
    widen_accesses(fn);
    fold_addresses(fn);
    sweep(fn);
    fuse_clamps(fn, target);
    fuse(fn);
    sweep(fn);
    materialise_constants(fn);
}

}  // namespace ikat::nvptx
