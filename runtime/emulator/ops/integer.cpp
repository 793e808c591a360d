// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic and bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/integer.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/ops/lanes.inl"

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

template <class T>
using Double = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, s32, u32>, sem::Wide<T>>;

// Operations without a line in semantics.hpp, or with a mode there that is a constant here.

template <class T>
struct MulHi {
    static HWY_INLINE T apply(T a, T b) {
        if constexpr (sizeof(T) == 2)
            return T((Double<T>(a) * Double<T>(b)) >> 16);
        else
            return sem::MulHi.template operator()<T>(a, b);
    }
};
template <class T>
struct MadHi {
    static HWY_INLINE T apply(T a, T b, T c) { return T(sem::wrap(MulHi<T>::apply(a, b)) + sem::wrap(c)); }
};
template <class T>
struct MulWide {
    static HWY_INLINE Double<T> apply(T a, T b) { return Double<T>(sem::wrap(Double<T>(a)) * sem::wrap(Double<T>(b))); }
};
template <class T>
struct MadWide {
    static HWY_INLINE Double<T> apply(T a, T b, Double<T> c) {
        return Double<T>(sem::wrap(Double<T>(a)) * sem::wrap(Double<T>(b)) + sem::wrap(c));
    }
};
/// A wide product and the sum behind it that takes it in, as addresses are made of.
template <class T>
IKAT_HANDLER(product_and_sum) {
    if (HWY_UNLIKELY(mask != all_lanes)) return map2<MulWide<T>, Double<T>, T, T>(op, w, frame, mask);
    const MicroOp* const sum = op + 1;
    const T* const a = lanes_at<T>(frame, op->a);
    const T* const b = lanes_at<T>(frame, op->b);
    const u64* const c = lanes_at<u64>(frame, sum->a == op->d ? sum->b : sum->a);
    u64* const product = lanes_at<u64>(frame, op->d);
    u64* const total = lanes_at<u64>(frame, sum->d);
    if (product == total) {
        IKAT_EACH_LANE(i) total[i] = sem::wrap(MulWide<T>::apply(a[i], b[i])) + c[i];
    } else {
        IKAT_EACH_LANE(i) {
            product[i] = sem::wrap(MulWide<T>::apply(a[i], b[i]));
            total[i] = product[i] + c[i];
        }
    }
    IKAT_CONTINUE(2);
}

template <class T, bool High>
struct Mul24 {
    static HWY_INLINE T apply(T a, T b) { return sem::multiply24(a, b, High); }
};
template <class T, bool High>
struct Mad24 {
    static HWY_INLINE T apply(T a, T b, T c) { return T(u32(sem::multiply24(a, b, High)) + u32(c)); }
};
template <u32 Mode>
struct FunnelShift {
    static HWY_INLINE u32 apply(u32 low, u32 high, u32 n) { return sem::funnel_shift(low, high, n, Mode); }
};
template <u32 Mode>
struct Permute {
    static HWY_INLINE u32 apply(u32 a, u32 b, u32 selector) { return sem::permute_bytes(a, b, selector, Mode); }
};
struct MaskBits {  // b ones beginning at bit a, clamped
    static HWY_INLINE u32 apply(u32 position, u32 length) {
        if (position >= 32) return 0;
        return (length >= 32 ? ~0u : (1u << length) - 1) << position;
    }
};
template <class T>
IKAT_HANDLER(bit_field_insert) {  // a into b at position c, of length in register x
    const T* const a = lanes_at<T>(frame, op->a);
    const T* const b = lanes_at<T>(frame, op->b);
    const u32* const c = lanes_at<u32>(frame, op->c);
    const u32* const length = lanes_at<u32>(frame, op->x);
    IKAT_RESULT(T);
    IKAT_EACH_LANE(i) d[i] = sem::insert_bits(a[i], b[i], c[i], length[i]);
    IKAT_FINISH(T);
}

IKAT_HANDLER(lop3) {
    const u32* const a = lanes_at<u32>(frame, op->a);
    const u32* const b = lanes_at<u32>(frame, op->b);
    const u32* const c = lanes_at<u32>(frame, op->c);
    IKAT_RESULT(u32);
    const u32 table = op->x;
    IKAT_EACH_LANE(i) d[i] = sem::logic3(a[i], b[i], c[i], table);
    IKAT_FINISH(u32);
}

