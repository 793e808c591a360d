// SPDX-License-Identifier: Apache-2.0
// Conversions, comparisons, selections and moves between registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/convert.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/ops/lanes.inl"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// ---- cvt

/// The common conversions, one loop each.
template <class To, class From>
struct Convert {
    static HWY_INLINE To apply(From x) { return sem::convert<To>(x, Rounding::Nearest); }
};
template <class To, class From>
struct Wrap {  // between integers
    static HWY_INLINE To apply(From x) { return To(x); }
};
/// f32 or f64 from an integer: the host's conversion rounds to nearest, once.
template <class To, class From>
struct Round {
    static HWY_INLINE To apply(From x) {
        const To r = To(x);
        return r != r ? sem::canonical_nan<To>() : r;
    }
};
/// f32 to a 32-bit integer toward zero; a branch-free version of the line in semantics.hpp.
template <class To>
struct Truncate {
    static HWY_INLINE To apply(float x) {
        constexpr double lowest = double(std::numeric_limits<To>::min()),
                         highest = double(std::numeric_limits<To>::max());
        const double value = x != x ? 0.0 : double(x);
        const double clamped = value < lowest ? lowest : value > highest ? highest : value;
        if constexpr (std::is_signed_v<To>) {
            return To(clamped);
        } else {  // through the signed range, which every instruction set converts
            const bool upper = clamped >= 2147483648.0;
            return To(std::int32_t(clamped - (upper ? 2147483648.0 : 0.0))) + (upper ? 0x80000000u : 0u);
        }
    }
};

/// All the others: op.x has the rounding and the bits of handlers.hpp.
template <class T>
HWY_INLINE T flushed(T x) {
    if constexpr (std::is_same_v<T, float>)
        return std::bit_cast<u32>(x) & 0x7f800000 ? x : std::bit_cast<float>(std::bit_cast<u32>(x) & 0x80000000u);
    else if constexpr (std::is_same_v<T, half>)
        return half::from_bits(x.bits & 0x7c00 ? x.bits : x.bits & 0x8000);
    else
        return x;
}
/// Modifies a float result: negative numbers become 0; infinities the largest number.
template <class T>
T limited(T x, std::uint32_t how) {
    if constexpr (sem::is_float<T>) {
        if (how & ReluResult && sem::wide(x) <= 0) return T(0.0);
        if constexpr (is_small_float<T>)
            if (how & FiniteResult && (x.bits & T::format.nan()) == T::format.infinity()) --x.bits;
    }
    return x;
}
template <class T>
T to_integral(T x, Rounding rounding) {
    const double v = double(sem::wide(x));
    if (v != v) return sem::canonical_nan<T>();
    switch (rounding) {
        case Rounding::Nearest: return T(__builtin_nearbyint(v));
        case Rounding::Zero: return T(__builtin_trunc(v));
        case Rounding::Down: return T(__builtin_floor(v));
        case Rounding::Up: return T(__builtin_ceil(v));
    }
    return x;
}
template <class To, class From>
IKAT_HANDLER(convert_any) {
    const Rounding rounding = Rounding(op->x & 3);
    const Cell<From>* const a = lanes_at<Cell<From>>(frame, op->a);
    Cell<To>* const d = lanes_at<Cell<To>>(w->scratch, 0);
    for (unsigned i = 0; i < warp_size; ++i) {
        From x = from_cell<From>(a[i]);
        if (op->x & FlushSubnormals) x = flushed(x);
        if constexpr (sem::is_float<From>)
            if (op->x & RoundToIntegral) x = to_integral(x, rounding);
        To r = sem::convert<To>(x, rounding, op->x & SaturateResult);
        if (op->x & FlushSubnormals) r = flushed(r);
        if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>)  // see FlushedProduct
            if (op->x & FlushSubnormals && std::abs(r) == 0x1p-126f &&
                std::abs(sem::convert<To>(x * 0x1p24, rounding, false)) < 0x1p-102f)
                r = std::copysign(0.0f, r);
        if (op->x & (ReluResult | FiniteResult)) r = limited(r, op->x);
        d[i] = to_cell<To>(r);
    }
    return blend_and_continue<sizeof(Cell<To>)>(op, w, frame, mask);
}

