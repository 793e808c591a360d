// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic in f16, bf16, f32, f64 and packed f16 and bf16. Rounding to nearest is the loop over the
// scalar line; the other roundings set the host's rounding mode around it, once per warp instruction. `.ftz` flushes
// operands and result to a zero of their sign, as a separate step: a result that is subnormal, or would be below the
// least normal number if it were rounded to 24 bits as a larger one is (seen on an H200).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/emulator/ops/float.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include "runtime/emulator/ops/lanes.inl"

#include <cfenv>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

using u32 = std::uint32_t;

template <class T>
HWY_INLINE T flush(T x) {
    const auto bits = std::bit_cast<u32>(x);
    return std::bit_cast<float>(bits & (bits & 0x7f800000 ? ~0u : 0x80000000u));
}

template <class F>
struct Flushed {
    template <class... T>
    static HWY_INLINE auto apply(T... operands) {
        return flush(F::apply(flush(operands)...));
    }
};

/// Of a product or a quotient, which alone can be rounded up to the least normal number: where it is that, or less, it
/// is computed once more at 2^24 times the size, for which the operands are small enough.
template <class F>
struct FlushedProduct {
    template <class... T>
    static HWY_INLINE float apply(float a, float b, T... c) {
        a = flush(a), b = flush(b);
        const float result = F::apply(a, b, flush(c)...);
        const float larger = F::apply(a * 0x1p24f, b, (flush(c) * 0x1p24f)...);
        const bool is_tiny = std::abs(result) <= 0x1p-126f && std::abs(larger) < 0x1p-102f;
        return is_tiny ? std::copysign(0.0f, result) : flush(result);
    }
};

// Operations without a line in semantics.hpp.

template <class T>
struct MinNan {
    static HWY_INLINE T apply(T a, T b) {
        return sem::wide(a) != sem::wide(a) || sem::wide(b) != sem::wide(b) ? sem::canonical_nan<T>()
                                                                            : sem::minimum(a, b);
    }
};
template <class T>
struct MaxNan {
    static HWY_INLINE T apply(T a, T b) {
        return sem::wide(a) != sem::wide(a) || sem::wide(b) != sem::wide(b) ? sem::canonical_nan<T>()
                                                                            : sem::maximum(a, b);
    }
};
template <class T>
struct Saturate {  // into [0, 1]; a NaN and -0 give +0
    static HWY_INLINE T apply(T a) {
        const auto x = sem::wide(a);
        return x > 0 ? x < 1 ? a : T(1.0) : T(0.0);
    }
};
struct Relu {  // a NaN stays one
    static HWY_INLINE float apply(float a) { return a < 0 || a == 0 ? 0.0f : a; }
};

/// The loop of a map without its end, so that the rounding mode can be set around it.
template <class F, class T, int Operands>
HWY_NOINLINE void compute(const MicroOp* op, std::byte* frame, std::byte* to) {
    const T* const a = lanes_at<T>(frame, op->a);
    const T* const b = lanes_at<T>(frame, op->b);
    const T* const c = lanes_at<T>(frame, op->c);
    T* const d = lanes_at<T>(to, 0);
    IKAT_EACH_LANE(i) {
        if constexpr (Operands == 1)
            d[i] = F::apply(a[i]);
        else if constexpr (Operands == 2)
            d[i] = F::apply(a[i], b[i]);
        else
            d[i] = F::apply(a[i], b[i], c[i]);
    }
}

template <class F, class T, int Operands, Rounding Mode>
IKAT_HANDLER(rounded) {
    constexpr int mode = Mode == Rounding::Zero ? FE_TOWARDZERO : Mode == Rounding::Down ? FE_DOWNWARD : FE_UPWARD;
    std::fesetround(mode);
    compute<F, T, Operands>(op, frame, w->scratch);
    std::fesetround(FE_TONEAREST);
    return blend_and_continue<sizeof(T)>(op, w, frame, mask);
}

