// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic and bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/handlers_integer.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/lanes.inl"

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

// What semantics.hpp has no line for: PTX's own bit operations and 16-bit products.

template <class T>
struct MulHi {
    static HWY_INLINE T apply(T a, T b) {
        if constexpr (sizeof(T) == 2)
            return T((s32(a) * s32(b)) >> 16);
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
template <class T>
struct Mul24 {  // the low 32 bits of the product of the low 24
    static HWY_INLINE T low24(T x) { return T(T(u32(x) << 8) >> 8); }
    static HWY_INLINE T apply(T a, T b) { return T(u32(low24(a)) * u32(low24(b))); }
};
template <class T>
struct Mad24 {
    static HWY_INLINE T apply(T a, T b, T c) { return T(u32(Mul24<T>::apply(a, b)) + u32(c)); }
};
template <class T>
struct Sad {
    static HWY_INLINE T apply(T a, T b, T c) {
        return T(sem::wrap(c) + (a < b ? sem::wrap(b) - sem::wrap(a) : sem::wrap(a) - sem::wrap(b)));
    }
};
struct ShiftPair {
    /// The amount is clamped to 32 where it does not wrap; the decoder masks it where it does.
    static HWY_INLINE u64 pair(u32 low, u32 high) { return u64(high) << 32 | low; }
    static HWY_INLINE u32 clamp(u32 amount) { return amount < 32 ? amount : 32; }
};
struct ShiftPairLeft : ShiftPair {
    static HWY_INLINE u32 apply(u32 low, u32 high, u32 n) { return u32(pair(low, high) << clamp(n) >> 32); }
};
struct ShiftPairRight : ShiftPair {
    static HWY_INLINE u32 apply(u32 low, u32 high, u32 n) { return u32(pair(low, high) >> clamp(n)); }
};
template <class T>
struct Popc {
    static HWY_INLINE u32 apply(T a) { return u32(std::popcount(a)); }
};
template <class T>
struct Clz {
    static HWY_INLINE u32 apply(T a) { return u32(std::countl_zero(a)); }
};
template <class T>
struct Bfind {  // position of the most significant bit that is not a sign bit, or all ones
    static HWY_INLINE u32 apply(T a) {
        const auto bits = sem::wrap(T(a < 0 ? ~a : a));
        return u32(int(sizeof(T) * 8) - 1 - std::countl_zero(bits));
    }
};
template <class T>
struct BfindShift {  // the shift that brings it to the top
    static HWY_INLINE u32 apply(T a) {
        const u32 position = Bfind<T>::apply(a);
        return position == ~0u ? ~0u : u32(sizeof(T) * 8) - 1 - position;
    }
};
template <class T>
struct Brev {
    static HWY_INLINE T apply(T a) {
        T r = 0;
        for (unsigned i = 0; i < sizeof(T) * 8; ++i) r = T(r << 1 | (a >> i & 1));
        return r;
    }
};
template <class T>
struct Bfe {
    static HWY_INLINE T apply(T a, u32 position, u32 length) {
        constexpr u32 bits = sizeof(T) * 8;
        position &= 255, length &= 255;
        if (length == 0) return 0;
        const auto value = sem::wrap(a);
        // bits above the top are the sign
        const u32 sign_at = position + length - 1 < bits ? position + length - 1 : bits - 1;
        const bool sign = std::is_signed_v<T> && (value >> sign_at & 1);
        const auto field = position < bits ? value >> position : 0;
        if (length >= bits)
            return T(sign && position
                         ? field | (position < bits ? ~(~decltype(value)(0) >> position) : ~decltype(value)(0))
                         : field);
        const auto low = (decltype(value)(1) << length) - 1;
        const auto kept = field & low;
        const u32 present = position < bits ? bits - position : 0;  // bits of the field that exist
        const auto exist = present >= length ? low : (decltype(value)(1) << present) - 1;
        return T(sign ? kept | ~exist : kept);
    }
};
template <class T>
struct Bfi {
    static HWY_INLINE T apply_at(T a, T b, u32 position, u32 length) {
        constexpr u32 bits = sizeof(T) * 8;
        position &= 255, length &= 255;
        if (length == 0 || position >= bits) return b;
        const T ones = length >= bits ? ~T(0) : T((T(1) << length) - 1);
        const T field = T(ones << position);
        return T((b & ~field) | ((a << position) & field));
    }
};
struct Bmsk {  // b ones beginning at bit a, clamped
    static HWY_INLINE u32 apply(u32 position, u32 length) {
        if (position >= 32) return 0;
        return (length >= 32 ? ~0u : (1u << length) - 1) << position;
    }
};
struct Permute {  // prmt, the general mode: nibbles of c pick bytes of {b, a}
    static HWY_INLINE u32 apply(u32 a, u32 b, u32 selector) {
        const u64 bytes = u64(b) << 32 | a;
        u32 r = 0;
        for (unsigned k = 0; k < 4; ++k) {
            const u32 pick = selector >> (4 * k) & 15;
            const u32 byte = u32(bytes >> (8 * (pick & 7))) & 255;
            r |= (pick & 8 ? (byte >> 7) * 255 : byte) << (8 * k);
        }
        return r;
    }
};

template <class T>
IKAT_HANDLER(bit_field_insert) {  // a into b at position c, of length in register x
    const T* const a = lanes_at<T>(frame, op->a);
    const T* const b = lanes_at<T>(frame, op->b);
    const u32* const c = lanes_at<u32>(frame, op->c);
    const u32* const length = lanes_at<u32>(frame, op->x);
    IKAT_RESULT(T);
    IKAT_EACH_LANE(i) d[i] = Bfi<T>::apply_at(a[i], b[i], c[i], length[i]);
    IKAT_FINISH(T);
}

IKAT_HANDLER(lop3) {
    const u32* const a = lanes_at<u32>(frame, op->a);
    const u32* const b = lanes_at<u32>(frame, op->b);
    const u32* const c = lanes_at<u32>(frame, op->c);
    IKAT_RESULT(u32);
    u32 rows[8];
    for (unsigned k = 0; k < 8; ++k) rows[k] = op->x >> k & 1 ? ~0u : 0;
    IKAT_EACH_LANE(i) {
        const u32 p = a[i], q = b[i], r = c[i];
        d[i] = (~p & ~q & ~r & rows[0]) | (~p & ~q & r & rows[1]) | (~p & q & ~r & rows[2]) | (~p & q & r & rows[3]) |
               (p & ~q & ~r & rows[4]) | (p & ~q & r & rows[5]) | (p & q & ~r & rows[6]) | (p & q & r & rows[7]);
    }
    IKAT_FINISH(u32);
}

IKAT_HANDLER(dp4a) {  // x bit 0: a is signed, bit 1: b is
    const u32* const a = lanes_at<u32>(frame, op->a);
    const u32* const b = lanes_at<u32>(frame, op->b);
    const u32* const c = lanes_at<u32>(frame, op->c);
    IKAT_RESULT(u32);
    const u32 flip_a = op->x & 1 ? 128 : 0, flip_b = op->x & 2 ? 128 : 0;
    IKAT_EACH_LANE(i) {
        u32 sum = c[i];
        for (unsigned k = 0; k < 4; ++k)  // (v ^ 128) - 128 extends the sign
            sum += ((((a[i] >> (8 * k)) & 255) ^ flip_a) - flip_a) * ((((b[i] >> (8 * k)) & 255) ^ flip_b) - flip_b);
        d[i] = sum;
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
Handler for_width(Operation operation) {
    switch (operation) {
        case Operation::Add: return line2<sem::Add, T>;
        case Operation::Sub: return line2<sem::Sub, T>;
        case Operation::Mul: return line2<sem::Mul, T>;
        case Operation::Fma: return line3<sem::Fma, T>;
        case Operation::Neg: return line1<sem::Neg, T>;
        case Operation::And: return line2<sem::And, T>;
        case Operation::Or: return line2<sem::Or, T>;
        case Operation::Xor: return line2<sem::Xor, T>;
        case Operation::Not: return line1<sem::Not, T>;
        case Operation::Shl: return map2<Meaning<sem::Shl, T>, T, T, u32>;
        default: break;
    }
    if constexpr (sizeof(T) >= 4) switch (operation) {
            case Operation::Popc: return map1<Popc<T>, u32, T>;
            case Operation::Clz: return map1<Clz<T>, u32, T>;
            case Operation::Brev: return map1<Brev<T>, T, T>;
            case Operation::Bfi: return bit_field_insert<T>;
            default: break;
        }
    return nullptr;
}

template <class T>
Handler for_type(Operation operation) {
    switch (operation) {
        case Operation::Div: return line2<sem::Div, T>;
        case Operation::Rem: return line2<sem::Rem, T>;
        case Operation::Abs: return line1<sem::Abs, T>;
        case Operation::Min: return line2<sem::Min, T>;
        case Operation::Max: return line2<sem::Max, T>;
        case Operation::Shr: return map2<Meaning<sem::Shr, T>, T, T, u32>;
        case Operation::MulHi: return map2<MulHi<T>, T, T, T>;
        case Operation::MadHi: return map3<MadHi<T>, T, T, T, T>;
        case Operation::Sad: return map3<Sad<T>, T, T, T, T>;
        default: break;
    }
    if constexpr (sizeof(T) >= 4) switch (operation) {
            case Operation::Bfe: return map3<Bfe<T>, T, T, u32, u32>;
            case Operation::Bfind: return map1<Bfind<T>, u32, T>;
            case Operation::BfindShift: return map1<BfindShift<T>, u32, T>;
            default: break;
        }
    if constexpr (sizeof(T) <= 4) switch (operation) {
            case Operation::MulWide: return map2<MulWide<T>, Double<T>, T, T>;
            case Operation::MadWide: return map3<MadWide<T>, Double<T>, T, T, Double<T>>;
            default: break;
        }
    if constexpr (sizeof(T) == 4) switch (operation) {
            case Operation::Mul24: return map2<Mul24<T>, T, T, T>;
            case Operation::Mad24: return map3<Mad24<T>, T, T, T, T>;
            default: break;
        }
    return for_width<std::make_unsigned_t<T>>(operation);
}

Handler for_words(Operation operation) {
    switch (operation) {
        case Operation::ShiftPairLeft: return map3<ShiftPairLeft, u32, u32, u32, u32>;
        case Operation::ShiftPairRight: return map3<ShiftPairRight, u32, u32, u32, u32>;
        case Operation::Bmsk: return map2<Bmsk, u32, u32, u32>;
        case Operation::Permute: return map3<Permute, u32, u32, u32, u32>;
        case Operation::Lop3: return lop3;
        case Operation::Dp4a: return dp4a;
        default: return nullptr;
    }
}

Handler choose_integer(Operation operation, Type type) {
    switch (type) {
        case Type::I16: return for_type<s16>(operation);
        case Type::U16: return for_type<u16>(operation);
        case Type::I32:
        case Type::U32:
            if (const Handler handler = for_words(operation)) return handler;
            return type == Type::I32 ? for_type<s32>(operation) : for_type<u32>(operation);
        case Type::I64: return for_type<s64>(operation);
        case Type::U64: return for_type<u64>(operation);
        default: return nullptr;
    }
}

const char* name_of_target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
HWY_EXPORT(choose_integer);
HWY_EXPORT(name_of_target);
Handler select_integer(Operation operation, Type type) { return HWY_DYNAMIC_DISPATCH(choose_integer)(operation, type); }
std::string_view target_name() { return HWY_DYNAMIC_DISPATCH(name_of_target)(); }
}  // namespace ikat::emulator
#endif