IKAT_HANDLER(widen_half) {
    IKAT_RESULT(float);
    widen_halves(lanes_at<u32>(frame, op->a), 0, d);
    IKAT_FINISH(float);
}
IKAT_HANDLER(narrow_to_half) {
    IKAT_RESULT(half);
    narrow_to_halves(lanes_at<float>(frame, op->a), d);
    IKAT_FINISH(half);
}
IKAT_HANDLER(widen_brain) {
    IKAT_RESULT(float);
    widen_brains(lanes_at<u32>(frame, op->a), 0, d);
    IKAT_FINISH(float);
}
IKAT_HANDLER(narrow_to_brain) {
    IKAT_RESULT(bfloat16);
    narrow_to_brains(lanes_at<float>(frame, op->a), d);
    IKAT_FINISH(bfloat16);
}

template <class To, class From>
Handler convert_handler(Rounding rounding, bool special) {
    constexpr bool to_float = sem::is_float<To>, from_float = sem::is_float<From>;
    if (special) return convert_any<To, From>;
    if constexpr (std::is_same_v<To, float> && std::is_same_v<From, half>) {
        return widen_half;
    } else if constexpr (std::is_same_v<To, half> && std::is_same_v<From, float>) {
        if (rounding == Rounding::Nearest) return narrow_to_half;
    } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, bfloat16>) {
        return widen_brain;
    } else if constexpr (std::is_same_v<To, bfloat16> && std::is_same_v<From, float>) {
        if (rounding == Rounding::Nearest) return narrow_to_brain;
    } else if constexpr (is_small_float<To> || is_small_float<From>) {
        return convert_any<To, From>;
    } else if constexpr (!to_float && !from_float) {
        return map1<Wrap<To, From>, To, From>;
    } else if constexpr (to_float && !from_float) {
        if (rounding == Rounding::Nearest) return map1<Round<To, From>, To, From>;
    } else if constexpr (to_float && from_float && sizeof(To) >= sizeof(From)) {
        return map1<Convert<To, From>, To, From>;
    } else if constexpr (std::is_same_v<From, float> && !to_float && sizeof(To) == 4) {
        if (rounding == Rounding::Zero) return map1<Truncate<To>, To, From>;
    } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, double>) {
        if (rounding == Rounding::Nearest) return map1<Round<To, From>, To, From>;
    }
    return convert_any<To, From>;
}

template <class To>
Handler convert_to(Type from, Rounding rounding, bool special) {
    switch (from) {
        case Type::I8: return convert_handler<To, std::int8_t>(rounding, special);
        case Type::U8: return convert_handler<To, std::uint8_t>(rounding, special);
        case Type::I16: return convert_handler<To, std::int16_t>(rounding, special);
        case Type::U16: return convert_handler<To, std::uint16_t>(rounding, special);
        case Type::I32: return convert_handler<To, std::int32_t>(rounding, special);
        case Type::U32: return convert_handler<To, std::uint32_t>(rounding, special);
        case Type::I64: return convert_handler<To, std::int64_t>(rounding, special);
        case Type::U64: return convert_handler<To, std::uint64_t>(rounding, special);
        case Type::F16: return convert_handler<To, half>(rounding, special);
        case Type::BF16: return convert_handler<To, bfloat16>(rounding, special);
        case Type::F32: return convert_handler<To, float>(rounding, special);
        case Type::F64: return convert_handler<To, double>(rounding, special);
        default: return nullptr;
    }
}

/// 8-bit floats convert only to and from f16 and f32.
Handler convert_float8(Type to, Type from, Rounding rounding) {
    const auto pair = [&]<class Small>() -> Handler {
        if (to == Type::F16) return convert_handler<half, Small>(rounding, true);
        if (to == Type::F32) return convert_handler<float, Small>(rounding, true);
        if (from == Type::F16) return convert_handler<Small, half>(rounding, true);
        return from == Type::F32 ? convert_handler<Small, float>(rounding, true) : nullptr;
    };
    return to == Type::E4M3 || from == Type::E4M3 ? pair.template operator()<e4m3>() : pair.template operator()<e5m2>();
}

