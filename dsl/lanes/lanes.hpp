// SPDX-License-Identifier: Apache-2.0
// Lanes: several values under one name. A Vec, Regs and a tree over them are used in expressions like scalars; the
// operators and functions are in dsl/lanes/algebra.hpp.
//
//     y.vec<4>(i) = a * x.vec<4>(i) + y.vec<4>(i);
//
//     LaneExpr<Add, LaneShape<4>, {LaneExpr<Mul, LaneShape<4>, {OneForAll<float>, LaneValues<float, LaneShape<4>>}>,
//                                  LaneValues<float, LaneShape<4>>}>
// A tree holds its leaves by value: the variables and loads as they were where each was written. So it is safe to keep,
// and has the same value wherever it is used. When it is stored or assigned, it is evaluated lane by lane; each
// operation is then the scalar one on that lane of its operands, with the same type errors.
// Anything with a lane_shape (the number and arrangement of lanes), an element_type, lanes() (its tree) and lane(k) can
// be an operand. Operands must have the same shape; a single value is broadcast to all lanes.
#pragma once
#include <cstddef>
#include <type_traits>
#include <utility>

#include "dsl/values/value.hpp"

namespace ikat {

/// LaneShape<4>: four lanes. LaneShape<2, 4>: two times four, the last extent varying fastest.
template <std::size_t... extents>
struct LaneShape {
    static constexpr std::size_t rank = sizeof...(extents), lanes = (extents * ... * 1);
};

template <class Tree, class Shape>
class SomeLanes;
template <class T, class Shape>
class LaneValues;

namespace detail {

/// The shape without its first extent.
template <class Shape>
struct InnerShape;
template <std::size_t first, std::size_t... rest>
struct InnerShape<LaneShape<first, rest...>> {
    using type = LaneShape<rest...>;
    static constexpr std::size_t count = first;
};

template <class Shape, class V>
inline constexpr bool has_shape = std::is_same_v<Shape, typename std::remove_cvref_t<V>::lane_shape>;

// auto v = a * x.vec<4>(i); v = w
#define IKAT_NAMED_LANES "this name refers to values, not variables: declare it as Regs<f32, N> to change it"

struct LaneGuard : HostGuard {
#define IKAT_COMPOUND(symbol, Right) IKAT_REFUSED(IKAT_NAMED_LANES) void operator symbol##=(Anything)&;
    IKAT_EACH_COMPOUND(IKAT_COMPOUND, , )
#undef IKAT_COMPOUND
};

/// for (const auto& x : v)
template <class Tree>
struct LaneIterator {
    const Tree* lanes;
    int k;
    auto operator*() const { return (*lanes)[k]; }
    LaneIterator& operator++() { return ++k, *this; }
    bool operator!=(const LaneIterator& other) const { return k != other.k; }
};

/// The interface of all values with lanes: v[k], v.reversed(). Tree has lane(k) and lanes().
template <class Tree, class T, class Shape>
class LaneTree : public LaneGuard {
public:
    using lane_shape = Shape;
    using element_type = T;

