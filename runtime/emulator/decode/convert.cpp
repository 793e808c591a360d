// SPDX-License-Identifier: Apache-2.0
// Comparisons, choices, conversions, moves and addresses.
#include <fmt/format.h>

#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

namespace {

std::optional<Comparison> comparison_named(std::string_view name) {
    static const std::unordered_map<std::string_view, Comparison> names = {
        {".eq", Comparison::Eq},   {".ne", Comparison::Ne},   {".lt", Comparison::Lt},   {".le", Comparison::Le},
        {".gt", Comparison::Gt},   {".ge", Comparison::Ge},   {".lo", Comparison::Lt},   {".ls", Comparison::Le},
        {".hi", Comparison::Gt},   {".hs", Comparison::Ge},   {".equ", Comparison::Equ}, {".neu", Comparison::Neu},
        {".ltu", Comparison::Ltu}, {".leu", Comparison::Leu}, {".gtu", Comparison::Gtu}, {".geu", Comparison::Geu},
        {".num", Comparison::Num}, {".nan", Comparison::Nan}};
    const auto found = names.find(name);
    if (found == names.end()) return {};
    return found->second;
}

std::string_view take_comparison(Form& form) {
    return form.take_any({".eq", ".ne", ".lt", ".le", ".gt", ".ge", ".lo", ".ls", ".hi", ".hs", ".equ", ".neu", ".ltu",
                          ".leu", ".gtu", ".geu", ".num", ".nan"});
}

Rounding integral_rounding(std::string_view name) {
    return name == ".rzi"   ? Rounding::Zero
           : name == ".rmi" ? Rounding::Down
           : name == ".rpi" ? Rounding::Up
                            : Rounding::Nearest;
}

}  // namespace

Value Lowering::compared(Form& form, Type type, std::string_view comparison, const nvptx::Operand& a,
                         const nvptx::Operand& b) {
    const auto known = comparison_named(comparison);
    if (!known) unsupported("it has no comparison the emulator knows");
    const Value to = temporary(0);
    apply(select_compare(*known, type, form.take(".ftz")), to, {source(a, type), source(b, type)});
    return to;
}

/// p combined with the predicate operand, if the form has one.
Value Lowering::combined(std::string_view combine, Value p, Operands operands) {
    if (combine.empty()) return p;
    const Value both = temporary(0);
    apply(combine == ".or"    ? predicate_or
          : combine == ".xor" ? predicate_xor
                              : predicate_and,
          both, {p, predicate(operands[3])});
    return both;
}

/// The comparison of each lane of packed operands.
std::array<Value, 2> Lowering::compared_lanes(Form& form, Type type, std::string_view comparison, Operands operands) {
    const auto known = comparison_named(comparison);
    if (!known) unsupported("it has no comparison the emulator knows");
    const bool ftz = form.take(".ftz");
    const Value a = source(operands[1], type), b = source(operands[2], type);
    std::array<Value, 2> out{temporary(0), temporary(0)};
    for (unsigned k = 0; k < 2; ++k)
        apply(select_compare(*known, lane(type), ftz), out[k], {lane_of(a, type, k), lane_of(b, type, k)});
    return out;
}

/// setp.lt.and.s32 p|q, a, b, c:   p = (a < b) and c,   q = !(a < b) and c
/// setp.lt.and.f16x2:              p and q are those of the lower and the upper lane
void Lowering::setp(Form& form, Operands operands) {
    const std::string_view comparison = take_comparison(form);
    const std::string_view combine = form.take_any({".and", ".or", ".xor"});
    const auto type = form.take_type();
    if (!type) unsupported("it has no type the emulator knows");
    const bool pair = operands[0].kind == nvptx::Operand::Kind::Pair;
    const Operands targets = pair ? Operands(module_.operands(operands[0].children)) : operands.one(0);
    const Result p = result(targets[0], Type::Pred);
    if (combine.empty() && !pair && !is_packed(*type)) {
        const auto known = comparison_named(comparison);
        if (!known) unsupported("it has no comparison the emulator knows");
        const Value a = source(operands[1], *type), b = source(operands[2], *type);
        return apply(select_compare(*known, *type, form.take(".ftz")), p.at, {a, b});
    }
    std::array<Value, 2> holds;
    if (is_packed(*type)) {
        if (!pair) unsupported("it gives a predicate for each lane: p|q");
        holds = compared_lanes(form, *type, comparison, operands);
    } else {
        holds = {compared(form, *type, comparison, operands[1], operands[2]), temporary(0)};
        apply(predicate_not, holds[1], {holds[0]});
    }
    // the predicate that they are combined with may be one of the results
    const Value first = combined(combine, holds[0], operands), second = combined(combine, holds[1], operands);
    if (pair) apply(predicate_move, result(targets[1], Type::Pred).at, {second});
    apply(predicate_move, p.at, {first});
}