template <class F, class T, int Operands>
Handler with_mode(Rounding rounding) {
    switch (rounding) {
        case Rounding::Zero: return rounded<F, T, Operands, Rounding::Zero>;
        case Rounding::Down: return rounded<F, T, Operands, Rounding::Down>;
        case Rounding::Up: return rounded<F, T, Operands, Rounding::Up>;
        case Rounding::Nearest: break;
    }
    if constexpr (Operands == 1)
        return map1<F, T, T>;
    else if constexpr (Operands == 2)
        return map2<F, T, T, T>;
    else
        return map3<F, T, T, T, T>;
}

template <class F, class T, int Operands, bool Rounds, bool IsProduct = false>
Handler with_flush(bool ftz, Rounding rounding) {
    if (!Rounds) rounding = Rounding::Nearest;
    if constexpr (!std::is_same_v<T, double>)
        if (ftz) {
            if constexpr (IsProduct) return with_mode<FlushedProduct<F>, T, Operands>(rounding);
            if constexpr (Rounds) return with_mode<Flushed<F>, T, Operands>(rounding);
            return with_mode<Flushed<F>, T, Operands>(Rounding::Nearest);
        }
    return with_mode<F, T, Operands>(rounding);
}

template <const auto& Line, class T>
using M = Meaning<Line, T>;

template <class T>
Handler for_number(Op op, bool ftz, Rounding rounding) {
    switch (op) {
        case Op::Add: return with_flush<M<sem::Add, T>, T, 2, true>(ftz, rounding);
        case Op::Sub: return with_flush<M<sem::Sub, T>, T, 2, true>(ftz, rounding);
        case Op::Mul: return with_flush<M<sem::Mul, T>, T, 2, true, true>(ftz, rounding);
        case Op::Fma: return with_flush<M<sem::Fma, T>, T, 3, true, true>(ftz, rounding);
        case Op::Neg: return with_flush<M<sem::Neg, T>, T, 1, false>(ftz, rounding);
        case Op::Abs: return with_flush<M<sem::Abs, T>, T, 1, false>(ftz, rounding);
        case Op::Min: return with_flush<M<sem::Min, T>, T, 2, false>(ftz, rounding);
        case Op::Max: return with_flush<M<sem::Max, T>, T, 2, false>(ftz, rounding);
        default: return nullptr;
    }
}

template <class T>
Handler for_wide_number(Op op, bool ftz, Rounding rounding) {
    switch (op) {
        case Op::Div: return with_flush<M<sem::Div, T>, T, 2, true, true>(ftz, rounding);
        case Op::Sqrt: return with_flush<M<sem::Sqrt, T>, T, 1, true>(ftz, rounding);
        case Op::Rcp: return with_flush<M<sem::Rcp, T>, T, 1, true>(ftz, rounding);
        case Op::Rsqrt: return with_flush<M<sem::Rsqrt, T>, T, 1, false>(ftz, rounding);
        case Op::CopySign: return map2<M<sem::CopySign, T>, T, T, T>;
        default: return for_number<T>(op, ftz, rounding);
    }
}
template <class T>
Handler for_wide_number(OwnOp op, bool ftz, Rounding rounding) {
    switch (op) {
        case OwnOp::MinNan: return with_flush<MinNan<T>, T, 2, false>(ftz, rounding);
        case OwnOp::MaxNan: return with_flush<MaxNan<T>, T, 2, false>(ftz, rounding);
        case OwnOp::Saturate: return map1<Saturate<T>, T, T>;
        default: return nullptr;
    }
}

Handler for_single(Op op, bool ftz) {
    switch (op) {
        case Op::Exp2: return with_flush<M<sem::Exp2, float>, float, 1, false>(ftz, {});
        case Op::Log2: return with_flush<M<sem::Log2, float>, float, 1, false>(ftz, {});
        case Op::Sin: return with_flush<M<sem::Sin, float>, float, 1, false>(ftz, {});
        case Op::Cos: return with_flush<M<sem::Cos, float>, float, 1, false>(ftz, {});
        case Op::Tanh: return map1<M<sem::Tanh, float>, float, float>;
        default: return nullptr;
    }
}
Handler for_single(OwnOp op, bool) { return op == OwnOp::Relu ? map1<Relu, float, float> : nullptr; }