    /// Lane k, a host number; row k if the lanes are in rows.
    auto operator[](int k) const {
        using Inner = InnerShape<Shape>;
        const std::size_t first = trace::checked_lane(k, Inner::count) * Inner::type::lanes;
        if constexpr (Shape::rank == 1)
            return Leaf<T>(trace::settled(tree().lane(first).recorded()));
        else
            return part<typename Inner::type>(first, false);
    }
    /// for (const auto& x : v) visits the lanes, or rows, on the host.
    LaneIterator<LaneTree> begin() const { return {this, 0}; }
    LaneIterator<LaneTree> end() const { return {this, int(InnerShape<Shape>::count)}; }
    /// The lanes in reverse order.
    auto reversed() const {
        static_assert(Shape::rank == 1,
                      "reversed() is for lanes in one row: for Regs<Vec<float, 4>, 2>, r[k].reversed()");
        return part<Shape>(Shape::lanes - 1, true);
    }

private:
    template <class Part>
    auto part(std::size_t first, bool backwards) const {
        using Lanes = std::remove_cvref_t<decltype(tree().lanes())>;
        return SomeLanes<Lanes, Part>(tree().lanes(), first, backwards);
    }
    const Tree& tree() const { return static_cast<const Tree&>(*this); }
};

// ---- leaves

/// One value for all lanes. The effects of its expression are counted once, with lane 0.
template <class T>
class OneForAll {
public:
    static constexpr std::size_t leaves = 1;
    explicit OneForAll(const trace::Recorded& value) : value_(value) {}
    Leaf<T> lane(std::size_t k) const { return Leaf<T>(k == 0 ? trace::pure(value_) : trace::settled(value_)); }
    void append_leaves(trace::Recorded*& next) const { *next++ = value_; }

private:
    trace::Recorded value_;
};

/// An argument that is passed to the function unchanged: host numbers, modes.
template <class H>
struct OfTheHost {
    static constexpr std::size_t leaves = 0;
    H value;
    const H& lane(std::size_t) const { return value; }
    void append_leaves(trace::Recorded*&) const {}
};

}  // namespace detail

/// The values of all lanes at one point.
template <class T, class Shape>
class LaneValues : public detail::LaneTree<LaneValues<T, Shape>, T, Shape> {
public:
    static constexpr std::size_t leaves = Shape::lanes;
    /// Not set yet.
    LaneValues() = default;
    LaneValues(const LaneValues&) = default;
    IKAT_REFUSED(IKAT_NAMED_LANES) LaneValues& operator=(const LaneValues&);
    IKAT_REFUSED(IKAT_NAMED_LANES) LaneValues& operator=(detail::Anything);

    const LaneValues& lanes() const { return *this; }
    /// Lane k, from 0.
    Leaf<T> lane(std::size_t k) const { return Leaf<T>(trace::pure(values_[k])); }
    /// Writes the values from `next` on, and moves it after them.
    void append_leaves(trace::Recorded*& next) const {
        for (const trace::Recorded& value : values_) *next++ = value;
    }
    trace::RecordedValues recorded() const { return {values_, std::uint32_t(Shape::lanes)}; }
    /// Lane k becomes this value.
    void set(std::size_t k, const trace::Recorded& value) { values_[k] = value; }

private:
    trace::Recorded values_[Shape::lanes];
};

// ---- trees

namespace detail {

/// An operand as a part of a tree. A named operand may be part of several trees: it becomes a leaf, so that it is
/// recorded only once, and its effects belong to an earlier full expression.
template <class V>
auto lanes_of(V&& v) {
    using Plain = std::remove_cvref_t<V>;
    if constexpr (Lanewise<V> && std::is_lvalue_reference_v<V>) {
        const auto& tree = v.lanes();
        LaneValues<typename Plain::element_type, typename Plain::lane_shape> out;
        for (std::size_t k = 0; k < Plain::lane_shape::lanes; ++k) out.set(k, trace::settled(tree.lane(k).recorded()));
        return out;
    } else if constexpr (Lanewise<V>) {
        return v.lanes();
    } else if constexpr (DeviceValue<V>) {
        return OneForAll<DeviceTypeOf<V>>(operand<DeviceTypeOf<V>>(std::forward<V>(v)));
    } else {
        return OfTheHost<Plain>{v};
    }
}

template <class... V>
struct FirstShape;
template <class V, class... Rest>
struct FirstShape<V, Rest...> : FirstShape<Rest...> {};
template <Lanewise V, class... Rest>
struct FirstShape<V, Rest...> {
    using type = typename std::remove_cvref_t<V>::lane_shape;
};

template <class Shape, class V>
inline constexpr bool goes_with = true;
template <class Shape, Lanewise V>
inline constexpr bool goes_with<Shape, V> = has_shape<Shape, V>;

/// The common shape of operands.
template <class... V>
constexpr auto common_shape() {
    using Shape = typename FirstShape<V...>::type;
    static_assert((goes_with<Shape, V> && ...),
                  "these have different numbers of lanes: Vec<T, 4> goes with Vec<T, 4>, with Regs<T, 4>, and with "
                  "one value for all lanes");
    return Shape();
}

/// One of the operands of a tree. The number distinguishes operands of the same type.
template <std::size_t number, class Operand>
struct LaneOperandAt {
    Operand it;
};
template <class Numbers, class... Operands>
struct LaneOperands;
template <std::size_t... number, class... Operands>
struct LaneOperands<std::index_sequence<number...>, Operands...> : LaneOperandAt<number, Operands>... {
    static constexpr std::size_t leaves = (Operands::leaves + ...);
    static constexpr bool several = (int(Operands::leaves > 0) + ...) > 1;

