// SPDX-License-Identifier: Apache-2.0
// Constants and symbol addresses where PTX requires a register get a mov, which is a Bitcast in the IR.
//
//     fma.f16 %a, 1.0, %b           ==>  %1 = bitcast.f16.f16 1.0;  fma.f16 %a, %1, %b
//     jump ^2(0)                    ==>  %1 = bitcast.u32.u32 0;    jump ^2(%1)
//
// PTX accepts constants for most operands, but not for small floats, predicates, addresses, or operands whose register
// is also the result's. One mov, placed after the constant, serves all instructions that need it. An argument of a jump
// gets a separate one at the end of the block, which usually writes the parameter's register directly.
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/accesses.hpp"
#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Block, ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value;

/// Whether `inst` may be written with the constant or symbol `definition` as its operand `position`.
bool takes_immediate(const Instruction& inst, std::uint32_t position, const Instruction& definition) {
    const bool address = ir::is_address(inst.op, position);
    if (definition.op == Op::Symbol) return address || inst.op == Op::Bitcast;
    const bool converts = ir::is_conversion(inst.op) && inst.op != Op::Bitcast;
    if (address || definition.type == Type::Pred || converts) return false;
    const bool is_text = inst.op == Op::Opaque || inst.op == Op::OpaqueValue;  // an operand may be anywhere in it
    if (is_text || inst.op == Op::Call || inst.op == Op::PureCall) return false;
    const ir::Meeting meets = info(inst.op).meets;
    if (meets == ir::Meeting::Warpgroup) return false;
    // ptxas refuses a matrix of integer constants.
    if (meets == ir::Meeting::Warp && definition.type == Type::U32) return false;
    const bool is_small_float =
        ir::is_float(definition.type) && definition.type != Type::F32 && definition.type != Type::F64;
    return !is_small_float || inst.op == Op::Store || inst.op == Op::Bitcast;
}

bool is_tied(const Instruction& inst, std::uint32_t position) {
    return position >= inst.tie.operand && position < inst.tie.operand + inst.tie.count;
}

class Materialisation {
public:
    explicit Materialisation(ir::Function& fn)
        : fn_(fn), moved_(fn.value_count(), ir::no_value), needed_(fn.value_count()) {}

    bool run() {
        const std::size_t instructions = fn_.inst_count();
        for (Block block : fn_.blocks()) each_needed(block, [&](Value& value) { needed_[index(value)] = true; });
        for (Value value : ids<Value>(needed_.size()))
            if (needed_[index(value)]) moved_[index(value)] = create(value);
        for (Block block : fn_.blocks()) rewrite(block);
        for (Block block : fn_.blocks()) tied(block), arguments(block);
        return fn_.inst_count() != instructions;
    }

private:
    bool immediate(Value value) const {
        const Inst inst = fn_[value].instruction;
        return inst != ir::no_inst && is_immediate(fn_[inst].op);
    }

    /// Calls f(operand) for each immediate that must be in a register, except tied operands and arguments of jumps.
    void each_needed(Block block, auto&& f) {
        for (Inst inst : fn_[block].instructions) {
            const auto operands = fn_.operands(inst);
            for (std::uint32_t i = 0; i < operands.size(); ++i)
                if (immediate(operands[i]) && !is_tied(fn_[inst], i) &&
                    !takes_immediate(fn_[inst], i, fn_[fn_[operands[i]].instruction]))
                    f(operands[i]);
            if (fn_[inst].guard != ir::no_value && immediate(fn_[inst].guard)) f(fn_[inst].guard);
        }
        Value& condition = fn_[block].terminator.condition;
        if (condition != ir::no_value && immediate(condition)) f(condition);
        Value& given = fn_[block].terminator.given;
        if (given != ir::no_value && immediate(given)) f(given);
    }

    /// Puts each mov after its constant.
    void rewrite(Block block) {
        each_needed(block, [&](Value& value) { value = moved_[index(value)]; });
        const std::vector<Inst> old = std::exchange(fn_[block].instructions, {});
        for (Inst inst : old) {
            fn_[block].instructions.push_back(inst);
            if (!is_immediate(fn_[inst].op) || !needed_[index(fn_.result(inst))]) continue;
            fn_[block].instructions.push_back(fn_[moved_[index(fn_.result(inst))]].instruction);
        }
    }

    /// Creates the mov, not yet in a block.
    Value create(Value from) {
        const Type type = fn_.type(from);
        const Location where = fn_[fn_[from].instruction].where;
        const Instruction move{.op = Op::Bitcast, .type = type, .from = type, .where = where};
        return fn_.result(fn_.create(move, {&from, 1}, {&type, 1}));
    }

    /// Gives each tied operand of the block a separate mov.
    void tied(Block block) {
        const std::vector<Inst> old = std::exchange(fn_[block].instructions, {});
        for (Inst inst : old) {
            const ir::Tie tie = fn_[inst].tie;
            for (std::uint32_t i = tie.operand; i < tie.operand + tie.count; ++i)
                if (immediate(fn_.operands(inst)[i])) {
                    const Value moved = append(block, fn_.operands(inst)[i]);
                    fn_.operands(inst)[i] = moved;
                }
            fn_[block].instructions.push_back(inst);
        }
    }

    void arguments(Block block) {
        for (ir::Jump& jump : fn_[block].terminator.targets)
            for (Value& value : jump.arguments)
                if (immediate(value)) value = append(block, value);
    }

    Value append(Block block, Value from) {
        const Value moved = create(from);
        fn_[block].instructions.push_back(fn_[moved].instruction);
        return moved;
    }

    ir::Function& fn_;
    std::vector<Value> moved_;  // by value: the register that holds it
    std::vector<bool> needed_;  // by value: some instruction needs it in a register
};

}  // namespace

Changed materialise_constants(ir::Function& fn) { return analysis::instructions_if(Materialisation(fn).run()); }

}  // namespace ikat::nvptx