Handler choose_convert(Type to, Type from, Rounding rounding, bool special) {
    if (contains(ir::Float8, to) || contains(ir::Float8, from)) return convert_float8(to, from, rounding);
    switch (to) {
        case Type::I8: return convert_to<std::int8_t>(from, rounding, special);
        case Type::U8: return convert_to<std::uint8_t>(from, rounding, special);
        case Type::I16: return convert_to<std::int16_t>(from, rounding, special);
        case Type::U16: return convert_to<std::uint16_t>(from, rounding, special);
        case Type::I32: return convert_to<std::int32_t>(from, rounding, special);
        case Type::U32: return convert_to<std::uint32_t>(from, rounding, special);
        case Type::I64: return convert_to<std::int64_t>(from, rounding, special);
        case Type::U64: return convert_to<std::uint64_t>(from, rounding, special);
        case Type::F16: return convert_to<half>(from, rounding, special);
        case Type::BF16: return convert_to<bfloat16>(from, rounding, special);
        case Type::F32: return convert_to<float>(from, rounding, special);
        case Type::F64: return convert_to<double>(from, rounding, special);
        default: return nullptr;
    }
}

// ---- setp

/// One bit per lane for which F holds.
template <class F, class T>
HWY_INLINE u32 lanes_where(const Cell<T>* a, const Cell<T>* b) {
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    if constexpr (sizeof(T) >= 4) {
        const hn::ScalableTag<T> v;
        u32 lanes = 0;
        for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
            std::uint8_t bits[8] = {};
            hn::StoreMaskBits(v, F::compare(hn::Load(v, a + i), hn::Load(v, b + i)), bits);
            u32 group;
            std::memcpy(&group, bits, sizeof group);
            lanes |= group << i;
        }
        return lanes;
    }
#endif
    u32 lanes = 0;
    for (unsigned i = 0; i < warp_size; ++i) lanes |= u32(F::apply(from_cell<T>(a[i]), from_cell<T>(b[i]))) << i;
    return lanes;
}

template <class T>
struct IsNan {
    static HWY_INLINE bool apply(T x) {
        if constexpr (sem::is_float<T>)
            return sem::wide(x) != sem::wide(x);
        else
            return false;
    }
};

// Each comparison: its scalar line and the vector form.
#define IKAT_COMPARISON(name, scalar, vector)      \
    struct name {                                  \
        template <class T>                         \
        static HWY_INLINE bool apply(T a, T b) {   \
            return scalar;                         \
        }                                          \
        template <class V>                         \
        static HWY_INLINE auto compare(V a, V b) { \
            return vector;                         \
        }                                          \
    };
IKAT_COMPARISON(Equal, sem::Eq.template operator()<T>(a, b), hn::Eq(a, b))
IKAT_COMPARISON(Less, sem::Lt.template operator()<T>(a, b), hn::Lt(a, b))
IKAT_COMPARISON(LessEqual, sem::Le.template operator()<T>(a, b), hn::Le(a, b))
IKAT_COMPARISON(Greater, sem::Gt.template operator()<T>(a, b), hn::Gt(a, b))
IKAT_COMPARISON(GreaterEqual, sem::Ge.template operator()<T>(a, b), hn::Ge(a, b))
IKAT_COMPARISON(Apart, sem::Lt.template operator()<T>(a, b) || sem::Gt.template operator()<T>(a, b),
                hn::Or(hn::Lt(a, b), hn::Gt(a, b)))
IKAT_COMPARISON(Ordered, !IsNan<T>::apply(a) && !IsNan<T>::apply(b), hn::And(hn::Eq(a, a), hn::Eq(b, b)))
#undef IKAT_COMPARISON

