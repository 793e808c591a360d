// SPDX-License-Identifier: Apache-2.0
// Memory: In, Out and InOut parameters of rank 1, shared and local arrays, and subscripts. For parameters of higher
// rank see dsl/memory/view.hpp, for arrays in registers dsl/lanes/registers.hpp.
// x[i] fixes the address and the time of access: reading it gives the value at this point, wherever the name is used
// later.
//
//     auto t = s[i];  s[i] = s[j];  s[j] = t;      swaps
#pragma once
#include <cstddef>
#include <initializer_list>

#include "dsl/lanes/algebra.hpp"

namespace ikat {

/// An index of type u32 or u64, with its location in the source. Host integers become u32 if they fit.
class Index {
public:
    template <class V, detail::OtherThan<V, Index> = 0>
    Index(V&& v, const trace::Where& where = trace::Where::current()) : position_(take(std::forward<V>(v), where)) {}

    const trace::Position& position() const { return position_; }

private:
    template <class V>
    static trace::Position take(V&& v, const trace::Where& where) {
        using T = DeviceTypeOf<V>;
        if constexpr (DeviceValue<V>) {
            static_assert(std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>,
                          "an index is a u32 or a u64: convert it with cast<u32>()");
            return {detail::operand<T>(std::forward<V>(v)), sizeof(T) == 8, where};
        } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            if (v > 0 && std::uint64_t(v) >> 32 != 0) return {detail::literal<std::uint64_t>(v), true, where};
            return {detail::literal<std::uint32_t>(v), false, where};
        } else {
            static_assert(always_false<V>, "an index is an integer");
            return {};
        }
    }

    trace::Position position_;
};

/// x[i]. Reading it is a value; x[i] = v stores. The array's direction says which of them is allowed.
template <class E, trace::Direction direction>
class Subscript : public HostGuard {
public:
    using device_type = E;
    explicit Subscript(const trace::Slot& slot) : slot_(slot) {}
    Subscript(const Subscript&) = default;

    trace::Recorded recorded() const {
        static_assert(direction != trace::Direction::Write, "Out<T> is write-only: declare the parameter as InOut<T>");
        return slot_.lanes[0];
    }
    const trace::Slot& slot() const { return slot_; }
    /// The same place, of which it is known that it is in rows of this many bytes whose 16-byte pieces are swizzled
    /// within `swizzle` bytes: findings about shared memory say its row, and products by warpgroups are compared with
    /// it.
    Subscript in_rows(std::uint32_t bytes, std::uint32_t swizzle) const {
        trace::Slot slot = slot_;
        slot.rows = {.bytes = bytes, .swizzle = swizzle};
        return Subscript(slot);
    }
    /// Lane 0 or 1 of a packed element.
    auto operator[](int number) const requires is_pair<E> { return detail::lane<E>(recorded(), number); }

    Subscript& operator=(const Subscript&) requires(false);
    void operator=(const Incoming<device_type>& v) && { store(v); }
    /// t = v, where auto t = x[i].
    IKAT_REFUSED(
        "this name refers to a value that was read from memory: declare it as f32, u32, i32 ... to change it, or "
        "write "
        "x[i] = ... to store")
    void operator=(detail::Anything) &;

    // x[i] += v loads at the subscript, which C++ evaluates after v.
#define IKAT_COMPOUND(symbol, Right)                                                \
    void operator symbol##=(const Incoming<Right>& v)&& {                           \
        const Leaf<device_type> old(trace::settled(recorded()));                    \
        store(Incoming<device_type>(old symbol Leaf<Right>(v.value()), v.where())); \
    }                                                                               \
    template <class V>                                                              \
    void operator symbol##=(V&& v)& {                                               \
        *this = v;                                                                  \
    }
    IKAT_EACH_COMPOUND(IKAT_COMPOUND, device_type, std::uint32_t)
#undef IKAT_COMPOUND

private:
    void store(const Incoming<device_type>& v) const {
        static_assert(direction != trace::Direction::Read,
                      "In<T> and Constant<T> are read-only: declare the parameter as InOut<T> or Out<T> to store");
        trace::store(slot_, {&v.value(), 1}, v.where());
    }

    trace::Slot slot_;
};

/// x.vec<4>(i): a Vec to read; y.vec<4>(i) = {a, b, c, d} stores, and so does any expression with four lanes.
template <class E, int N, trace::Direction direction>
class VecSubscript : public Vec<E, N> {
    using Shape = LaneShape<std::size_t(N)>;

public:
    explicit VecSubscript(const trace::Slot& slot) : Vec<E, N>(slot), slot_(slot) {}
    VecSubscript(const VecSubscript&) = default;

