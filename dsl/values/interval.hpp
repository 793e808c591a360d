// SPDX-License-Identifier: Apache-2.0
// Intervals of device values: a generic function of values tells, called with intervals, what holds for all values in
// them.
//
//     const auto sees = [](auto query, auto key) { return (key <= query) & (key + 100 > query); };
//     const pred one = sees(i, j);                                        of two i32
//     const Truth all = sees(Interval<std::int32_t>{i, i_last}, Interval<std::int32_t>{j, j_last});
//     if_(all.surely, ...);                                               it holds for all i to i_last, j to j_last
//     if_(!all.possibly, ...);                                            it holds for none
//
// Operands are independent of each other: of x - x the interval is larger than 0. So `possibly` may hold where nothing
// does, and `surely` not where everything does, but never the other way round. Integers must not leave their type.
// There are + - * / % >> (the last three by a number), abs(), min(), max(), select(), cast<i32>() and cast<f32>(),
// comparisons, and & | ^ ! of what they give. Unknown stands for values of which nothing is known, and so does what is
// made of it, up to a comparison, which may hold or not.
#pragma once
#include "dsl/values/math.hpp"

namespace ikat {

/// All values from low to high, of i32 or f32.
template <class T>
struct Interval {
    static_assert(std::is_same_v<T, std::int32_t> || std::is_same_v<T, float>, "an Interval is of i32 or f32");
    Leaf<T> low, high;
};

/// Any value of i32 or f32.
struct Unknown {};

/// What is known of a condition: that it holds, or does not, or, where `possibly` and not `surely`, nothing.
struct Truth {
    Leaf<bool> surely, possibly;
};

namespace detail {

/// Of an Interval<T>, or of what is derived from it.
template <class T>
std::type_identity<T> interval_type(const Interval<T>*);
std::type_identity<void> interval_type(...);
template <class V>
using IntervalTypeOf = typename decltype(interval_type(static_cast<std::remove_cvref_t<V>*>(nullptr)))::type;
template <class V>
concept AnInterval = !std::is_void_v<IntervalTypeOf<V>>;
template <class V>
concept ATruth = std::is_same_v<std::remove_cvref_t<V>, Truth>;
/// Intervals, or one and a number.
template <class A, class B>
concept SomeInterval = (AnInterval<A> && (AnInterval<B> || Operand<B>)) || (Operand<A> && AnInterval<B>);
template <class V>
concept AnUnknown = std::is_same_v<std::remove_cvref_t<V>, Unknown>;
/// Two values of which at least one is unknown.
template <class A, class B>
concept SomeUnknown = (AnUnknown<A> && (AnUnknown<B> || AnInterval<B> || Operand<B>)) ||
                      (AnUnknown<B> && (AnInterval<A> || Operand<A>));
template <class A, class B>
concept SomeTruth = (ATruth<A> && (ATruth<B> || Operand<B>)) || (Operand<A> && ATruth<B>);

template <class A, class B>
using BoundsOf = std::conditional_t<AnInterval<A>, IntervalTypeOf<A>, IntervalTypeOf<B>>;

template <class T, class V>
Interval<T> interval_of(const V& v) {
    if constexpr (AnInterval<V>) {
        static_assert(std::is_same_v<IntervalTypeOf<V>, T>, "intervals have the same type: convert with cast<f32>()");
        return v;
    } else {
        const auto number = value(Leaf<T>(Incoming<T>(v).value()));
        return {number, number};
    }
}
template <class V>
Truth truth_of(const V& v) {
    if constexpr (ATruth<V>) {
        return v;
    } else {
        const auto known = value(Leaf<bool>(Incoming<bool>(v).value()));
        return {known, known};
    }
}

}  // namespace detail

// Arithmetic

#define IKAT_INTERVAL(signature, ...)                                                          \
    template <class A, class B>                                                                \
    requires detail::SomeInterval<A, B>                                                        \
    auto signature(const A& left, const B& right) {                                            \
        using T = detail::BoundsOf<A, B>;                                                      \
        const Interval<T> a = detail::interval_of<T>(left), b = detail::interval_of<T>(right); \
        __VA_ARGS__                                                                            \
    }
IKAT_INTERVAL(operator+, return Interval<T>{value(a.low + b.low), value(a.high + b.high)};)
IKAT_INTERVAL(operator-, return Interval<T>{value(a.low - b.high), value(a.high - b.low)};)
IKAT_INTERVAL(min, return Interval<T>{value(min(a.low, b.low)), value(min(a.high, b.high))};)
IKAT_INTERVAL(max, return Interval<T>{value(max(a.low, b.low)), value(max(a.high, b.high))};)
IKAT_INTERVAL(operator*, {
    const auto p = value(a.low * b.low), q = value(a.low * b.high), r = value(a.high * b.low),
               s = value(a.high * b.high);
    return Interval<T>{value(min(min(p, q), min(r, s))), value(max(max(p, q), max(r, s)))};
})
IKAT_INTERVAL(operator/, {
    static_assert(!detail::AnInterval<B>, "an interval is divided by a number");
    const auto p = value(a.low / b.low), q = value(a.high / b.low);
    return Interval<T>{value(min(p, q)), value(max(p, q))};
})
IKAT_INTERVAL(operator%, {
    static_assert(std::is_same_v<T, std::int32_t> && !detail::AnInterval<B>,
                  "an interval of i32 is divided by a number");
    const auto largest = value(abs(b.low) - 1);
    return Interval<T>{value(select(a.low < 0, -largest, 0)), value(select(a.high > 0, largest, 0))};
})

// Conditions. What a NaN is compared with may hold or not.

IKAT_INTERVAL(operator<, return Truth{value(a.high < b.low), value(!(a.low >= b.high))};)
IKAT_INTERVAL(operator<=, return Truth{value(a.high <= b.low), value(!(a.low > b.high))};)
IKAT_INTERVAL(operator>, return Truth{value(a.low > b.high), value(!(a.high <= b.low))};)
IKAT_INTERVAL(operator>=, return Truth{value(a.low >= b.high), value(!(a.high < b.low))};)
IKAT_INTERVAL(operator==, return Truth{value((a.low == a.high) & (b.low == b.high) & (a.low == b.low)),
                                       value(!((a.high < b.low) | (b.high < a.low)))};)
IKAT_INTERVAL(operator!=, return Truth{value((a.high < b.low) | (b.high < a.low)),
                                       value(!((a.low == a.high) & (b.low == b.high) & (a.low == b.low)))};)
#undef IKAT_INTERVAL

#define IKAT_TRUTH(symbol, ...)                                                             \
    template <class A, class B>                                                             \
    requires detail::SomeTruth<A, B> Truth operator symbol(const A& left, const B& right) { \
        const Truth a = detail::truth_of(left), b = detail::truth_of(right);                \
        return {__VA_ARGS__};                                                               \
    }
IKAT_TRUTH(&, value(a.surely& b.surely), value(a.possibly& b.possibly))
IKAT_TRUTH(|, value(a.surely | b.surely), value(a.possibly | b.possibly))
IKAT_TRUTH(^, value((a.surely & !b.possibly) | (b.surely & !a.possibly)),
           value((a.possibly & !b.surely) | (b.possibly & !a.surely)))
#undef IKAT_TRUTH
inline Truth operator!(const Truth& a) { return {value(!a.possibly), value(!a.surely)}; }

// Of what is unknown

#define IKAT_UNKNOWN(signature) \
    template <class A, class B> \
    requires detail::SomeUnknown<A, B> Unknown signature(const A&, const B&) { return {}; }
IKAT_UNKNOWN(operator+)
IKAT_UNKNOWN(operator-)
IKAT_UNKNOWN(operator*)
IKAT_UNKNOWN(operator/)
IKAT_UNKNOWN(operator%)
IKAT_UNKNOWN(operator>>)
IKAT_UNKNOWN(min)
IKAT_UNKNOWN(max)
#undef IKAT_UNKNOWN
#define IKAT_UNKNOWN(symbol)                                                       \
    template <class A, class B>                                                    \
    requires detail::SomeUnknown<A, B> Truth operator symbol(const A&, const B&) { \
        return {detail::truth_of(false).surely, detail::truth_of(true).possibly};  \
    }
IKAT_UNKNOWN(<)
IKAT_UNKNOWN(<=)
IKAT_UNKNOWN(>)
IKAT_UNKNOWN(>=)
IKAT_UNKNOWN(==)
IKAT_UNKNOWN(!=)
#undef IKAT_UNKNOWN
inline Unknown operator-(const Unknown&) { return {}; }
inline Unknown abs(const Unknown&) { return {}; }
template <class To>
Unknown cast(const Unknown&) {
    return {};
}
template <class C, class A, class B>
requires(detail::ATruth<C> || Operand<C>) && detail::SomeUnknown<A, B> Unknown select(const C&, const A&, const B&) {
    return {};
}

// By numbers, and of one interval

template <class T>
Interval<T> operator-(const Interval<T>& a) {
    return {value(-a.high), value(-a.low)};
}
template <class N>
requires Operand<N> Interval<std::int32_t>
operator>>(const Interval<std::int32_t>& a, const N& n) { return {value(a.low >> n), value(a.high >> n)}; }
template <class T>
Interval<T> abs(const Interval<T>& a) {
    return {value(max(max(a.low, -a.high), T{})), value(max(abs(a.low), abs(a.high)))};
}
template <class A, class B>
requires detail::SomeInterval<A, B>
auto select(const Truth& condition, const A& left, const B& right) {
    using T = detail::BoundsOf<A, B>;
    const Interval<T> a = detail::interval_of<T>(left), b = detail::interval_of<T>(right);
    const auto pick = [&](const Leaf<T>& of_a, const Leaf<T>& of_b, const Leaf<T>& of_both) {
        return value(select(condition.surely, of_a, select(condition.possibly, of_both, of_b)));
    };
    return Interval<T>{pick(a.low, b.low, value(min(a.low, b.low))), pick(a.high, b.high, value(max(a.high, b.high)))};
}
template <class To, class From>
auto cast(const Interval<From>& a) {
    using T = typename detail::Named<To>::type;
    return Interval<T>{value(cast<T>(a.low)), value(cast<T>(a.high))};
}

}  // namespace ikat
