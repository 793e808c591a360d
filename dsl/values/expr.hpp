// SPDX-License-Identifier: Apache-2.0
// Expressions: a * x[i] + y[i] is an Expr<float>.
// The type only holds the value's type; the tree belongs to the recorder and the object is a small handle of it
// (trace::Value), so expressions of any size are cheap to copy, and a kernel instantiates few types. (Several lanes are
// evaluated late, from a tree in the type: dsl/lanes/lanes.hpp.) A Leaf is a value that has already been read: a
// variable's earlier value, a load. Arithmetic is recorded when the expression is assigned, stored, used as an index or
// passed to a statement.
#pragma once
#include <concepts>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

#include "codegen/support/half.hpp"
#include "dsl/record/trace.hpp"
#include "dsl/values/mixing.hpp"

namespace ikat {

/// False for every type: for a static_assert in a template that must not be instantiated.
template <class>
inline constexpr bool always_false = false;

/// Anything that has a device value: variables, expressions, subscripts.
template <class V>
concept DeviceValue = requires {
    typename std::remove_cvref_t<V>::device_type;
};
/// A host number, which adapts to the type of the other operand.
template <class V>
concept HostNumber = std::is_arithmetic_v<std::remove_cvref_t<V>> || is_small_float<std::remove_cvref_t<V>>;
template <class V>
concept Operand = DeviceValue<V> || HostNumber<V>;

// Every compound assignment, X(+, Right) for +=; shifts take an Amount.
#define IKAT_EACH_COMPOUND(X, Right, Amount) \
    X(+, Right)                              \
    X(-, Right) X(*, Right) X(/, Right) X(%, Right) X(&, Right) X(|, Right) X(^, Right) X(<<, Amount) X(>>, Amount)

namespace detail {

/// Maps int, long and so on to types of fixed width; which of two equally wide types those are differs between systems.
template <std::size_t bytes>
struct SignedInteger;
template <>
struct SignedInteger<1> {
    using type = std::int8_t;
};
template <>
struct SignedInteger<2> {
    using type = std::int16_t;
};
template <>
struct SignedInteger<4> {
    using type = std::int32_t;
};
template <>
struct SignedInteger<8> {
    using type = std::int64_t;
};
template <class I>
using FixedWidth = std::conditional_t<std::is_signed_v<I>, typename SignedInteger<sizeof(I)>::type,
                                      std::make_unsigned_t<typename SignedInteger<sizeof(I)>::type>>;

template <class V>
struct DeviceType {
    using type = V;
};
template <class V>
requires(std::is_integral_v<V> && !std::is_same_v<V, bool>) struct DeviceType<V> {
    using type = FixedWidth<V>;
};
template <DeviceValue V>
struct DeviceType<V> {
    using type = typename V::device_type;
};

}  // namespace detail

/// float for f32, In<float>'s elements, any expression of that type, and for float itself. A host long long is a
/// std::int64_t.
template <class V>
using DeviceTypeOf = typename detail::DeviceType<std::remove_cvref_t<V>>::type;

/// A device value; with a type, of that type: template <Value V>, Value<f32> auto x, Value<float> auto x.
template <class V, class T = void>
concept Value = DeviceValue<V> &&(std::is_void_v<T> || std::same_as<DeviceTypeOf<V>, DeviceTypeOf<T>>);

/// Several values, one for each lane: Vec, Regs, and expressions over them (dsl/lanes/lanes.hpp); with a type, of that
/// type.
template <class V, class T = void>
concept Lanewise = requires {
    typename std::remove_cvref_t<V>::lane_shape;
    requires std::is_void_v<T> || std::same_as<typename std::remove_cvref_t<V>::element_type, DeviceTypeOf<T>>;
};

/// Marks a function that exists only to give an error message, at the user's line.
#define IKAT_REFUSED(text) __attribute__((unavailable(text)))

/// The base of all device values: using one as a host value is an error. One conversion is enough: float, int,
/// std::sqrt() and exp() all take a double.
struct HostGuard {
    IKAT_REFUSED(
        "a device value has no value on the host: declare the variable as f32, u32, i32 ... instead of float, "
        "unsigned, "
        "int; convert with cast<f32>(); call ikat's functions, such as sqrt() and stdlib::exp(), not the host's")
    operator double() const;
    IKAT_REFUSED(
        "a device condition is not known on the host: write if_(condition, [&] { ... }) for if, while_ for while, "
        "select(condition, a, b) for ?:")
    explicit operator bool() const;
};

template <class T>
struct Leaf;
namespace detail {
/// The parameter of a refused function; accepts any argument. (For a template, compilers print the error twice.)
struct Anything {
    template <class V>
    Anything(V&&);
};
/// Lane 0 or 1 of a packed value.
template <class T>
const Leaf<typename T::lane_type> lane(const trace::Recorded& value, int number);
}  // namespace detail

// auto v = a * b; v = 1
#define IKAT_NAMED "this name refers to a value, not a variable: declare it as f32, u32, i32 ... to change it"

/// The base of every expression, apart from its tree.
template <class T>
class Computed : public HostGuard {
public:
    using device_type = T;
    explicit Computed(const trace::Recorded& value) : value_(value) {}
    trace::Recorded recorded() const { return value_; }
    /// Of a packed value, lane 0 or 1.
    auto operator[](int number) const requires is_pair<T> { return detail::lane<T>(value_, number); }