struct Dot4 {
    template <class A, class B>
    static HWY_INLINE u32 apply(u32 a, u32 b, u32 c, u32) {
        return sem::dot4<A, B>(a, b, c);
    }
};
struct Dot2 {
    template <class A, class B>
    static HWY_INLINE u32 apply(u32 a, u32 b, u32 c, u32 high) {
        return sem::dot2<A, B>(a, b, c, high);
    }
};
template <class F, class A, class B>
HWY_INLINE void dot(const MicroOp* op, std::byte* frame, u32* d) {
    const u32* const a = lanes_at<u32>(frame, op->a);
    const u32* const b = lanes_at<u32>(frame, op->b);
    const u32* const c = lanes_at<u32>(frame, op->c);
    const u32 high = op->x & DotHigh ? 1 : 0;
    IKAT_EACH_LANE(i) d[i] = F::template apply<A, B>(a[i], b[i], c[i], high);
}
template <class F>
IKAT_HANDLER(dot_product) {
    IKAT_RESULT(u32);
    switch (op->x & (DotSignedA | DotSignedB)) {
        case 0: dot<F, u32, u32>(op, frame, d); break;
        case DotSignedA: dot<F, s32, u32>(op, frame, d); break;
        case DotSignedB: dot<F, u32, s32>(op, frame, d); break;
        default: dot<F, s32, s32>(op, frame, d);
    }
    IKAT_FINISH(u32);
}

template <const auto& Line, class T>
constexpr Handler line1 = map1<Meaning<Line, T>, T, T>;
template <const auto& Line, class T>
constexpr Handler line2 = map2<Meaning<Line, T>, T, T, T>;
template <const auto& Line, class T>
constexpr Handler line3 = map3<Meaning<Line, T>, T, T, T, T>;

/// Operations whose result does not depend on the sign: one handler per width.
template <class T>
Handler for_width(Op op) {
    switch (op) {
        case Op::Add: return line2<sem::Add, T>;
        case Op::Sub: return line2<sem::Sub, T>;
        case Op::Mul: return line2<sem::Mul, T>;
        case Op::Fma: return line3<sem::Fma, T>;
        case Op::Neg: return line1<sem::Neg, T>;
        case Op::And: return line2<sem::And, T>;
        case Op::Or: return line2<sem::Or, T>;
        case Op::Xor: return line2<sem::Xor, T>;
        case Op::Not: return line1<sem::Not, T>;
        case Op::Shl: return map2<Meaning<sem::Shl, T>, T, T, u32>;
        default: break;
    }
    if constexpr (sizeof(T) >= 4) switch (op) {
            case Op::PopCount: return map1<Meaning<sem::PopCount, T>, u32, T>;
            case Op::LeadingZeros: return map1<Meaning<sem::LeadingZeros, T>, u32, T>;
            case Op::ReverseBits: return line1<sem::ReverseBits, T>;
            case Op::InsertBits: return bit_field_insert<T>;
            default: break;
        }
    return nullptr;
}

template <class T>
Handler for_type(Op op, u64 mode) {
    switch (op) {
        case Op::Div: return line2<sem::Div, T>;
        case Op::Rem: return line2<sem::Rem, T>;
        case Op::Abs: return line1<sem::Abs, T>;
        case Op::Min: return line2<sem::Min, T>;
        case Op::Max: return line2<sem::Max, T>;
        case Op::Shr: return map2<Meaning<sem::Shr, T>, T, T, u32>;
        case Op::MulHi: return map2<MulHi<T>, T, T, T>;
        case Op::Sad: return line3<sem::Sad, T>;
        default: break;
    }
    if constexpr (sizeof(T) >= 4) switch (op) {
            case Op::ExtractBits: return map3<Meaning<sem::ExtractBits, T>, T, T, u32, u32>;
            case Op::HighestBit: return map1<Meaning<sem::HighestBit, T>, u32, T>;
            case Op::HighestBitShift: return map1<Meaning<sem::HighestBitShift, T>, u32, T>;
            default: break;
        }
    if constexpr (sizeof(T) <= 4) switch (op) {
            case Op::MulWide: return map2<MulWide<T>, Double<T>, T, T>;
            case Op::MadWide: return map3<MadWide<T>, Double<T>, T, T, Double<T>>;
            default: break;
        }
    if constexpr (sizeof(T) == 4)
        if (op == Op::Mul24) return mode ? map2<Mul24<T, true>, T, T, T> : map2<Mul24<T, false>, T, T, T>;
    return for_width<std::make_unsigned_t<T>>(op);
}