/// d = F(a, b), or its negation: the unordered comparisons are negations of ordered ones.
template <class F, class T, bool Negated, bool Ftz>
IKAT_HANDLER(compare) {
    const Cell<T>* a = lanes_at<Cell<T>>(frame, op->a);
    const Cell<T>* b = lanes_at<Cell<T>>(frame, op->b);
    if constexpr (Ftz) {
        Cell<T>* const flushed_a = reinterpret_cast<Cell<T>*>(w->scratch);
        Cell<T>* const flushed_b = reinterpret_cast<Cell<T>*>(w->addresses);
        const auto flush = [](Cell<T> x) { return to_cell<T>(flushed(from_cell<T>(x))); };
        IKAT_EACH_LANE(i) flushed_a[i] = flush(a[i]), flushed_b[i] = flush(b[i]);
        a = flushed_a, b = flushed_b;
    }
    const u32 lanes = lanes_where<F, T>(a, b) ^ (Negated ? all_lanes : 0);
    u32* const d = reinterpret_cast<u32*>(frame + op->d);
    *d = (*d & ~mask) | (lanes & mask);
    IKAT_NEXT;
}

template <class T>
Handler compare_integers(Comparison comparison) {
    switch (comparison) {
        case Comparison::Eq: return compare<Equal, T, false, false>;
        case Comparison::Ne: return compare<Equal, T, true, false>;
        case Comparison::Lt: return compare<Less, T, false, false>;
        case Comparison::Le: return compare<Greater, T, true, false>;
        case Comparison::Gt: return compare<Greater, T, false, false>;
        case Comparison::Ge: return compare<Less, T, true, false>;
        default: return nullptr;
    }
}

template <class T, bool Ftz>
Handler compare_floats(Comparison comparison) {
    switch (comparison) {
        case Comparison::Eq: return compare<Equal, T, false, Ftz>;
        case Comparison::Ne: return compare<Apart, T, false, Ftz>;
        case Comparison::Lt: return compare<Less, T, false, Ftz>;
        case Comparison::Le: return compare<LessEqual, T, false, Ftz>;
        case Comparison::Gt: return compare<Greater, T, false, Ftz>;
        case Comparison::Ge: return compare<GreaterEqual, T, false, Ftz>;
        case Comparison::Equ: return compare<Apart, T, true, Ftz>;
        case Comparison::Neu: return compare<Equal, T, true, Ftz>;
        case Comparison::Ltu: return compare<GreaterEqual, T, true, Ftz>;
        case Comparison::Leu: return compare<Greater, T, true, Ftz>;
        case Comparison::Gtu: return compare<LessEqual, T, true, Ftz>;
        case Comparison::Geu: return compare<Less, T, true, Ftz>;
        case Comparison::Num: return compare<Ordered, T, false, Ftz>;
        case Comparison::Nan: return compare<Ordered, T, true, Ftz>;
    }
    return nullptr;
}

Handler choose_compare(Comparison comparison, Type type, bool ftz) {
    switch (type) {
        case Type::I16: return compare_integers<std::int16_t>(comparison);
        case Type::U16: return compare_integers<std::uint16_t>(comparison);
        case Type::I32: return compare_integers<std::int32_t>(comparison);
        case Type::U32: return compare_integers<std::uint32_t>(comparison);
        case Type::I64: return compare_integers<std::int64_t>(comparison);
        case Type::U64: return compare_integers<std::uint64_t>(comparison);
        case Type::F16: return ftz ? compare_floats<half, true>(comparison) : compare_floats<half, false>(comparison);
        case Type::BF16: return compare_floats<bfloat16, false>(comparison);
        case Type::F32: return ftz ? compare_floats<float, true>(comparison) : compare_floats<float, false>(comparison);
        case Type::F64: return compare_floats<double, false>(comparison);
        default: return nullptr;
    }
}

// ---- selp, mov

template <class T>
IKAT_HANDLER(choose) {
    const T* const a = lanes_at<T>(frame, op->a);
    const T* const b = lanes_at<T>(frame, op->b);
    u32 where;
    std::memcpy(&where, frame + op->c, sizeof where);
    IKAT_RESULT(T);
    IKAT_EACH_LANE(i) d[i] = sem::Select.template operator()<T>(a[i], b[i], where >> i & 1);
    IKAT_FINISH(T);
}

template <class T>
IKAT_HANDLER(literal) {
    const T value = T(sizeof(T) == 8 ? u64(op->y) << 32 | op->x : op->x);
    IKAT_RESULT(T);
    IKAT_EACH_LANE(i) d[i] = value;
    IKAT_FINISH(T);
}