    Leaf<E> operator[](int lane) const {
        check_readable();
        return Vec<E, N>::operator[](lane);
    }
    LaneValues<E, Shape> lanes() const {
        check_readable();
        return Vec<E, N>::lanes();
    }
    auto reversed() const { return lanes().reversed(); }

    VecSubscript& operator=(const VecSubscript&) requires(false);
    void operator=(const IncomingLanes<E, Shape>& v) && {
        static_assert(direction != trace::Direction::Read,
                      "In<T> and Constant<T> are read-only: declare the parameter as InOut<T> or Out<T> to store");
        trace::store(slot_, v.values().recorded(), v.where());
    }
    /// v = w, where auto v = x.vec<4>(i).
    IKAT_REFUSED(
        "this name refers to values that were read from memory: declare it as Regs<f32, N> to change it, or write "
        "x.vec<N>(i) = ... to store")
    void operator=(detail::Anything) &;

    // The elements are loaded at the subscript, which C++ evaluates after v.
#define IKAT_COMPOUND(symbol, Right)                                                                      \
    void operator symbol##=(const IncomingLanes<Right, Shape>& v)&& {                                     \
        std::move(*this) = IncomingLanes<E, Shape>(detail::lanes_of(*this) symbol v.values(), v.where()); \
    }                                                                                                     \
    template <class V>                                                                                    \
    void operator symbol##=(V&& v)& {                                                                     \
        *this = v;                                                                                        \
    }
    IKAT_EACH_COMPOUND(IKAT_COMPOUND, E, std::uint32_t)
#undef IKAT_COMPOUND

    const trace::Slot& slot() const { return slot_; }

private:
    static void check_readable() {
        static_assert(direction != trace::Direction::Write, "Out<T> is write-only: declare the parameter as InOut<T>");
    }

    trace::Slot slot_;
};

/// The base of all arrays and pointer parameters: using one as a C++ pointer is an error.
struct ArrayGuard {
#define IKAT_NO_POINTER \
    IKAT_REFUSED("a device array is not a pointer: x[i] is an element, x.slice(n) the array from element n on")
    IKAT_NO_POINTER const ArrayGuard& operator+(detail::Anything) const;
    IKAT_NO_POINTER const ArrayGuard& operator-(detail::Anything) const;
    IKAT_NO_POINTER const ArrayGuard& operator+=(detail::Anything) const;
    IKAT_NO_POINTER const ArrayGuard& operator-=(detail::Anything) const;
    IKAT_NO_POINTER const ArrayGuard& operator++() const;
    IKAT_NO_POINTER const ArrayGuard& operator--() const;
    IKAT_NO_POINTER const ArrayGuard& operator++(int) const;
    IKAT_NO_POINTER const ArrayGuard& operator--(int) const;
    IKAT_NO_POINTER const ArrayGuard& operator*() const;
#undef IKAT_NO_POINTER
};

/// A one-dimensional array that the kernel can index: the common part of pointers and arrays.
template <class E, trace::Direction direction>
class Indexable : public ArrayGuard {
    static_assert(ir::contains(ir::Storable, ir::type_of<E>),
                  "memory holds integers and floats, named by their host types: In<float>, not In<f32>");
    using T = E;

public:
    using element_type = E;
    explicit Indexable(const trace::Array& array) : array_(array) {}

    const trace::Array& array() const { return array_; }

    Subscript<E, direction> operator[](const Index& i) const {
        return Subscript<E, direction>(trace::subscript(array_, i.position()));
    }
    template <class... I>
    requires(sizeof...(I) > 1) auto operator[](const I&...) const {
        static_assert(sizeof...(I) == 1,
                      "this array has rank 1: declare the parameter as In<float, 2>, or compute the index");
        return (*this)[0];
    }
    /// Elements N * i ... N * i + N - 1 in one access of N * sizeof(E) bytes, which the array must be aligned to.
    template <int N>
    auto vec(const Index& i) const {
        check_width<N>();
        if constexpr (detail::is_vector_size<N>)
            return VecSubscript<E, N, direction>(trace::subscript(array_, i.position(), N));
    }

    /// The array from element `first` on: row[i] is x[first + i].
    Indexable slice(const Index& first) const { return Indexable(trace::slice(array_, first.position())); }
    /// The same memory as elements of another type, which it must be aligned to where it is accessed.
    template <class To>
    Indexable<To, direction> as() const {
        return Indexable<To, direction>(trace::viewed(array_, ir::type_of<To>));
    }

