// SPDX-License-Identifier: Apache-2.0
// The loops over the 32 lanes of a warp, for one instruction set: included by each family of handlers once per target
// of foreach_target. The loops call the scalar lines of codegen/ir/op/semantics.hpp and are vectorised by the compiler;
// hand-written code (address patterns, masked copies, compares) uses Highway.
#if defined(IKAT_EMULATOR_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef IKAT_EMULATOR_LANES
#undef IKAT_EMULATOR_LANES
#else
#define IKAT_EMULATOR_LANES
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "codegen/ir/op/semantics.hpp"
#include "runtime/emulator/ops/dispatch.hpp"
#include "runtime/emulator/ops/handlers.hpp"

// Lanes are independent and registers never overlap partially: d equals a source or is disjoint from it.
#if defined(__clang__)
#define IKAT_EACH_OF(i, count)                            \
    _Pragma("clang diagnostic ignored \"-Wpass-failed\"") \
        _Pragma("clang loop vectorize(assume_safety)") for (unsigned i = 0; i < count; ++i)
#define IKAT_UNROLLED_LANES(i) _Pragma("clang loop unroll_count(8)") for (unsigned i = 0; i < warp_size; ++i)
#else
#define IKAT_EACH_OF(i, count) _Pragma("GCC ivdep") for (unsigned i = 0; i < count; ++i)
#define IKAT_UNROLLED_LANES(i) _Pragma("GCC unroll 8") for (unsigned i = 0; i < warp_size; ++i)
#endif

#define IKAT_EACH_LANE(i) IKAT_EACH_OF(i, warp_size)

HWY_BEFORE_NAMESPACE();
namespace ikat::emulator {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace sem = ir::sem;

/// The cell of a register that holds a T.
template <class T>
using Cell = std::conditional_t<(sizeof(T) < 4), std::uint32_t, T>;

template <class T>
HWY_INLINE T* lanes_at(std::byte* frame, std::uint32_t offset) {
    return reinterpret_cast<T*>(__builtin_assume_aligned(frame + offset, 64));
}

template <class T>
HWY_INLINE T from_cell(Cell<T> cell) {
    if constexpr (is_small_float<T>)
        return T::from_bits(decltype(T::bits)(cell));
    else
        return T(cell);
}
template <class T>
HWY_INLINE Cell<T> to_cell(T value) {
    if constexpr (is_small_float<T>)
        return value.bits;
    else if constexpr (sizeof(T) < 4)
        return std::make_unsigned_t<T>(value);
    else
        return value;
}

/// Lanes i to i + N - 1 of a mask of lanes, for vectors of N.
template <class V>
HWY_INLINE auto lanes_of(V v, std::uint32_t mask, unsigned i) {
    const std::uint64_t bits = mask >> i;
    std::uint8_t bytes[8];
    std::memcpy(bytes, &bits, sizeof bytes);
    return hn::LoadMaskBits(v, bytes);
}

/// Writes lanes `mask` of the register at `to`. The register is written as a whole: a load from a vector that was
/// stored partially stalls until the store is in the cache.
template <class V>
HWY_INLINE void blend(hn::Vec<V> from, std::uint32_t mask, unsigned i, V v, hn::TFromD<V>* to) {
    hn::Store(hn::IfThenElse(lanes_of(v, mask, i), from, hn::Load(v, to)), v, to);
}

/// Copies the warp's scratch into lanes `mask` of d, then continues with the next op.
template <unsigned Bytes>
HWY_NOINLINE const MicroOp* blend_and_continue(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    using Bits = std::conditional_t<Bytes == 8, std::uint64_t, std::uint32_t>;
    const hn::ScalableTag<Bits> v;
    Bits* const d = lanes_at<Bits>(frame, op->d);
    const Bits* const s = lanes_at<Bits>(w->scratch, 0);
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) blend(hn::Load(v, s + i), mask, i, v, d + i);
    IKAT_NEXT;
}

/// Where a handler writes its 32 results: directly to d if all lanes execute, else to the scratch.
#define IKAT_RESULT(T) \
    Cell<T>* const d = \
        reinterpret_cast<Cell<T>*>(__builtin_assume_aligned(mask == all_lanes ? frame + op->d : w->scratch, 64))
#define IKAT_FINISH(T)                                                                                   \
    if (HWY_UNLIKELY(mask != all_lanes)) return blend_and_continue<sizeof(Cell<T>)>(op, w, frame, mask); \
    IKAT_NEXT

#define IKAT_HANDLER(name) const MicroOp* name(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask)

