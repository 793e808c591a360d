// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic and bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/integer.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/ops/lanes.inl"

#include <algorithm>

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

// Operations without a line in semantics.hpp, or of more types than there, or with a mode there that is a constant
// here.

template <class T>
struct MadHi {
    static HWY_INLINE T apply(T a, T b, T c) {
        return T(sem::wrap(sem::MulHi.template operator()<T>(a, b)) + sem::wrap(c));
    }
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
/// A wide product and the sum after it that takes it in, as addresses are made of.
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

/// Whether signed and unsigned numbers of a width have the same result, so that one handler does for both.
constexpr bool ignores_sign(Op op) {
    switch (op) {
        case Op::Add:
        case Op::Sub:
        case Op::Mul:
        case Op::Fma:
        case Op::And:
        case Op::Or:
        case Op::Xor:
        case Op::Not:
        case Op::Shl:
        case Op::PopCount:
        case Op::LeadingZeros:
        case Op::ReverseBits: return true;
        default: return false;
    }
}

constexpr bool is_integer(ir::Slot slot) { return slot == ir::Slot::T || slot == ir::Slot::U32; }
template <ir::Slot S, class T>
using In = std::conditional_t<S == ir::Slot::T, T, u32>;

/// Whether a row of ops.def is a function of one to three integers, its operands.
constexpr bool is_integer_function(Op op, Type type) {
    const ir::OpInfo& row = ir::info(op);
    const auto& arguments = row.shape.arguments;
    const auto arity = row.shape.arity();
    return !row.effect && row.attribute == ir::Attribute::None && ir::contains(row.domain, type) &&
           is_integer(row.shape.result) && arity >= 1 && arity <= 3 &&
           std::all_of(arguments.begin(), arguments.begin() + arity, is_integer);
}

/// The handler of a row that is such a function, from its line in semantics.hpp.
template <Op O, const auto& Line, class T>
constexpr Handler of_row() {
    using Number = std::conditional_t<ignores_sign(O), std::make_unsigned_t<T>, T>;
    if constexpr (is_integer_function(O, ir::type_of<Number>)) {
        constexpr ir::Shape shape = ir::info(O).shape;
        using F = Meaning<Line, Number>;
        using R = In<shape.result, Number>;
        using A = In<shape.arguments[0], Number>;
        using B = In<shape.arguments[1], Number>;
        using C = In<shape.arguments[2], Number>;
        if constexpr (shape.arity() == 1)
            return map1<F, R, A>;
        else if constexpr (shape.arity() == 2)
            return map2<F, R, A, B>;
        else
            return map3<F, R, A, B, C>;
    } else {
        return nullptr;
    }
}

template <class T>
Handler for_row(Op op) {
    // clang-format off
#define EFFECT(name, ...) case Op::name: return nullptr;
#define OP(name, ...) case Op::name: return of_row<Op::name, sem::name, T>();
    // clang-format on
    switch (op) {
#include "codegen/ir/op/ops.def"
    }
    return nullptr;
}

template <class T>
Handler for_type(Op op, u64 mode) {
    if constexpr (sizeof(T) == 2) {
        if (op == Op::Sad) return map3<Meaning<sem::Sad, T>, T, T, T, T>;
    }
    if constexpr (sizeof(T) >= 4) {
        if (op == Op::InsertBits) return bit_field_insert<std::make_unsigned_t<T>>;
    }
    if constexpr (sizeof(T) <= 4) {
        if (op == Op::MulWide) return map2<MulWide<T>, Double<T>, T, T>;
        if (op == Op::MadWide) return map3<MadWide<T>, Double<T>, T, T, Double<T>>;
    }
    if constexpr (sizeof(T) == 4) {
        if (op == Op::Mul24) return mode ? map2<Mul24<T, true>, T, T, T> : map2<Mul24<T, false>, T, T, T>;
    }
    return for_row<T>(op);
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
    if (sum.run != of_row<Op::Add, sem::Add, u64>() || (sum.a == product.d) == (sum.b == product.d)) return nullptr;
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