struct Pack16 {
    static HWY_INLINE u32 apply(u32 low, u32 high) { return (low & 0xffff) | high << 16; }
};
struct Pack32 {
    static HWY_INLINE u64 apply(u32 low, u32 high) { return low | u64(high) << 32; }
};

Handler choose_pack(unsigned bytes) { return bytes == 8 ? map2<Pack32, u64, u32, u32> : map2<Pack16, u32, u32, u32>; }
Handler choose_choose(unsigned bytes) { return bytes == 8 ? choose<u64> : choose<u32>; }
Handler choose_literal(unsigned bytes) { return bytes == 8 ? literal<u64> : literal<u32>; }
Handler choose_move(unsigned to_bytes, unsigned from_bytes) {
    if (to_bytes == 8) return from_bytes == 8 ? map1<Wrap<u64, u64>, u64, u64> : map1<Wrap<u64, u32>, u64, u32>;
    return from_bytes == 8 ? map1<Wrap<u32, u64>, u32, u64> : map1<Wrap<u32, u32>, u32, u32>;
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
HWY_EXPORT(choose_convert);
HWY_EXPORT(choose_compare);
HWY_EXPORT(choose_choose);
HWY_EXPORT(choose_literal);
HWY_EXPORT(choose_move);
HWY_EXPORT(choose_pack);

namespace {

/// Whether a number of a type may be beyond all of another one.
bool exceeds(Type from, Type to) {
    const auto reach = [](Type type) {
        return type == Type::F64 ? 1024 : type == Type::F32 || type == Type::BF16 ? 128 : int(ir::bits(type));
    };
    return ir::is_float(to) && from != to && reach(from) >= reach(to);
}

}  // namespace

Behaviour select_convert(Type to, Type from, Rounding rounding, bool special) {
    MicroInfo info{.operation = Op::Convert, .parameter = std::uint8_t(ir::info(from).bytes)};
    if (exceeds(from, to)) info.arithmetic = {.to = to, .from = {from}};
    if (!special && !ir::is_float(to) && !ir::is_float(from)) {
        info.propagation = ir::is_signed(from) ? Propagation::SignExtend : Propagation::ZeroExtend;
        info.parameter = std::uint8_t(std::min(ir::info(from).bytes, ir::info(to).bytes));
    }
    return {HWY_DYNAMIC_DISPATCH(choose_convert)(to, from, rounding, special), info};
}
Behaviour select_compare(Comparison comparison, Type type, bool ftz) {
    static_assert(int(Op::Ge) - int(Op::Eq) == int(Comparison::Ge));
    const bool is_of_ir = comparison <= Comparison::Ge && (comparison != Comparison::Ne || !ir::is_float(type));
    const Operation operation = is_of_ir ? Operation(Op(int(Op::Eq) + int(comparison))) : Operation(OwnOp::Compare);
    return {HWY_DYNAMIC_DISPATCH(choose_compare)(comparison, type, ftz), {operation}};
}
Behaviour select_choose(unsigned bytes) {
    return {HWY_DYNAMIC_DISPATCH(choose_choose)(bytes), {.operation = Op::Select, .propagation = Propagation::Choose}};
}
Behaviour select_pack(unsigned bytes) {
    return {HWY_DYNAMIC_DISPATCH(choose_pack)(bytes), {.operation = Op::Pack, .propagation = Propagation::Pack}};
}
Behaviour select_literal(unsigned bytes) { return {HWY_DYNAMIC_DISPATCH(choose_literal)(bytes), {Op::Const}}; }
Behaviour select_move(unsigned to_bytes, unsigned from_bytes) {
    return {HWY_DYNAMIC_DISPATCH(choose_move)(to_bytes, from_bytes),
            {.operation = to_bytes == from_bytes ? Op::Bitcast : Op::Convert,
             .propagation = Propagation::ZeroExtend,
             .parameter = std::uint8_t(std::min(to_bytes, from_bytes))}};
}
}  // namespace ikat::emulator
#endif
