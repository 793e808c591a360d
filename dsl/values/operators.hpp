// SPDX-License-Identifier: Apache-2.0
// The operators of device values. The op table says which types each is defined for; the static_assert says it in
// words.
#pragma once
#include "dsl/values/value.hpp"

namespace ikat {
namespace detail {

template <class... V>
concept SomeDevice = (Operand<V> && ...) && (DeviceValue<V> || ...);

template <ir::Op op, class... V>
inline constexpr bool in_domain = ir::contains(ir::info(op).domain, ir::type_of<CommonType<V...>>);

/// Reports a shift by something that is not a u32.
template <class V>
constexpr bool is_shift_amount() {
    if constexpr (DeviceValue<V>)
        return std::is_same_v<DeviceTypeOf<V>, std::uint32_t>;
    else
        return std::is_integral_v<std::remove_cvref_t<V>>;
}

template <ir::Op op, class T, class A, class N>
auto make_shift(A&& a, N&& n) {
    const trace::Recorded operands[] = {operand<T>(std::forward<A>(a)), operand<std::uint32_t>(std::forward<N>(n))};
    return Expr<T>(trace::operation({.op = op, .type = ir::type_of<T>, .operand_type = ir::type_of<T>}, {operands, 2}));
}

/// & and | of two conditions: a load in one of them happens whatever the other is.
template <ir::Op op, class A, class B>
auto make_flags(A&& a, B&& b) {
    (void)(must_match<bool, A> && must_match<bool, B>);
    const trace::Recorded operands[] = {operand<bool>(std::forward<A>(a)), operand<bool>(std::forward<B>(b))};
    return Expr<bool>(trace::choice({.op = op, .type = ir::Type::Pred, .operand_type = ir::Type::Pred}, {operands, 2}));
}

}  // namespace detail

#define IKAT_BINARY(symbol, Row, domain_text)                                                            \
    template <class A, class B>                                                                          \
    requires detail::SomeDevice<A, B>                                                                    \
    auto operator symbol(A&& a, B&& b) {                                                                 \
        using T = CommonType<A, B>;                                                                      \
        static_assert(detail::in_domain<ir::Op::Row, A, B>, "operator " #symbol " is for " domain_text); \
        return make_expression<ir::Op::Row, T, T>(std::forward<A>(a), std::forward<B>(b));               \
    }
IKAT_BINARY(+, Add, "integers, f16, bf16, f32, f64, f16x2 and bf16x2")
IKAT_BINARY(-, Sub, "integers, f16, bf16, f32, f64, f16x2 and bf16x2")
IKAT_BINARY(*, Mul, "integers, f16, bf16, f32, f64, f16x2 and bf16x2")
IKAT_BINARY(/, Div, "integers, f32 and f64: divide f16 and bf16 in f32")
IKAT_BINARY(%, Rem, "integers")
IKAT_BINARY(^, Xor, "integers and pred")
#undef IKAT_BINARY

#define IKAT_BITS(symbol, Row)                                                                                \
    template <class A, class B>                                                                               \
    requires detail::SomeDevice<A, B>                                                                         \
    auto operator symbol(A&& a, B&& b) {                                                                      \
        using T = CommonType<A, B>;                                                                           \
        static_assert(detail::in_domain<ir::Op::Row, A, B>, "operator " #symbol " is for integers and pred"); \
        if constexpr (std::is_same_v<T, bool>)                                                                \
            return detail::make_flags<ir::Op::Row>(std::forward<A>(a), std::forward<B>(b));                   \
        else                                                                                                  \
            return make_expression<ir::Op::Row, T, T>(std::forward<A>(a), std::forward<B>(b));                \
    }
IKAT_BITS(&, And)
IKAT_BITS(|, Or)
#undef IKAT_BITS

#define IKAT_COMPARISON(symbol, Row)                                                          \
    template <class A, class B>                                                               \
    requires detail::SomeDevice<A, B>                                                         \
    auto operator symbol(A&& a, B&& b) {                                                      \
        using T = CommonType<A, B>;                                                           \
        static_assert(detail::in_domain<ir::Op::Row, A, B>,                                   \
                      "operator " #symbol " compares numbers; for two preds use a ^ b");      \
        return make_expression<ir::Op::Row, bool, T>(std::forward<A>(a), std::forward<B>(b)); \
    }
IKAT_COMPARISON(==, Eq)
IKAT_COMPARISON(!=, Ne)
IKAT_COMPARISON(<, Lt)
IKAT_COMPARISON(<=, Le)
IKAT_COMPARISON(>, Gt)
IKAT_COMPARISON(>=, Ge)
#undef IKAT_COMPARISON

// 1u << n is a u32, as in C++.
#define IKAT_SHIFT(symbol, Row)                                                                              \
    template <class A, class N>                                                                              \
    requires detail::SomeDevice<A, N>                                                                        \
    auto operator symbol(A&& a, N&& n) {                                                                     \
        static_assert(detail::in_domain<ir::Op::Row, A>, "operator " #symbol " is for integers");            \
        static_assert(detail::is_shift_amount<N>(), "a shift amount is a u32: convert it with cast<u32>()"); \
        return detail::make_shift<ir::Op::Row, DeviceTypeOf<A>>(std::forward<A>(a), std::forward<N>(n));     \
    }
IKAT_SHIFT(<<, Shl)
IKAT_SHIFT(>>, Shr)
#undef IKAT_SHIFT

template <DeviceValue A>
auto operator-(A&& a) {
    using T = DeviceTypeOf<A>;
    static_assert(detail::in_domain<ir::Op::Neg, A>,
                  "unary - is for signed integers, f16, bf16, f32, f64, f16x2 and bf16x2");
    return make_expression<ir::Op::Neg, T, T>(std::forward<A>(a));
}
template <DeviceValue A>
auto operator~(A&& a) {
    using T = DeviceTypeOf<A>;
    static_assert(detail::in_domain<ir::Op::Shl, A>, "operator ~ is for integers; a pred is negated by !");
    return make_expression<ir::Op::Not, T, T>(std::forward<A>(a));
}
template <DeviceValue A>
auto operator!(A&& a) {
    static_assert(std::is_same_v<DeviceTypeOf<A>, bool>, "operator ! is for pred: compare a number with 0");
    return make_expression<ir::Op::Not, DeviceTypeOf<A>, DeviceTypeOf<A>>(std::forward<A>(a));
}

// && and || would have to skip their right side, but both sides are recorded.
template <class A, class B>
requires(DeviceValue<A> || DeviceValue<B> || Lanewise<A> || Lanewise<B>) bool operator&&(A&&, B&&) {
    static_assert(always_false<A>,
                  "&& on device values would record both sides: nest if_, or use & if neither side has side effects");
    return false;
}
template <class A, class B>
requires(DeviceValue<A> || DeviceValue<B> || Lanewise<A> || Lanewise<B>) bool operator||(A&&, B&&) {
    static_assert(always_false<A>,
                  "|| on device values would record both sides: nest if_, or use | if neither side has side effects");
    return false;
}

// float s = 0; s += x[i]
#define IKAT_COMPOUND(symbol, Right)                                                                                   \
    template <class Host, class V>                                                                                     \
    requires(HostNumber<Host> && (DeviceValue<V> || Lanewise<V>)) Host& operator symbol##=(Host& a, V&&) {             \
        static_assert(always_false<V>, "a host variable cannot take a device value: declare it as f32, u32, i32 ..."); \
        return a;                                                                                                      \
    }
IKAT_EACH_COMPOUND(IKAT_COMPOUND, , )
#undef IKAT_COMPOUND

}  // namespace ikat
