// SPDX-License-Identifier: Apache-2.0
// Why the workarounds are exact: for + - * of two bf16, rounding to f32 first is harmless (24 bits are at least 2 * 8 +
// 2, and where an f32 is subnormal nothing is lost that matters to a bf16); min, max, neg, abs and comparisons only
// choose or change signs. This does not hold for fma. An f32 rounded to odd rounds to the same result as the exact
// number.
#include "codegen/nvptx/select/floats.hpp"

#include <string>

#include "codegen/ir/op/shape.hpp"
#include "codegen/support/inline_vector.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Op, ir::Type, ir::Value;

/// The target feature that an f16 or bf16 operation needs.
ptx::Feature needed(Op op, Type type) {
    const bool chooses = op == Op::Min || op == Op::Max;
    if (lane(type) == Type::F16) return chooses ? ptx::Feature::HalfMinMax : ptx::Feature::None;
    if (lane(type) != Type::BF16 || op == Op::Select) return ptx::Feature::None;
    const bool early = chooses || op == Op::Fma || op == Op::Neg || op == Op::Abs;
    return early ? ptx::Feature::Bfloat16Fma : ptx::Feature::Bfloat16Math;
}

}  // namespace

std::optional<Value> FloatForms::rewrite(Inst inst) {
    const ir::Instruction it = fn_[inst];
    InlineVector<Value, 4> operands;  // a copy: new instructions may move them
    operands.assign(fn_.operands(inst).begin(), fn_.operands(inst).end());
    where_ = it.where;
    switch (it.op) {
        case Op::Low:
        case Op::High: return part(it.op, it.type, operands[0]);
        case Op::Pack: return packed(it.type, operands);
        case Op::Convert: return converted(it, fn_.type(fn_.result(inst)), operands[0]);
        default: break;
    }
    if (ir::info(it.op).effect || has_form(it.op, it.type)) return {};
    return it.op == Op::SetLanes ? set_lanes(it, operands) : arithmetic(it.op, it.type, operands);
}

Value FloatForms::make(Op op, Type type, std::initializer_list<Value> operands) {
    return walk_.make({.op = op, .type = type, .where = where_}, operands, ir::at(ir::info(op).shape.result, type));
}

Value FloatForms::convert(Type to, Type from, Value value, Rounding rounding) {
    return walk_.make({.op = Op::Convert, .type = to, .from = from, .fp = {.rounding = rounding}, .where = where_},
                      {value}, to);
}

/// In both lanes of a packed type.
Value FloatForms::number(Type type, double value) {
    const ir::Word bits = bfloat16(value).bits;
    return constant(type, is_packed(type) ? bits << 16 | bits : bits);
}

void FloatForms::lacking(const std::string& what, const std::string& hint) const {
    throw Error(Diagnostic{.where = where_, .message = std::string(target_.name) + " has no " + what, .hint = hint});
}

// ---- arithmetic

bool FloatForms::has_form(Op op, Type type) const { return supports(target_, needed(op, type)); }

Value FloatForms::arithmetic(Op op, Type type, Values operands) {
    const bool fuses = op == Op::Add || op == Op::Sub || op == Op::Mul;
    if (lane(type) == Type::BF16 && fuses && has_form(Op::Fma, type)) return with_fma(op, type, operands);
    return is_packed(type) ? by_lanes(op, type, operands) : in_float(op, type, operands);
}

Value FloatForms::with_fma(Op op, Type type, Values operands) {
    switch (op) {
        case Op::Add: return make(Op::Fma, type, {operands[0], number(type, 1), operands[1]});
        case Op::Sub: return make(Op::Fma, type, {operands[1], number(type, -1), operands[0]});
        default: return make(Op::Fma, type, {operands[0], operands[1], number(type, -0.0)});
    }
}

Value FloatForms::by_lanes(Op op, Type type, Values operands) {
    const auto at = [&](Op which) {
        std::vector<Value> lanes;
        for (Value operand : operands) lanes.push_back(part(which, type, operand));
        return arithmetic(op, lane(type), lanes);
    };
    const Value low = at(Op::Low), high = at(Op::High);
    return make(Op::Pack, type, {low, high});
}

