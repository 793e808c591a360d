// SPDX-License-Identifier: Apache-2.0
// Arrays of device variables.
#pragma once
#include <cstddef>
#include <utility>

#include "dsl/value.hpp"

namespace ikat {

namespace detail {

/// What Regs<T, N> are: device variables, or structs of them. (Structs that Hana knows: dsl/structs.hpp.)
template <class T>
struct RegisterOf {
    using type = T;
};
template <Operand T>
struct RegisterOf<T> {
    using type = Var<DeviceTypeOf<T>>;
};

}  // namespace detail

/// N device variables, or structs of them, with numbers that the host knows: r[k] in a host loop.
template <class T, std::size_t N>
class Regs {
    using Register = typename detail::RegisterOf<T>::type;

public:
    static constexpr std::size_t size = N;
    /// Declared, not assigned.
    explicit Regs(const trace::Where& where = trace::Where::current()) : Regs(std::make_index_sequence<N>{}, where) {}
    /// All assigned the same value.
    template <Operand V>
    requires Operand<T>
    explicit Regs(V&& v, const trace::Where& where = trace::Where::current())
        : Regs(std::make_index_sequence<N>{}, where) {
        using Device = DeviceTypeOf<T>;
        const Leaf<Device> all(trace::committed(Incoming<Device>(std::forward<V>(v), where).value()));
        for (Register& r : vars_) r = Incoming<Device>(all, where);
    }
    template <class V>
    requires(!Operand<T> && std::is_assignable_v<Register&, const V&>) explicit Regs(
        const V& v, const trace::Where& where = trace::Where::current())
        : Regs(std::make_index_sequence<N>{}, where) {
        for (Register& r : vars_) r = v;
    }

    template <class I>
    Register& operator[](const I& i) {
        return vars_[number(i)];
    }
    template <class I>
    const Register& operator[](const I& i) const {
        return vars_[number(i)];
    }
    Register* begin() { return vars_; }
    Register* end() { return vars_ + N; }
    const Register* begin() const { return vars_; }
    const Register* end() const { return vars_ + N; }

private:
    template <std::size_t... i>
    Regs(std::index_sequence<i...>, const trace::Where& where) : vars_{((void)i, declared(where))...} {}
    static Register declared(const trace::Where& where) {
        if constexpr (!Operand<T> && std::is_same_v<Register, T>)
            return Register();
        else
            return Register(where);
    }

    template <class I>
    static std::size_t number(const I& i) {
        if constexpr (DeviceValue<I>) {
            static_assert(
                always_false<I>,
                "Regs are registers, which have no addresses: index them by host integers in an unrolled host "
                "loop, or use Local<T, N>");
            return 0;
        } else {
            return trace::checked_index(std::int64_t(i), N);
        }
    }

    Register vars_[N];
};

}  // namespace ikat
