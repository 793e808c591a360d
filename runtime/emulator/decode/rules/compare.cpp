// SPDX-License-Identifier: Apache-2.0
// Comparisons and selections.
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

constexpr std::pair<Modifier, Comparison> comparisons[] = {
    {Modifier::Eq, Comparison::Eq},   {Modifier::Ne, Comparison::Ne},     {Modifier::Lt, Comparison::Lt},
    {Modifier::Le, Comparison::Le},   {Modifier::Gt, Comparison::Gt},     {Modifier::Ge, Comparison::Ge},
    {Modifier::Lo, Comparison::Lt},   {Modifier::Ls, Comparison::Le},     {Modifier::Hi, Comparison::Gt},
    {Modifier::Hs, Comparison::Ge},   {Modifier::Equ, Comparison::Equ},   {Modifier::Neu, Comparison::Neu},
    {Modifier::Ltu, Comparison::Ltu}, {Modifier::Leu, Comparison::Leu},   {Modifier::Gtu, Comparison::Gtu},
    {Modifier::Geu, Comparison::Geu}, {Modifier::IsNum, Comparison::Num}, {Modifier::IsNan, Comparison::Nan}};

Comparison known(const Lowering& code, std::optional<Comparison> comparison) {
    if (!comparison) code.unsupported("its comparison is not supported");
    return *comparison;
}

VReg compared(Lowering& code, Modifiers& modifiers, Type type, std::optional<Comparison> comparison,
              const ptx::Operand& a, const ptx::Operand& b) {
    const VReg to = code.temporary(0);
    code.apply(select_compare(known(code, comparison), type, modifiers.take(Modifier::Ftz)), to,
               {code.source(a, type), code.source(b, type)});
    return to;
}

/// p, combined with the predicate operand if the form has one.
VReg combined(Lowering& code, Modifier combine, VReg p, Operands operands) {
    if (combine == Modifier::Unknown) return p;
    const VReg both = code.temporary(0);
    code.apply(select_predicate(combining(combine)), both, {p, code.predicate(operands[3])});
    return both;
}

/// Compares each lane of packed operands.
std::array<VReg, 2> compared_lanes(Lowering& code, Modifiers& modifiers, Type type,
                                   std::optional<Comparison> comparison, Operands operands) {
    const bool ftz = modifiers.take(Modifier::Ftz);
    const VReg a = code.source(operands[1], type), b = code.source(operands[2], type);
    std::array<VReg, 2> out{code.temporary(0), code.temporary(0)};
    for (unsigned k = 0; k < 2; ++k)
        code.apply(select_compare(known(code, comparison), lane(type), ftz), out[k],
                   {lane_of(code, a, type, k), lane_of(code, b, type, k)});
    return out;
}

/// setp.lt.and.s32 p|q, a, b, c:   p = (a < b) and c,   q = !(a < b) and c
/// setp.lt.and.f16x2:              p and q are those of the lower and the upper lane
void setp(Lowering& code, Modifiers& modifiers, Operands operands) {
    const std::optional<Comparison> comparison = modifiers.take_named(comparisons);
    const Modifier combine = modifiers.take_any({Modifier::And, Modifier::Or, Modifier::Xor});
    const auto type = modifiers.take_type();
    if (!type) code.unsupported("its type is not supported");
    const bool pair = operands[0].kind == ptx::Operand::Kind::Pair;
    const Operands targets = pair ? Operands(code.module.operands(operands[0].children)) : operands.one(0);
    const Result p = code.result(targets[0], Type::Pred);
    if (combine == Modifier::Unknown && !pair && !is_packed(*type)) {
        const VReg a = code.source(operands[1], *type), b = code.source(operands[2], *type);
        return code.apply(select_compare(known(code, comparison), *type, modifiers.take(Modifier::Ftz)), p.at, {a, b});
    }
    std::array<VReg, 2> holds;
    if (is_packed(*type)) {
        if (!pair) code.unsupported("it gives a predicate for each lane: p|q");
        holds = compared_lanes(code, modifiers, *type, comparison, operands);
    } else {
        holds = {compared(code, modifiers, *type, comparison, operands[1], operands[2]), code.temporary(0)};
        code.apply(select_predicate(Op::Not), holds[1], {holds[0]});
    }
    // the combined predicate may be one of the results
    const VReg first = combined(code, combine, holds[0], operands),
               second = combined(code, combine, holds[1], operands);
    if (pair) code.apply(select_predicate(Op::Bitcast), code.result(targets[1], Type::Pred).at, {second});
    code.apply(select_predicate(Op::Bitcast), p.at, {first});
}

void set(Lowering& code, Modifiers& modifiers, Operands operands) {
    const std::optional<Comparison> comparison = modifiers.take_named(comparisons);
    const Modifier combine = modifiers.take_any({Modifier::And, Modifier::Or, Modifier::Xor});
    const Type to = modifiers.take_type().value_or(Type::Pred), type = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], to);
    const Type each = lane(to);
    const std::uint64_t yes = each == Type::F32    ? 0x3f800000
                              : each == Type::F16  ? half(1.0).bits
                              : each == Type::BF16 ? bfloat16(1.0).bits
                              : is_packed(type)    ? 0xffff
                                                   : ~0u;
    const auto chosen = [&](VReg holds, VReg to) {
        code.apply(select_choose(4), to,
                   {code.constant(yes, 4), code.constant(0, 4), combined(code, combine, holds, operands)});
        return to;
    };
    if (is_packed(type)) {
        const auto holds = compared_lanes(code, modifiers, type, comparison, operands);
        const VReg low = chosen(holds[0], code.temporary(4)), high = chosen(holds[1], code.temporary(4));
        code.apply(select_pack(4), d.at, {low, high});
    } else {
        chosen(compared(code, modifiers, type, comparison, operands[1], operands[2]), d.at);
    }
    code.finish(d);
}

void selp(Lowering& code, Modifiers& modifiers, Operands operands) {
    const auto type = modifiers.take_type();
    if (!type) code.unsupported("its type is not supported");
    const Result d = code.result(operands[0], *type);
    const VReg a = code.source(operands[1], *type), b = code.source(operands[2], *type),
               c = code.predicate(operands[3]);
    code.apply(*type == Type::Pred ? select_predicate(Op::Select) : select_choose(slot_of(*type)), d.at, {a, b, c});
    code.finish(d);
}

void slct(Lowering& code, Modifiers& modifiers, Operands operands) {  // c >= 0 ? a : b
    const Type type = modifiers.take_type().value_or(Type::Pred), by = modifiers.take_type().value_or(Type::Pred);
    const Result d = code.result(operands[0], type);
    const VReg p = code.temporary(0);
    code.apply(select_compare(Comparison::Ge, by, modifiers.take(Modifier::Ftz)), p,
               {code.source(operands[3], by), code.constant(0, slot_of(by))});
    code.apply(select_choose(slot_of(type)), d.at, {code.source(operands[1], type), code.source(operands[2], type), p});
    code.finish(d);
}

constexpr RuleRow compare_rows[] = {
    {"setp", setp},
    {"set", set},
    {"selp", selp},
    {"slct", slct},
};

}  // namespace

Op combining(Modifier modifier) {
    return modifier == Modifier::Or ? Op::Or : modifier == Modifier::Xor ? Op::Xor : Op::And;
}

constinit const Family compare_family{compare_rows};

}  // namespace ikat::emulator
