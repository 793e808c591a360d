// SPDX-License-Identifier: Apache-2.0
// Memory shared with other threads: atomics, vector reductions, accesses with a memory order, fences.
//
// Where PTX or the target lacks an atomic, the compiler makes a loop of atomic_cas (codegen/legalise/atomics.cpp).
#pragma once
#include "dsl/threads/control.hpp"

namespace ikat {

using ir::FenceOrder;
using ir::Order;
using ir::Scope;

/// Within the scope, memory accesses of this thread before the fence become visible before those after it.
inline void fence(Scope scope = Scope::Gpu, FenceOrder order = FenceOrder::AcquireRelease,
                  const trace::Where& where = trace::Where::current()) {
    ir::FenceForm form{order, scope};
    if (!form.has_scope()) form.scope = Scope::None;
    if (form.has_scope() && scope == Scope::None) form.scope = Scope::Gpu;
    trace::effect({.op = ir::Op::Fence, .attribute = ir::pack(form)}, {}, where);
}

namespace detail {

template <ir::Op op, class E, trace::Direction direction, class... V>
Leaf<E> atomic(const Subscript<E, direction>& place, Order order, Scope scope, const trace::Where& where, V&&... v) {
    static_assert(direction == trace::Direction::ReadWrite,
                  "an atomic reads and writes: declare the parameter as InOut<T>");
    static_assert(ir::contains(ir::info(op).domain, ir::type_of<E>), "this atomic is not for elements of this type");
    const trace::Recorded arguments[] = {Incoming<E>(std::forward<V>(v), where).value()...};
    return Leaf<E>(trace::atomic(op, place.slot(), {arguments, sizeof...(V)}, order, scope, where));
}

}  // namespace detail

#define IKAT_ATOMIC(name, Row)                                                                                         \
    template <class E, trace::Direction direction, Operand V>                                                          \
    Leaf<E> name(const Subscript<E, direction>& place, V&& v, Order order = Order::Relaxed, Scope scope = Scope::None, \
                 const trace::Where& where = trace::Where::current()) {                                                \
        return detail::atomic<ir::Op::Row>(place, order, scope, where, std::forward<V>(v));                            \
    }
/// Each updates `place` atomically and returns the old value. The default scope is the block for shared memory, the
/// device for global memory.
IKAT_ATOMIC(atomic_add, AtomicAdd)
IKAT_ATOMIC(atomic_exchange, AtomicExchange)
IKAT_ATOMIC(atomic_and, AtomicAnd)
IKAT_ATOMIC(atomic_or, AtomicOr)
IKAT_ATOMIC(atomic_xor, AtomicXor)
/// Counts up to v, then restarts at 0; counts down to 0, then restarts at v.
IKAT_ATOMIC(atomic_inc, AtomicInc)
IKAT_ATOMIC(atomic_dec, AtomicDec)
/// For a NaN and a number, the number, as in min() and max().
IKAT_ATOMIC(atomic_min, AtomicMin)
IKAT_ATOMIC(atomic_max, AtomicMax)
#undef IKAT_ATOMIC
/// Stores `desired` if the old value is `expected`; returns the old value.
template <class E, trace::Direction direction, Operand A, Operand B>
Leaf<E> atomic_cas(const Subscript<E, direction>& place, A&& expected, B&& desired, Order order = Order::Relaxed,
                   Scope scope = Scope::None, const trace::Where& where = trace::Where::current()) {
    return detail::atomic<ir::Op::AtomicCas>(place, order, scope, where, std::forward<A>(expected),
                                             std::forward<B>(desired));
}

#define IKAT_REDUCE(name, mode)                                                                                       \
    template <class E, int N>                                                                                         \
    void name(const VecSubscript<E, N, trace::Direction::ReadWrite>& place, const std::type_identity_t<Vec<E, N>>& v, \
              Order order = Order::Relaxed, Scope scope = Scope::None,                                                \
              const trace::Where& where = trace::Where::current()) {                                                  \
        static_assert(ir::contains(ir::info(ir::Op::VectorReduce).domain, ir::type_of<E>),                            \
                      #name "() of a vector is for elements of type float, half, bfloat16 and pairs of these");       \
        trace::vector_reduce(*ir::mode_named(ir::Op::VectorReduce, mode), place.slot(), v.recorded(), order, scope,   \
                             where);                                                                                  \
    }
/// Updates the elements of y.vec<N>(i), each atomically: reduce_add(y.vec<4>(i), {a, b, c, d}). One instruction in
/// global memory from sm_90 on (for floats only reduce_add), elsewhere one for each element.
IKAT_REDUCE(reduce_add, "add")
IKAT_REDUCE(reduce_min, "min")
IKAT_REDUCE(reduce_max, "max")
#undef IKAT_REDUCE

namespace detail {

template <class E, trace::Direction direction>
constexpr void check_ordered() {
    static_assert(direction == trace::Direction::ReadWrite,
                  "memory that other threads change is read and written: declare the parameter as InOut<T>");
}

}  // namespace detail

/// An access that sees what other threads do, with the given memory order. The default scope is that of atomic_add.
template <class E, trace::Direction direction>
Leaf<E> atomic_load(const Subscript<E, direction>& place, Order order = Order::Relaxed, Scope scope = Scope::None,
                    const trace::Where& where = trace::Where::current()) {
    detail::check_ordered<E, direction>();
    return Leaf<E>(trace::ordered_load(place.slot(), order == Order::Weak ? Order::Relaxed : order, scope, where));
}
template <class E, trace::Direction direction, Operand V>
void atomic_store(const Subscript<E, direction>& place, V&& v, Order order = Order::Relaxed, Scope scope = Scope::None,
                  const trace::Where& where = trace::Where::current()) {
    detail::check_ordered<E, direction>();
    trace::ordered_store(place.slot(), Incoming<E>(std::forward<V>(v), where).value(),
                         order == Order::Weak ? Order::Relaxed : order, scope, where);
}
/// An access that is made as written: never merged or removed, but not ordered either.
template <class E, trace::Direction direction>
Leaf<E> volatile_load(const Subscript<E, direction>& place, const trace::Where& where = trace::Where::current()) {
    detail::check_ordered<E, direction>();
    return Leaf<E>(trace::ordered_load(place.slot(), Order::Weak, Scope::None, where));
}
template <class E, trace::Direction direction, Operand V>
void volatile_store(const Subscript<E, direction>& place, V&& v, const trace::Where& where = trace::Where::current()) {
    detail::check_ordered<E, direction>();
    trace::ordered_store(place.slot(), Incoming<E>(std::forward<V>(v), where).value(), Order::Weak, Scope::None, where);
}

}  // namespace ikat
