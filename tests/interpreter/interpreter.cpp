// SPDX-License-Identifier: Apache-2.0
#include "tests/interpreter/interpreter.hpp"

#include <algorithm>
#include <array>

#include "codegen/analysis/memory.hpp"
#include "codegen/ir/op/shape.hpp"

namespace ikat::test {
namespace {

using namespace ir;

class Run {
public:
    Run(const Function& fn, Thread& thread) : fn_(fn), thread_(thread), values_(fn.value_count()) {}

    End operator()() {
        for (Block block = fn_.entry();;) {
            for (Inst inst : fn_[block].instructions) {
                if (thread_.step_budget-- == 0) return End::OutOfSteps;
                execute(inst);
                for (Value result : fn_.results(inst)) observe(block, result);
            }
            const Terminator& terminator = fn_[block].terminator;
            if (thread_.step_budget-- == 0) return End::OutOfSteps;
            if (terminator.kind == Terminator::Kind::Return) return End::Returned;
            if (terminator.kind == Terminator::Kind::Trap) return End::Trapped;
            block = follow(terminator);
            for (Value parameter : fn_[block].parameters) observe(block, parameter);
        }
    }

private:
    void observe(Block block, Value v) const {
        if (thread_.observe) thread_.observe(block, v, value(v));
    }

    Word value(Value v) const { return values_[index(v)]; }

    std::vector<Word> words(std::span<const Value> values) const {
        std::vector<Word> out;
        for (Value v : values) out.push_back(value(v));
        return out;
    }

    /// Follows the terminator: all arguments are read before any parameter is written.
    Block follow(const Terminator& terminator) {
        std::size_t way = 0;
        if (terminator.kind == Terminator::Kind::Branch) way = value(terminator.condition) & 1 ? 0 : 1;
        if (terminator.kind == Terminator::Kind::Multiway)
            way = std::min<std::size_t>(value(terminator.condition), terminator.targets.size() - 1);
        const Jump& jump = terminator.targets[way];
        const std::vector<Word> arguments = words(jump.arguments);
        for (std::size_t i = 0; i < arguments.size(); ++i) values_[index(fn_[jump.to].parameters[i])] = arguments[i];
        return jump.to;
    }

    void execute(Inst id) {
        const Instruction& inst = fn_[id];
        if (inst.guard != no_value && bool(value(inst.guard) & 1) == inst.guard_negated) {
            for (std::uint16_t i = 0; i < inst.tie.count; ++i)
                values_[index(fn_.results(id)[inst.tie.result + i])] = value(fn_.operands(id)[inst.tie.operand + i]);
            return;
        }
        const std::vector<Word> arguments = words(fn_.operands(id));
        switch (inst.op) {
            case Op::Const: set(id, inst.attribute); break;
            case Op::Param: set(id, thread_.scalars.at(ir::parameter_of(inst.attribute))); break;
            case Op::Special: set(id, thread_.special.empty() ? 0 : thread_.special.at(inst.attribute)); break;
            case Op::Symbol: set(id, symbol_address(inst.attribute)); break;
            case Op::Load:
            case Op::Store:
                if (effects(inst).orders) others(inst, arguments);
                inst.op == Op::Load ? load(id, inst, arguments[0] + std::uint64_t(inst.memory.offset))
                                    : store(inst, arguments);
                break;
            default:
                if (!effects(inst).none()) return effect(id, inst, arguments);
                for (std::uint32_t i = 0; i < inst.results.count; ++i)
                    values_[index(fn_.results(id)[i])] =
                        evaluate(inst.op, inst.type, inst.from, inst.fp, arguments, inst.attribute, i);
        }
    }

    Word others(const Instruction& inst, std::span<const Word> arguments) const {
        return thread_.others ? thread_.others(inst, arguments) : 0;
    }

    void effect(Inst id, const Instruction& inst, std::span<const Word> arguments) {
        const Word given = others(inst, arguments);
        if (has_memory_info(inst.op)) return update(id, inst, arguments);
        for (Value result : fn_.results(id))
            values_[index(result)] = given & (~Word{0} >> (64 - bits(fn_.type(result))));
    }

    void set(Inst id, Word word) { values_[index(fn_.result(id))] = word; }

    std::uint64_t symbol_address(std::uint64_t symbol) const {
        std::uint64_t address = 0;
        for (std::uint64_t i = 0; i < symbol; ++i) address += fn_.symbols[i].count * info(fn_.symbols[i].element).bytes;
        return address;
    }

    Word read(std::uint64_t address, unsigned bytes) const {
        Word word = 0;
        for (unsigned i = 0; i < bytes; ++i)
            if (auto found = thread_.memory.find(address + i); found != thread_.memory.end())
                word |= Word(found->second) << (8 * i);
        return word;
    }

    void write(std::uint64_t address, unsigned bytes, Word word) {
        for (unsigned i = 0; i < bytes; ++i) thread_.memory[address + i] = std::uint8_t(word >> (8 * i));
    }

    void load(Inst id, const Instruction& inst, std::uint64_t address) {
        const unsigned bytes = info(inst.type).bytes;
        for (unsigned i = 0; i < inst.memory.count; ++i)
            values_[index(fn_.results(id)[i])] = read(address + i * bytes, bytes);
    }

    void store(const Instruction& inst, std::span<const Word> arguments) {
        const unsigned bytes = info(inst.type).bytes;
        const std::uint64_t address = arguments[0] + std::uint64_t(inst.memory.offset);
        for (unsigned i = 0; i < inst.memory.count; ++i) write(address + i * bytes, bytes, arguments[1 + i]);
    }

    /// Executes atomics and vector reductions.
    void update(Inst id, const Instruction& inst, std::span<const Word> arguments) {
        const unsigned bytes = info(inst.type).bytes;
        const std::uint64_t address = arguments[0] + std::uint64_t(inst.memory.offset);
        for (unsigned i = 0; i < inst.memory.count; ++i) {
            const Word old = read(address + i * bytes, bytes);
            write(address + i * bytes, bytes, updated(inst, old, arguments.subspan(1 + i)));
            if (!fn_.results(id).empty()) set(id, old);
        }
    }
    static Word updated(const Instruction& inst, Word old, std::span<const Word> with) {
        const auto combined = [&](Op op) { return evaluate(op, inst.type, Type::Void, {}, std::array{old, with[0]}); };
        constexpr Op reductions[] = {Op::Add, Op::Min, Op::Max};
        switch (inst.op) {
            case Op::AtomicAdd: return combined(Op::Add);
            case Op::AtomicMin: return combined(Op::Min);
            case Op::AtomicMax: return combined(Op::Max);
            case Op::AtomicAnd: return combined(Op::And);
            case Op::AtomicOr: return combined(Op::Or);
            case Op::AtomicXor: return combined(Op::Xor);
            case Op::AtomicInc: return old >= with[0] ? 0 : old + 1;
            case Op::AtomicDec: return old == 0 || old > with[0] ? with[0] : old - 1;
            case Op::AtomicExchange: return with[0];
            case Op::AtomicCas: return old == with[0] ? with[1] : old;
            case Op::VectorReduce: return combined(reductions[inst.attribute]);
            default: return old;
        }
    }

    const Function& fn_;
    Thread& thread_;
    std::vector<Word> values_;
};

}  // namespace

End interpret(const ir::Function& fn, Thread& thread) { return Run(fn, thread)(); }

}  // namespace ikat::test
