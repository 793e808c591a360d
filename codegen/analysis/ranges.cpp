// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/ranges.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace ikat::analysis {
namespace {

using namespace ir;

constexpr int deepest = 64;   // operands of operands …; beyond this depth nothing is known
constexpr int farthest = 32;  // blocks up the dominator tree whose branches are looked at

constexpr Int128 huge = Int128{1} << 126;
Int128 clamp(Int128 x) { return std::clamp(x, -huge, huge); }
Int128 product(Int128 a, Int128 b) {
    Int128 out;
    if (__builtin_mul_overflow(a, b, &out)) return (a < 0) == (b < 0) ? huge : -huge;
    return clamp(out);
}

bool is_integer(Type type) { return contains(AnyInt, type); }

Interval exactly(Type type, Word bits) {
    const Int128 value =
        is_signed(type) ? Int128(std::int64_t(bits << (64 - ir::bits(type))) >> (64 - ir::bits(type))) : Int128(bits);
    const Int128 magnitude = value < 0 ? -value : value;
    return {value, value, std::uint64_t(magnitude)};
}

Interval up_to(std::uint64_t high) { return {0, Int128(high), 1}; }

Interval either(const Interval& a, const Interval& b) {
    return {std::min(a.low, b.low), std::max(a.high, b.high), std::gcd(a.multiple, b.multiple)};
}

/// The interval shrunk to multiples of its divisor.
Interval tightened(Interval x) {
    if (x.multiple <= 1) return x;
    const Int128 by = x.multiple;
    const auto floor = [&](Int128 n) { return (n >= 0 ? n / by : -((-n + by - 1) / by)) * by; };
    return {floor(x.low + by - 1), floor(x.high), x.multiple};
}

/// The interval after wrapping to `type`. Wrapping keeps divisors that are powers of two.
Interval wrapped(Type type, Interval x) {
    const Interval all = full(type);
    if (x.within(all)) return x;
    const std::uint64_t two = x.multiple & (0 - x.multiple);
    const bool divides = bits(type) == 64 || two < (std::uint64_t{1} << bits(type));
    return {all.low, all.high, divides ? std::max<std::uint64_t>(two, 1) : 1};
}

// The operations in unbounded integers.
Interval sum(const Interval& a, const Interval& b) {
    return {clamp(a.low + b.low), clamp(a.high + b.high), std::gcd(a.multiple, b.multiple)};
}
Interval difference(const Interval& a, const Interval& b) {
    return {clamp(a.low - b.high), clamp(a.high - b.low), std::gcd(a.multiple, b.multiple)};
}
Interval product(const Interval& a, const Interval& b) {
    const Int128 corners[] = {product(a.low, b.low), product(a.low, b.high), product(a.high, b.low),
                              product(a.high, b.high)};
    const auto [low, high] = std::ranges::minmax(corners);
    std::uint64_t multiple;
    if (__builtin_mul_overflow(a.multiple, b.multiple, &multiple)) multiple = std::max(a.multiple, b.multiple);
    return {low, high, multiple};
}

/// All ones from the highest bit of x down.
Int128 ones_up_to(Int128 x) {
    return x >= Int128(std::uint64_t(-1)) / 2 ? Int128(std::uint64_t(-1))
                                              : Int128(std::bit_ceil(std::uint64_t(x) + 1) - 1);
}

Interval special(const Function& fn, SpecialRegister which) {
    const std::uint32_t threads = fn.bounds.max_threads ? fn.bounds.max_threads : 1024;
    switch (which) {
        case SpecialRegister::TidX:
        case SpecialRegister::TidY: return up_to(threads - 1);
        case SpecialRegister::TidZ: return up_to(std::min(threads - 1, 63u));
        case SpecialRegister::NtidX:
        case SpecialRegister::NtidY: return {1, threads, 1};
        case SpecialRegister::NtidZ: return {1, std::min(threads, 64u), 1};
        case SpecialRegister::CtaidX: return up_to(0x7ffffffe);
        case SpecialRegister::CtaidY:
        case SpecialRegister::CtaidZ: return up_to(0xfffe);
        case SpecialRegister::NctaidX: return {1, 0x7fffffff, 1};
        case SpecialRegister::NctaidY:
        case SpecialRegister::NctaidZ: return {1, 0xffff, 1};
        case SpecialRegister::LaneId: return up_to(31);
        default: return full(type_of_register(which));
    }
}

Interval bitwise(Op op, Type type, const Interval& a, const Interval& b) {
    if (op == Op::And && a.low < 0 && b.low >= 0) return {0, b.high, 1};
    if (op == Op::And && b.low < 0 && a.low >= 0) return {0, a.high, 1};
    if (a.low < 0 || b.low < 0) return full(type);
    const std::uint64_t two = std::min(a.multiple & (0 - a.multiple), b.multiple & (0 - b.multiple));
    const std::uint64_t low_zeros = a.multiple == 0   ? b.multiple & (0 - b.multiple)
                                    : b.multiple == 0 ? a.multiple & (0 - a.multiple)
                                                      : two;
    if (op != Op::And) return {0, ones_up_to(std::max(a.high, b.high)), std::max<std::uint64_t>(low_zeros, 1)};
    const std::uint64_t multiple = std::max(a.multiple & (0 - a.multiple), b.multiple & (0 - b.multiple));
    return {0, std::min(a.high, b.high), a.multiple && b.multiple ? multiple : 0};
}

Interval divided(Op op, Type type, const Interval& a, const Interval& b) {
    if (a.low < 0 || b.low <= 0) return full(type);  // division by zero: anything; negative numbers: not worth it
    if (op == Op::Div) return {a.low / b.high, a.high / b.low, 1};
    return {0, std::min(a.high, b.high - 1), std::gcd(a.multiple, b.low == b.high ? b.multiple : 1)};
}

Interval shifted_right(Type type, const Interval& a, const Interval& by) {
    if (a.low < 0) return full(type);
    const auto min_shift = int(std::min<Int128>(by.low, 64)), max_shift = int(std::min<Int128>(by.high, 64));
    return {a.low >> max_shift, a.high >> min_shift, 1};
}

/// 2^by, the factor of a left shift; nothing is known for shifts by the width or more, where PTX gives 0.
Interval power(Type type, const Interval& by) {
    if (by.high >= bits(type)) return {0, huge, 1};
    return {Int128{1} << int(by.low), Int128{1} << int(by.high), std::uint64_t{1} << int(by.low)};
}

}  // namespace

