// SPDX-License-Identifier: Apache-2.0
// Simplification by the ranges of integers (analysis/ranges.hpp).
//
//     kernel @k(…) max_threads 256
//       %0 = special.u32 tid.x                        0 … 255
//       %1 = lt.u32 %0, 256                  ==>      true
//       %2 = and.u32 %0, 255                 ==>      %0
//       %3 = add.u32 %0, 1                            does not wrap
//       %4 = at.u64.u32 4, %x, %3            ==>      at.u64.u32 4+4, %x, %0
//
// Comparisons with only one possible outcome, results with only one possible value, remainders, masks and minima that
// change nothing; signed divisions of values that are never negative; constants moved out of an index, as
// factors and sums, into the address if the index is as wide as that or does not wrap.
//
// Needs: constants on the right (simplify). Keeps: blocks and edges. Leaves unused operands: run dead_code after.
#include <bit>

#include "codegen/analysis/ranges.hpp"
#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/passes/fold.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;
using analysis::Int128;
using analysis::Interval;

class UseRanges {
public:
    UseRanges(Function& fn, const analysis::Dominators& dominators)
        : fn_(fn), dominators_(dominators), walk_(fn), ranges_(fn, dominators) {}

    bool run() {
        walk_.run(dominators_.reverse_postorder(), [this](Inst inst) { visit(inst); });
        return changed_;
    }

private:
    void visit(Inst inst) {
        if (is_plain(fn_, inst) && fn_[inst].operands.count > 0) {
            if (const auto bits = decided(inst)) {
                make_constant(fn_, inst, *bits);
                changed_ = true;
            } else if (const auto value = same_as(inst)) {
                walk_.replace(fn_.result(inst), *value);
                changed_ = true;
            } else if (const auto known = at_known_index(inst)) {
                walk_.replace(fn_.result(inst), *known);
                changed_ = true;
            } else if (shorten_index(inst)) {
                changed_ = true;
            } else if (const auto moved = constant_moved_out(inst)) {
                walk_.replace(fn_.result(inst), *moved);
                changed_ = true;
            }
        }
        walk_.keep(inst);
    }

    Interval range(Inst inst, std::size_t operand) { return ranges_.at(fn_.operands(inst)[operand], walk_.block()); }

    /// The only value the result can have.
    std::optional<Word> decided(Inst inst) {
        const Instruction& it = fn_[inst];
        const Shape& shape = info(it.op).shape;
        if (shape.result == Slot::Pred && shape.arity() == 2 && contains(AnyInt, it.type))
            return compared(it.op, range(inst, 0), range(inst, 1));
        const Type type = fn_.type(fn_.result(inst));
        if (!contains(AnyInt, type) || is_float(it.type) || !worth_asking(it.op)) return {};
        const Interval result = ranges_.of(fn_.result(inst));
        if (result.low != result.high) return {};
        return Word(result.low) & (bits(type) == 64 ? ~Word{0} : (Word{1} << bits(type)) - 1);
    }
    /// Ops that may give the same result for a range of operands.
    static bool worth_asking(Op op) { return op == Op::Rem || op == Op::And || op == Op::Shr || op == Op::Div; }

    static std::optional<Word> compared(Op op, const Interval& a, const Interval& b) {
        const bool below = a.high<b.low, above = a.low> b.high,
                   one = a.low == a.high && a.low == b.low && b.low == b.high;
        const bool up_to = a.high <= b.low, from = a.low >= b.high;
        const auto decide = [](bool is, bool is_not) {
            return is ? std::optional<Word>(1) : is_not ? std::optional<Word>(0) : std::nullopt;
        };
        switch (op) {
            case Op::Lt: return decide(below, from);
            case Op::Le: return decide(up_to, above);
            case Op::Gt: return decide(above, up_to);
            case Op::Ge: return decide(from, below);
            case Op::Eq: return decide(one, below || above);
            case Op::Ne: return decide(below || above, one);
            default: return {};
        }
    }

    /// An operand that equals the result, or a cheaper instruction for operands that are never negative.
    std::optional<Value> same_as(Inst inst) {
        const Instruction& it = fn_[inst];
        if (!contains(AnyInt, it.type)) return {};
        const auto operands = fn_.operands(inst);
        const Value left = operands[0];
        switch (it.op) {
            case Op::And: {
                const auto mask = constant(fn_, operands[1]);
                if (!mask || !std::has_single_bit(*mask + 1) || *mask == ~Word{0}) return {};
                const Interval x = range(inst, 0);
                return x.low >= 0 && x.high <= Int128(*mask) ? std::optional(left) : std::nullopt;
            }
            case Op::Rem: {
                const Interval x = range(inst, 0), by = range(inst, 1);
                if (x.low >= 0 && x.high < by.low) return left;
                return never_negative(inst, x);
            }
            case Op::Div: return never_negative(inst, range(inst, 0));
            case Op::Min:
            case Op::Max: {
                const Interval a = range(inst, 0), b = range(inst, 1);
                if (a.high <= b.low) return operands[it.op == Op::Min ? 0 : 1];
                if (b.high <= a.low) return operands[it.op == Op::Min ? 1 : 0];
                return {};
            }
            default: return {};
        }
    }