void Lowering::set(Form& form, Operands operands) {
    const std::string_view comparison = take_comparison(form);
    const std::string_view combine = form.take_any({".and", ".or", ".xor"});
    const Type to = form.take_type().value_or(Type::Pred), type = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], to);
    const Type each = lane(to);
    const std::uint64_t yes = each == Type::F32    ? 0x3f800000
                              : each == Type::F16  ? half(1.0).bits
                              : each == Type::BF16 ? bfloat16(1.0).bits
                              : is_packed(type)    ? 0xffff
                                                   : ~0u;
    const auto chosen = [&](Value holds, Value to) {
        apply(select_choose(4), to, {constant(yes, 4), constant(0, 4), combined(combine, holds, operands)});
        return to;
    };
    if (is_packed(type)) {
        const auto holds = compared_lanes(form, type, comparison, operands);
        const Value low = chosen(holds[0], temporary(4)), high = chosen(holds[1], temporary(4));
        apply(select_pack(4), d.at, {low, high});
    } else {
        chosen(compared(form, type, comparison, operands[1], operands[2]), d.at);
    }
    finish(d);
}

void Lowering::selp(Form& form, Operands operands) {
    const auto type = form.take_type();
    if (!type) unsupported("it has no type the emulator knows");
    const Result d = result(operands[0], *type);
    const Value a = source(operands[1], *type), b = source(operands[2], *type), c = predicate(operands[3]);
    apply(*type == Type::Pred ? predicate_select : select_choose(slot_of(*type)), d.at, {a, b, c});
    finish(d);
}

void Lowering::slct(Form& form, Operands operands) {  // c >= 0 ? a : b
    const Type type = form.take_type().value_or(Type::Pred), by = form.take_type().value_or(Type::Pred);
    const Result d = result(operands[0], type);
    const Value p = temporary(0);
    apply(select_compare(Comparison::Ge, by, form.take(".ftz")), p,
          {source(operands[3], by), constant(0, slot_of(by))});
    apply(select_choose(slot_of(type)), d.at, {source(operands[1], type), source(operands[2], type), p});
    finish(d);
}

/// Lane 0 or 1 of a packed value, in the low bits.
Value Lowering::lane_of(Value packed, Type type, unsigned number) {
    const unsigned bits = unsigned(ir::bits(lane(type)));
    Value at = packed;
    if (number) {
        at = temporary(4);
        apply(select_integer(Operation::Shr, Type::U32), at, {packed, constant(bits, 4)});
    }
    const Value field = temporary(4);
    apply(select_integer(Operation::And, Type::U32), field, {at, constant((1u << bits) - 1, 4)});
    return field;
}

/// Lanes of `type`, in the low bits of their registers, as one packed value.
void Lowering::join_lanes(Type type, Value d, Value low, Value high) {
    if (ir::bits(type) == 32) return apply(select_pack(4), d, {low, high});
    const Value shifted = temporary(4);
    apply(select_integer(Operation::Shl, Type::U32), shifted, {high, constant(8, 4)});
    apply(select_integer(Operation::Or, Type::U32), d, {low, shifted});
}

/// cvt.rn.f16x2.f32 d, a, b: a above b. cvt.rn.f16x2.e4m3x2 d, a: lane by lane.
void Lowering::cvt_packed(Type to, Type from, Rounding rounding, std::uint32_t how, Operands operands) {
    const Result d = result(operands[0], to);
    const Value high = temporary(4), low = temporary(4);
    const bool special = how > 3;
    const Handler convert = select_convert(lane(to), lane(from), rounding, special);
    if (is_packed(from)) {
        const Value packed = source(operands[1], from);
        apply(convert, high, {lane_of(packed, from, 1)}, how);
        apply(convert, low, {lane_of(packed, from, 0)}, how);
    } else {
        apply(convert, high, {source(operands[1], from)}, how);
        apply(convert, low, {source(operands[2], from)}, how);
    }
    join_lanes(to, d.at, low, high);
    finish(d);
}

