// SPDX-License-Identifier: Apache-2.0
// Arrays of device variables. Arrays of numbers and of vectors have lanes: they are assigned as a whole.
//
//     Regs<f32, 4> sums(0);                       Regs<Vec<float, 4>, 2> rows;
//     sums = fma(p, x.vec<4>(i), sums);           rows[1] = x.vec<4>(i);
#pragma once
#include <cstddef>
#include <utility>

#include "dsl/lanes/algebra.hpp"

namespace ikat {

template <class T, std::size_t N>
class Regs;

namespace detail {

/// The elements of Regs<T, N>: device variables, or structs of them. (Structs that Hana knows: dsl/memory/structs.hpp.)
template <class T>
struct RegisterOf {
    using type = T;
};
template <class T>
requires(Operand<T> || is_pair<T>) struct RegisterOf<T> {
    using type = Var<DeviceTypeOf<T>>;
};
template <class T, int N>
struct RegisterOf<Vec<T, N>> {
    using type = Regs<T, std::size_t(N)>;
};

template <std::size_t N, class Shape>
struct OuterShape;
template <std::size_t N, std::size_t... extents>
struct OuterShape<N, LaneShape<extents...>> {
    using type = LaneShape<N, extents...>;
};

/// The lanes of N registers; structs have none.
template <class Register, std::size_t N>
struct LanesOfRegs {
    struct Incoming {};
    using IncomingAmounts = Incoming;
};
template <DeviceValue Register, std::size_t N>
struct LanesOfRegs<Register, N> {
    using lane_shape = LaneShape<N>;
    using element_type = DeviceTypeOf<Register>;
    using Incoming = IncomingLanes<element_type, lane_shape>;
    using IncomingAmounts = IncomingLanes<std::uint32_t, lane_shape>;
};
template <Lanewise Register, std::size_t N>
struct LanesOfRegs<Register, N> {
    using lane_shape = typename OuterShape<N, typename Register::lane_shape>::type;
    using element_type = typename Register::element_type;
    using Incoming = IncomingLanes<element_type, lane_shape>;
    using IncomingAmounts = IncomingLanes<std::uint32_t, lane_shape>;
};

/// The element type of the Regs that have the lanes of a shape.
template <class T, class Shape>
struct PartOfRegs;
template <class T, std::size_t N>
struct PartOfRegs<T, LaneShape<N>> {
    using type = T;
    static constexpr std::size_t count = N;
};
template <class T, std::size_t N, std::size_t... inner>
requires(sizeof...(inner) > 0) struct PartOfRegs<T, LaneShape<N, inner...>> {
    using Inner = PartOfRegs<T, LaneShape<inner...>>;
    using type = Regs<typename Inner::type, Inner::count>;
    static constexpr std::size_t count = N;
};
template <class V>
using PartOf = PartOfRegs<typename std::remove_cvref_t<V>::element_type, typename std::remove_cvref_t<V>::lane_shape>;

}  // namespace detail

/// N device variables, or structs of them, indexed by host numbers: r[k] in a host loop.
template <class T, std::size_t N>
class Regs : public detail::LanesOfRegs<typename detail::RegisterOf<T>::type, N> {
    using Register = typename detail::RegisterOf<T>::type;
    using Base = detail::LanesOfRegs<Register, N>;
    static constexpr bool has_lanes = Lanewise<Base>;

public:
    static constexpr std::size_t size = N;
    /// Declared, not assigned.
    explicit Regs(const trace::Where& where = trace::Where::current()) : Regs(std::make_index_sequence<N>{}, where) {}
    /// All are assigned the same value.
    template <Operand V>
    requires has_lanes explicit Regs(V&& v, const trace::Where& where = trace::Where::current())
        : Regs(std::make_index_sequence<N>{}, where) {
        assign(typename Base::Incoming(std::forward<V>(v), where));
    }
    template <class V>
    requires(!has_lanes && std::is_assignable_v<Register&, const V&>) explicit Regs(
        const V& v, const trace::Where& where = trace::Where::current())
        : Regs(std::make_index_sequence<N>{}, where) {
        for (Register& r : vars_) r = v;
    }
    /// Assigned lane by lane: Regs<f32, 4> v = x.vec<4>(i) * 2.
    template <Lanewise V>
    requires(has_lanes && !std::same_as<std::remove_cvref_t<V>, Regs>)
        Regs(V&& v, const trace::Where& where = trace::Where::current())
        : Regs(std::make_index_sequence<N>{}, where) {
        assign(typename Base::Incoming(std::forward<V>(v), where));
    }

    Regs(const Regs&) = default;
    Regs(Regs&&) = default;

    /// Assigns all lanes, after reading all values. Assignments go through Incoming, as for Var, except p = q of
    /// structs that have Regs as members.
    Regs& operator=(const typename Base::Incoming& v) requires has_lanes {
        assign(v);
        return *this;
    }
    Regs& operator=(const Regs&) requires(!has_lanes) = default;
    template <class V>
    requires(has_lanes&& std::same_as<V, const Regs>) Regs& operator=(V& other) {
        assign(typename Base::Incoming(other, trace::Where()));
        return *this;
    }
#define IKAT_COMPOUND(symbol, Right)                                             \
    Regs& operator symbol##=(const typename Base::Right& v) requires has_lanes { \
        assign(typename Base::Incoming(lanes() symbol v.values(), v.where()));   \
        return *this;                                                            \
    }
    IKAT_EACH_COMPOUND(IKAT_COMPOUND, Incoming, IncomingAmounts)
#undef IKAT_COMPOUND

    /// The values of all of them at this point.
    auto lanes() const requires has_lanes {
        LaneValues<typename Base::element_type, typename Base::lane_shape> out;
        for (std::size_t k = 0; k < Base::lane_shape::lanes; ++k) out.set(k, variable(k).recorded());
        return out;
    }
    auto lane(std::size_t k) const requires has_lanes {
        return Leaf<typename Base::element_type>(variable(k).recorded());
    }
    auto reversed() const requires has_lanes { return lanes().reversed(); }

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
    template <class, std::size_t>
    friend class Regs;

    /// The variable of lane k.
    const auto& variable(std::size_t k) const {
        if constexpr (DeviceValue<Register>)
            return vars_[k];
        else
            return vars_[k / Register::lane_shape::lanes].variable(k % Register::lane_shape::lanes);
    }
    void assign(const auto& v) {
        const trace::RecordedValues values = v.values().recorded();
        for (std::size_t k = 0; k < Base::lane_shape::lanes; ++k)
            trace::assign(variable(k).handle(), values[std::uint32_t(k)], v.where());
    }

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

/// Regs v = a * x.vec<4>(i) has four of x's type.
template <Lanewise V>
Regs(V&&) -> Regs<typename detail::PartOf<V>::type, detail::PartOf<V>::count>;

}  // namespace ikat
