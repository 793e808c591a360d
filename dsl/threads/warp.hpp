// SPDX-License-Identifier: Apache-2.0
// Operations of the lanes of a warp: wait, exchange values, vote, match, reduce.
// Lanes exchange 32-bit registers. Values of 8 and 16 bits are widened, 64-bit values are exchanged in two halves.
#pragma once
#include "dsl/values/bits.hpp"

namespace ikat {

/// The participating lanes of a warp: bit i is lane i. A u32, or a host number.
class Members {
public:
    template <Operand V>
    Members(V&& v) : value_(Incoming<std::uint32_t>(std::forward<V>(v)).value()) {}
    const trace::Recorded& value() const { return value_; }

private:
    trace::Recorded value_;
};
inline constexpr std::uint32_t all_lanes = 0xffffffff;
/// The lanes of a warp wait for each other.
inline void sync_warp(const Members& members = all_lanes, const trace::Where& where = trace::Where::current()) {
    trace::sync_warp(members.value(), where);
}

namespace detail {

/// A query that is evaluated at this point and never merged with an earlier one.
template <class R, class... V>
Leaf<R> ask(const trace::Operation& what, const trace::Where& where, const V&... arguments) {
    const trace::Recorded values[] = {arguments..., {}};
    return Leaf<R>(trace::exchange(what, {values, sizeof...(V)}, where));
}

/// Converts a value of at most 32 bits to a 32-bit register, and back.
template <class T>
using BitsOf = std::make_unsigned_t<typename SignedInteger<sizeof(T)>::type>;
template <class T>
auto as_word(Leaf<T>&& v) {
    return cast<std::uint32_t>(bit_cast<BitsOf<T>>(std::move(v)));
}
template <class T>
auto from_word(Leaf<std::uint32_t>&& word) {
    return bit_cast<T>(cast<BitsOf<T>>(std::move(word)));
}

template <class T>
Leaf<T> shuffle_word(ir::ShuffleMode mode, const trace::Recorded& v, const trace::Recorded& lane,
                     const Members& members, int width, const trace::Where& where) {
    // PTX's c operand: the last source lane, and the mask of the lane bits that give the group.
    const std::uint64_t clamp = (mode == ir::ShuffleMode::Up ? 0 : 31) | std::uint64_t(32 - width) << 8;
    const trace::Recorded arguments[] = {v, lane, trace::literal(ir::Type::U32, clamp), members.value()};
    return Leaf<T>(trace::exchange({.op = ir::Op::Shuffle,
                                    .type = ir::type_of<T>,
                                    .operand_type = ir::type_of<T>,
                                    .attribute = ir::pack(ir::ShuffleForm{mode})},
                                   {arguments, 4}, where));
}

/// A 64-bit value is exchanged in two halves, which count as one effect of the expression.
template <class T>
Leaf<T> shuffle_halves(ir::ShuffleMode mode, Leaf<T>&& v, const trace::Recorded& lane, const Members& members,
                       int width, const trace::Where& where) {
    const auto half = [&](const auto& bits) {
        const trace::Recorded word = trace::committed(cast<std::uint32_t>(bits).recorded());
        return cast<std::uint64_t>(Leaf<std::uint32_t>(
            trace::settled(shuffle_word<std::uint32_t>(mode, word, lane, members, width, where).recorded())));
    };
    const auto bits = value(bit_cast<std::uint64_t>(std::move(v)));
    const auto low = value(half(bits)), high = value(half(bits >> 32));
    trace::Recorded out = trace::committed(bit_cast<T>(low | high << 32).recorded());
    out.effects = 1;
    return Leaf<T>(out);
}

template <class V, class N>
auto shuffle(ir::ShuffleMode mode, V&& v, N&& n, const Members& members, int width, const trace::Where& where) {
    using T = DeviceTypeOf<V>;
    width = trace::checked_width(width, where);
    static_assert(ir::contains(ir::Storable, ir::type_of<T>),
                  "shuffles exchange numbers: ballot() gives a pred of all lanes");
    Leaf<T> given(operand<T>(std::forward<V>(v)));
    const trace::Recorded lane = Incoming<std::uint32_t>(std::forward<N>(n)).value();
    if constexpr (!ir::contains(ir::Storable, ir::type_of<T>))
        return given;
    else if constexpr (ir::contains(ir::info(ir::Op::Shuffle).domain, ir::type_of<T>))
        return shuffle_word<T>(mode, given.recorded(), lane, members, width, where);
    else if constexpr (sizeof(T) == 8)
        return shuffle_halves<T>(mode, std::move(given), lane, members, width, where);
    else
        return from_word<T>(
            shuffle_word<std::uint32_t>(mode, as_word(std::move(given)).recorded(), lane, members, width, where));
}

template <class R, class P>
Leaf<R> vote(ir::Op op, P&& p, const Members& members, const trace::Where& where) {
    const trace::Recorded arguments[] = {Incoming<bool>(std::forward<P>(p)).value(), members.value()};
    return Leaf<R>(
        trace::exchange({.op = op, .type = ir::type_of<R>, .operand_type = ir::type_of<R>}, {arguments, 2}, where));
}

}  // namespace detail

#define IKAT_SHUFFLE(name, mode)                                                                                      \
    template <DeviceValue V, Operand N>                                                                               \
    auto name(V&& v, N&& n, const Members& members = all_lanes, int width = 32,                                       \
              const trace::Where& where = trace::Where::current()) {                                                  \
        return detail::shuffle(ir::ShuffleMode::mode, std::forward<V>(v), std::forward<N>(n), members, width, where); \
    }
// A width of 2, 4, 8 or 16 splits the warp into groups of that many lanes, numbered from 0 in each group.
/// The value of the lane n above; of this lane if there is none.
IKAT_SHUFFLE(shuffle_down, Down)
/// The value of the lane n below; of this lane if there is none.
IKAT_SHUFFLE(shuffle_up, Up)
/// The value of lane (lane_id() ^ n).
IKAT_SHUFFLE(shuffle_xor, Xor)
/// The value of lane n.
IKAT_SHUFFLE(shuffle_idx, Idx)
#undef IKAT_SHUFFLE

/// The value of lane 0, in all lanes: for the compiler, too, it is then the same throughout the warp.
template <DeviceValue V>
auto warp_uniform(V&& v, const trace::Where& where = trace::Where::current()) {
    return detail::shuffle(ir::ShuffleMode::Idx, std::forward<V>(v), 0u, all_lanes, 32, where);
}

/// Whether p holds in any lane, in all lanes; the lanes in which it holds, as bits.
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

#define IKAT_MATCH(name, Row, R)                                                                                   \
    template <DeviceValue V>                                                                                       \
    Leaf<R> name(V&& v, const Members& members = all_lanes, const trace::Where& where = trace::Where::current()) { \
        using T = DeviceTypeOf<V>;                                                                                 \
        static_assert(ir::contains(ir::AnyInt, ir::type_of<T>),                                                    \
                      #name "() is for integers: compare floats by their bits, bit_cast<u32>()");                  \
        const auto ask = [&](const auto& same) {                                                                   \
            using Asked = DeviceTypeOf<decltype(same)>;                                                            \
            return detail::ask<R>({.op = ir::Op::Row, .type = ir::type_of<R>, .operand_type = ir::type_of<Asked>}, \
                                  where, same.recorded(), members.value());                                        \
        };                                                                                                         \
        Leaf<T> given(Incoming<T>(std::forward<V>(v)).value());                                                    \
        if constexpr (ir::contains(ir::NarrowInt, ir::type_of<T>))                                                 \
            return ask(detail::as_word(std::move(given)));                                                         \
        else                                                                                                       \
            return ask(given);                                                                                     \
    }
/// The lanes that hold the same value as this one, as bits.
IKAT_MATCH(match_any, MatchAny, std::uint32_t)
/// All members if they hold the same value, else 0.
IKAT_MATCH(match_all, MatchAll, std::uint32_t)
/// Whether all members hold the same value.
IKAT_MATCH(all_match, AllMatch, bool)
#undef IKAT_MATCH
/// The lanes that execute this together. Which ones is up to the hardware: if all must, use a member mask.
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
        constexpr bool narrow = ir::contains(ir::NarrowInt, ir::type_of<T>);                                      \
        using Word =                                                                                              \
            std::conditional_t<!narrow, T, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>; \
        static_assert(ir::contains(ir::info(ir::Op::Row).domain, ir::type_of<Word>),                              \
                      #name "() is for integers of 8, 16 and 32 bits");                                           \
        const auto word = cast<Word>(Leaf<T>(Incoming<T>(std::forward<V>(v)).value()));                           \
        return cast<T>(detail::ask<Word>({.op = ir::Op::Row,                                                      \
                                          .type = ir::type_of<Word>,                                              \
                                          .operand_type = ir::type_of<Word>,                                      \
                                          .attribute = *ir::mode_named(ir::Op::Row, mode)},                       \
                                         where, word.recorded(), members.value()));                               \
    }
/// Reduces the values of all members, in one instruction. From sm_80 on.
IKAT_REDUCE(reduce_add, WarpReduce, "add")
IKAT_REDUCE(reduce_min, WarpReduce, "min")
IKAT_REDUCE(reduce_max, WarpReduce, "max")
IKAT_REDUCE(reduce_and, WarpReduceBits, "and")
IKAT_REDUCE(reduce_or, WarpReduceBits, "or")
IKAT_REDUCE(reduce_xor, WarpReduceBits, "xor")
#undef IKAT_REDUCE

}  // namespace ikat
