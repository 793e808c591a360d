// SPDX-License-Identifier: Apache-2.0
// Device variables: f32, u32, pred ... Construction and assignment are recorded; reading one gives its value at that
// point.
//
//     f32 sum = 0;            // declares and assigns
//     sum = sum + x[i];       // reads, loads, adds, assigns
//     Var t = a * b;          // the type is deduced
#pragma once
#include "dsl/values/expr.hpp"

namespace ikat {

template <class T>
class Var : public HostGuard {
    static_assert(ir::contains(ir::Any, ir::type_of<T>), "a device variable holds bool, integers or floats");

public:
    using device_type = T;

    /// Declared and not assigned yet.
    Var(const trace::Where& where = trace::Where::current()) : variable_(trace::declare(ir::type_of<T>, where)) {}
    template <class V, detail::OtherThan<V, Var> = 0>
    Var(V&& v, const trace::Where& where = trace::Where::current())
        : variable_(trace::define(ir::type_of<T>, Incoming<T>(std::forward<V>(v), where).value(), where)) {}
    Var(const Var& other, const trace::Where& where = trace::Where::current())
        : variable_(trace::define(ir::type_of<T>, other.recorded(), where)) {}
    /// Takes the variable over: a function returns the variable that it declared.
    Var(Var&& other) noexcept : variable_(std::exchange(other.variable_, {})) {}
    explicit Var(trace::Variable variable) : variable_(variable) {}

    /// Never chosen: x = y goes through Incoming like all assignments, which knows the statement's location. Without
    /// this declaration, the implicit operator would copy the handle and record nothing.
    Var& operator=(const Var&) requires(false);
    /// Except for p = q of structs with variables as members: C++ assigns them one by one without a conversion, so the
    /// location is unknown.
    template <class V>
    requires std::same_as<V, const Var> Var& operator=(V& other) {
        trace::assign(variable_, other.recorded(), trace::Where());
        return *this;
    }
    Var& operator=(const Incoming<T>& v) {
        trace::assign(variable_, v.value(), v.where());
        return *this;
    }
#define IKAT_CONST                                                                                                     \
    IKAT_REFUSED(                                                                                                      \
        "a const variable, or a copy made by [=], cannot be assigned: capture by reference, [&], and take parameters " \
        "that change by value")
    IKAT_CONST const Var& operator=(const Incoming<T>& v) const;

#define IKAT_COMPOUND(symbol, Right)                                                              \
    Var& operator symbol##=(const Incoming<Right>& v) {                                           \
        return *this = Incoming<T>(Leaf<T>(recorded()) symbol Leaf<Right>(v.value()), v.where()); \
    }                                                                                             \
    IKAT_CONST const Var& operator symbol##=(const Incoming<Right>& v) const;
    IKAT_EACH_COMPOUND(IKAT_COMPOUND, T, std::uint32_t)
#undef IKAT_COMPOUND

    // These take no argument that could carry the statement's location; they use that of the previous statement.
    Var& operator++() { return *this = Incoming<T>(Leaf<T>(recorded()) + 1, trace::Where()); }
    Var& operator--() { return *this = Incoming<T>(Leaf<T>(recorded()) - 1, trace::Where()); }
    /// Return the old value.
    Leaf<T> operator++(int) {
        const Leaf<T> before(recorded());
        *this = Incoming<T>(before + 1, trace::Where());
        return before;
    }
    Leaf<T> operator--(int) {
        const Leaf<T> before(recorded());
        *this = Incoming<T>(before - 1, trace::Where());
        return before;
    }
    IKAT_CONST const Var& operator++() const;
    IKAT_CONST const Var& operator--() const;
    IKAT_CONST const Var& operator++(int) const;
    IKAT_CONST const Var& operator--(int) const;
#undef IKAT_CONST

    /// Exchanges the values of two variables. (std::swap would move the variables themselves.)
    friend void swap(Var& a, Var& b, const trace::Where& where = trace::Where::current()) {
        const Leaf<T> before(a.recorded());
        a = Incoming<T>(b, where);
        b = Incoming<T>(before, where);
    }

    trace::Recorded recorded() const { return trace::read(variable_); }
    const trace::Variable& handle() const { return variable_; }
    /// Lane 0 or 1 of a packed value.
    auto operator[](int number) const requires is_pair<T> { return detail::lane<T>(recorded(), number); }

private:
    trace::Variable variable_;
};

template <class V>
Var(V&&) -> Var<DeviceTypeOf<V>>;

/// Variables of the device, one value for each thread. pred is one bit; integers wrap at their width; f16x2 and bf16x2
/// hold two small floats in a register.
using pred = Var<bool>;
using i8 = Var<std::int8_t>;
using u8 = Var<std::uint8_t>;
using i16 = Var<std::int16_t>;
using u16 = Var<std::uint16_t>;
using i32 = Var<std::int32_t>;
using u32 = Var<std::uint32_t>;
using i64 = Var<std::int64_t>;
using u64 = Var<std::uint64_t>;
using f16 = Var<half>;
using bf16 = Var<bfloat16>;
using f32 = Var<float>;
using f64 = Var<double>;
using f16x2 = Var<half2>;
using bf16x2 = Var<bfloat16x2>;

}  // namespace ikat
