// SPDX-License-Identifier: Apache-2.0
// PTX instructions as text.
//
//     u32 d;
//     inline_ptx("lop3.b32 {0}, {1}, {2}, {3}, 0xEA;", out(d), in(a), in(b), in(c));
#pragma once
#include "dsl/values/math.hpp"

namespace ikat {

namespace detail {

/// The register type for a T: PTX has no 8-bit registers.
template <class T>
using InRegister = std::conditional_t<(!std::is_integral_v<T> || sizeof(T) > 1 || std::is_same_v<T, bool>), T,
                                      std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>;

template <class T>
constexpr void check_text_operand() {
    static_assert(
        ir::contains(ir::Any, ir::type_of<T>) && !ir::contains(ir::Float8, ir::type_of<T>),
        "an operand of inline_ptx() is a value that fits a register: for 8-bit floats pass the bits, bit_cast<u8>()");
}

}  // namespace detail

/// An operand {k} that the text reads. A 16-bit value is in a 16-bit register, an 8-bit value in a 32-bit one.
template <Operand V>
trace::TextOperand in(V&& v) {
    using T = DeviceTypeOf<V>;
    using Register = detail::InRegister<T>;
    detail::check_text_operand<T>();
    const auto value = cast<Register>(Leaf<T>(detail::operand<T>(std::forward<V>(v))));
    return {.type = ir::type_of<Register>, .reads = true, .value = value.recorded()};
}
/// An operand {k} that the text writes.
template <class V>
trace::TextOperand out(V&& variable) {
    if constexpr (requires { variable.handle(); } && !std::is_const_v<std::remove_reference_t<V>>) {
        using T = DeviceTypeOf<V>;
        detail::check_text_operand<T>();
        return {.type = ir::type_of<detail::InRegister<T>>,
                .writes = true,
                .variable = variable.handle(),
                .variable_type = ir::type_of<T>};
    } else
        static_assert(always_false<V>, "out() takes a device variable: f32, u32, i32 ...");
}
/// An operand {k} that the text reads and then writes.
template <class V>
trace::TextOperand inout(V&& variable) {
    trace::TextOperand operand = out(variable);
    operand.reads = true;
    operand.value = in(variable).value;
    return operand;
}

/// PTX instructions, with {0}, {1} ... for the operands in order. Mistakes in the text are reported when the kernel is
/// captured. A text that only computes may be moved, merged and removed, like other expressions.
class PtxText {
public:
    PtxText(const char* text, const trace::Where& where = trace::Where::current()) : text_(text), where_(where) {}
    const char* text() const { return text_; }
    const trace::Where& where() const { return where_; }

private:
    const char* text_;
    trace::Where where_;
};
template <class... O>
void inline_ptx(const PtxText& text, const O&... operands) {
    static_assert(
        (std::is_same_v<O, trace::TextOperand> && ...),
        "operands of inline_ptx() say what the text does with them: in(value), out(variable), inout(variable)");
    if constexpr ((std::is_same_v<O, trace::TextOperand> && ...)) {
        const trace::TextOperand all[] = {operands..., {}};
        trace::inline_ptx(text.text(), all, sizeof...(O), text.where());
    }
}

}  // namespace ikat
