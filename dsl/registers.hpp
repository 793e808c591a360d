// SPDX-License-Identifier: Apache-2.0
// Arrays of device variables.
#pragma once
#include <cstddef>
#include <utility>

#include "dsl/value.hpp"

namespace ikat {

/// N device variables with numbers that the host knows: r[k] in a host loop.
template <class T, std::size_t N>
class Regs {
    using Device = DeviceTypeOf<T>;

public:
    static constexpr std::size_t size = N;
    /// Declared, not assigned.
    explicit Regs(const trace::Where& where = trace::Where::current()) : Regs(std::make_index_sequence<N>{}, where) {}
    /// All assigned the same value.
    template <Operand V>
    explicit Regs(V&& v, const trace::Where& where = trace::Where::current())
        : Regs(std::make_index_sequence<N>{}, where) {
        const Leaf<Device> all(trace::committed(Incoming<Device>(std::forward<V>(v), where).value()));
        for (Var<Device>& r : vars_) r = Incoming<Device>(all, where);
    }

    template <class I>
    Var<Device>& operator[](const I& i) {
        return vars_[number(i)];
    }
    template <class I>
    const Var<Device>& operator[](const I& i) const {
        return vars_[number(i)];
    }
    Var<Device>* begin() { return vars_; }
    Var<Device>* end() { return vars_ + N; }
    const Var<Device>* begin() const { return vars_; }
    const Var<Device>* end() const { return vars_ + N; }

private:
    template <std::size_t... i>
    Regs(std::index_sequence<i...>, const trace::Where& where) : vars_{((void)i, Var<Device>(where))...} {}

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

    Var<Device> vars_[N];
};

}  // namespace ikat