Interval full(Type type) {
    const int width = bits(type);
    if (is_signed(type)) return {-(Int128{1} << (width - 1)), (Int128{1} << (width - 1)) - 1, 1};
    return {0, (Int128{1} << width) - 1, 1};
}

Interval Ranges::of(Value value) {
    if (states_.size() < fn_.value_count()) states_.resize(fn_.value_count());
    if (const std::uint32_t state = states_[index(value)]; state >= first_known) return intervals_[state - first_known];
    if (states_[index(value)] == busy || depth_ == deepest) return full(fn_.type(value));
    states_[index(value)] = busy;
    ++depth_;
    const Interval found = tightened(computed(value));
    --depth_;
    states_[index(value)] = first_known + std::uint32_t(intervals_.size());
    intervals_.push_back(found);
    return found;
}

Interval Ranges::computed(Value value) {
    const Inst inst = fn_[value].instruction;
    if (!is_integer(fn_.type(value))) return full(Type::I64);
    if (inst == no_inst) return parameter(value);
    return fn_[inst].guard == no_value ? operation(inst) : full(fn_.type(value));
}

/// The union of the arguments that jumps pass. A jump that passes `i + c` for parameter i is a step: i stays between
/// where it starts and the highest that a step can reach, by the test of i that guards it or of i + c itself, if no
/// step from there wraps.
Interval Ranges::parameter(Value value) {
    const Definition& definition = fn_[value];
    const Interval all = full(definition.type);
    if (!dominators_.reachable(definition.block)) return all;
    std::vector<Step> steps;
    std::optional<Interval> found;
    for (std::uint32_t node : dominators_.predecessors().successors(index(definition.block))) {
        const Block from{node};
        if (!dominators_.reachable(from)) continue;
        const auto& targets = fn_[from].terminator.targets;
        for (std::size_t way = 0; way < targets.size(); ++way) {  // two edges from one block: visited twice, harmless
            if (targets[way].to != definition.block) continue;
            const Value argument = targets[way].arguments[definition.position];
            if (argument == value) continue;
            if (const auto by = step(value, argument)) {
                steps.push_back({*by, on_edge(value, from, way, all).high, on_edge(argument, from, way, all).high});
            } else {
                const Interval start = on_edge(argument, from, way, of(argument));
                found = found ? either(*found, start) : start;
            }
        }
    }
    if (!found) return all;
    for (const Step& step : steps) {
        found->high = std::max(found->high, std::min(step.guard + step.by, step.test));
        found->multiple = std::gcd(found->multiple, std::uint64_t(step.by));
    }
    for (const Step& step : steps)
        if (std::min(found->high, step.guard) + step.by > all.high) return all;
    return *found;
}