/// For bf16, lane by lane.
Value FloatForms::set_lanes(const ir::Instruction& it, Values operands) {
    constexpr Op comparisons[] = {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge};
    const auto at = [&](Op which) {
        const Value lanes[] = {part(which, it.type, operands[0]), part(which, it.type, operands[1])};
        const Value holds = arithmetic(comparisons[it.attribute], Type::BF16, lanes);
        return make(Op::Select, Type::BF16, {number(Type::BF16, 1), number(Type::BF16, 0), holds});
    };
    const Value low = at(Op::Low), high = at(Op::High);
    return make(Op::Pack, it.type, {low, high});
}

Value FloatForms::in_float(Op op, Type type, Values operands) {
    if (op == Op::Fma)
        lacking("fma of " + std::string(ir::info(type).name), "compute it in f32, or compile for sm_80 or higher");
    const auto wide = [&](Value value) {
        if (type == Type::F16) return convert(Type::F32, type, value);
        return walk_.make({.op = Op::Pack, .type = Type::BF16x2, .where = where_}, {constant(Type::U16, 0), value},
                          Type::F32);
    };
    const Value a = wide(operands[0]);
    const Value computed =
        operands.size() == 1 ? make(op, Type::F32, {a}) : make(op, Type::F32, {a, wide(operands[1])});
    if (ir::info(op).shape.result == ir::Slot::Pred) return computed;
    return type == Type::F16 ? convert(type, Type::F32, computed) : to_bfloat(computed, Rounding::Nearest);
}

// ---- conversions

std::optional<Value> FloatForms::converted(const ir::Instruction& it, Type result, Value x) {
    constexpr ir::TypeSet float8 = ir::Float8 | ir::PackedFloat8;
    if (contains(float8, it.type) || contains(float8, it.from)) {
        if (!supports(target_, ptx::Feature::Fp8))
            lacking("8-bit floats", "compile for sm_89 or higher, or convert them as integers");
        if (is_packed(it.type)) return {};
        return contains(float8, it.type) ? to_float8(it.type, it.from, x) : from_float8(it.type, it.from, x);
    }
    if (it.from == Type::BF16) {
        const Value single =
            walk_.make({.op = Op::Pack, .type = Type::BF16x2, .where = where_}, {constant(Type::U16, 0), x}, Type::F32);
        if (it.type == Type::F32 && !it.fp.sat) return single;
        if (it.type == Type::BF16) return to_bfloat(single, it.fp.rounding);
        ir::Instruction rest = it;
        rest.from = Type::F32;
        return walk_.make(rest, {single}, result);
    }
    if (it.type != Type::BF16) return {};
    if (it.from != Type::F32 && supports(target_, ptx::Feature::Bfloat16Math)) return {};
    return to_bfloat(it.from == Type::F32 ? x : odd_float(x, it.from), it.fp.rounding);
}

Value FloatForms::to_bfloat(Value single, Rounding rounding) {
    const bool has_rounding = rounding == Rounding::Nearest || rounding == Rounding::Zero;
    if (has_rounding && supports(target_, ptx::Feature::Bfloat16Fma))
        return convert(Type::BF16, Type::F32, single, rounding);
    const Value bits =
        walk_.make({.op = Op::Bitcast, .type = Type::U32, .from = Type::F32, .where = where_}, {single}, Type::U32);
    const Value upper = make(Op::Shr, Type::U32, {rounded_bits(bits, rounding), constant(Type::U32, 16)});
    const Value is_nan = make(Op::Ne, Type::F32, {single, single});
    return make(Op::Select, Type::BF16,
                {constant(Type::BF16, brain16.nan()), convert(Type::U16, Type::U32, upper), is_nan});
}

/// The bits of an f32, plus an addend that carries into the upper half if that must be rounded up.
Value FloatForms::rounded_bits(Value bits, Rounding rounding) {
    constexpr ir::Word below = 0xffff;
    if (rounding == Rounding::Zero) return bits;
    if (rounding == Rounding::Nearest) {
        const Value upper = make(Op::Shr, Type::U32, {bits, constant(Type::U32, 16)});
        const Value odd = make(Op::And, Type::U32, {upper, constant(Type::U32, 1)});
        const Value half = make(Op::Add, Type::U32, {bits, constant(Type::U32, below / 2)});
        return make(Op::Add, Type::U32, {half, odd});
    }
    Value away = make(Op::Shr, Type::I32, {bits, constant(Type::U32, 31)});
    if (rounding == Rounding::Up) away = make(Op::Not, Type::U32, {away});
    return make(Op::Add, Type::U32, {bits, make(Op::And, Type::U32, {away, constant(Type::U32, below)})});
}