template <class T>
Handler for_type(OwnOp op, u64 mode) {
    if (op == OwnOp::MadHi) return map3<MadHi<T>, T, T, T, T>;
    if constexpr (sizeof(T) == 4)
        if (op == OwnOp::Mad24) return mode ? map3<Mad24<T, true>, T, T, T, T> : map3<Mad24<T, false>, T, T, T, T>;
    return nullptr;
}

template <template <u32> class F, u32... Modes>
Handler in_mode(u64 mode, std::integer_sequence<u32, Modes...>) {
    constexpr Handler by_mode[] = {map3<F<Modes>, u32, u32, u32, u32>...};
    return by_mode[mode];
}

Handler for_words(Op op, u64 mode) {
    switch (op) {
        case Op::FunnelShift: return in_mode<FunnelShift>(mode, std::make_integer_sequence<u32, 4>());
        case Op::PermuteBytes: return in_mode<Permute>(mode, std::make_integer_sequence<u32, 7>());
        case Op::Logic3: return lop3;
        case Op::Dp4a: return dot_product<Dot4>;
        case Op::Dp2a: return dot_product<Dot2>;
        default: return nullptr;
    }
}
Handler for_words(OwnOp op, u64) { return op == OwnOp::MaskBits ? map2<MaskBits, u32, u32, u32> : nullptr; }

template <class O>
Handler choose(O op, Type type, u64 mode) {
    switch (type) {
        case Type::I16: return for_type<s16>(op, mode);
        case Type::U16: return for_type<u16>(op, mode);
        case Type::I32:
        case Type::U32:
            if (const Handler handler = for_words(op, mode)) return handler;
            return type == Type::I32 ? for_type<s32>(op, mode) : for_type<u32>(op, mode);
        case Type::I64: return for_type<s64>(op, mode);
        case Type::U64: return for_type<u64>(op, mode);
        default: return nullptr;
    }
}
Handler choose_integer(Operation operation, Type type, u64 mode) {
    const std::optional<Op> op = operation.of_ir();
    return op ? choose(*op, type, mode) : choose(operation.own(), type, mode);
}

Handler choose_product_and_sum(const MicroOp& product, const MicroOp& sum) {
    if (sum.run != line2<sem::Add, u64> || (sum.a == product.d) == (sum.b == product.d)) return nullptr;
    if (product.run == map2<MulWide<u32>, u64, u32, u32>) return product_and_sum<u32>;
    if (product.run == map2<MulWide<s32>, s64, s32, s32>) return product_and_sum<s32>;
    return nullptr;
}

const char* name_of_target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
HWY_EXPORT(choose_integer);
HWY_EXPORT(choose_product_and_sum);
HWY_EXPORT(name_of_target);

namespace {
Propagation propagation_of(Operation operation, Type type, std::uint64_t mode) {
    constexpr std::uint64_t left = ir::mode_named(Op::FunnelShift, "l.clamp").value(),
                            right = ir::mode_named(Op::FunnelShift, "r.clamp").value();
    const std::optional<Op> op = operation.of_ir();
    if (!op) return Propagation::Mix;
    switch (*op) {
        case Op::Add:
        case Op::Sub:
        case Op::Mul:
        case Op::Fma: return Propagation::Upward;
        case Op::Xor:
        case Op::Not:
        case Op::Logic3: return Propagation::Either;
        case Op::And: return Propagation::And;
        case Op::Or: return Propagation::Or;
        case Op::Shl: return Propagation::ShiftLeft;
        case Op::Shr: return ir::is_signed(type) ? Propagation::ShiftRightSigned : Propagation::ShiftRight;
        case Op::FunnelShift:
            return mode == left ? Propagation::FunnelLeft : mode == right ? Propagation::FunnelRight : Propagation::Mix;
        case Op::ExtractBits: return Propagation::Extract;
        case Op::InsertBits: return Propagation::Insert;
        case Op::PermuteBytes: return mode == 0 ? Propagation::Permute : Propagation::Mix;
        default: return Propagation::Mix;
    }
}
}  // namespace

Behaviour select_integer(Operation operation, Type type, std::uint64_t mode) {
    return {HWY_DYNAMIC_DISPATCH(choose_integer)(operation, type, mode),
            {.operation = operation, .propagation = propagation_of(operation, type, mode)}};
}
Handler select_product_and_sum(const MicroOp& product, const MicroOp& sum) {
    return HWY_DYNAMIC_DISPATCH(choose_product_and_sum)(product, sum);
}
std::string_view target_name() { return HWY_DYNAMIC_DISPATCH(name_of_target)(); }
}  // namespace ikat::emulator
#endif
