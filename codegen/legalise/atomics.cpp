// SPDX-License-Identifier: Apache-2.0
// Atomics that the target lacks become compare-and-swap loops; compare and swap exists for 16, 32 and 64 bits.
//
//     ^1: %o = atomic_min.f32 [%p], %v    ==>  ^1: %s = load.f32 relaxed [%p]          ^4(%r: f32):
//         rest                                     jump ^2(%s)                             %o = bitcast.f32.f32 %r
//                                              ^2(%e: f32):                                rest
//                                                  %n = min.f32 %e, %v
//                                                  branch the same bits %n, %e: ^4(%e), ^3
//                                              ^3: %w = atomic_cas.f32 [%p], %e, %n
//                                                  branch the same bits %w, %e: ^4(%w), ^2(%w)
//
// A relaxed minimum or maximum that changes nothing does not write; with a memory order it must access memory.
// Reductions of vectors, where the target has none, become atomics of their elements, two in one register where they
// are small.
//
// Needs: blocks in any order. Leaves critical edges, and bitcasts for selection to remove.
#include <algorithm>
#include <utility>

#include "codegen/ir/builder.hpp"
#include "codegen/ir/edit/split.hpp"
#include "codegen/legalise/legalise.hpp"

namespace ikat::legalise {
namespace {

using ir::Block, ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value;

/// How an atomic computes the new value from the old value and the operand.
struct Update {
    Op atomic, next;
};
constexpr Update updates[] = {
    {Op::AtomicAdd, Op::Add},
    {Op::AtomicMin, Op::Min},
    {Op::AtomicMax, Op::Max},
    {Op::AtomicAnd, Op::And},
    {Op::AtomicOr, Op::Or},
    {Op::AtomicXor, Op::Xor},
    {Op::AtomicExchange, Op::AtomicExchange},  // the operand itself
};

/// How to expand an atomic that the target does not have; null for any other instruction.
const Update* find_loop(const Instruction& it, const Target& target) {
    const auto update = std::ranges::find(updates, it.op, &Update::atomic);
    return update == std::end(updates) || target.has_atomic(target, it) ? nullptr : update;
}

Type bits_of(Type type) {
    switch (ir::bits(type)) {
        case 16: return Type::U16;
        case 32: return Type::U32;
        default: return Type::U64;
    }
}

/// Expands one atomic to a loop.
class RetryLoop {
public:
    RetryLoop(ir::Function& fn, Block block, Inst inst, Block rest)
        : fn_(fn), build_(fn, block), inst_(inst), it_(fn[inst]), rest_(rest) {
        build_.set_location(it_.where);
        address_ = fn.operands(inst)[0], operand_ = fn.operands(inst)[1];
    }

    void write(Op next) {
        const Block again = fn_.add_block();
        const Value expected = fn_.add_parameter(again, it_.type), result = fn_.add_parameter(rest_, it_.type);
        Instruction first{.op = Op::Load, .type = it_.type, .memory = it_.memory};
        first.memory.order = ir::Order::Relaxed;
        build_.jump(again, {build_.make(first, {&address_, 1})});

        build_.set_block(again);
        const Value desired = next == it_.op ? operand_ : build_.make(next, it_.type, {expected, operand_});
        const bool chooses = next == Op::Min || next == Op::Max;
        if (chooses && it_.memory.order == ir::Order::Relaxed) {
            const Block change = fn_.add_block();
            branch(same(desired, expected), {rest_, {expected}}, {change});
            build_.set_block(change);
        }
        const Value operands[] = {address_, expected, desired};
        const Value old = build_.make({.op = Op::AtomicCas, .type = it_.type, .memory = it_.memory}, operands);
        branch(same(old, expected), {rest_, {old}}, {again, {old}});
        become_copy(result);
    }

private:
    Value same(Value a, Value b) {
        const Type type = bits_of(it_.type);
        const auto as_bits = [&](Value value) {
            const Instruction cast{.op = Op::Bitcast, .type = type, .from = it_.type};
            return type == it_.type ? value : build_.make(cast, {&value, 1});
        };
        const Value left = as_bits(a), right = as_bits(b);
        return build_.make(Op::Eq, type, {left, right});
    }
    void branch(Value condition, ir::Jump then, ir::Jump otherwise) {
        fn_[build_.block()].terminator = {.kind = ir::Terminator::Kind::Branch,
                                          .condition = condition,
                                          .targets = {std::move(then), std::move(otherwise)},
                                          .where = it_.where};
    }
    void become_copy(Value result) {
        fn_[inst_] = {.op = Op::Bitcast,
                      .type = it_.type,
                      .from = it_.type,
                      .operands = it_.operands,
                      .results = it_.results,
                      .where = it_.where};
        fn_.set_operands(inst_, {&result, 1});
        auto& list = fn_[rest_].instructions;
        list.insert(list.begin(), inst_);
    }

    ir::Function& fn_;
    ir::Builder build_;
    Inst inst_;
    Instruction it_;
    Block rest_;
    Value address_{}, operand_{};
};

void expand_block(ir::Function& fn, Block block, const Target& target) {
    const auto& list = fn[block].instructions;
    const auto found = std::ranges::find_if(list, [&](Inst inst) { return find_loop(fn[inst], target) != nullptr; });
    if (found == list.end()) return;
    const Inst inst = *found;
    const Op next = find_loop(fn[inst], target)->next;
    const Block rest = split_block(fn, block, std::size_t(found - list.begin()) + 1);
    fn[block].instructions.pop_back();
    RetryLoop(fn, block, inst, rest).write(next);
}

// ---- reductions of vectors

/// An atomic for each element, or for each pair of 16-bit elements.
void split_reduction(ir::Function& fn, Block block, Inst inst) {
    constexpr Op ops[] = {Op::AtomicAdd, Op::AtomicMin, Op::AtomicMax};
    const Instruction it = fn[inst];
    const std::vector<Value> operands(fn.operands(inst).begin(), fn.operands(inst).end());
    const bool pairs = bits(it.type) == 16;
    const Type type = !pairs ? it.type : it.type == Type::F16 ? Type::F16x2 : Type::BF16x2;
    ir::Builder build(fn, block);
    build.set_location(it.where);
    Instruction each{.op = ops[it.attribute], .type = type, .memory = it.memory};
    each.memory.count = 1;
    for (std::size_t i = 1; i < operands.size(); i += pairs ? 2 : 1) {
        const Value both[] = {operands[0],
                              pairs ? build.make(Op::Pack, type, {operands[i], operands[i + 1]}) : operands[i]};
        build.make(each, both);
        each.memory.offset += info(type).bytes;
    }
}

/// Whether there were any.
bool split_reductions(ir::Function& fn, Block block, const Target& target) {
    bool any = false;
    const std::vector<Inst> old = std::exchange(fn[block].instructions, {});
    for (Inst inst : old) {
        const bool splits = fn[inst].op == Op::VectorReduce && !target.has_atomic(target, fn[inst]);
        any |= splits;
        if (splits)
            split_reduction(fn, block, inst);
        else
            fn[block].instructions.push_back(inst);
    }
    return any;
}

}  // namespace

analysis::Changed expand_atomics(ir::Function& fn, const Target& target) {
    const std::size_t blocks = fn.block_count();
    bool split = false;
    for (Block block : fn.blocks()) split |= split_reductions(fn, block, target);
    for (std::uint32_t block = 0; block < fn.block_count(); ++block) expand_block(fn, Block(block), target);
    return analysis::instructions_if(split) | analysis::control_flow_if(fn.block_count() != blocks);
}

}  // namespace ikat::legalise