void Lowering::cvt(Form& form, Operands operands) {
    if (form.take(".pack")) return cvt_pack_integers(form, operands);
    if (form.has(".tf32")) return cvt_tf32(form, operands);
    if (cvt_small(form, operands)) return;
    const std::string_view integral = form.take_any({".rni", ".rzi", ".rmi", ".rpi"});
    const Rounding rounding = integral.empty() ? form.take_rounding() : integral_rounding(integral);
    const bool ftz = form.take(".ftz"), saturate = form.take(".sat");
    const bool relu = form.take(".relu"), finite = form.take(".satfinite");
    const auto to = form.take_type(), from = form.take_type();
    if (!to || !from) unsupported("it has no types the emulator knows");
    const std::uint32_t limits = (relu ? ReluResult : 0) | (finite ? FiniteResult : 0);
    if (is_packed(*to)) return cvt_packed(*to, *from, rounding, std::uint32_t(rounding) | limits, operands);
    const Result d = result(operands[0], *to);
    const bool to_integral = !integral.empty() && ir::is_float(*to) && ir::is_float(*from);
    const std::uint32_t how = std::uint32_t(rounding) | (to_integral ? RoundToIntegral : 0) |
                              (saturate ? SaturateResult : 0) | (ftz ? FlushSubnormals : 0) | limits;
    apply(select_convert(*to, *from, rounding, how > 3), d.at, {source(operands[1], *from)}, how);
    finish(d);
}

/// mov.b64 d, {a, b} and its like: the first element is the lowest.
void Lowering::pack(Type type, const nvptx::Operand& to, const nvptx::Operand& from) {
    const Operands parts = module_.operands(from.children);
    const unsigned bytes = ir::info(type).bytes;
    const Result d = result(to, type);
    const auto part = [&](unsigned i, Type of) { return source(parts[i], of); };
    if (parts.size() == 2 && bytes >= 4) {
        const Type of = bytes == 8 ? Type::U32 : Type::U16;
        apply(select_pack(bytes), d.at, {part(0, of), part(1, of)});
    } else if (parts.size() == 4 && bytes == 8) {
        const Value low = temporary(4), high = temporary(4);
        apply(select_pack(4), low, {part(0, Type::U16), part(1, Type::U16)});
        apply(select_pack(4), high, {part(2, Type::U16), part(3, Type::U16)});
        apply(select_pack(8), d.at, {low, high});
    } else if (bytes <= 4 && parts.size() == bytes) {
        Value whole = constant(0, 4);
        for (unsigned i = 0; i < bytes; ++i) {
            const Value byte = temporary(4), shifted = temporary(4), sum = temporary(4);
            apply(select_convert(Type::U32, Type::U8, {}, false), byte, {part(i, Type::U8)});
            apply(select_integer(Operation::Shl, Type::U32), shifted, {byte, constant(8 * i, 4)});
            apply(select_integer(Operation::Or, Type::U32), sum, {whole, shifted});
            whole = sum;
        }
        apply(select_move(4, 4), d.at, {whole});
    } else {
        unsupported("this number of parts is not known here");
    }
    finish(d);
}

void Lowering::unpack(Type type, const nvptx::Operand& to, const nvptx::Operand& from) {
    const Operands parts = module_.operands(to.children);
    const unsigned bytes = ir::info(type).bytes;
    const bool into_bytes = bytes <= 4 && parts.size() == bytes;
    if (!into_bytes && (bytes < 4 || (parts.size() != 2 && !(parts.size() == 4 && bytes == 8))))
        unsupported("this number of parts is not known here");
    // The source may be one of the parts.
    const Value whole = temporary(slot_of(type));
    apply(select_move(bytes, bytes), whole, {source(from, type)});
    const auto each = unsigned(bytes / parts.size());
    for (unsigned i = 0; i < parts.size(); ++i) {
        const Type of = each == 4 ? Type::U32 : each == 2 ? Type::U16 : Type::U8;
        const Result d = result(parts[i], of);
        const Value shifted = temporary(slot_of(type));
        apply(select_integer(Operation::Shr, type), shifted, {whole, constant(i * each * 8, 4)});
        Value low = resized(shifted, 4);
        if (each < 4) {
            const Value field = temporary(4);
            apply(select_convert(Type::U32, of, {}, false), field, {low});
            low = field;
        }
        apply(select_move(4, 4), d.at, {low});
        finish(d);
    }
}

