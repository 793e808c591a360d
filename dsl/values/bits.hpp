// SPDX-License-Identifier: Apache-2.0
// Bits, bytes and packed integers: integer operations for which C++ has no operator. Each is one PTX instruction.
#pragma once
#include "dsl/values/math.hpp"

namespace ikat {
namespace detail {

/// An operand that is a position, a length or an amount.
template <class V>
trace::Recorded amount(V&& v) {
    static_assert(is_shift_amount<V>(), "a bit's position, a length and an amount are u32: convert with cast<u32>()");
    return operand<std::uint32_t>(std::forward<V>(v));
}

/// An op with operands and result of the same type, with its mode or table.
template <ir::Op op, class T, class... V>
auto make_with(ir::Word attribute, V&&... v) {
    (void)(true && ... && must_match<T, V>);
    const trace::Recorded operands[] = {operand<T>(std::forward<V>(v))...};
    return Expr<T>(
        trace::operation({.op = op, .type = ir::type_of<T>, .operand_type = ir::type_of<T>, .attribute = attribute},
                         {operands, sizeof...(V)}));
}

template <ir::Op op, class... V>
inline constexpr bool in_words = ir::contains(ir::info(op).domain, ir::type_of<CommonType<V...>>);

}  // namespace detail

#define IKAT_COUNT(name, Row)                                                                                      \
    template <DeviceValue A>                                                                                       \
    auto name(A&& a) {                                                                                             \
        using T = DeviceTypeOf<A>;                                                                                 \
        static_assert(detail::in_words<ir::Op::Row, A>, #name "() is for i32, u32, i64 and u64, and gives a u32"); \
        return make_expression<ir::Op::Row, std::uint32_t, T>(std::forward<A>(a));                                 \
    }
/// The number of bits set.
IKAT_COUNT(popcount, PopCount)
/// The number of zeros above the highest bit set; all bits for 0.
IKAT_COUNT(leading_zeros, LeadingZeros)
/// One more than the position of the lowest bit set; 0 if there is none.
template <DeviceValue A>
auto ffs(A&& a) {
    using T = DeviceTypeOf<A>;
    static_assert(detail::in_words<ir::Op::LeadingZeros, A>, "ffs() is for i32, u32, i64 and u64, and gives a u32");
    const Leaf<T> given(detail::operand<T>(std::forward<A>(a)));
    const auto bits = bit_cast<std::make_unsigned_t<T>>(given);
    return std::uint32_t(8 * sizeof(T)) - leading_zeros(bits & (~bits + 1));
}
/// The position of the highest bit that is set, or for signed types differs from the sign; 0xffffffff if there is none.
IKAT_COUNT(highest_bit, HighestBit)
/// The left shift that moves that bit to the top; 0xffffffff if there is none.
IKAT_COUNT(highest_bit_shift, HighestBitShift)
#undef IKAT_COUNT

/// The bits in reverse order.
template <DeviceValue A>
auto bit_reverse(A&& a) {
    using T = DeviceTypeOf<A>;
    static_assert(detail::in_words<ir::Op::ReverseBits, A>, "bit_reverse() is for i32, u32, i64 and u64");
    return make_expression<ir::Op::ReverseBits, T, T>(std::forward<A>(a));
}

/// `length` bits of a from bit `position` on; sign-extended if a is signed.
template <DeviceValue A, Operand P, Operand L>
auto bit_extract(A&& a, P&& position, L&& length) {
    using T = DeviceTypeOf<A>;
    static_assert(detail::in_words<ir::Op::ExtractBits, A>, "bit_extract() is for i32, u32, i64 and u64");
    const trace::Recorded operands[] = {detail::operand<T>(std::forward<A>(a)),
                                        detail::amount(std::forward<P>(position)),
                                        detail::amount(std::forward<L>(length))};
    return Expr<T>(trace::operation({.op = ir::Op::ExtractBits, .type = ir::type_of<T>, .operand_type = ir::type_of<T>},
                                    {operands, 3}));
}

/// `into`, with `length` bits from bit `position` on replaced by the low bits of `field`.
template <class A, class B, Operand P, Operand L>
requires detail::SomeDevice<A, B>
auto bit_insert(A&& field, B&& into, P&& position, L&& length) {
    using T = CommonType<A, B>;
    static_assert(detail::in_words<ir::Op::InsertBits, A, B>, "bit_insert() is for i32, u32, i64 and u64");
    (void)(detail::must_match<T, A> && detail::must_match<T, B>);
    const trace::Recorded operands[] = {
        detail::operand<T>(std::forward<A>(field)), detail::operand<T>(std::forward<B>(into)),
        detail::amount(std::forward<P>(position)), detail::amount(std::forward<L>(length))};
    return Expr<T>(trace::operation({.op = ir::Op::InsertBits, .type = ir::type_of<T>, .operand_type = ir::type_of<T>},
                                    {operands, 4}));
}

/// How byte_permute reads its selector: as four nibbles, or in PTX's special modes as its two low bits.
enum class Permute : std::uint8_t { Nibbles, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
/// Four of the eight bytes of a (0 … 3) and b (4 … 7): nibble k of the selector picks byte k of the result, and if the
/// nibble's top bit is set, that byte's sign in all eight bits.
template <class A, class B, class C>
requires detail::SomeDevice<A, B, C>
auto byte_permute(A&& a, B&& b, C&& selector, Permute mode = Permute::Nibbles) {
    using T = CommonType<A, B, C>;
    static_assert(detail::in_words<ir::Op::PermuteBytes, A, B, C>, "byte_permute() is for i32 and u32");
    return detail::make_with<ir::Op::PermuteBytes, T>(ir::Word(mode), std::forward<A>(a), std::forward<B>(b),
                                                      std::forward<C>(selector));
}

/// Any bitwise function of three values. The table is the function applied to 0xf0, 0xcc and 0xaa:
/// lop3<(0xf0 & 0xcc) | 0xaa>(a, b, c) is (a & b) | c.
template <unsigned table, class A, class B, class C>
requires detail::SomeDevice<A, B, C>
auto lop3(A&& a, B&& b, C&& c) {
    using T = CommonType<A, B, C>;
    static_assert(table < 256, "the table of lop3<table>() has eight bits");
    static_assert(detail::in_words<ir::Op::Logic3, A, B, C>, "lop3() is for i32 and u32");
    return detail::make_with<ir::Op::Logic3, T>(table, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
}

/// The treatment of amounts of 32 or more: taken modulo 32, or clamped to 32.
enum class Funnel : std::uint8_t { Wrap, Clamp };
#define IKAT_FUNNEL(name, first_mode)                                                                         \
    template <class A, class B, Operand N>                                                                    \
    requires detail::SomeDevice<A, B, N>                                                                      \
    auto name(A&& low, B&& high, N&& n, Funnel beyond = Funnel::Wrap) {                                       \
        using T = std::conditional_t<DeviceValue<A> || DeviceValue<B>, CommonType<A, B, N>, DeviceTypeOf<A>>; \
        static_assert(ir::contains(ir::info(ir::Op::FunnelShift).domain, ir::type_of<T>),                     \
                      #name "() is for i32 and u32");                                                         \
        (void)(detail::must_match<T, A> && detail::must_match<T, B>);                                         \
        const trace::Recorded operands[] = {detail::operand<T>(std::forward<A>(low)),                         \
                                            detail::operand<T>(std::forward<B>(high)),                        \
                                            detail::amount(std::forward<N>(n))};                              \
        return Expr<T>(trace::operation({.op = ir::Op::FunnelShift,                                           \
                                         .type = ir::type_of<T>,                                              \
                                         .operand_type = ir::type_of<T>,                                      \
                                         .attribute = first_mode + ir::Word(beyond)},                         \
                                        {operands, 3}));                                                      \
    }
/// The 64 bits {high, low}, shifted: the upper half after a left shift, the lower half after a right shift.
IKAT_FUNNEL(funnel_left, 0)
IKAT_FUNNEL(funnel_right, 2)
#undef IKAT_FUNNEL

// ---- packed integers

namespace detail {

template <class V>
concept PackedWord = DeviceValue<V> &&
    (std::is_same_v<DeviceTypeOf<V>, std::int32_t> || std::is_same_v<DeviceTypeOf<V>, std::uint32_t>);

/// The type of the sum of a dot product: unsigned if both sides are.
template <class A, class B>
using SumOf = std::conditional_t<std::is_signed_v<DeviceTypeOf<A>> || std::is_signed_v<DeviceTypeOf<B>>, std::int32_t,
                                 std::uint32_t>;

template <ir::Op op, class A, class B, class C>
auto make_dot(ir::Word mode, A&& a, B&& b, C&& c) {
    using T = SumOf<A, B>;
    (void)must_match<T, C>;
    const trace::Recorded operands[] = {operand<DeviceTypeOf<A>>(std::forward<A>(a)),
                                        operand<DeviceTypeOf<B>>(std::forward<B>(b)), operand<T>(std::forward<C>(c))};
    return Expr<T>(trace::operation({.op = op,
                                     .type = ir::type_of<T>,
                                     .operand_type = ir::type_of<DeviceTypeOf<A>>,
                                     .from = ir::type_of<DeviceTypeOf<B>>,
                                     .attribute = mode},
                                    {operands, 3}));
}

}  // namespace detail

/// c plus the dot product of the four bytes of a with those of b; the bytes of an i32 are signed, of a u32 unsigned. c
/// and the result are u32 if both are, else i32.
template <Operand A, Operand B, Operand C>
auto dp4a(A&& a, B&& b, C&& c) {
    static_assert(detail::PackedWord<A> && detail::PackedWord<B>,
                  "dp4a() is for i32 and u32, each of four signed or unsigned bytes");
    return detail::make_dot<ir::Op::Dp4a>(0, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
}
#define IKAT_DP2A(name, mode)                                                                                    \
    template <Operand A, Operand B, Operand C>                                                                   \
    auto name(A&& a, B&& b, C&& c) {                                                                             \
        static_assert(detail::PackedWord<A> && detail::PackedWord<B>,                                            \
                      #name "() is for i32 and u32: two 16-bit numbers, and four bytes");                        \
        return detail::make_dot<ir::Op::Dp2a>(mode, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c)); \
    }
/// c plus the dot product of the two 16-bit halves of a with the two low, or high, bytes of b.
IKAT_DP2A(dp2a_low, 0)
IKAT_DP2A(dp2a_high, 1)
#undef IKAT_DP2A

// ---- integers

/// c + |a - b|.
template <class A, class B, class C>
requires detail::SomeDevice<A, B, C>
auto sad(A&& a, B&& b, C&& c) {
    using T = CommonType<A, B, C>;
    static_assert(detail::in_words<ir::Op::Sad, A, B, C>, "sad() is for i32, u32, i64 and u64");
    return make_expression<ir::Op::Sad, T, T>(std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
}

#define IKAT_MUL24(name, mode)                                                                    \
    template <class A, class B>                                                                   \
    requires detail::SomeDevice<A, B>                                                             \
    auto name(A&& a, B&& b) {                                                                     \
        using T = CommonType<A, B>;                                                               \
        static_assert(detail::in_words<ir::Op::Mul24, A, B>, #name "() is for i32 and u32");      \
        return detail::make_with<ir::Op::Mul24, T>(mode, std::forward<A>(a), std::forward<B>(b)); \
    }
/// The low, and the high, 32 bits of the 48-bit product of the low 24 bits.
IKAT_MUL24(mul24, 0)
IKAT_MUL24(mul24_hi, 1)
#undef IKAT_MUL24

namespace detail {
template <class T>
using Doubled = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
}  // namespace detail

/// The full product of two 32-bit integers, in 64 bits.
template <class A, class B>
requires detail::SomeDevice<A, B>
auto mul_wide(A&& a, B&& b) {
    using T = CommonType<A, B>;
    static_assert(detail::in_domain<ir::Op::MulWide, A, B>, "mul_wide() is for i32 and u32, and gives i64 or u64");
    return make_expression<ir::Op::MulWide, detail::Doubled<T>, T>(std::forward<A>(a), std::forward<B>(b));
}
/// The same plus c, an i64 or u64.
template <class A, class B, Operand C>
requires detail::SomeDevice<A, B>
auto mad_wide(A&& a, B&& b, C&& c) {
    using T = CommonType<A, B>;
    using R = detail::Doubled<T>;
    static_assert(detail::in_domain<ir::Op::MadWide, A, B>, "mad_wide() is for i32 and u32, and gives i64 or u64");
    (void)(detail::must_match<T, A> && detail::must_match<T, B> && detail::must_match<R, C>);
    const trace::Recorded operands[] = {detail::operand<T>(std::forward<A>(a)), detail::operand<T>(std::forward<B>(b)),
                                        detail::operand<R>(std::forward<C>(c))};
    return Expr<R>(trace::operation({.op = ir::Op::MadWide, .type = ir::type_of<R>, .operand_type = ir::type_of<T>},
                                    {operands, 3}));
}

/// One step of a multi-word sum or difference: its word of the result, and the carry or borrow for the next step.
template <class T>
struct Carried {
    Leaf<T> value;
    Leaf<bool> carry;
};

namespace detail {
template <ir::Op op, class T>
Carried<T> step(const trace::Where& where, trace::Recorded a, trace::Recorded b, trace::Recorded carry) {
    const trace::Recorded operands[] = {a, b, carry};
    const ir::Type types[] = {ir::type_of<T>, ir::Type::Pred};
    trace::Recorded results[2];
    trace::operation({.op = op, .type = types[0], .operand_type = types[0]}, {operands, 3}, {types, results, 2}, where);
    return {Leaf<T>(results[0]), Leaf<bool>(results[1])};
}
}  // namespace detail

#define IKAT_STEP(name, Row)                                                                         \
    template <Operand A, Operand B, Operand C>                                                       \
    auto name(A&& a, B&& b, C&& carry, const trace::Where& where = trace::Where::current()) {        \
        using T = CommonType<A, B>;                                                                  \
        static_assert(detail::in_words<ir::Op::Row, A, B>, #name "() is for i32, u32, i64 and u64"); \
        return detail::step<ir::Op::Row, T>(where, Incoming<T>(std::forward<A>(a)).value(),          \
                                            Incoming<T>(std::forward<B>(b)).value(),                 \
                                            Incoming<bool>(std::forward<C>(carry)).value());         \
    }                                                                                                \
    template <Operand A, Operand B>                                                                  \
    auto name(A&& a, B&& b, const trace::Where& where = trace::Where::current()) {                   \
        return name(std::forward<A>(a), std::forward<B>(b), false, where);                           \
    }
/// a + b + carry, and a - b - borrow, unsigned: each step passes its carry or borrow to the next.
/// auto low = add_carry(a0, b0); auto high = add_carry(a1, b1, low.carry);
IKAT_STEP(add_carry, AddCarry)
IKAT_STEP(sub_borrow, SubBorrow)
#undef IKAT_STEP

}  // namespace ikat