template <class T, u32 Mode>
IKAT_HANDLER(test) {
    const T* const a = lanes_at<T>(frame, op->a);
    u32 lanes = 0;
    for (unsigned i = 0; i < warp_size; ++i) lanes |= u32(sem::test_float(a[i], Mode)) << i;
    u32* const d = reinterpret_cast<u32*>(frame + op->d);
    *d = (*d & ~mask) | (lanes & mask);
    IKAT_NEXT;
}
template <class T>
Handler test_of(u32 mode) {
    constexpr Handler by_mode[] = {test<T, 0>, test<T, 1>, test<T, 2>, test<T, 3>, test<T, 4>, test<T, 5>};
    return by_mode[mode];
}
Handler choose_test(Type type, u32 mode) { return type == Type::F32 ? test_of<float>(mode) : test_of<double>(mode); }

// ---- f16 and bf16: widened, computed in f32, rounded once more. For + - * that is one rounding (24 bits are enough),
// min, max, neg and abs are exact, and fma gives an f32 that is odd where it is inexact.

struct Half {
    static constexpr u32 exponent = 0x7c00;
    static constexpr float smallest_normal = 0x1p-14f;
    static HWY_INLINE void widen(const u32* cells, int shift, float* to) { widen_halves(cells, shift, to); }
    static HWY_INLINE void narrow(const float* from, u32* cells) { narrow_to_halves(from, cells); }
    static HWY_INLINE float fma(float a, float b, float c) {
        const float product = a * b;  // 22 bits: exact
        const float sum = product + c, shadow = sum - product;
        const float error = (product - (sum - shadow)) + (c - shadow);
        const u32 bits = std::bit_cast<u32>(sum);
        const bool finite = (bits & 0x7f800000) != 0x7f800000;
        const u32 step = (error > 0) == (sum > 0) ? 1u : ~0u;
        return std::bit_cast<float>(finite && error != 0 && !(bits & 1) ? bits + step : bits);
    }
};
struct Brain {
    static constexpr u32 exponent = 0x7f80;
    static constexpr float smallest_normal = 0x1p-126f;
    static HWY_INLINE void widen(const u32* cells, int shift, float* to) { widen_brains(cells, shift, to); }
    static HWY_INLINE void narrow(const float* from, u32* cells) { narrow_to_brains(from, cells); }
    /// The product is exact in f64. The error of the f64 sum and of its rounding to f32 has the sign of the larger of
    /// both.
    static HWY_INLINE float fma(float a, float b, float c) {
        const double product = double(a) * double(b), addend = c;
        const double sum = product + addend, shadow = sum - product;
        const double error = (product - (sum - shadow)) + (addend - shadow);
        const float near = float(sum);
        const double rest = sum - double(near);
        const double left_out = rest != 0 ? rest : error;
        const u32 bits = std::bit_cast<u32>(near);
        const bool finite = (bits & 0x7f800000) != 0x7f800000 && sum - sum == 0;
        const u32 step = (left_out > 0) == (sum > 0) ? 1u : ~0u;
        return std::bit_cast<float>(finite && left_out != 0 && !(bits & 1) ? bits + step : bits);
    }
};
template <class Format>
struct SmallFma {
    static HWY_INLINE float apply(float a, float b, float c) { return Format::fma(a, b, c); }
};

