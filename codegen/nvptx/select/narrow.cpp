// SPDX-License-Identifier: Apache-2.0
// Loads and stores of 8- and 16-bit integers with 32-bit registers: ld and st accept a register wider than their type,
// and a load extends according to its type.
//
//     %1 = load.u16 [%p]              ==>  load.u16 [%p], into 32 bits
//     %2 = convert.u32.u16 %1              (if nothing wants %1 in 16)
//     %2 = convert.u8.u32 %1          ==>  store.u8 [%p], %1
//     store.u8 [%p], %2
//
// Needs: legal instructions, no dead ones. Leaves converts without a use.
#include <algorithm>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value;

constexpr bool is_plain_integer(const Instruction& convert) {
    return contains(ir::AnyInt, convert.type) && contains(ir::AnyInt, convert.from) && !convert.fp.sat;
}

class Accesses {
public:
    explicit Accesses(ir::Function& fn) : fn_(fn), walk_(fn), extended_(fn.value_count()), uses_(count_uses(fn)) {}

    bool run() {
        for (ir::Block block : fn_.blocks())
            for (Inst inst : fn_[block].instructions) count_extension(inst);
        walk_.run([this](Inst inst) { rewrite(inst); });
        return walk_.changed();
    }

private:
    /// Whether it extends a 16-bit register to 32 bits.
    static bool extends(const Instruction& it) {
        return it.op == Op::Convert && is_plain_integer(it) && bits(it.from) == 16 && bits(it.type) == 32;
    }
    const Instruction* loaded(Value value) const { return walk_.defined_in(value, Op::Load); }

    /// Counts a conversion of a loaded value that extends it as the load would.
    void count_extension(Inst inst) {
        if (!extends(fn_[inst])) return;
        const Value from = std::as_const(fn_).operands(inst)[0];
        if (const Instruction* load = loaded(from); load && load->type == fn_[inst].from) ++extended_[index(from)];
    }

    void rewrite(Inst inst) {
        if (fn_[inst].op == Op::Load && contains(ir::ShortInt, fn_[inst].type)) widen_load(inst);
        if (fn_[inst].op == Op::Store && contains(ir::NarrowInt, fn_[inst].type)) widen_store(inst);
        if (extends(fn_[inst])) {
            const Value from = std::as_const(fn_).operands(inst)[0];
            const Instruction* load = loaded(from);
            if (load && load->type == fn_[inst].from && bits(fn_.type(from)) == 32)
                return walk_.replace(fn_.result(inst), from);
        }
        walk_.keep(inst);
    }

    /// All elements of a vector or none, because their registers have the same width.
    void widen_load(Inst inst) {
        const auto only_extended = [&](Value value) {
            return extended_[index(value)] > 0 && extended_[index(value)] == uses_[index(value)];
        };
        const auto results = fn_.results(inst);
        if (!std::ranges::all_of(results, only_extended)) return;
        const Instruction load = walk_.edit(inst);
        const Type wide = ir::is_signed(load.type) ? Type::I32 : Type::U32;
        for (Value value : results) fn_.set_type(value, wide);
        for (std::uint32_t i = 0; i < load.tie.count; ++i) {
            const Value other = std::as_const(fn_).operands(inst)[load.tie.operand + i];
            const Value wider = extended(other, wide, load);
            fn_.operands(inst)[load.tie.operand + i] = wider;
        }
    }

    Value extended(Value value, Type wide, const Instruction& load) {
        const Instruction* constant = walk_.defined_by(value, Op::Const);
        if (!constant)
            return walk_.make({.op = Op::Convert, .type = wide, .from = load.type, .where = load.where}, {value}, wide);
        const ir::Word bits = constant->attribute;
        return walk_.constant(wide, ir::is_signed(load.type) ? std::uint32_t(std::int16_t(bits)) : bits, load.where);
    }

    /// Bits that a store does not write need not be correct.
    void widen_store(Inst inst) {
        const Instruction& store = fn_[inst];
        for (std::uint32_t i = 1; i <= store.memory.count; ++i)
            while (const Instruction* convert = walk_.defined_by(fn_.operands(inst)[i], Op::Convert)) {
                const bool keeps = is_plain_integer(*convert) && bits(convert->type) >= bits(store.type) &&
                                   bits(convert->from) >= bits(store.type);
                if (!keeps) break;
                const Value source = walk_.operand(fn_.operands(inst)[i], 0);
                if (bits(fn_.type(source)) > 32 || walk_.defined_by(source, Op::Const)) break;
                walk_.edit(inst);
                fn_.operands(inst)[i] = source;
            }
    }

    ir::Function& fn_;
    ir::Rewriter walk_;
    std::vector<std::uint32_t> extended_;  // by value: the number of uses that extend it as a load would
    std::vector<std::uint32_t> uses_;
};

}  // namespace

Changed widen_accesses(ir::Function& fn) { return analysis::instructions_if(Accesses(fn).run()); }

}  // namespace ikat::nvptx