    /// The element, or `other` if the condition is false: then nothing is accessed.
    template <class Condition, class V>
    Leaf<T> load_if(Condition&& condition, const Index& i, V&& other) const {
        check_readable();
        const trace::Recorded guard = Incoming<bool>(std::forward<Condition>(condition)).value();
        const trace::Recorded instead = Incoming<T>(std::forward<V>(other)).value();
        return Leaf<T>(trace::load_if(array_, guard, i.position(), {&instead, 1}).lanes[0]);
    }
    /// The same for vec<N>(i); `other` is a Vec, or one value for all.
    template <int N, class Condition, class V>
    Vec<T, N> load_if(Condition&& condition, const Index& i, V&& other) const {
        check_readable();
        check_width<N>();
        const trace::Recorded guard = Incoming<bool>(std::forward<Condition>(condition)).value();
        trace::Recorded instead[N];
        if constexpr (Operand<V>) {
            const trace::Recorded all = Incoming<T>(std::forward<V>(other)).value();
            for (int lane = 0; lane < N; ++lane) instead[lane] = all;
        } else {
            const Vec<T, N> each(std::forward<V>(other));
            for (int lane = 0; lane < N; ++lane) instead[lane] = each.recorded()[std::uint32_t(lane)];
        }
        return Vec<T, N>(trace::load_if(array_, guard, i.position(), {instead, N}));
    }
    /// Stores if the condition is true: one value, or the lanes of vec<N>(i).
    template <class Condition, class V>
    void store_if(Condition&& condition, const Index& i, V&& v,
                  const trace::Where& where = trace::Where::current()) const {
        check_writable();
        if constexpr (Lanewise<V>) {
            store_if<int(std::remove_cvref_t<V>::lane_shape::lanes)>(std::forward<Condition>(condition), i,
                                                                     std::forward<V>(v), where);
        } else {
            const trace::Recorded guard = Incoming<bool>(std::forward<Condition>(condition)).value();
            const trace::Recorded stored = Incoming<T>(std::forward<V>(v)).value();
            trace::store_if(array_, guard, i.position(), {&stored, 1}, where);
        }
    }
    template <int N, class Condition>
    void store_if(Condition&& condition, const Index& i, const Vec<T, N>& v,
                  const trace::Where& where = trace::Where::current()) const {
        check_writable();
        check_width<N>();
        const trace::Recorded guard = Incoming<bool>(std::forward<Condition>(condition)).value();
        trace::store_if(array_, guard, i.position(), v.recorded(), where);
    }

private:
    template <int N>
    static void check_width() {
        static_assert(detail::is_vector_size<N>, "vec<N>: N is 2, 4, 8 or 16");
        static_assert(N * sizeof(E) <= 16, "vec<N>: one access is at most 128 bits wide");
    }
    static void check_readable() {
        static_assert(direction != trace::Direction::Write, "Out<T> is write-only: declare the parameter as InOut<T>");
    }
    static void check_writable() {
        static_assert(direction != trace::Direction::Read,
                      "In<T> and Constant<T> are read-only: declare the parameter as InOut<T> or Out<T> to store");
    }

    trace::Array array_;
};

/// A pointer parameter. In must not overlap anything that the same launch writes, so that its loads may use the
/// read-only path. With rank 2 to 5 it knows its extents (dsl/memory/view.hpp).
template <class E, trace::Direction direction, int rank = 1>
class Pointer;
template <class E, trace::Direction direction>
class Pointer<E, direction, 1> : public Indexable<E, direction> {
public:
    using Indexable<E, direction>::Indexable;
    /// An InOut can be passed as an In to code that does not write to it: its loads stay ordinary loads, ordered with
    /// its stores.
    template <trace::Direction other_direction>
    requires(direction == trace::Direction::Read && other_direction == trace::Direction::ReadWrite)
        Pointer(const Pointer<E, other_direction>& other)
        : Indexable<E, direction>(other.array()) {}
    /// The array from element `first` on: row[i] is x[first + i].
    Pointer slice(const Index& first) const { return Pointer(trace::slice(this->array(), first.position())); }
};
/// Parameters: memory that the kernel reads, writes, or both. Of rank 2 to 5 they know their extents and pitches, in
/// elements.
template <class E, int rank = 1>
using In = Pointer<E, trace::Direction::Read, rank>;
template <class E, int rank = 1>
using Out = Pointer<E, trace::Direction::Write, rank>;
template <class E, int rank = 1>
using InOut = Pointer<E, trace::Direction::ReadWrite, rank>;