    void in_order() const {
        trace::Recorded all[leaves], *next = all;
        append_leaves(next);
        trace::in_order({all, std::uint32_t(leaves)}, several);
    }
    void append_leaves(trace::Recorded*& next) const {
        (static_cast<const LaneOperandAt<number, Operands>&>(*this).it.append_leaves(next), ...);
    }
    /// f applied to lane k of each operand.
    template <class F>
    auto apply(const F& f, std::size_t k) const {
        return f(static_cast<const LaneOperandAt<number, Operands>&>(*this).it.lane(k)...);
    }
};
/// The braces evaluate them from left to right.
template <class... V>
auto lane_operands(V&&... v) {
    return LaneOperands<std::index_sequence_for<V...>, decltype(lanes_of(std::forward<V>(v)))...>{
        {lanes_of(std::forward<V>(v))}...};
}

/// The element type of f's result.
template <class F, class Operands>
using LaneResult = DeviceTypeOf<decltype(std::declval<const Operands&>().apply(std::declval<const F&>(), 0))>;

}  // namespace detail

/// A function of scalars, lane by lane.
template <class F, class Shape, class Operands>
class LaneExpr : public detail::LaneTree<LaneExpr<F, Shape, Operands>, detail::LaneResult<F, Operands>, Shape> {
public:
    static constexpr std::size_t leaves = Operands::leaves;
    LaneExpr(const F& f, const Operands& operands) : f_(f), operands_(operands), contracted_(trace::contracted()) {
        operands_.in_order();
    }
    LaneExpr(const LaneExpr&) = default;
    IKAT_REFUSED(IKAT_NAMED_LANES) LaneExpr& operator=(const LaneExpr&);
    IKAT_REFUSED(IKAT_NAMED_LANES) LaneExpr& operator=(detail::Anything);

    const LaneExpr& lanes() const { return *this; }
    /// Lane k, from 0, recorded where it is asked for.
    auto lane(std::size_t k) const {
        const trace::Contraction as_written(contracted_);
        return operands_.apply(f_, k);
    }
    /// Writes the values that it is made of from `next` on, and moves it after them.
    void append_leaves(trace::Recorded*& next) const { operands_.append_leaves(next); }

private:
    [[no_unique_address]] F f_;
    Operands operands_;
    bool contracted_;
};

/// Consecutive lanes of another tree, forwards or backwards.
template <class Tree, class Shape>
class SomeLanes : public detail::LaneTree<SomeLanes<Tree, Shape>, typename Tree::element_type, Shape> {
public:
    static constexpr std::size_t leaves = Tree::leaves;
    SomeLanes(const Tree& tree, std::size_t first, bool backwards)
        : tree_(tree), first_(first), backwards_(backwards) {}
    SomeLanes(const SomeLanes&) = default;
    IKAT_REFUSED(IKAT_NAMED_LANES) SomeLanes& operator=(const SomeLanes&);
    IKAT_REFUSED(IKAT_NAMED_LANES) SomeLanes& operator=(detail::Anything);

    const SomeLanes& lanes() const { return *this; }
    /// Lane k of these, from 0.
    auto lane(std::size_t k) const { return tree_.lane(backwards_ ? first_ - k : first_ + k); }
    /// Writes the values that it is made of from `next` on, and moves it after them.
    void append_leaves(trace::Recorded*& next) const { tree_.append_leaves(next); }

private:
    Tree tree_;
    std::size_t first_;
    bool backwards_;
};
#undef IKAT_NAMED_LANES

namespace detail {

/// The tree of f(v ...).
template <class F, class... V>
auto lanewise(F f, V&&... v) {
    const auto operands = lane_operands(std::forward<V>(v)...);
    return LaneExpr<F, decltype(common_shape<V...>()), std::remove_const_t<decltype(operands)>>(f, operands);
}

}  // namespace detail

// ---- statements

/// Evaluated lanes passed to a statement, with its location in the source; a single value is broadcast.
template <class T, class Shape>
class IncomingLanes {
public:
    template <class V>
    requires(Lanewise<V> || Operand<V>) IncomingLanes(V&& v, const trace::Where& where = trace::Where::current())
        : where_(where) {
        if constexpr (Lanewise<V>) {
            static_assert(detail::has_shape<Shape, V>,
                          "the number of lanes differs from that of the left side: Vec<T, 4> goes into "
                          "x.vec<4>(i), Vec<T, 4> and Regs<T, 4>");
            (void)detail::TypesMatch<T, typename std::remove_cvref_t<V>::element_type>::match;
            const auto& tree = v.lanes();
            for (std::size_t k = 0; k < Shape::lanes; ++k) {
                const trace::Recorded value = tree.lane(k).recorded();
                values_.set(k, std::is_lvalue_reference_v<V> ? trace::settled(value) : value);
            }
        } else {
            (void)detail::must_match<T, V>;
            const trace::Recorded all = trace::committed(detail::operand<T>(std::forward<V>(v)));
            for (std::size_t k = 0; k < Shape::lanes; ++k) values_.set(k, k == 0 ? all : trace::settled(all));
        }
    }
    /// A value for each lane: y.vec<2>(i) = {a, b}.
    template <class... V>
    requires(sizeof...(V) == Shape::lanes && sizeof...(V) > 1 && (Operand<V> && ...)) IncomingLanes(V&&... v)
        : where_() {
        const trace::Recorded each[] = {Incoming<T>(std::forward<V>(v)).value()...};
        for (std::size_t k = 0; k < Shape::lanes; ++k) values_.set(k, each[k]);
    }