/// c, if argument is value + c and c is positive.
std::optional<Int128> Ranges::step(Value value, Value argument) const {
    const Inst inst = fn_[argument].instruction;
    if (inst == no_inst || fn_[inst].op != Op::Add || fn_.operands(inst)[0] != value) return {};
    const auto bits = constant(fn_, fn_.operands(inst)[1]);
    if (!bits) return {};
    const Int128 by = exactly(fn_.type(value), *bits).low;
    return by > 0 ? std::optional(by) : std::nullopt;
}

Interval Ranges::unbounded(const Function& fn, Inst inst, auto&& range) {
    const auto operands = fn.operands(inst);
    const auto operand = [&](std::size_t i) { return range(operands[i]); };
    switch (fn[inst].op) {
        case Op::Add: return sum(operand(0), operand(1));
        case Op::Sub: return difference(operand(0), operand(1));
        case Op::Mul:
        case Op::MulWide: return product(operand(0), operand(1));
        case Op::Fma:
        case Op::MadWide: return sum(product(operand(0), operand(1)), operand(2));
        case Op::Shl: return product(operand(0), power(fn[inst].type, operand(1)));
        default: return {-huge, huge, 1};
    }
}

Interval Ranges::operation(Inst inst) {
    const Instruction& it = fn_[inst];
    const Type type = fn_.type(fn_.result(inst));
    const auto operands = fn_.operands(inst);
    const auto range = [&](Value value) { return of(value); };
    switch (it.op) {
        case Op::Const: return exactly(type, it.attribute);
        case Op::Param: {
            Interval all = full(type);
            all.multiple = fn_.parameters[parameter_of(it.attribute)].multiple;
            return all;
        }
        case Op::Special: return special(fn_, SpecialRegister(Word{it.attribute}));
        case Op::And:
        case Op::Or:
        case Op::Xor: return bitwise(it.op, type, of(operands[0]), of(operands[1]));
        case Op::Div:
        case Op::Rem: return divided(it.op, type, of(operands[0]), of(operands[1]));
        case Op::Shr: return shifted_right(type, of(operands[0]), of(operands[1]));
        case Op::Select: return either(of(operands[0]), of(operands[1]));
        case Op::Min: {
            const Interval a = of(operands[0]), b = of(operands[1]);
            return {std::min(a.low, b.low), std::min(a.high, b.high), std::gcd(a.multiple, b.multiple)};
        }
        case Op::Max: {
            const Interval a = of(operands[0]), b = of(operands[1]);
            return {std::max(a.low, b.low), std::max(a.high, b.high), std::gcd(a.multiple, b.multiple)};
        }
        case Op::Convert: return is_integer(it.from) && !it.fp.sat ? wrapped(type, of(operands[0])) : full(type);
        case Op::Add:
        case Op::Sub:
        case Op::Mul:
        case Op::MulWide:
        case Op::Fma:
        case Op::MadWide:
        case Op::Shl: return wrapped(type, unbounded(fn_, inst, range));
        default: return full(type);
    }
}