/// A number as f32, rounded to odd: if inexact, toward zero with the last bit set.
Value FloatForms::odd_float(Value x, Type from) {
    if (ir::bits(from) == 16) return convert(Type::F32, from, x);
    const Value near = convert(Type::F32, from, x, Rounding::Zero);
    const Value back = convert(from, Type::F32, near, is_float(from) ? Rounding::Nearest : Rounding::Zero);
    const Value inexact = make(Op::Ne, from, {back, x});
    const Value last = make(Op::Select, Type::U32, {constant(Type::U32, 1), constant(Type::U32, 0), inexact});
    return walk_.make({.op = Op::Or, .type = Type::U32, .where = where_}, {near, last}, Type::F32);
}

/// PTX converts two at once: the other is 0, and so is its byte.
Value FloatForms::to_float8(Type to, Type from, Value x) {
    const Type pair = to == Type::E4M3 ? Type::E4M3x2 : Type::E5M2x2;
    const Value single = from == Type::F32 ? x : convert(Type::F32, from, x);
    const Value two = walk_.make({.op = Op::ConvertPair, .type = pair, .from = Type::F32, .where = where_},
                                 {constant(Type::F32, 0), single}, pair);
    return convert(Type::U32, Type::U16, two);
}

Value FloatForms::from_float8(Type to, Type from, Value x) {
    const Type pair = from == Type::E4M3 ? Type::E4M3x2 : Type::E5M2x2;
    const Value two = convert(Type::F16x2, pair, convert(Type::U16, Type::U32, x));
    const Value low = part(Op::Low, Type::F16x2, two);
    return to == Type::F16 ? low : convert(to, Type::F16, low);
}

// ---- two in one register

Value FloatForms::part(Op op, Type type, Value packed) {
    if (contains(ir::PackedFloat8, type)) {
        if (op == Op::Low) return convert(Type::U32, Type::U8, packed);
        return convert(Type::U32, Type::U16, make(Op::Shr, Type::U16, {packed, constant(Type::U32, 8)}));
    }
    if (block_ != walk_.block()) taken_apart_.clear(), block_ = walk_.block();
    const auto [found, is_new] = taken_apart_.try_emplace(packed);
    if (is_new) {
        const Type each = lane(type);
        const Inst unpack =
            fn_.append(block_, {.op = Op::Unpack, .type = type, .where = where_}, {&packed, 1}, std::array{each, each});
        found->second = {fn_.results(unpack)[0], fn_.results(unpack)[1]};
    }
    return op == Op::Low ? found->second.low : found->second.high;
}

std::optional<Value> FloatForms::packed(Type type, Values lanes) {
    const bool bytes = contains(ir::PackedFloat8, type);
    if (bytes || supports(target_, ptx::Feature::ConvertRelu)) {
        const auto low = converted_from(lanes[0], type), high = converted_from(lanes[1], type);
        if (low && high)
            return walk_.make({.op = Op::ConvertPair, .type = type, .from = Type::F32, .where = where_}, {*high, *low},
                              type);
    }
    if (!bytes) return {};
    const Value high = make(Op::Shl, Type::U32, {lanes[1], constant(Type::U32, 8)});
    return convert(Type::U16, Type::U32, make(Op::Or, Type::U32, {lanes[0], high}));
}

/// The f32 from which a lane was converted with rounding to nearest.
std::optional<Value> FloatForms::converted_from(Value value, Type packed) const {
    const ir::Instruction* convert = walk_.defined_by(value, Op::Convert);
    if (!convert) return {};
    if (!contains(ir::PackedFloat8, packed)) {
        const bool plain =
            convert->from == Type::F32 && convert->type == lane(packed) && convert->fp == ir::FloatInfo{};
        return plain ? std::optional(walk_.operand(value, 0)) : std::nullopt;
    }
    const Value two = walk_.operand(value, 0);
    const ir::Instruction* pair = walk_.defined_by(two, Op::ConvertPair);
    return pair && convert->from == Type::U16 && pair->type == packed ? std::optional(walk_.operand(two, 1))
                                                                      : std::nullopt;
}

}  // namespace ikat::nvptx