/// The number at `shift` in each register.
template <class F, class Format, int Operands, bool Ftz>
HWY_INLINE void compute_small(const MicroOp* op, Warp* w, std::byte* frame, int shift, u32* to) {
    float* const a = reinterpret_cast<float*>(w->staging);
    const auto take = [&](std::uint32_t from, float* x) {
        Format::widen(lanes_at<u32>(frame, from), shift, x);
        if constexpr (Ftz)
            IKAT_EACH_LANE(i) x[i] = std::abs(x[i]) < Format::smallest_normal ? std::copysign(0.0f, x[i]) : x[i];
    };
    float *const b = a + warp_size, *const c = b + warp_size;
    take(op->a, a);
    if (Operands > 1) take(op->b, b);
    if (Operands > 2) take(op->c, c);
    IKAT_EACH_LANE(i) {
        if constexpr (Operands == 1)
            a[i] = F::apply(a[i]);
        else if constexpr (Operands == 2)
            a[i] = F::apply(a[i], b[i]);
        else
            a[i] = F::apply(a[i], b[i], c[i]);
    }
    Format::narrow(a, to);
    if constexpr (Ftz) IKAT_EACH_LANE(i) to[i] = to[i] & Format::exponent ? to[i] : to[i] & 0x8000;
}

template <class F, class Format, int Operands, bool Ftz>
IKAT_HANDLER(on_small) {
    IKAT_RESULT(u32);
    compute_small<F, Format, Operands, Ftz>(op, w, frame, 0, d);
    IKAT_FINISH(u32);
}

template <class F, class Format, int Operands, bool Ftz>
IKAT_HANDLER(on_pair) {
    u32* const low = reinterpret_cast<u32*>(w->addresses);
    u32* const high = low + warp_size;
    compute_small<F, Format, Operands, Ftz>(op, w, frame, 0, low);
    compute_small<F, Format, Operands, Ftz>(op, w, frame, 16, high);
    IKAT_RESULT(u32);
    IKAT_EACH_LANE(i) d[i] = low[i] | high[i] << 16;
    IKAT_FINISH(u32);
}

/// bf16 has .ftz only in ex2.
template <class F, class Format, int Operands, bool Flushes = std::is_same_v<Format, Half>>
Handler small_handler(bool pair, bool ftz) {
    if constexpr (Flushes)
        if (ftz) return pair ? on_pair<F, Format, Operands, true> : on_small<F, Format, Operands, true>;
    return pair ? on_pair<F, Format, Operands, false> : on_small<F, Format, Operands, false>;
}

template <class Format>
Handler for_small(Op op, bool pair, bool ftz) {
    switch (op) {
        case Op::Add: return small_handler<M<sem::Add, float>, Format, 2>(pair, ftz);
        case Op::Sub: return small_handler<M<sem::Sub, float>, Format, 2>(pair, ftz);
        case Op::Mul: return small_handler<M<sem::Mul, float>, Format, 2>(pair, ftz);
        case Op::Fma: return small_handler<SmallFma<Format>, Format, 3>(pair, ftz);
        case Op::Neg: return small_handler<M<sem::Neg, float>, Format, 1>(pair, ftz);
        case Op::Abs: return small_handler<M<sem::Abs, float>, Format, 1>(pair, ftz);
        case Op::Min: return small_handler<M<sem::Min, float>, Format, 2>(pair, ftz);
        case Op::Max: return small_handler<M<sem::Max, float>, Format, 2>(pair, ftz);
        case Op::Exp2: return small_handler<M<sem::Exp2, float>, Format, 1, true>(pair, ftz);
        case Op::Tanh: return small_handler<M<sem::Tanh, float>, Format, 1>(pair, ftz);
        default: return nullptr;
    }
}
template <class Format>
Handler for_small(OwnOp op, bool pair, bool ftz) {
    switch (op) {
        case OwnOp::MinNan: return small_handler<MinNan<float>, Format, 2>(pair, ftz);
        case OwnOp::MaxNan: return small_handler<MaxNan<float>, Format, 2>(pair, ftz);
        case OwnOp::Saturate: return small_handler<Saturate<float>, Format, 1>(pair, ftz);
        case OwnOp::Relu: return small_handler<Relu, Format, 1>(pair, ftz);
        default: return nullptr;
    }
}