    const LaneValues<T, Shape>& values() const { return values_; }
    const trace::Where& where() const { return where_; }

private:
    LaneValues<T, Shape> values_;
    trace::Where where_;
};

/// Records all lanes immediately; the result is a leaf.
template <Lanewise V>
auto value(V&& v) {
    using Plain = std::remove_cvref_t<V>;
    const auto& tree = v.lanes();
    LaneValues<typename Plain::element_type, typename Plain::lane_shape> out;
    for (std::size_t k = 0; k < Plain::lane_shape::lanes; ++k)
        out.set(k, trace::settled(trace::committed(tree.lane(k).recorded())));
    return out;
}

/// f applied to each lane, recorded immediately. It may record statements, too:
/// each_lane([](const auto& x, const auto& y) { ... }, v, w).
template <class F, class... V>
requires(Lanewise<V> || ...) auto each_lane(F&& f, V&&... v) {
    const auto operands = detail::lane_operands(std::forward<V>(v)...);
    operands.in_order();
    using R = detail::LaneResult<F, decltype(operands)>;
    using Shape = decltype(detail::common_shape<V...>());
    LaneValues<R, Shape> out;
    for (std::size_t k = 0; k < Shape::lanes; ++k)
        out.set(k, trace::settled(trace::committed(detail::operand<R>(operands.apply(f, k)))));
    return out;
}

// ---- Vec

namespace detail {
template <int N>
inline constexpr bool is_vector_size = N == 2 || N == 4 || N == 8 || N == trace::max_lanes;
}  // namespace detail

/// N values that are loaded or stored together.
template <class T, int N>
class Vec : public detail::LaneTree<Vec<T, N>, T, LaneShape<std::size_t(N)>> {
    static_assert(detail::is_vector_size<N>, "vectors have 2, 4, 8 or 16 elements");
    using Shape = LaneShape<std::size_t(N)>;

public:
    static constexpr int size = N;
    template <class... V>
    requires(sizeof...(V) == N && (Operand<V> && ...)) Vec(V&&... v)
        : lanes_{Incoming<T>(std::forward<V>(v)).value()...} {}
    template <Lanewise V>
    requires(!std::derived_from<std::remove_cvref_t<V>, Vec>) Vec(V&& v) {
        const IncomingLanes<T, Shape> each(std::forward<V>(v));
        for (std::uint32_t k = 0; k < N; ++k) lanes_[k] = each.values().recorded()[k];
    }
    explicit Vec(const trace::Slot& slot) {
        for (int k = 0; k < N; ++k) lanes_[k] = k == 0 ? slot.lanes[0] : trace::settled(slot.lanes[k]);
    }

    LaneValues<T, Shape> lanes() const {
        LaneValues<T, Shape> out;
        for (std::size_t k = 0; k < N; ++k) out.set(k, lanes_[k]);
        return out;
    }
    /// Lane k, from 0.
    Leaf<T> lane(std::size_t k) const { return Leaf<T>(lanes_[k]); }
    trace::RecordedValues recorded() const { return {lanes_, N}; }

private:
    trace::Recorded lanes_[N];
};

}  // namespace ikat
