// SPDX-License-Identifier: Apache-2.0
// Functions of device values. Each is one instruction, or PTX's own sequence for it. Unqualified names are correctly
// rounded; approx:: names are PTX's approximations, within the error that docs/language/values.md states.
#pragma once
#include "dsl/values/operators.hpp"

namespace ikat {
namespace detail {

template <ir::Op op, class A>
auto make_approximate(A&& a) {
    using T = DeviceTypeOf<A>;
    const trace::Recorded operand = detail::operand<T>(std::forward<A>(a));
    return Expr<T>(trace::operation(
        {.op = op, .type = ir::type_of<T>, .operand_type = ir::type_of<T>, .fp = {.approx = true}}, {&operand, 1}));
}

/// The element type for a type's name: float for f32 and for float.
template <class T>
struct Named {
    using type = T;
};
template <class T>
struct Named<Var<T>> {
    using type = T;
};

template <class T>
Leaf<T> constant(std::int64_t number) {
    return Leaf<T>(trace::literal(ir::type_of<T>, number));
}

/// Float to integer rounds toward zero, as in C++; everything else to nearest.
template <class To, class From>
inline constexpr Rounding usual_rounding = ir::is_float(ir::type_of<From>) && !ir::is_float(ir::type_of<To>)
                                               ? Rounding::Zero
                                               : Rounding::Nearest;

}  // namespace detail

// Arithmetic

#define IKAT_FUNCTION2(name, Row, domain_text)                                               \
    template <class A, class B>                                                              \
    requires detail::SomeDevice<A, B>                                                        \
    auto name(A&& a, B&& b) {                                                                \
        using T = CommonType<A, B>;                                                          \
        static_assert(detail::in_domain<ir::Op::Row, A, B>, #name "() is for " domain_text); \
        return make_expression<ir::Op::Row, T, T>(std::forward<A>(a), std::forward<B>(b));   \
    }
/// For a NaN and a number, the number; -0 is below +0.
IKAT_FUNCTION2(min, Min, "integers, f16, bf16, f32, f64, f16x2 and bf16x2")
IKAT_FUNCTION2(max, Max, "integers, f16, bf16, f32, f64, f16x2 and bf16x2")
/// The upper half of the product.
IKAT_FUNCTION2(mul_hi, MulHi, "integers of 16, 32 and 64 bits")
/// The sum and the difference, clamped to the range of i32.
IKAT_FUNCTION2(add_sat, AddSat, "i32")
IKAT_FUNCTION2(sub_sat, SubSat, "i32")
#undef IKAT_FUNCTION2

/// a * b + c, rounded once. Integers wrap.
template <class A, class B, class C>
requires detail::SomeDevice<A, B, C>
auto fma(A&& a, B&& b, C&& c) {
    using T = CommonType<A, B, C>;
    static_assert(detail::in_domain<ir::Op::Fma, A, B, C>,
                  "fma() is for integers, f16, bf16, f32, f64, f16x2 and bf16x2");
    return make_expression<ir::Op::Fma, T, T>(std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
}

#define IKAT_FUNCTION1(name, Row, domain_text)                                            \
    template <DeviceValue A>                                                              \
    auto name(A&& a) {                                                                    \
        using T = DeviceTypeOf<A>;                                                        \
        static_assert(detail::in_domain<ir::Op::Row, A>, #name "() is for " domain_text); \
        return make_expression<ir::Op::Row, T, T>(std::forward<A>(a));                    \
    }
/// The magnitude; the square root, rounded to nearest.
IKAT_FUNCTION1(abs, Abs, "signed integers, f16, bf16, f32, f64, f16x2 and bf16x2")
IKAT_FUNCTION1(sqrt, Sqrt, "f32 and f64")
/// 1 / a.
IKAT_FUNCTION1(rcp, Rcp, "f32 and f64")
#undef IKAT_FUNCTION1

// Floats by their bits

/// The magnitude of the first operand with the sign of the second.
template <class A, class B>
requires detail::SomeDevice<A, B>
auto copysign(A&& magnitude, B&& sign) {
    using T = CommonType<A, B>;
    static_assert(detail::in_domain<ir::Op::CopySign, A, B>, "copysign() is for f32 and f64");
    (void)(detail::must_match<T, A> && detail::must_match<T, B>);
    const trace::Recorded value = detail::operand<T>(std::forward<A>(magnitude));
    const trace::Recorded operands[] = {detail::operand<T>(std::forward<B>(sign)), value};
    return Expr<T>(trace::operation({.op = ir::Op::CopySign, .type = ir::type_of<T>, .operand_type = ir::type_of<T>},
                                    {operands, 2}));
}

#define IKAT_TEST(name, mode)                                                                       \
    template <DeviceValue A>                                                                        \
    auto name(A&& a) {                                                                              \
        using T = DeviceTypeOf<A>;                                                                  \
        static_assert(detail::in_domain<ir::Op::TestFloat, A>, #name "() is for f32 and f64");      \
        const trace::Recorded operand = detail::operand<T>(std::forward<A>(a));                     \
        return Expr<bool>(trace::operation({.op = ir::Op::TestFloat,                                \
                                            .type = ir::Type::Pred,                                 \
                                            .operand_type = ir::type_of<T>,                         \
                                            .attribute = *ir::mode_named(ir::Op::TestFloat, mode)}, \
                                           {&operand, 1}));                                         \
    }
/// What kind of number a float is, as a pred. A NaN is neither finite nor infinite.
IKAT_TEST(is_finite, "finite")
IKAT_TEST(is_infinite, "infinite")
IKAT_TEST(is_nan, "notanumber")
IKAT_TEST(is_subnormal, "subnormal")
/// Finite and not subnormal; zero counts as normal.
IKAT_TEST(is_normal, "normal")
#undef IKAT_TEST

namespace approx {

#define IKAT_FUNCTION1(name, Row)                                                                \
    template <DeviceValue A>                                                                     \
    auto name(A&& a) {                                                                           \
        static_assert(std::is_same_v<DeviceTypeOf<A>, float>, "approx::" #name "() is for f32"); \
        return detail::make_approximate<ir::Op::Row>(std::forward<A>(a));                        \
    }
/// The square root and 1 / a.
IKAT_FUNCTION1(sqrt, Sqrt)
IKAT_FUNCTION1(rcp, Rcp)
/// The logarithm to base 2. PTX has no correctly rounded form.
IKAT_FUNCTION1(log2, Log2)
/// For an angle in radians; accurate only near zero. PTX has no correctly rounded forms.
IKAT_FUNCTION1(sin, Sin)
IKAT_FUNCTION1(cos, Cos)
#undef IKAT_FUNCTION1

#define IKAT_FUNCTION1(name, Row)                                                     \
    template <DeviceValue A>                                                          \
    auto name(A&& a) {                                                                \
        static_assert(ikat::detail::in_domain<ir::Op::Row, A>,                        \
                      "approx::" #name "() is for f16, bf16, f32, f16x2 and bf16x2"); \
        return ikat::detail::make_approximate<ir::Op::Row>(std::forward<A>(a));       \
    }
/// 2 to the power of a. PTX has no correctly rounded form.
IKAT_FUNCTION1(exp2, Exp2)
/// The same of an f32 in one instruction of the hardware: subnormal arguments and results are 0.
template <DeviceValue A>
auto exp2_or_zero(A&& a) {
    static_assert(std::is_same_v<DeviceTypeOf<A>, float>, "approx::exp2_or_zero() is for f32");
    const trace::Recorded operand = ikat::detail::operand<float>(std::forward<A>(a));
    return Expr<float>(trace::operation(
        {.op = ir::Op::Exp2, .type = ir::Type::F32, .operand_type = ir::Type::F32, .fp = {.ftz = true, .approx = true}},
        {&operand, 1}));
}
IKAT_FUNCTION1(tanh, Tanh)
#undef IKAT_FUNCTION1
/// 1 / sqrt(a). PTX has no correctly rounded form.
template <DeviceValue A>
auto rsqrt(A&& a) {
    static_assert(ikat::detail::in_domain<ir::Op::Rsqrt, A>, "approx::rsqrt() is for f32 and f64");
    return detail::make_approximate<ir::Op::Rsqrt>(std::forward<A>(a));
}

/// a / b.
template <class A, class B>
requires ikat::detail::SomeDevice<A, B>
auto div(A&& a, B&& b) {
    using T = CommonType<A, B>;
    static_assert(std::is_same_v<T, float>, "approx::div() is for f32");
    (void)(ikat::detail::must_match<T, A> && ikat::detail::must_match<T, B>);
    const trace::Recorded operands[] = {ikat::detail::operand<float>(std::forward<A>(a)),
                                        ikat::detail::operand<float>(std::forward<B>(b))};
    return Expr<float>(trace::operation(
        {.op = ir::Op::Div, .type = ir::Type::F32, .operand_type = ir::Type::F32, .fp = {.approx = true}},
        {operands, 2}));
}

}  // namespace approx

// Choice

/// condition ? a : b, where both are computed.
template <class C, class A, class B>
requires(DeviceValue<C>&& Operand<A>&& Operand<B>) auto select(C&& condition, A&& a, B&& b) {
    using T = std::conditional_t<DeviceValue<A> || DeviceValue<B>, CommonType<A, B>,
                                 std::common_type_t<DeviceTypeOf<A>, DeviceTypeOf<B>>>;
    (void)(detail::must_match<bool, C> && detail::must_match<T, A> && detail::must_match<T, B>);
    const trace::Recorded p = detail::operand<bool>(std::forward<C>(condition));
    const trace::Recorded operands[] = {detail::operand<T>(std::forward<A>(a)), detail::operand<T>(std::forward<B>(b)),
                                        p};
    return Expr<T>(
        trace::choice({.op = ir::Op::Select, .type = ir::type_of<T>, .operand_type = ir::type_of<T>}, {operands, 3}));
}

// Conversion

/// The value as another type: cast<i32>(x), cast<f16>(x, Rounding::Zero). Without a rounding, floats become integers
/// toward zero and everything else rounds to nearest; integers wrap. A pred becomes 1 or 0; a number becomes a pred
/// that is true if it is not 0. cast<u8>(cast<u32>(x)) of a load, and the reverse into a store, is part of the access.
template <class To, DeviceValue V>
auto cast(V&& v, Rounding rounding = detail::usual_rounding<typename detail::Named<To>::type, DeviceTypeOf<V>>) {
    using T = typename detail::Named<To>::type;
    using From = DeviceTypeOf<V>;
    static_assert(ir::type_of<T> != ir::Type::Void, "cast<T>() converts to f32, u32, i32 ...");
    const trace::Recorded operand = detail::operand<From>(std::forward<V>(v));
    if constexpr (std::is_same_v<T, From>) {
        return Leaf<T>(operand);
    } else if constexpr (std::is_same_v<From, bool>) {
        return select(Leaf<bool>(operand), detail::constant<T>(1), detail::constant<T>(0));
    } else if constexpr (std::is_same_v<T, bool>) {
        return Leaf<From>(operand) != detail::constant<From>(0);
    } else {
        static_assert(ir::type_of<T> == ir::Type::Void || ir::converts(ir::type_of<T>, ir::type_of<From>),
                      "cast<T>() is between numbers; 8-bit floats convert to and from f32 and f16, packed ones to and "
                      "from f16x2");
        const trace::Recorded converted =
            trace::convert(ir::type_of<T>, ir::type_of<From>, operand, {.rounding = rounding});
        return Expr<T>(converted);
    }
}

/// A host number as a device value, converted as the device would: cast<u64>(1u).
template <class To, HostNumber V>
auto cast(V number, Rounding rounding = detail::usual_rounding<typename detail::Named<To>::type, DeviceTypeOf<V>>) {
    using From = DeviceTypeOf<V>;
    static_assert(!std::is_same_v<From, long double>, "cast<T>() takes no long double, which a device does not have");
    return cast<To>(Leaf<From>(detail::literal<From>(number)), rounding);
}

/// An integer clamped to the range of another integer type.
template <class To, DeviceValue V>
auto saturate_cast(V&& v) {
    using T = typename detail::Named<To>::type;
    using From = DeviceTypeOf<V>;
    static_assert(ir::contains(ir::AnyInt, ir::type_of<T>) && ir::contains(ir::AnyInt, ir::type_of<From>),
                  "saturate_cast<T>() is from integers to integers: cast<T>() of a float saturates by itself");
    const trace::Recorded operand = detail::operand<From>(std::forward<V>(v));
    return Expr<T>(trace::convert(ir::type_of<T>, ir::type_of<From>, operand, {.sat = true}));
}

/// A float clamped to [0, 1]; a NaN becomes 0.
template <DeviceValue V>
auto saturate(V&& v) {
    using T = DeviceTypeOf<V>;
    static_assert(std::is_same_v<T, half> || std::is_same_v<T, float>, "saturate() is for f16 and f32");
    const trace::Recorded operand = detail::operand<T>(std::forward<V>(v));
    return Expr<T>(trace::convert(ir::type_of<T>, ir::type_of<T>, operand, {.sat = true}));
}

/// The same bits as another type of the same width.
template <class To, DeviceValue V>
auto bit_cast(V&& v) {
    using T = typename detail::Named<To>::type;
    using From = DeviceTypeOf<V>;
    constexpr bool stored = ir::contains(ir::Storable, ir::type_of<T>) && ir::contains(ir::Storable, ir::type_of<From>);
    static_assert(stored && ir::bits(ir::type_of<T>) == ir::bits(ir::type_of<From>),
                  "bit_cast<T>() keeps the width: f32 and u32, f16 and u16, f64 and u64, f16x2 and u32");
    const trace::Recorded operand = detail::operand<From>(std::forward<V>(v));
    return Expr<T>(trace::operation(
        {.op = ir::Op::Bitcast, .type = ir::type_of<T>, .operand_type = ir::type_of<T>, .from = ir::type_of<From>},
        {&operand, 1}));
}

// Two in one register

#define IKAT_LANES(name, mode)                                                                        \
    template <class A, class B>                                                                       \
    requires detail::SomeDevice<A, B>                                                                 \
    auto name(A&& a, B&& b) {                                                                         \
        using T = CommonType<A, B>;                                                                   \
        static_assert(detail::in_domain<ir::Op::SetLanes, A, B>, #name "() is for f16x2 and bf16x2"); \
        (void)(detail::must_match<T, A> && detail::must_match<T, B>);                                 \
        const trace::Recorded operands[] = {detail::operand<T>(std::forward<A>(a)),                   \
                                            detail::operand<T>(std::forward<B>(b))};                  \
        return Expr<T>(trace::operation({.op = ir::Op::SetLanes,                                      \
                                         .type = ir::type_of<T>,                                      \
                                         .operand_type = ir::type_of<T>,                              \
                                         .attribute = *ir::mode_named(ir::Op::SetLanes, mode)},       \
                                        {operands, 2}));                                              \
    }
/// 1 in each lane where the comparison holds, else 0.
IKAT_LANES(lanes_equal, "eq")
IKAT_LANES(lanes_not_equal, "neu")
IKAT_LANES(lanes_less, "lt")
IKAT_LANES(lanes_less_equal, "le")
IKAT_LANES(lanes_greater, "gt")
IKAT_LANES(lanes_greater_equal, "ge")
#undef IKAT_LANES

namespace detail {
template <class Packed, class V>
auto as_lane(V&& v) {
    using T = typename Packed::lane_type;
    if constexpr (DeviceValue<V>)
        return cast<T>(std::forward<V>(v));
    else
        return Leaf<T>(literal<T>(v));
}
}  // namespace detail

/// Two f16 as an f16x2, two bf16 as a bf16x2. The first is lane 0, the lower half.
template <class A, class B>
requires detail::SomeDevice<A, B>
auto pack(A&& a, B&& b) {
    using T = CommonType<A, B>;
    static_assert(
        std::is_same_v<T, half> || std::is_same_v<T, bfloat16> || std::is_same_v<T, e4m3> || std::is_same_v<T, e5m2>,
        "pack() takes two f16, bf16 or 8-bit floats; pack<f16x2>(a, b) converts two f32");
    (void)(detail::must_match<T, A> && detail::must_match<T, B>);
    const trace::Recorded lanes[] = {detail::operand<T>(std::forward<A>(a)), detail::operand<T>(std::forward<B>(b))};
    constexpr ir::Type type = ir::type_of<Pair<T>>;
    return Expr<Pair<T>>(trace::operation({.op = ir::Op::Pack, .type = type, .operand_type = type}, {lanes, 2}));
}
/// ... each converted first, rounded to nearest: two f32 become an f16x2, bf16x2, e4m3x2 or e5m2x2 in one instruction.
template <class To, class A, class B>
requires detail::SomeDevice<A, B>
auto pack(A&& a, B&& b) {
    using T = typename detail::Named<To>::type;
    static_assert(is_pair<T>, "pack<T>() makes an f16x2, bf16x2, e4m3x2 or e5m2x2");
    if constexpr (is_pair<T>)
        return pack(detail::as_lane<T>(std::forward<A>(a)), detail::as_lane<T>(std::forward<B>(b)));
}

}  // namespace ikat
