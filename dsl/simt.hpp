// SPDX-License-Identifier: Apache-2.0
// Threads: who am I, waiting for each other, exchanging values, changing memory together; and the host's eyes.
#pragma once
#include "dsl/bits.hpp"
#include "dsl/control.hpp"

namespace ikat {

// ---- who am I

/// Three numbers: .x, .y, .z.
template <class X>
struct Index3 {
    X x, y, z;
};
using Special = Leaf<std::uint32_t>;

namespace detail {

inline Index3<Special> special3(ir::SpecialRegister x) {
    const auto nth = [&](int n) { return Special(trace::special(ir::SpecialRegister(int(x) + n))); };
    return {nth(0), nth(1), nth(2)};
}

}  // namespace detail

inline Index3<Special> thread_id() { return detail::special3(ir::SpecialRegister::TidX); }
inline Index3<Special> block_dim() { return detail::special3(ir::SpecialRegister::NtidX); }
inline Index3<Special> block_id() { return detail::special3(ir::SpecialRegister::CtaidX); }
inline Index3<Special> grid_dim() { return detail::special3(ir::SpecialRegister::NctaidX); }
/// block_id() * block_dim() + thread_id().
inline auto global_id() {
    const Index3<Special> b = block_id(), d = block_dim(), t = thread_id();
    return Index3{b.x * d.x + t.x, b.y * d.y + t.y, b.z * d.z + t.z};
}
/// Number of the thread in its warp, 0 to 31.
inline Special lane_id() { return Special(trace::special(ir::SpecialRegister::LaneId)); }
/// Number of the warp in its block.
inline auto warp_id() {
    const Index3<Special> t = thread_id(), d = block_dim();
    return (t.x + d.x * (t.y + d.y * t.z)) / 32;
}

// What a kernel demands of its blocks: said by functions that are right in such blocks only, checked by each launch.

/// Blocks are a multiple of 32 threads: every warp has all its lanes.
inline void require_whole_warps() { trace::require_whole_warps(); }
/// Blocks have one dimension: thread_id().x is the number of the thread.
inline void require_linear_blocks() { trace::require_linear_blocks(); }
/// Blocks have exactly so many threads: what each thread does is laid out for them.
inline void require_threads(std::uint32_t count) { trace::require_threads(count); }

/// Each of n elements to one thread of the grid, in strides of the grid along x: for (auto i : grid_stride(n)).
template <class N>
auto grid_stride(N&& n, const trace::Where& where = trace::Where::current()) {
    using T = std::conditional_t<DeviceValue<N>, DeviceTypeOf<N>, std::uint32_t>;
    static_assert(std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>,
                  "grid_stride counts in u32 or u64");
    return detail::make_range(cast<T>(block_id().x) * cast<T>(block_dim().x) + cast<T>(thread_id().x),
                              std::forward<N>(n), cast<T>(grid_dim().x) * cast<T>(block_dim().x), where);
}

// ---- waiting

/// All threads of the block wait for each other, and see what the others have written.
inline void sync_block(const trace::Where& where = trace::Where::current()) { trace::barrier(where); }
/// The lanes of a warp that take part: bit i is lane i. A u32, or a number.
class Members {
public:
    template <Operand V>
    Members(V&& v) : value_(Incoming<std::uint32_t>(std::forward<V>(v)).value()) {}
    const trace::Value& value() const { return value_; }

private:
    trace::Value value_;
};
inline constexpr std::uint32_t all_lanes = 0xffffffff;
/// The lanes of a warp wait for each other.
inline void sync_warp(const Members& members = all_lanes, const trace::Where& where = trace::Where::current()) {
    trace::sync_warp(members.value(), where);
}

// ---- exchanging values within a warp

namespace detail {

template <class V, class N>
auto shuffle(ir::ShuffleMode mode, V&& v, N&& lane, const Members& members, const trace::Where& where) {
    using T = DeviceTypeOf<V>;
    static_assert(ir::contains(ir::info(ir::Op::Shuffle).domain, ir::type_of<T>),
                  "shuffles exchange i32, u32 and f32: convert narrower values, send wider ones in two halves");
    const std::uint64_t clamp = mode == ir::ShuffleMode::Up ? 0 : 31;  // the last lane that a value comes from
    const trace::Value arguments[] = {operand<T>(std::forward<V>(v)),
                                      Incoming<std::uint32_t>(std::forward<N>(lane)).value(),
                                      trace::literal(ir::Type::U32, clamp), members.value()};
    return Leaf<T>(trace::exchange(
        {.op = ir::Op::Shuffle, .type = ir::type_of<T>, .operand_type = ir::type_of<T>, .attribute = ir::Word(mode)},
        {arguments, 4}, where));
}

template <class R, class P>
Leaf<R> vote(ir::Op op, P&& p, const Members& members, const trace::Where& where) {
    const trace::Value arguments[] = {Incoming<bool>(std::forward<P>(p)).value(), members.value()};
    return Leaf<R>(
        trace::exchange({.op = op, .type = ir::type_of<R>, .operand_type = ir::type_of<R>}, {arguments, 2}, where));
}

}  // namespace detail

#define IKAT_SHUFFLE(name, mode)                                                                                       \
    template <DeviceValue V, Operand N>                                                                                \
    auto name(V&& v, N&& n, const Members& members = all_lanes, const trace::Where& where = trace::Where::current()) { \
        return detail::shuffle(ir::ShuffleMode::mode, std::forward<V>(v), std::forward<N>(n), members, where);         \
    }
/// The value of the lane n above; of this lane where there is none.
IKAT_SHUFFLE(shuffle_down, Down)
/// The value of the lane n below; of this lane where there is none.
IKAT_SHUFFLE(shuffle_up, Up)
/// The value of lane (lane_id() ^ n).
IKAT_SHUFFLE(shuffle_xor, Xor)
/// The value of lane n.
IKAT_SHUFFLE(shuffle_idx, Idx)
#undef IKAT_SHUFFLE

/// Whether p holds in any lane, in all lanes; the lanes in which it holds as bits.
template <DeviceValue P>
Leaf<bool> any(P&& p, const Members& members = all_lanes, const trace::Where& where = trace::Where::current()) {
    return detail::vote<bool>(ir::Op::VoteAny, std::forward<P>(p), members, where);
}
template <DeviceValue P>
Leaf<bool> all(P&& p, const Members& members = all_lanes, const trace::Where& where = trace::Where::current()) {
    return detail::vote<bool>(ir::Op::VoteAll, std::forward<P>(p), members, where);
}
template <DeviceValue P>
Leaf<std::uint32_t> ballot(P&& p, const Members& members = all_lanes,
                           const trace::Where& where = trace::Where::current()) {
    return detail::vote<std::uint32_t>(ir::Op::Ballot, std::forward<P>(p), members, where);
}

// ---- changing memory together

using ir::Order;
using ir::Scope;

namespace detail {

template <ir::Op op, class E, trace::Direction direction, class... V>
Leaf<E> atomic(const Subscript<E, direction>& place, Order order, Scope scope, const trace::Where& where, V&&... v) {
    static_assert(direction == trace::Direction::ReadWrite,
                  "an atomic reads and writes: declare the parameter as InOut<T>");
    static_assert(ir::contains(ir::info(op).domain, ir::type_of<E>), "this atomic is not for elements of this type");
    const trace::Value arguments[] = {Incoming<E>(std::forward<V>(v), where).value()...};
    return Leaf<E>(trace::atomic(op, place.slot(), {arguments, sizeof...(V)}, order, scope, where));
}

}  // namespace detail

#define IKAT_ATOMIC(name, Row)                                                                                         \
    template <class E, trace::Direction direction, Operand V>                                                          \
    Leaf<E> name(const Subscript<E, direction>& place, V&& v, Order order = Order::Relaxed, Scope scope = Scope::None, \
                 const trace::Where& where = trace::Where::current()) {                                                \
        return detail::atomic<ir::Op::Row>(place, order, scope, where, std::forward<V>(v));                            \
    }
/// Each changes place in one step and gives what was there before. Without a scope: of the block for shared memory, of
/// the device for global memory.
IKAT_ATOMIC(atomic_add, AtomicAdd)
IKAT_ATOMIC(atomic_min, AtomicMin)
IKAT_ATOMIC(atomic_max, AtomicMax)
IKAT_ATOMIC(atomic_exchange, AtomicExchange)
#undef IKAT_ATOMIC
/// Stores `desired` if `expected` is there; gives what was there before.
template <class E, trace::Direction direction, Operand A, Operand B>
Leaf<E> atomic_cas(const Subscript<E, direction>& place, A&& expected, B&& desired, Order order = Order::Relaxed,
                   Scope scope = Scope::None, const trace::Where& where = trace::Where::current()) {
    return detail::atomic<ir::Op::AtomicCas>(place, order, scope, where, std::forward<A>(expected),
                                             std::forward<B>(desired));
}

// ---- the host's eyes

/// A text for print(), and the place of the call.
struct Text {
    const char* text;
    trace::Where where;
    Text(const char* text, const trace::Where& where = trace::Where::current()) : text(text), where(where) {}
};

/// Prints from each thread: print("x[{}] = {}\n", i, x[i]). {{ and }} stand for braces. Numbers of the host print, too.
template <Operand... V>
void print(const Text& text, V&&... v) {
    const trace::Value arguments[] = {detail::operand<Computing<DeviceTypeOf<V>>>(std::forward<V>(v))..., {}};
    trace::print(text.text, {arguments, sizeof...(V)}, text.where);
}
/// Stops the kernel with the text if the condition is false in any thread.
template <DeviceValue C>
void check(C&& condition, const char* text, const trace::Where& where = trace::Where::current()) {
    trace::check(Incoming<bool>(std::forward<C>(condition)).value(), text, where);
}

}  // namespace ikat
