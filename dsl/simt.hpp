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

namespace detail {

/// Something that the thread finds out here and now; never the same for having been asked before.
template <class R, class... V>
Leaf<R> ask(const trace::Operation& what, const trace::Where& where, const V&... arguments) {
    const trace::Value values[] = {arguments..., {}};
    return Leaf<R>(trace::exchange(what, {values, sizeof...(V)}, where));
}
template <class R>
Leaf<R> sample(ir::SpecialRegister which, const trace::Where& where) {
    return ask<R>(
        {.op = ir::Op::Sample, .type = ir::type_of<R>, .operand_type = ir::type_of<R>, .attribute = ir::Word(which)},
        where);
}

}  // namespace detail

#define IKAT_REGISTER(name, which) \
    inline Special name() { return Special(trace::special(ir::SpecialRegister::which)); }
/// As bits, the lane itself and those on either side of it.
IKAT_REGISTER(lane_mask_eq, LanemaskEq)
IKAT_REGISTER(lane_mask_le, LanemaskLe)
IKAT_REGISTER(lane_mask_lt, LanemaskLt)
IKAT_REGISTER(lane_mask_ge, LanemaskGe)
IKAT_REGISTER(lane_mask_gt, LanemaskGt)
/// Where the warp runs: its place on the multiprocessor, and which of them. For profiling: a thread may be moved.
IKAT_REGISTER(hardware_warp_id, WarpId)
IKAT_REGISTER(hardware_warp_count, NwarpId)
IKAT_REGISTER(multiprocessor_id, SmId)
IKAT_REGISTER(multiprocessor_count, NsmId)
/// Bytes of shared memory: what the launch asked for, and all that the block has.
IKAT_REGISTER(dynamic_shared_bytes, DynamicSmemSize)
IKAT_REGISTER(total_shared_bytes, TotalSmemSize)
/// The block in its cluster, and how many blocks a cluster has. From sm_90 on, as all that speaks of clusters.
IKAT_REGISTER(cluster_rank, ClusterCtarank)
IKAT_REGISTER(cluster_size, ClusterNctarank)
#undef IKAT_REGISTER
inline Index3<Special> cluster_id() { return detail::special3(ir::SpecialRegister::ClusteridX); }
inline Index3<Special> cluster_count() { return detail::special3(ir::SpecialRegister::NclusteridX); }
inline Index3<Special> block_id_in_cluster() { return detail::special3(ir::SpecialRegister::ClusterCtaidX); }
inline Index3<Special> cluster_dim() { return detail::special3(ir::SpecialRegister::ClusterNctaidX); }
/// The number of the launch.
inline Leaf<std::uint64_t> grid_number() { return Leaf<std::uint64_t>(trace::special(ir::SpecialRegister::GridId)); }
/// Cycles of the multiprocessor, and nanoseconds, at this place.
inline Leaf<std::uint32_t> clock32(const trace::Where& where = trace::Where::current()) {
    return detail::sample<std::uint32_t>(ir::SpecialRegister::Clock, where);
}
inline Leaf<std::uint64_t> clock64(const trace::Where& where = trace::Where::current()) {
    return detail::sample<std::uint64_t>(ir::SpecialRegister::Clock64, where);
}
inline Leaf<std::uint64_t> global_timer(const trace::Where& where = trace::Where::current()) {
    return detail::sample<std::uint64_t>(ir::SpecialRegister::Globaltimer, where);
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
/// `threads` threads of the block, whole warps, wait for each other at barrier `id`, 0 to 15; arrive_block does not
/// wait and counts for those that do. sync_block() without a number is barrier 0.
template <Operand I, Operand N>
void sync_block(I&& id, N&& threads, const trace::Where& where = trace::Where::current()) {
    const trace::Value arguments[] = {Incoming<std::uint32_t>(std::forward<I>(id)).value(),
                                      Incoming<std::uint32_t>(std::forward<N>(threads)).value()};
    trace::effect({.op = ir::Op::NamedBarrier, .attribute = 0}, {arguments, 2}, where);
}
template <Operand I, Operand N>
void arrive_block(I&& id, N&& threads, const trace::Where& where = trace::Where::current()) {
    const trace::Value arguments[] = {Incoming<std::uint32_t>(std::forward<I>(id)).value(),
                                      Incoming<std::uint32_t>(std::forward<N>(threads)).value()};
    trace::effect({.op = ir::Op::NamedBarrier, .attribute = 1}, {arguments, 2}, where);
}

/// sync_block() that also asks all threads: whether p holds in all of them, in any, in how many.
template <DeviceValue P>
Leaf<bool> sync_block_and(P&& p, const trace::Where& where = trace::Where::current()) {
    return detail::ask<bool>(
        {.op = ir::Op::BarrierVote, .type = ir::Type::Pred, .operand_type = ir::Type::Pred, .attribute = 0}, where,
        Incoming<bool>(std::forward<P>(p)).value());
}
template <DeviceValue P>
Leaf<bool> sync_block_or(P&& p, const trace::Where& where = trace::Where::current()) {
    return detail::ask<bool>(
        {.op = ir::Op::BarrierVote, .type = ir::Type::Pred, .operand_type = ir::Type::Pred, .attribute = 1}, where,
        Incoming<bool>(std::forward<P>(p)).value());
}
template <DeviceValue P>
Leaf<std::uint32_t> sync_block_count(P&& p, const trace::Where& where = trace::Where::current()) {
    return detail::ask<std::uint32_t>(
        {.op = ir::Op::BarrierCount, .type = ir::Type::U32, .operand_type = ir::Type::U32}, where,
        Incoming<bool>(std::forward<P>(p)).value());
}

using ir::Order;
using ir::Scope;

/// What a fence orders: what comes before it and what comes behind it, or all such fences of all threads, too.
enum class FenceOrder : std::uint8_t { AcquireRelease, SequentiallyConsistent };
/// Memory accesses of this thread before the fence are seen, in the scope, before those behind it.
inline void fence(Scope scope = Scope::Gpu, FenceOrder order = FenceOrder::AcquireRelease,
                  const trace::Where& where = trace::Where::current()) {
    const auto place = scope == Scope::None ? ir::Word(Scope::Gpu) - 1 : ir::Word(scope) - 1;
    trace::effect({.op = ir::Op::Fence, .attribute = place + (order == FenceOrder::AcquireRelease ? 0u : 4u)}, {},
                  where);
}

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

/// The lanes that hold the same value as this one, as bits.
template <DeviceValue V>
Leaf<std::uint32_t> match_any(V&& v, const Members& members = all_lanes,
                              const trace::Where& where = trace::Where::current()) {
    using T = DeviceTypeOf<V>;
    static_assert(ir::contains(ir::info(ir::Op::MatchAny).domain, ir::type_of<T>),
                  "match_any() is for i32, u32, i64 and u64: compare floats by their bits, bit_cast<u32>()");
    return detail::ask<std::uint32_t>({.op = ir::Op::MatchAny, .type = ir::Type::U32, .operand_type = ir::type_of<T>},
                                      where, Incoming<T>(std::forward<V>(v)).value(), members.value());
}
/// All members if they hold the same value, else 0.
template <DeviceValue V>
Leaf<std::uint32_t> match_all(V&& v, const Members& members = all_lanes,
                              const trace::Where& where = trace::Where::current()) {
    using T = DeviceTypeOf<V>;
    static_assert(ir::contains(ir::info(ir::Op::MatchAll).domain, ir::type_of<T>),
                  "match_all() is for i32, u32, i64 and u64: compare floats by their bits, bit_cast<u32>()");
    return detail::ask<std::uint32_t>({.op = ir::Op::MatchAll, .type = ir::Type::U32, .operand_type = ir::type_of<T>},
                                      where, Incoming<T>(std::forward<V>(v)).value(), members.value());
}
/// The lanes that come here together. Which those are is up to the hardware: where all must come, say so by members.
inline Leaf<std::uint32_t> active_lanes(const trace::Where& where = trace::Where::current()) {
    return detail::ask<std::uint32_t>({.op = ir::Op::ActiveMask, .type = ir::Type::U32, .operand_type = ir::Type::U32},
                                      where);
}
/// True in one of the members. From sm_90 on.
inline Leaf<bool> elect(const Members& members = all_lanes, const trace::Where& where = trace::Where::current()) {
    return detail::ask<bool>({.op = ir::Op::Elect, .type = ir::Type::Pred, .operand_type = ir::Type::Pred}, where,
                             members.value());
}

#define IKAT_REDUCE(name, Row, mode)                                                                              \
    template <DeviceValue V>                                                                                      \
    auto name(V&& v, const Members& members = all_lanes, const trace::Where& where = trace::Where::current()) {   \
        using T = DeviceTypeOf<V>;                                                                                \
        static_assert(ir::contains(ir::info(ir::Op::Row).domain, ir::type_of<T>), #name "() is for i32 and u32"); \
        return detail::ask<T>({.op = ir::Op::Row,                                                                 \
                               .type = ir::type_of<T>,                                                            \
                               .operand_type = ir::type_of<T>,                                                    \
                               .attribute = *ir::mode_named(ir::Op::Row, mode)},                                  \
                              where, Incoming<T>(std::forward<V>(v)).value(), members.value());                   \
    }
/// Of all members' values, in one instruction. From sm_80 on.
IKAT_REDUCE(reduce_add, WarpReduce, "add")
IKAT_REDUCE(reduce_min, WarpReduce, "min")
IKAT_REDUCE(reduce_max, WarpReduce, "max")
IKAT_REDUCE(reduce_and, WarpReduceBits, "and")
IKAT_REDUCE(reduce_or, WarpReduceBits, "or")
IKAT_REDUCE(reduce_xor, WarpReduceBits, "xor")
#undef IKAT_REDUCE

// ---- changing memory together

namespace detail {

template <ir::Op op, class E, trace::Direction direction, class... V>
Leaf<E> atomic(const Subscript<E, direction>& place, Order order, Scope scope, const trace::Where& where, V&&... v) {
    static_assert(direction == trace::Direction::ReadWrite,
                  "an atomic reads and writes: declare the parameter as InOut<T>");
    static_assert(ir::contains(ir::info(op).domain, ir::type_of<E>), "this atomic is not for elements of this type");
    const trace::Value arguments[] = {Incoming<E>(std::forward<V>(v), where).value()...};
    return Leaf<E>(trace::atomic(op, place.slot(), {arguments, sizeof...(V)}, order, scope, where));
}

/// What PTX has no atomic for: changed(what is there) is put there unless it is there already, again and again until
/// nobody else came between.
template <std::floating_point E, trace::Direction direction>
Leaf<E> atomic_update(const Subscript<E, direction>& place, Order order, Scope scope, const trace::Where& where,
                      auto&& changed) {
    using Bits = std::conditional_t<sizeof(E) == 4, std::uint32_t, std::uint64_t>;
    static_assert(direction == trace::Direction::ReadWrite,
                  "an atomic reads and writes: declare the parameter as InOut<T>");
    const auto differ = [](const auto& a, const auto& b) { return bit_cast<Var<Bits>>(a) != bit_cast<Var<Bits>>(b); };
    Var<E> seen(Leaf<E>(trace::ordered_load(place.slot(), Order::Relaxed, scope, where)), where);
    Var<bool> again(differ(changed(seen), seen), where);
    const auto attempt = [&] {
        Var<E> expected(seen, where);
        seen = atomic<ir::Op::AtomicCas>(place, order, scope, where, expected, changed(expected));
        again = differ(seen, expected) & differ(changed(seen), seen);
    };
    while_([&] { return again; }, attempt, where);
    return value(seen);
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
IKAT_ATOMIC(atomic_exchange, AtomicExchange)
IKAT_ATOMIC(atomic_and, AtomicAnd)
IKAT_ATOMIC(atomic_or, AtomicOr)
IKAT_ATOMIC(atomic_xor, AtomicXor)
/// Counts up to v and then from 0 again; counts down to 0 and then from v again.
IKAT_ATOMIC(atomic_inc, AtomicInc)
IKAT_ATOMIC(atomic_dec, AtomicDec)
#undef IKAT_ATOMIC

#define IKAT_ATOMIC(name, Row, changed)                                                                                \
    template <class E, trace::Direction direction, Operand V>                                                          \
    Leaf<E> name(const Subscript<E, direction>& place, V&& v, Order order = Order::Relaxed, Scope scope = Scope::None, \
                 const trace::Where& where = trace::Where::current()) {                                                \
        if constexpr (std::floating_point<E>) {                                                                        \
            const Var<E> operand(std::forward<V>(v), where);                                                           \
            return detail::atomic_update(place, order, scope, where,                                                   \
                                         [&](const Var<E>& there) { return changed(there, operand); });                \
        } else {                                                                                                       \
            return detail::atomic<ir::Op::Row>(place, order, scope, where, std::forward<V>(v));                        \
        }                                                                                                              \
    }
/// The same. For float and double a loop of atomic_cas, which a value that changes nothing does not enter; a NaN and a
/// number give the number, as min() and max().
IKAT_ATOMIC(atomic_min, AtomicMin, min)
IKAT_ATOMIC(atomic_max, AtomicMax, max)
#undef IKAT_ATOMIC
/// Stores `desired` if `expected` is there; gives what was there before.
template <class E, trace::Direction direction, Operand A, Operand B>
Leaf<E> atomic_cas(const Subscript<E, direction>& place, A&& expected, B&& desired, Order order = Order::Relaxed,
                   Scope scope = Scope::None, const trace::Where& where = trace::Where::current()) {
    return detail::atomic<ir::Op::AtomicCas>(place, order, scope, where, std::forward<A>(expected),
                                             std::forward<B>(desired));
}

/// Adds to elements of y.vec<N>(i), each in one step: reduce_add(y.vec<4>(i), {a, b, c, d}). From sm_90 on.
template <class E, int N>
void reduce_add(const VecSubscript<E, N, trace::Direction::ReadWrite>& place, const Vec<E, N>& v,
                Order order = Order::Relaxed, Scope scope = Scope::None,
                const trace::Where& where = trace::Where::current()) {
    static_assert(ir::contains(ir::info(ir::Op::VectorAdd).domain, ir::type_of<E>),
                  "reduce_add() of a vector is for elements of type float");
    trace::vector_add(place.slot(), v.recorded(), order, scope, where);
}

namespace detail {

template <class E, trace::Direction direction>
constexpr void check_ordered() {
    static_assert(direction == trace::Direction::ReadWrite,
                  "what other threads change meanwhile is read and written: declare the parameter as InOut<T>");
    static_assert(ir::contains(ir::Num, ir::type_of<E>),
                  "an access with an order is for elements of the device's own types, no 8- or 16-bit integers");
}

}  // namespace detail

/// An access that sees what other threads do, in the order that it says. Without a scope as atomic_add.
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
/// An access that is made as written: not merged, not left out, not ordered either.
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
    [[maybe_unused]] constexpr ir::TypeSet printed = ir::AnyNum | ir::set(ir::Type::Pred);
    static_assert((ir::contains(printed, ir::type_of<DeviceTypeOf<V>>) && ...),
                  "print() is for numbers and pred: convert 8-bit floats, print the lanes of packed ones");
    const trace::Value arguments[] = {detail::operand<DeviceTypeOf<V>>(std::forward<V>(v))..., {}};
    trace::print(text.text, {arguments, sizeof...(V)}, text.where);
}
/// Stops the kernel with the text if the condition is false in any thread.
template <DeviceValue C>
void check(C&& condition, const char* text, const trace::Where& where = trace::Where::current()) {
    trace::check(Incoming<bool>(std::forward<C>(condition)).value(), text, where);
}

}  // namespace ikat