    // auto v = a * b; v += 1
#define IKAT_COMPOUND(symbol, Right) IKAT_REFUSED(IKAT_NAMED) Computed& operator symbol##=(detail::Anything);
    IKAT_EACH_COMPOUND(IKAT_COMPOUND, , )
#undef IKAT_COMPOUND
    IKAT_REFUSED(IKAT_NAMED) Computed& operator++();
    IKAT_REFUSED(IKAT_NAMED) Computed& operator--();
    IKAT_REFUSED(IKAT_NAMED) Computed operator++(int);
    IKAT_REFUSED(IKAT_NAMED) Computed operator--(int);

private:
    trace::Recorded value_;
};

/// A device value that is recorded: no expression is behind it any more. It is not assigned to.
template <class T>
struct Leaf : Computed<T> {
    using Computed<T>::Computed;
    Leaf(const Leaf&) = default;
    Leaf& operator=(const Leaf&) = default;  // on the host: the name now refers to another value
    IKAT_REFUSED(IKAT_NAMED) Leaf& operator=(detail::Anything);
};
/// The result of an operation.
template <class T>
struct Expr : Computed<T> {
    using Computed<T>::Computed;
    Expr(const Expr&) = default;
    IKAT_REFUSED(IKAT_NAMED) Expr& operator=(const Expr&);
    IKAT_REFUSED(IKAT_NAMED) Expr& operator=(detail::Anything);
};
#undef IKAT_NAMED

namespace detail {

template <class T>
const Leaf<typename T::lane_type> lane(const trace::Recorded& value, int number) {
    const trace::Recorded packed = trace::settled(value);
    return Leaf<typename T::lane_type>(
        trace::operation({.op = trace::checked_lane(number) == 0 ? ir::Op::Low : ir::Op::High,
                          .type = ir::type_of<typename T::lane_type>,
                          .operand_type = ir::type_of<T>},
                         {&packed, 1}));
}

/// A host number as a value of a type that is known at capture.
template <class H>
trace::Recorded literal_of(ir::Type type, H number) {
    if constexpr (is_small_float<H>)
        return trace::literal(type, static_cast<double>(float(number)));
    else if constexpr (std::is_same_v<H, bool>)
        return trace::literal(type, number);
    else if constexpr (std::is_floating_point_v<H>)
        return trace::literal(type, static_cast<double>(number));
    else if constexpr (std::is_signed_v<H>)
        return trace::literal(type, static_cast<std::int64_t>(number));
    else
        return trace::literal(type, static_cast<std::uint64_t>(number));
}

template <class T, class H>
trace::Recorded literal(H number) {
    constexpr bool truth = std::is_same_v<H, bool> || std::is_same_v<T, bool>;
    static_assert(!truth || std::is_same_v<H, T>, "a pred takes true or false, and only a pred does");
    static_assert(
        truth || std::is_integral_v<H> || ir::is_float(ir::type_of<T>),
        "a floating-point number does not become a device integer: write an integer, or convert with cast<T>()");
    return literal_of(ir::type_of<T>, number);
}

/// An operand as a value of type T. A device value of another type is returned unchanged: the caller has reported it.
template <class T, class V>
trace::Recorded operand(V&& v) {
    using Plain = std::remove_cvref_t<V>;
    if constexpr (DeviceValue<V>) {
        if constexpr (std::is_lvalue_reference_v<V>)
            return trace::settled(v.recorded());
        else
            return v.recorded();
    } else {
        return literal<T, Plain>(v);
    }
}

template <class V, class... Rest>
struct FirstDevice {
    using type = typename FirstDevice<Rest...>::type;
};
template <DeviceValue V, class... Rest>
struct FirstDevice<V, Rest...> {
    using type = DeviceTypeOf<V>;
};
template <class V>
struct FirstDevice<V> {
    using type = DeviceTypeOf<V>;
};

/// True; a static_assert fails if V is a device value of a type other than T.
template <class T, class V>
inline constexpr bool must_match = TypesMatch<T, std::conditional_t<DeviceValue<V>, DeviceTypeOf<V>, T>>::match;

}  // namespace detail

/// The common type of operands: that of the first device value. If others differ, one static_assert reports it.
template <class... V>
using CommonType = typename detail::FirstDevice<V...>::type;

/// One operation on operands of the type T.
template <ir::Op op, class R, class T, class... V>
auto make_expression(V&&... v) {
    (void)(true && ... && detail::must_match<T, V>);
    const trace::Recorded operands[] = {detail::operand<T>(std::forward<V>(v))...};
    return Expr<R>(
        trace::operation({.op = op, .type = ir::type_of<R>, .operand_type = ir::type_of<T>}, {operands, sizeof...(V)}));
}

namespace detail {

/// In the parameters of a constructor that takes anything but the class itself. It is no constraint, because g++ 12
/// forgets what it has found of those when it frees memory while it compiles many kernels.
template <class V, class Self>
using OtherThan = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<V>, Self>, int>;

}  // namespace detail

/// A value of type T passed to a statement, with the statement's location in the source. Assignments and stores take
/// one, because an operator has no other way to know where it is called.
template <class T>
class Incoming {
public:
    template <class V, detail::OtherThan<V, Incoming> = 0>
    Incoming(V&& v, const trace::Where& where = trace::Where::current())
        : value_(take(std::forward<V>(v))), where_(where) {}

    const trace::Recorded& value() const { return value_; }
    const trace::Where& where() const { return where_; }

private:
    template <class V>
    static trace::Recorded take(V&& v) {
        if constexpr (Operand<V>) {
            (void)detail::must_match<T, V>;
            return detail::operand<T>(std::forward<V>(v));
        } else {
            static_assert(Lanewise<V>, "this is not a value that a device can hold");
            static_assert(
                !Lanewise<V>,
                "these are several values where one is needed: v[k] is one of them, Regs<f32, N> has N variables");
            return {};
        }
    }

    trace::Recorded value_;
    trace::Where where_;
};

/// Records an expression immediately; the result is a leaf.
template <Operand V>
auto value(V&& v) {
    return Leaf<DeviceTypeOf<V>>(trace::committed(detail::operand<DeviceTypeOf<V>>(std::forward<V>(v))));
}

}  // namespace ikat
