// SPDX-License-Identifier: Apache-2.0
// Conversions from number to number.
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

/// Lane 0 or 1 of a packed value, in the low bits.
VReg lane_of(Lowering& code, VReg packed, Type type, unsigned number) {
    const unsigned bits = unsigned(ir::bits(lane(type)));
    VReg at = packed;
    if (number) {
        at = code.temporary(4);
        code.apply(select_integer(Op::Shr, Type::U32), at, {packed, code.constant(bits, 4)});
    }
    const VReg field = code.temporary(4);
    code.apply(select_integer(Op::And, Type::U32), field, {at, code.constant((1u << bits) - 1, 4)});
    return field;
}

/// Lanes of `type`, in the low bits of their registers, as one packed value.
void join_lanes(Lowering& code, Type type, VReg d, VReg low, VReg high) {
    if (ir::bits(type) == 32) return code.apply(select_pack(4), d, {low, high});
    const VReg shifted = code.temporary(4);
    code.apply(select_integer(Op::Shl, Type::U32), shifted, {high, code.constant(8, 4)});
    code.apply(select_integer(Op::Or, Type::U32), d, {low, shifted});
}

namespace {

constexpr std::pair<Modifier, Rounding> integral_roundings[] = {{Modifier::Rni, Rounding::Nearest},
                                                                {Modifier::Rzi, Rounding::Zero},
                                                                {Modifier::Rmi, Rounding::Down},
                                                                {Modifier::Rpi, Rounding::Up}};

/// cvt.rn.f16x2.f32 d, a, b: a above b. cvt.rn.f16x2.e4m3x2 d, a: lane by lane.
void cvt_packed(Lowering& code, Type to, Type from, Rounding rounding, std::uint32_t how, Operands operands) {
    const Result d = code.result(operands[0], to);
    const VReg high = code.temporary(4), low = code.temporary(4);
    const bool special = how > 3;
    const Behaviour convert = select_convert(lane(to), lane(from), rounding, special);
    if (is_packed(from)) {
        const VReg packed = code.source(operands[1], from);
        code.apply(convert, high, {lane_of(code, packed, from, 1)}, how);
        code.apply(convert, low, {lane_of(code, packed, from, 0)}, how);
    } else {
        code.apply(convert, high, {code.source(operands[1], from)}, how);
        code.apply(convert, low, {code.source(operands[2], from)}, how);
    }
    join_lanes(code, to, d.at, low, high);
    code.finish(d);
}

void cvt(Lowering& code, Modifiers& modifiers, Operands operands) {
    const std::optional<Rounding> integral = modifiers.take_named(integral_roundings);
    const Rounding rounding = integral ? *integral : modifiers.take_rounding();
    const bool ftz = modifiers.take(Modifier::Ftz), saturate = modifiers.take(Modifier::Sat);
    const bool relu = modifiers.take(Modifier::Relu), finite = modifiers.take(Modifier::Satfinite);
    const auto to = modifiers.take_type(), from = modifiers.take_type();
    if (!to || !from) code.unsupported("its types are not supported");
    const std::uint32_t limits = (relu ? ReluResult : 0) | (finite ? FiniteResult : 0);
    if (is_packed(*to)) return cvt_packed(code, *to, *from, rounding, std::uint32_t(rounding) | limits, operands);
    const Result d = code.result(operands[0], *to);
    const bool to_integral = integral && ir::is_float(*to) && ir::is_float(*from);
    const std::uint32_t how = std::uint32_t(rounding) | (to_integral ? RoundToIntegral : 0) |
                              (saturate ? SaturateResult : 0) | (ftz ? FlushSubnormals : 0) | limits;
    code.apply(select_convert(*to, *from, rounding, how > 3), d.at, {code.source(operands[1], *from)}, how);
    code.finish(d);
}

constexpr RuleRow convert_rows[] = {
    {"cvt", cvt},
};

}  // namespace

constinit const Family convert_family{convert_rows};

}  // namespace ikat::emulator