/// mov.b128 between registers, or between one and its halves.
void Lowering::mov128(const nvptx::Operand& to, const nvptx::Operand& from) {
    const auto halves = [&](const nvptx::Operand& operand) {
        return operand.kind == nvptx::Operand::Kind::Vector ? Operands(module_.operands(operand.children)) : Operands();
    };
    std::vector<Value> words;
    if (const Operands parts = halves(from); !parts.empty())
        words = {source(parts[0], Type::U64), source(parts[1], Type::U64)};
    else
        words = double_words(from);
    const Value low = temporary(8), high = temporary(8);
    apply(select_move(8, 8), low, {words[0]});
    apply(select_move(8, 8), high, {words[1]});
    if (const Operands parts = halves(to); !parts.empty()) {
        for (std::size_t i = 0; i < 2; ++i) {
            const Result d = result(parts[i], Type::U64);
            apply(select_move(8, 8), d.at, {i ? high : low});
            finish(d);
        }
        return;
    }
    const std::vector<Value> target = double_words(to);
    apply(select_move(8, 8), target[0], {low});
    apply(select_move(8, 8), target[1], {high});
}

/// mov.v2 and mov.v4: all is read before the first is written.
void Lowering::mov_vector(Form& form, Type type, const nvptx::Operand& to, const nvptx::Operand& from) {
    const Operands targets = module_.operands(to.children), sources = module_.operands(from.children);
    const std::string_view vector = form.take_any({".v2", ".v4"});
    if (vector.empty() || targets.size() != unsigned(vector[2] - '0') || sources.size() != targets.size())
        unsupported("the vectors have other lengths than the move");
    const std::uint8_t slot = slot_of(type);
    std::vector<Value> old;
    for (const nvptx::Operand& each : sources) {
        old.push_back(temporary(slot));
        apply(select_move(slot, slot), old.back(), {source(each, type)});
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const Result d = result(targets[i], type);
        apply(select_move(slot, slot), d.at, {old[i]});
        finish(d);
    }
}

void Lowering::mov(Form& form, Operands operands) {
    if (form.take(".b128")) return mov128(operands[0], operands[1]);
    const auto type = form.take_type();
    if (!type) unsupported("it has no type the emulator knows");
    if (operands[1].kind == nvptx::Operand::Kind::Vector) {
        if (operands[0].kind == nvptx::Operand::Kind::Vector) return mov_vector(form, *type, operands[0], operands[1]);
        return pack(*type, operands[0], operands[1]);
    }
    if (operands[0].kind == nvptx::Operand::Kind::Vector) return unpack(*type, operands[0], operands[1]);
    const Result d = result(operands[0], *type);
    const Value from = source(operands[1], *type);
    const ValueInfo& info = values[index(from)];
    const std::uint8_t slot = slot_of(*type);
    if (slot == 0) {
        if (info.kind == ValueInfo::Kind::Constant)
            emit(predicate_literal, D, 0, {index(d.at), 0, 0, 0, info.bits ? 1u : 0u});
        else
            apply(predicate_move, d.at, {from});
    } else if (info.kind == ValueInfo::Kind::Constant) {
        emit(select_literal(slot), D, 0,
             {index(d.at), 0, 0, 0, std::uint32_t(info.bits), std::uint32_t(info.bits >> 32)});
    } else {
        apply(select_move(slot, slot), d.at, {from});
    }
    finish(d);
}

/// Global addresses are generic already; those of the windows lie at a fixed distance.
void Lowering::cvta(Form& form, Operands operands) {
    const bool to = form.take(".to");
    const Space space = take_space(form);
    form.take_type();
    const Result d = result(operands[0], Type::U64);
    const Value a = source(operands[1], Type::U64);
    const std::uint64_t window = space == Space::Global ? 0 : window_address(space);
    apply(select_integer(Operation::Add, Type::U64), d.at, {a, constant(to ? 0 - window : window, 8)});
    finish(d);
}

void Lowering::isspacep(Form& form, Operands operands) {
    const Space space = take_space(form);
    const Result p = result(operands[0], Type::Pred);
    const Value id = temporary(8);
    apply(select_integer(Operation::Shr, Type::U64), id, {source(operands[1], Type::U64), constant(window_bits, 4)});
    const bool global = space == Space::Global;
    apply(select_compare(global ? Comparison::Gt : Comparison::Eq, Type::U64, false), p.at,
          {id, constant(global ? std::uint64_t(Space::Const) : std::uint64_t(space), 8)});
}

}  // namespace ikat::emulator