bool Ranges::is_exact(Inst inst, Block block) {
    const Interval result = unbounded(fn_, inst, [&](Value value) { return at(value, block); });
    return result.within(full(fn_.type(fn_.result(inst))));
}

Interval Ranges::at(Value value, Block block) { return refined(value, block, of(value)); }

/// Narrows what is known with the branches that lead to block: where a block has one incoming edge, the branch that it
/// comes from.
Interval Ranges::refined(Value value, Block block, Interval known) {
    for (int steps = 0; steps < farthest; ++steps) {
        const Block above = dominators_.parent(block);
        if (above == no_block) return known;
        const Terminator& terminator = fn_[above].terminator;
        if (terminator.kind == Terminator::Kind::Branch && terminator.targets[0].to != terminator.targets[1].to)
            for (bool holds : {true, false})
                if (terminator.targets[holds ? 0 : 1].to == block && dominators_.has_one_way_in(block))
                    assume(terminator.condition, holds, value, known, 0);
        block = above;
    }
    return known;
}

/// … and with the branch at the end of `from`, whose target `way` is taken.
Interval Ranges::on_edge(Value value, Block from, std::size_t way, Interval known) {
    known = refined(value, from, known);
    const Terminator& terminator = fn_[from].terminator;
    if (terminator.kind == Terminator::Kind::Branch && terminator.targets[0].to != terminator.targets[1].to)
        assume(terminator.condition, way == 0, value, known, 0);
    return known;
}

void Ranges::assume(Value condition, bool holds, Value value, Interval& known, int depth) {
    const Inst inst = fn_[condition].instruction;
    if (inst == no_inst || depth == 4) return;
    const auto operands = fn_.operands(inst);
    Op op = fn_[inst].op;
    if (op == Op::Not) return assume(operands[0], !holds, value, known, depth + 1);
    if ((op == Op::And && holds) || (op == Op::Or && !holds)) {
        assume(operands[0], holds, value, known, depth + 1);
        return assume(operands[1], holds, value, known, depth + 1);
    }
    if (info(op).shape.result != Slot::Pred || info(op).shape.arity() != 2 || !is_integer(fn_[inst].type)) return;
    if (operands[0] != value && operands[1] != value) return;
    const bool left = operands[0] == value;
    const Interval other = of(operands[left ? 1 : 0]);
    // As a bound on value: below (or up to) the maximum of other, above (or from) its minimum.
    enum Relation { Below, UpTo, Above, From, Same, Else } relation;
    switch (op) {
        case Op::Lt: relation = left ? Below : Above; break;
        case Op::Le: relation = left ? UpTo : From; break;
        case Op::Gt: relation = left ? Above : Below; break;
        case Op::Ge: relation = left ? From : UpTo; break;
        case Op::Eq: relation = Same; break;
        case Op::Ne: relation = Else; break;
        default: return;
    }
    if (!holds) {
        constexpr Relation opposite[] = {From, Above, UpTo, Below, Else, Same};
        relation = opposite[relation];
    }
    if (relation == Below || relation == UpTo || relation == Same)
        known.high = std::min(known.high, other.high - (relation == Below));
    if (relation == Above || relation == From || relation == Same)
        known.low = std::max(known.low, other.low + (relation == Above));
}

}  // namespace ikat::analysis