/// d = F(a), F(a, b), F(a, b, c): R and the operand types are those of the registers.
template <class F, class R, class A>
IKAT_HANDLER(map1) {
    const Cell<A>* const a = lanes_at<Cell<A>>(frame, op->a);
    IKAT_RESULT(R);
    IKAT_EACH_LANE(i) d[i] = to_cell<R>(F::apply(from_cell<A>(a[i])));
    IKAT_FINISH(R);
}
template <class F, class R, class A, class B>
IKAT_HANDLER(map2) {
    const Cell<A>* const a = lanes_at<Cell<A>>(frame, op->a);
    const Cell<B>* const b = lanes_at<Cell<B>>(frame, op->b);
    IKAT_RESULT(R);
    IKAT_EACH_LANE(i) d[i] = to_cell<R>(F::apply(from_cell<A>(a[i]), from_cell<B>(b[i])));
    IKAT_FINISH(R);
}
template <class F, class R, class A, class B, class C>
IKAT_HANDLER(map3) {
    const Cell<A>* const a = lanes_at<Cell<A>>(frame, op->a);
    const Cell<B>* const b = lanes_at<Cell<B>>(frame, op->b);
    const Cell<C>* const c = lanes_at<Cell<C>>(frame, op->c);
    IKAT_RESULT(R);
    IKAT_EACH_LANE(i) d[i] = to_cell<R>(F::apply(from_cell<A>(a[i]), from_cell<B>(b[i]), from_cell<C>(c[i])));
    IKAT_FINISH(R);
}

/// A line of semantics.hpp at type T, as an F of the maps.
template <const auto& Line, class T>
struct Meaning {
    template <class... Operands>
    static HWY_INLINE auto apply(Operands... operands) {
        return Line.template operator()<T>(operands...);
    }
};

/// The f16 in the low bits of 32 cells, shifted down first, as f32; a NaN becomes canonical.
HWY_INLINE void widen_halves(const std::uint32_t* cells, int shift, float* to) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    for (unsigned i = 0; i < warp_size; ++i)
        to[i] = sem::convert<float>(half::from_bits(std::uint16_t(cells[i] >> shift)), Rounding::Nearest);
#else
    const hn::ScalableTag<float> v;
    const hn::Rebind<std::uint32_t, decltype(v)> words;
    const hn::Rebind<std::int32_t, decltype(v)> signed_words;
    const hn::Rebind<std::uint16_t, decltype(v)> shorts;
    const hn::Rebind<hwy::float16_t, decltype(v)> halves;
    const auto nan = hn::Set(v, sem::canonical_nan<float>());
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
        const auto low = hn::And(hn::ShiftRightSame(hn::Load(words, cells + i), shift), hn::Set(words, 0xffff));
        const auto packed = hn::DemoteTo(shorts, hn::BitCast(signed_words, low));
        const auto x = hn::PromoteTo(v, hn::BitCast(halves, packed));
        hn::Store(hn::IfThenElse(hn::Eq(x, x), x, nan), v, to + i);
    }
#endif
}

/// 32 f32 rounded to the nearest f16, into the low bits of cells; a NaN becomes canonical.
HWY_INLINE void narrow_to_halves(const float* from, std::uint32_t* cells) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    for (unsigned i = 0; i < warp_size; ++i) cells[i] = sem::convert<half>(from[i], Rounding::Nearest).bits;
#else
    const hn::ScalableTag<float> v;
    const hn::Rebind<std::uint32_t, decltype(v)> words;
    const hn::Rebind<std::uint16_t, decltype(v)> shorts;
    const hn::Rebind<hwy::float16_t, decltype(v)> halves;
    for (unsigned i = 0; i < warp_size; i += unsigned(hn::Lanes(v))) {
        const auto x = hn::Load(v, from + i);
        const auto rounded = hn::PromoteTo(words, hn::BitCast(shorts, hn::DemoteTo(halves, x)));
        const auto is_number = hn::RebindMask(words, hn::Eq(x, x));
        hn::Store(hn::IfThenElse(is_number, rounded, hn::Set(words, 0x7fff)), words, cells + i);
    }
#endif
}

/// The bf16 in the low bits of 32 cells, shifted down first, as f32: its upper half.
HWY_INLINE void widen_brains(const std::uint32_t* cells, int shift, float* to) {
    IKAT_EACH_LANE(i) to[i] = std::bit_cast<float>(cells[i] >> shift << 16);
}

/// 32 f32 rounded to the nearest bf16, into the low bits of cells; a NaN becomes canonical.
HWY_INLINE void narrow_to_brains(const float* from, std::uint32_t* cells) {
    IKAT_EACH_LANE(i) {
        const auto bits = std::bit_cast<std::uint32_t>(from[i]);
        const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        cells[i] = (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded;
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace ikat::emulator
HWY_AFTER_NAMESPACE();
#endif