    /// A signed division by a power of two, or its remainder.
    std::optional<Value> never_negative(Inst inst, const Interval& x) {
        const Instruction it = fn_[inst];
        const auto by = constant(fn_, fn_.operands(inst)[1]);
        if (!is_signed(it.type) || x.low < 0 || !by || !std::has_single_bit(*by) || *by >> (bits(it.type) - 1))
            return {};
        const Value left = fn_.operands(inst)[0];
        if (it.op == Op::Rem) return make(Op::And, it.type, {left, make_constant_of(it.type, *by - 1)}, it.type);
        const Value amount = make_constant_of(Type::U32, Word(std::countr_zero(*by)));
        return make(Op::Shr, it.type, {left, amount}, it.type);
    }

    /// An index that is a constant leaves a sum, or the base.
    std::optional<Value> at_known_index(Inst inst) {
        const Instruction it = fn_[inst];
        const Value base = fn_.operands(inst)[0];
        if (it.op != Op::At) return {};
        const auto index = constant(fn_, fn_.operands(inst)[1]);
        if (!index) return {};
        const Word from_zero[] = {0, *index};
        const Word offset = evaluate(Op::At, it.type, it.from, {}, from_zero, it.attribute);
        return offset ? make(Op::Add, it.type, {base, make_constant_of(it.type, offset)}, it.type) : base;
    }

    /// at(base, x + c, s) is at(base, x, s) + c * s, at(base, x * c, s) is at(base, x, c * s), and an index that is
    /// widened is widened by the address.
    bool shorten_index(Inst inst) {
        if (fn_[inst].op != Op::At) return false;
        bool shorter = false;
        while (shorten_once(inst)) shorter = true;
        return shorter;
    }
    bool shorten_once(Inst inst) {
        Instruction& it = fn_[inst];
        const Inst from = fn_[fn_.operands(inst)[1]].instruction;
        if (from == no_inst || !is_plain(fn_, from)) return false;
        const Instruction& index = fn_[from];
        const auto become = [&](AddressForm form) {
            it.attribute = pack(form), it.from = fn_.type(fn_.operands(from)[0]);
            fn_.operands(inst)[1] = fn_.operands(from)[0];
            return true;
        };
        const auto form = unpack<AddressForm>(it.attribute);
        if (index.op == Op::Convert)
            return bits(index.type) == 64 && contains(Word32, index.from) && !index.fp.sat && become(form);
        if (fn_.operands(from).size() != 2) return false;
        const auto word = constant(fn_, fn_.operands(from)[1]);
        if (!word || (bits(it.from) < bits(it.type) && !ranges_.is_exact(from, walk_.block()))) return false;
        const bool is_negative_or_large = bits(it.from) == bits(it.type) || is_signed(it.from);
        const Int128 number = bits(it.from) == 64    ? Int128(std::int64_t(*word))
                              : is_negative_or_large ? Int128(std::int32_t(*word))
                                                     : Int128(std::uint32_t(*word));
        Int128 scale = form.scale, further = form.constant;
        switch (index.op) {
            case Op::Add: further += number * scale; break;
            case Op::Sub: further -= number * scale; break;
            case Op::Mul: scale *= number; break;
            case Op::Shl: scale = *word < 32 ? scale << *word : 0; break;
            default: return false;
        }
        const bool fits =
            scale > 0 && scale == Int128(std::uint32_t(scale)) && further == Int128(std::int32_t(further));
        return fits && become({std::uint32_t(scale), std::int32_t(further)});
    }

    /// mad_wide(x + c, s, y) is mad_wide(x, s, y) + c * s, and convert(x + c) is convert(x) + c, where x + c is exact.
    std::optional<Value> constant_moved_out(Inst inst) {
        const Instruction it = fn_[inst];
        const bool widens = it.op == Op::Convert && contains(Int, it.from) && bits(it.from) == 32 &&
                            contains(Int, it.type) && bits(it.type) == 64;
        if (it.op != Op::MadWide && !widens) return {};
        const Inst sum = fn_[fn_.operands(inst)[0]].instruction;
        if (sum == no_inst || fn_[sum].op != Op::Add || !is_plain(fn_, sum)) return {};
        const auto added = constant(fn_, fn_.operands(sum)[1]);
        const auto scale = it.op == Op::MadWide ? constant(fn_, fn_.operands(inst)[1]) : std::optional<Word>(1);
        if (!added || !scale || !ranges_.is_exact(sum, walk_.block())) return {};
        const Value x = fn_.operands(sum)[0];
        const Type wide = fn_.type(fn_.result(inst)), narrow = fn_.type(x);
        const Word words[] = {*added, *scale};
        const Word offset = it.op == Op::MadWide ? evaluate(Op::MulWide, narrow, Type::Void, {}, words)
                                                 : evaluate(Op::Convert, Type::I64, narrow, {}, {words, 1});
        Value root;
        if (it.op == Op::MadWide)
            root = make(Op::MadWide, it.type, {x, fn_.operands(inst)[1], fn_.operands(inst)[2]}, wide);
        else
            root = make(Op::Convert, it.type, {x}, wide, it.from);
        return make(Op::Add, wide, {root, make_constant_of(wide, offset)}, wide);
    }

    Value make(Op op, Type type, std::initializer_list<Value> operands, Type result, Type from = Type::Void) {
        return walk_.make({.op = op, .type = type, .from = from}, operands, result);
    }
    Value make_constant_of(Type type, Word bits) { return walk_.constant(type, bits, {}); }

    Function& fn_;
    const analysis::Dominators& dominators_;
    Rewriter walk_;
    analysis::Ranges ranges_;
    bool changed_ = false;
};

}  // namespace

Changed use_ranges(Function& fn, Context& context) {
    return analysis::instructions_if(UseRanges(fn, context.dominators()).run());
}

}  // namespace ikat::passes