#if HWY_NATIVE_FMA
constexpr Handler single_fma = map3<M<sem::Fma, float>, float, float, float, float>;

/// The products of an outer product share the first factor, which is kept in registers as long as it is the same.
IKAT_HANDLER(fma_run) {
    if (HWY_UNLIKELY(mask != all_lanes)) return single_fma(op, w, frame, mask);
    const hn::ScalableTag<float> v;
    constexpr unsigned lanes = hn::MaxLanes(v), parts = warp_size / lanes;
    const auto nan = hn::Set(v, sem::canonical_nan<float>());
    const MicroOp* const end = op + op->y;
    while (op != end) {
        const u32 common = op->a;
        hn::Vec<decltype(v)> a[parts];
        for (unsigned k = 0; k < parts; ++k) a[k] = hn::Load(v, lanes_at<float>(frame, common) + k * lanes);
        do {
            const float* const b = lanes_at<float>(frame, op->b);
            const float* const c = lanes_at<float>(frame, op->c);
            float* const d = lanes_at<float>(frame, op->d);
            for (unsigned k = 0; k < parts; ++k) {
                const auto x = hn::MulAdd(a[k], hn::Load(v, b + k * lanes), hn::Load(v, c + k * lanes));
                hn::Store(hn::IfThenElse(hn::Eq(x, x), x, nan), v, d + k * lanes);
            }
        } while (++op != end && op->a == common);
    }
    IKAT_CONTINUE(0);
}
Handler choose_run(Handler of) { return of == single_fma ? fma_run : nullptr; }
#else
Handler choose_run(Handler) { return nullptr; }
#endif

template <class O>
Handler choose(O op, Type type, bool ftz, Rounding rounding) {
    switch (type) {
        case Type::F16:
        case Type::F16x2: return for_small<Half>(op, type == Type::F16x2, ftz);
        case Type::BF16:
        case Type::BF16x2: return for_small<Brain>(op, type == Type::BF16x2, ftz);
        case Type::F32:
            if (const Handler handler = for_single(op, ftz)) return handler;
            return for_wide_number<float>(op, ftz, rounding);
        case Type::F64: return for_wide_number<double>(op, ftz, rounding);
        default: return nullptr;
    }
}
Handler choose_float(Operation operation, Type type, bool ftz, Rounding rounding) {
    const std::optional<Op> op = operation.of_ir();
    return op ? choose(*op, type, ftz, rounding) : choose(operation.own(), type, ftz, rounding);
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ikat::emulator {
HWY_EXPORT(choose_float);
HWY_EXPORT(choose_run);
HWY_EXPORT(choose_test);
namespace {

/// What it may give a NaN or an infinity for though all its sources are finite.
Arithmetic arithmetic_of(Operation operation, Type type) {
    switch (operation.of_ir().value_or(Op::Abs)) {
        case Op::Add:
        case Op::Sub:
        case Op::Mul:
        case Op::Fma:
        case Op::Div:
        case Op::Sqrt:
        case Op::Rcp:
        case Op::Rsqrt:
        case Op::Exp2:
        case Op::Log2: return {.to = type, .from = {type}};
        default: return {};
    }
}

}  // namespace

Behaviour select_float(Operation operation, Type type, bool ftz, Rounding rounding) {
    return {HWY_DYNAMIC_DISPATCH(choose_float)(operation, type, ftz, rounding),
            {.operation = operation, .arithmetic = arithmetic_of(operation, type)}};
}
Handler select_run(Handler of) { return HWY_DYNAMIC_DISPATCH(choose_run)(of); }
Behaviour select_test(Type type, std::uint32_t mode) {
    return {HWY_DYNAMIC_DISPATCH(choose_test)(type, mode), {Op::TestFloat}};
}
}  // namespace ikat::emulator
#endif
