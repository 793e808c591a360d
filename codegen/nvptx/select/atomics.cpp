// SPDX-License-Identifier: Apache-2.0
// Atomics that PTX or the target lacks: loops of compare and swap, which there is of 16, 32 and 64 bits.
//
//     ^1: %o = atomic_min.f32 [%p], %v    ==>  ^1: %s = load.f32 relaxed [%p]          ^4(%r: f32):
//         rest                                     jump ^2(%s)                             %o = bitcast.f32.f32 %r
//                                              ^2(%e: f32):                                rest
//                                                  %n = min.f32 %e, %v
//                                                  branch the same bits %n, %e: ^4(%e), ^3
//                                              ^3: %w = atomic_cas.f32 [%p], %e, %n
//                                                  branch the same bits %w, %e: ^4(%w), ^2(%w)
//
// A minimum or maximum that changes nothing leaves memory alone, if it is relaxed: an order needs the access.
// Reductions of vectors, where the target has none, become atomics of their elements, two in one register where they
// are small.
//
// Needs: blocks in any order. Leaves critical edges, and bitcasts for legalise() to take away.
#include <algorithm>

#include "codegen/ir/builder.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Block, ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value;

/// The types that every target has an atomic for, and what it makes of the old value and the operand.
struct Form {
    Op op;
    ir::TypeSet native;
    Op next;
};
constexpr ir::TypeSet numbers = ir::Int | ir::set(Type::F16, Type::F32, Type::F64, Type::F16x2);
constexpr Form forms[] = {
    {Op::AtomicAdd, numbers, Op::Add},
    {Op::AtomicMin, ir::Int, Op::Min},
    {Op::AtomicMax, ir::Int, Op::Max},
    {Op::AtomicAnd, ir::Words, Op::And},
    {Op::AtomicOr, ir::Words, Op::Or},
    {Op::AtomicXor, ir::Words, Op::Xor},
    {Op::AtomicExchange, ir::Words | ir::Packed | ir::set(Type::F32, Type::F64), Op::AtomicExchange},
};

/// How to go about an atomic without an instruction of its own; null for one that has it.
const Form* find_loop(const Instruction& it, const Target& target) {
    const auto form = std::ranges::find(forms, it.op, &Form::op);
    if (form == std::end(forms) || contains(form->native, it.type)) return nullptr;
    const bool adds_bfloats = it.op == Op::AtomicAdd && lane(it.type) == Type::BF16;
    return adds_bfloats && supports(target, Feature::Bfloat16Math) ? nullptr : form;
}

Type bits_of(Type type) {
    switch (ir::bits(type)) {
        case 16: return Type::U16;
        case 32: return Type::U32;
        default: return Type::U64;
    }
}

/// One atomic becomes blocks.
class Loop {
public:
    Loop(ir::Function& fn, Block block, Inst inst, Block rest)
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
    const Form& form = *find_loop(fn[inst], target);
    const Block rest = split_block(fn, block, std::size_t(found - list.begin()) + 1);
    fn[block].instructions.pop_back();
    Loop(fn, block, inst, rest).write(form.next);
}

// ---- reductions of vectors

bool has_vectors(const Instruction& it, const Target& target) {
    const bool adds_singles = it.attribute == 0 || it.type != Type::F32;
    return it.memory.space == ir::Space::Global && adds_singles && supports(target, Feature::VectorReduction);
}

/// An atomic for each element, or for each two of 16 bits.
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

void split_reductions(ir::Function& fn, Block block, const Target& target) {
    const std::vector<Inst> old = std::exchange(fn[block].instructions, {});
    for (Inst inst : old) {
        const bool splits = fn[inst].op == Op::VectorReduce && !has_vectors(fn[inst], target);
        if (splits)
            split_reduction(fn, block, inst);
        else
            fn[block].instructions.push_back(inst);
    }
}

}  // namespace

void expand_atomics(ir::Function& fn, const Target& target) {
    for (Block block : fn.blocks()) split_reductions(fn, block, target);
    for (std::uint32_t block = 0; block < fn.block_count(); ++block) expand_block(fn, Block(block), target);
}

}  // namespace ikat::nvptx
