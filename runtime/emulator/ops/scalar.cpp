// SPDX-License-Identifier: Apache-2.0
// Instructions that are rare enough to be computed lane by lane: searches and masks of bits, the video instructions,
// saturating products. Each is a function of three words and a literal, as defined in the PTX ISA.
#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/ir/op/semantics.hpp"
#include "runtime/emulator/ops/scalar.hpp"

namespace ikat::emulator {

namespace {

using u32 = std::uint32_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u64 = std::uint64_t;
__extension__ using s128 = __int128;  // holds every sum and product of words

template <u32 (*F)(u32 a, u32 b, u32 c, const MicroOp& op)>
const MicroOp* on_words(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    const auto words = [&](u32 offset) { return reinterpret_cast<u32*>(frame + offset); };
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto i = unsigned(std::countr_zero(rest));
        words(op->d)[i] = F(words(op->a)[i], words(op->b)[i], words(op->c)[i], *op);
    }
    IKAT_NEXT;
}

u32 saturated(s128 x, bool is_signed, int bits) {
    const s128 highest = is_signed ? (s128{1} << (bits - 1)) - 1 : (s128{1} << bits) - 1;
    const s128 lowest = is_signed ? -(s128{1} << (bits - 1)) : 0;
    return u32(std::clamp(x, lowest, highest));
}

// ---- bits

/// fns: the position of the c-th set bit of a, counted from bit b up (c > 0) or down (c < 0).
u32 find_nth_set(u32 a, u32 b, u32 c, const MicroOp&) {
    const auto n = s64(s32(c));
    if (b > 31) return ~0u;
    if (n == 0) return a >> b & 1 ? b : ~0u;
    s64 left = (n < 0 ? -n : n) - 1;
    for (int at = int(b); at >= 0 && at<32; at += n> 0 ? 1 : -1)
        if (a >> at & 1 && left-- == 0) return u32(at);
    return ~0u;
}

/// bmsk.wrap: b ones from bit a, both modulo 32.
u32 mask_wrapped(u32 a, u32 b, u32, const MicroOp&) {
    const u32 first = a & 31, length = b & 31, sum = first + length;
    if (length == 0) return 0;
    return ~0u << first & ~(sum >= 32 ? 0 : ~0u << sum);
}

/// szext: the low b bits of a, extended. x: ExtendSigned, ExtendClamped.
u32 extended(u32 a, u32 b, u32, const MicroOp& op) {
    const u32 length = b & 31;
    if (b >= 32 && op.x & ExtendClamped) return a;
    const u32 above = ~0u << length;
    const bool sign = length != 0 && op.x & ExtendSigned && a >> (length - 1) & 1;
    return (a & ~above) | (sign ? above : 0);
}

/// mad.hi.sat.s32 and mad24.hi.sat.s32; x: the bits of the product that are dropped.
u32 product_high_saturated(u32 a, u32 b, u32 c, const MicroOp& op) {
    const auto narrowed = [&](u32 v) { return op.x == 32 ? s64(s32(v)) : s64(s32(v << 8) >> 8); };
    return saturated((narrowed(a) * narrowed(b) >> op.x) + s32(c), true, 32);
}

/// cvt.pack.sat.T.s32{.b32}: a above b, each of x bits, above them the low bits of c. y: T is signed.
u32 packed(u32 a, u32 b, u32 c, const MicroOp& op) {
    const auto bits = int(op.x);
    const u32 part = (1u << bits) - 1;
    const u32 low = saturated(s32(b), op.y, bits) & part, high = saturated(s32(a), op.y, bits) & part;
    return low | high << bits | (bits == 16 ? 0 : c << (2 * bits));
}

/// add, min and max of u16x2 and s16x2, each half separately.
u32 short_pair(u32 a, u32 b, u32, const MicroOp& op) {
    const auto half = [&](u32 x, int shift) {
        const s64 bits = x >> shift & 0xffff;
        return op.y & ShortSigned && bits >> 15 ? bits - 0x10000 : bits;
    };
    u32 d = 0;
    for (const int shift : {0, 16}) {
        const s64 x = half(a, shift), y = half(b, shift);
        s64 r = ShortPair(op.x) == ShortPair::Add   ? x + y
                : ShortPair(op.x) == ShortPair::Min ? std::min(x, y)
                                                    : std::max(x, y);
        if (op.y & ShortRelu) r = std::max<s64>(r, 0);
        d |= u32(r & 0xffff) << shift;
    }
    return d;
}

/// cvt to tf32: ten bits of mantissa. A NaN becomes canonical; with FiniteResult, overflow gives the largest number.
u32 to_tf32(u32 a, u32, u32, const MicroOp& op) {
    constexpr u32 infinity = 0x7f800000, largest = 0x7f7fe000, dropped = 0x1fff;
    const u32 sign = a & 0x80000000, magnitude = a & 0x7fffffff;
    if (magnitude > infinity) return 0x7fffffff;
    if (sign && op.y & ReluResult) return 0;
    const Tf32Rounding rounding = Tf32Rounding(op.x);
    const u32 up = rounding == Tf32Rounding::Away   ? 0x1000
                   : rounding == Tf32Rounding::Even ? 0xfff + (magnitude >> 13 & 1)
                                                    : 0;
    const u32 rounded = magnitude == infinity ? infinity : (magnitude + up) & ~dropped;
    return sign | (rounded == infinity && op.y & FiniteResult ? largest : rounded);
}

// ---- floats of 4 and 6 bits, and scales of 8

/// By MiniFloat.
constexpr FloatFormat formats[] = {{1, 2, true, true, true}, {3, 2, true, true, true}, {2, 3, true, true, true}};
/// The width of each of two in a register.
int width_of(const FloatFormat& format) { return format.mantissa_bits + format.exponent_bits == 3 ? 4 : 8; }

/// Rounds to nearest even; overflow and NaN give the largest number.
u32 to_mini_floats(u32 a, u32 b, u32, const MicroOp& op) {
    const FloatFormat& format = formats[op.x];
    const auto encoded = [&](u32 bits) {
        const float x = std::bit_cast<float>(bits);
        return op.y & ReluResult && std::signbit(x) && x == x ? 0 : u32(encode(double(x), format, Rounding::Nearest));
    };
    return encoded(a) << width_of(format) | encoded(b);
}

u32 from_mini_floats(u32 a, u32, u32, const MicroOp& op) {
    const FloatFormat& format = formats[op.x];
    const auto half_of = [&](int place) {
        const double x = decode(a >> place, format);
        return u32(half(op.y & ReluResult && std::signbit(x) ? 0.0 : x).bits);
    };
    return half_of(width_of(format)) << 16 | half_of(0);
}

/// The exponent of |x|, or the next above it; 255 is NaN.
u32 scale_of(u32 bits, u32 how) {
    constexpr u32 infinity = 0x7f800000, smallest = 0x00400000;  // 2^-127
    const u32 magnitude = bits & 0x7fffffff;
    if (magnitude > infinity) return 255;
    const bool between = magnitude & 0x007fffff && magnitude > smallest && magnitude < infinity;
    const u32 exponent = (magnitude >> 23) + (how & ScaleUp && between ? 1 : 0);
    return exponent == 255 && how & ScaleFinite ? 254 : exponent;
}

u32 to_scales(u32 a, u32 b, u32, const MicroOp& op) {
    const u32 high = op.x & ScaleOfPair ? a & 0xffff0000 : a, low = op.x & ScaleOfPair ? a << 16 : b;
    return scale_of(high, op.x) << 8 | scale_of(low, op.x);
}

u32 from_scales(u32 a, u32, u32, const MicroOp&) {
    const auto brain = [](u32 e) { return e == 255 ? 0x7fffu : e == 0 ? 0x40u : e << 7; };
    return brain(a >> 8 & 255) << 16 | brain(a & 255);
}

// ---- video

bool holds(u32 comparison, s128 a, s128 b) {
    switch (comparison) {
        case VideoEq: return a == b;
        case VideoNe: return a != b;
        case VideoLt: return a < b;
        case VideoLe: return a <= b;
        case VideoGt: return a > b;
        default: return a >= b;
    }
}

s128 extend(u32 value, int bits, bool is_signed) {
    const u32 part = bits == 32 ? value : value & ((1u << bits) - 1);
    return is_signed && part >> (bits - 1) ? s128(part) - (s128{1} << bits) : s128(part);
}

/// A selected part of a register: 0 the whole, 1 to 4 a byte, 5 and 6 a half.
s128 selected(u32 value, u32 select, bool is_signed) {
    if (select == 0) return extend(value, 32, is_signed);
    if (select <= 4) return extend(value >> (8 * (select - 1)), 8, is_signed);
    return extend(value >> (16 * (select - 5)), 16, is_signed);
}

s128 combined(const Video& how, s128 a, s128 b) {
    switch (how.kind) {
        case Video::Add: return a + b;
        case Video::Subtract: return a - b;
        case Video::Difference: return a < b ? b - a : a - b;
        case Video::Minimum: return std::min(a, b);
        case Video::Maximum: return std::max(a, b);
        case Video::Average: return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
        case Video::Compare: return holds(how.comparison, a, b);
        case Video::ShiftLeft: return a * (s128{1} << (how.wraps ? b & 31 : std::min<s128>(b, 32)));
        case Video::ShiftRight: return a >> (how.wraps ? b & 31 : std::min<s128>(b, 32));
        case Video::MultiplyAdd: break;
    }
    return 0;
}

/// vmad: ±(a · b) ± c, or that plus one, shifted.
s128 multiply_add(const Video& how, s128 a, s128 b, u32 c, bool c_signed) {
    s128 product = a * b, addend = extend(c, 32, c_signed), one = 0;
    if (how.plus_one) {
        one = 1;
    } else if (how.negates_product) {
        product = ~product, one = 1;
    } else if (how.negates_addend) {
        addend = ~addend, one = 1;
    }
    return (product + addend + one) >> how.scale;
}

u32 merged(s128 value, u32 select, u32 c) {
    if (select == 0) return u32(value);
    const int shift = select <= 4 ? 8 * int(select - 1) : 16 * int(select - 5);
    const u32 part = (select <= 4 ? 0xffu : 0xffffu) << shift;
    return (c & ~part) | (u32(value) << shift & part);
}

u32 video(u32 a, u32 b, u32 c, const MicroOp& op) {
    const Video how = Video::of(op.x);
    const u32 select = op.y;
    const u32 into = select >> 6 & 7;
    const s128 x = selected(a, select & 7, how.a_signed), y = selected(b, select >> 3 & 7, how.b_signed);
    const bool is_product = how.kind == Video::MultiplyAdd;
    const bool c_signed = how.a_signed || how.b_signed || how.negates_product || how.negates_addend;
    s128 value = is_product ? multiply_add(how, x, y, c, c_signed) : combined(how, x, y);
    if (how.saturates)
        value = s128(saturated(value, is_product ? c_signed : how.d_signed, into == 0 ? 32 : into <= 4 ? 8 : 16));
    const s128 first = extend(u32(value), 32, how.d_signed), other = extend(c, 32, how.d_signed);
    switch (how.secondary) {
        case Video::None: break;
        case Video::ThenAdd: return u32(value) + c;
        case Video::ThenMinimum: return u32(std::min(first, other));
        case Video::ThenMaximum: return u32(std::max(first, other));
    }
    return merged(value, into, c);
}

/// vadd2, vadd4 and others: y has, for each part, which part of {b, a} it uses, and the parts written.
u32 video_parts(u32 a, u32 b, u32 c, const MicroOp& op) {
    const Video how = Video::of(op.x);
    const int count = how.parts, bits = 32 / count;
    const u64 both = u64(b) << 32 | a;
    const u32 part = (1u << bits) - 1;
    u32 sum = c, whole = 0;
    for (int i = 0; i < count; ++i) {
        const auto pick = [&](u32 from, bool is_signed) {
            return extend(u32(both >> (bits * int(op.y >> (from + 3 * unsigned(i)) & 7))), bits, is_signed);
        };
        s128 value = combined(how, pick(0, how.a_signed), pick(12, how.b_signed));
        if (how.saturates) value = extend(saturated(value, how.d_signed, bits), 32, how.d_signed);
        const bool written = op.y >> (24 + i) & 1;
        if (written) sum += u32(value);
        whole |= ((written ? u32(value) : c >> (bits * i)) & part) << (bits * i);
    }
    return how.secondary == Video::ThenAdd ? sum : whole;
}

// ---- rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: of the upper word of the operand, to the upper word of the result

double coarse(double x) { return std::bit_cast<double>(std::bit_cast<u64>(x) & 0xffffffff00000000ull); }
double flushed(double x) {
    const auto bits = std::bit_cast<u64>(x);
    return bits & 0x7ff0000000000000ull ? x : std::bit_cast<double>(bits & 0x8000000000000000ull);
}

template <bool Root>
const MicroOp* coarse_reciprocal(const MicroOp* op, Warp* w, std::byte* frame, u32 mask) {
    const auto* const a = reinterpret_cast<const double*>(frame + op->a);
    auto* const d = reinterpret_cast<double*>(frame + op->d);
    for (u32 rest = mask; rest; rest &= rest - 1) {
        const auto i = unsigned(std::countr_zero(rest));
        const double x = flushed(coarse(a[i])), r = flushed(1 / (Root ? __builtin_sqrt(x) : x));
        d[i] = r != r ? std::bit_cast<double>(0x7fffffffffffffffull) : coarse(r);
    }
    IKAT_NEXT;
}

Handler handler_of(Scalar scalar) {
    switch (scalar) {
        case Scalar::FindNthSet: return on_words<find_nth_set>;
        case Scalar::MaskWrapped: return on_words<mask_wrapped>;
        case Scalar::Extended: return on_words<extended>;
        case Scalar::ProductHighSaturated: return on_words<product_high_saturated>;
        case Scalar::Packed: return on_words<packed>;
        case Scalar::Video: return on_words<video>;
        case Scalar::VideoParts: return on_words<video_parts>;
        case Scalar::ShortPair: return on_words<short_pair>;
        case Scalar::Tf32: return on_words<to_tf32>;
        case Scalar::ToMiniFloats: return on_words<to_mini_floats>;
        case Scalar::FromMiniFloats: return on_words<from_mini_floats>;
        case Scalar::ToScales: return on_words<to_scales>;
        case Scalar::FromScales: return on_words<from_scales>;
        case Scalar::CoarseReciprocal: return coarse_reciprocal<false>;
        case Scalar::CoarseReciprocalRoot: return coarse_reciprocal<true>;
    }
    return nullptr;
}

}  // namespace

Behaviour select_scalar(Scalar scalar) { return {handler_of(scalar), {OwnOp::Scalar}}; }

}  // namespace ikat::emulator