namespace detail {

template <trace::Direction direction, class E, std::size_t... N>
class Array : public ArrayGuard {
    static_assert(sizeof...(N) >= 1 && sizeof...(N) <= 4, "an array has one to four extents");
    static_assert(((N > 0) && ...), "an extent is at least 1");
    static_assert(ir::contains(ir::Storable, ir::type_of<E>),
                  "memory holds integers and floats, named by their host types: In<float>, not In<f32>");

public:
    using element_type = E;
    static constexpr std::size_t rank = sizeof...(N), size = (N * ...);
    static constexpr std::uint64_t extents[] = {N...};

    explicit Array(const trace::Array& array) : array_(array) {}
    Array(const Array&) = default;
    Array& operator=(const Array&) = delete;

    auto operator[](const Index& i) const requires(rank == 1) { return at(i); }
    auto operator[](const Index& i, const Index& j) const requires(rank == 2) { return at(i, j); }
    auto operator[](const Index& i, const Index& j, const Index& k) const requires(rank == 3) { return at(i, j, k); }
    auto operator[](const Index& i, const Index& j, const Index& k, const Index& l) const requires(rank == 4) {
        return at(i, j, k, l);
    }
    /// All elements as a one-dimensional array, the last extent varying fastest: for vec<4>(i), load_if, or as an
    /// argument of a function.
    Indexable<E, direction> flat() const { return Indexable<E, direction>(array_); }

private:
    auto at(const auto&... i) const {
        const trace::Position indices[] = {i.position()...};
        return Subscript<E, direction>(trace::subscript(array_, indices, extents, rank));
    }

    trace::Array array_;
};

}  // namespace detail

/// Memory that the threads of a block share. Each executed declaration is a separate array.
template <class E, std::size_t... N>
class Shared : public detail::Array<trace::Direction::ReadWrite, E, N...> {
public:
    explicit Shared(const trace::Where& where = trace::Where::current())
        : detail::Array<trace::Direction::ReadWrite, E, N...>(
              trace::declare_array(ir::Space::Shared, ir::type_of<E>, (N * ...), where)) {}
};
/// Memory of one thread, for indices that only the device knows. If the host knows them, Regs is faster.
template <class E, std::size_t... N>
class Local : public detail::Array<trace::Direction::ReadWrite, E, N...> {
public:
    explicit Local(const trace::Where& where = trace::Where::current())
        : detail::Array<trace::Direction::ReadWrite, E, N...>(
              trace::declare_array(ir::Space::Local, ir::type_of<E>, (N * ...), where)) {}
};
/// Constant memory: a host table, copied when the kernel is captured. It is fastest where all threads of a warp read
/// the same element. All tables of a kernel together have at most 64 KiB.
template <class E, std::size_t... N>
class Constant : public detail::Array<trace::Direction::Read, E, N...> {
    static_assert((N * ... * sizeof(E)) <= ir::max_constant_bytes,
                  "constant memory has 65536 bytes: pass large tables as In<T>");
    using Base = detail::Array<trace::Direction::Read, E, N...>;

public:
    /// Takes one value per element, the last extent varying fastest.
    Constant(std::initializer_list<E> values, const trace::Where& where = trace::Where::current())
        : Base(trace::declare_constant(ir::type_of<E>, (N * ...), values.begin(), values.size(), where)) {}
    template <class R>
    requires std::same_as<std::remove_cvref_t<decltype(*std::data(std::declval<const R&>()))>, E>
    explicit Constant(const R& values, const trace::Where& where = trace::Where::current())
        : Base(trace::declare_constant(ir::type_of<E>, (N * ...), std::data(values), std::size(values), where)) {}
};

/// Shared memory whose size the launch gives.
template <class E>
class DynamicShared : public Indexable<E, trace::Direction::ReadWrite> {
public:
    using Indexable<E, trace::Direction::ReadWrite>::Indexable;
};
/// `count` elements of dynamic shared memory, after those of earlier calls; each part starts at a multiple of 16 bytes.
template <class E>
DynamicShared<E> dynamic_shared(const Index& count) {
    static_assert(ir::contains(ir::Storable, ir::type_of<E>),
                  "memory holds integers and floats, named by their host types: In<float>, not In<f32>");
    return DynamicShared<E>(trace::declare_dynamic(ir::type_of<E>, count.position()));
}

}  // namespace ikat
