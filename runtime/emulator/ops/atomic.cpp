// SPDX-License-Identifier: Apache-2.0
// atom and red: the lanes one after the other, in lane order. A block is run by one host thread, so plain memory
// operations are atomic unless other blocks run at the same time; then host atomics do the update.
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

#include "codegen/ir/op/semantics.hpp"
#include "runtime/emulator/ops/handlers.hpp"

namespace ikat::emulator {

namespace {

namespace sem = ir::sem;

template <Atomic A, class T>
T updated(T old, T b, T c) {
    if constexpr (is_pair<T> && (A == Atomic::Add || A == Atomic::Min || A == Atomic::Max)) {
        using Lane = typename T::lane_type;
        return {updated<A, Lane>(old.x, b.x, c.x), updated<A, Lane>(old.y, b.y, c.y)};
    } else if constexpr (A == Atomic::Add)
        return sem::Add.template operator()<T>(old, b);
    else if constexpr (A == Atomic::Min)
        return sem::minimum(old, b);
    else if constexpr (A == Atomic::Max)
        return sem::maximum(old, b);
    else if constexpr (A == Atomic::Inc)
        return old >= b ? T(0) : T(old + 1);
    else if constexpr (A == Atomic::Dec)
        return old == 0 || old > b ? b : T(old - 1);
    else if constexpr (A == Atomic::And)
        return T(old & b);
    else if constexpr (A == Atomic::Or)
        return T(old | b);
    else if constexpr (A == Atomic::Xor)
        return T(old ^ b);
    else if constexpr (A == Atomic::Exchange)
        return b;
    else
        return old == b ? c : old;
}

/// atom.add.f32 on global memory flushes subnormal operands and results (PTX ISA, atom); on shared memory it does not.
float flushed(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7f800000 ? x : std::copysign(0.0f, x); }

template <Atomic A, class T>
T apply(T old, T b, T c, bool global) {
    if constexpr (A == Atomic::Add && std::is_same_v<T, float>)
        if (global) return flushed(updated<A>(flushed(old), flushed(b), c));
    return updated<A>(old, b, c);
}

template <Atomic A, class T, class Bits>
Bits exchange(std::byte* at, Bits b, Bits c, bool global, bool parallel, std::uint64_t& changes) {
    const auto next = [&](Bits old) {
        return std::bit_cast<Bits>(apply<A>(std::bit_cast<T>(old), std::bit_cast<T>(b), std::bit_cast<T>(c), global));
    };
    Bits old;
    if (!parallel) {
        std::memcpy(&old, at, sizeof old);
        const Bits to = next(old);
        std::memcpy(at, &to, sizeof to);
        changes += to != old;
        return old;
    }
    const std::atomic_ref<Bits> cell(*reinterpret_cast<Bits*>(at));
    old = cell.load();
    Bits to;
    while (!cell.compare_exchange_weak(old, to = next(old))) {}
    changes += to != old;
    return old;
}

template <Atomic A, class T>
void reduce_elements(std::byte* at, const std::byte* value, std::size_t count, bool parallel) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
    std::uint64_t changes = 0;
    for (std::size_t i = 0; i < count; ++i, at += sizeof(T), value += sizeof(T)) {
        Bits b;
        std::memcpy(&b, value, sizeof b);
        exchange<A, T, Bits>(at, b, b, true, parallel, changes);
    }
}

template <class T>
Reducer integer_reducer(Atomic a) {
    switch (a) {
        case Atomic::Add: return reduce_elements<Atomic::Add, T>;
        case Atomic::Min: return reduce_elements<Atomic::Min, T>;
        case Atomic::Max: return reduce_elements<Atomic::Max, T>;
        case Atomic::And: return reduce_elements<Atomic::And, T>;
        case Atomic::Or: return reduce_elements<Atomic::Or, T>;
        case Atomic::Xor: return reduce_elements<Atomic::Xor, T>;
        case Atomic::Inc: return std::is_same_v<T, std::uint32_t> ? reduce_elements<Atomic::Inc, T> : nullptr;
        case Atomic::Dec: return std::is_same_v<T, std::uint32_t> ? reduce_elements<Atomic::Dec, T> : nullptr;
        default: return nullptr;
    }
}

template <class T>
Reducer small_reducer(Atomic a) {
    return a == Atomic::Add   ? reduce_elements<Atomic::Add, T>
           : a == Atomic::Min ? reduce_elements<Atomic::Min, T>
           : a == Atomic::Max ? reduce_elements<Atomic::Max, T>
                              : nullptr;
}

/// An exchange may overwrite uninitialised memory; the old value it returns is then undefined.
[[gnu::noinline]] std::byte* bytes_to_exchange(Warp* w, const MicroOp* op, Space space, unsigned lane,
                                               std::uint64_t address, std::uint32_t bytes) {
    View view;
    std::byte* const at = lane_bytes(w, op, space, lane, address, bytes, true, &view);
    if (at && view.written)
        written::set(view.written + lane * (view.lane_stride / 8), address - view.base, bytes, w->parallel);
    return at;
}

template <Atomic A, class T>
const MicroOp* atomic(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
    using Cell = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    const auto* const addresses = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    const auto* const b = reinterpret_cast<const Cell*>(frame + op->b);
    const auto* const c = reinterpret_cast<const Cell*>(frame + op->c);
    auto* const d = reinterpret_cast<Cell*>(frame + op->d);
    const Space space = Space(op->y);
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const std::uint64_t address = with_offset(op, space, addresses[lane]);
        std::byte* const at = A == Atomic::Exchange ? bytes_to_exchange(w, op, space, lane, address, sizeof(T))
                                                    : lane_bytes_written(w, op, space, lane, address, sizeof(T), true);
        if (!at) return nullptr;
        const bool global =
            space == Space::Global || (space == Space::Generic && address >> window_bits > std::uint64_t(Space::Const));
        d[lane] = exchange<A, T, Bits>(at, Bits(b[lane]), Bits(c[lane]), global, w->parallel && global, w->changes);
        if (global) w->bytes_read += sizeof(T), w->bytes_written += sizeof(T);
    }
    IKAT_NEXT;
}

template <class T>
Handler for_integer(Atomic a) {
    switch (a) {
        case Atomic::Add: return atomic<Atomic::Add, T>;
        case Atomic::Min: return atomic<Atomic::Min, T>;
        case Atomic::Max: return atomic<Atomic::Max, T>;
        case Atomic::And: return atomic<Atomic::And, T>;
        case Atomic::Or: return atomic<Atomic::Or, T>;
        case Atomic::Xor: return atomic<Atomic::Xor, T>;
        case Atomic::Exchange: return atomic<Atomic::Exchange, T>;
        case Atomic::CompareSwap: return atomic<Atomic::CompareSwap, T>;
        default: break;
    }
    if constexpr (std::is_same_v<T, std::uint32_t>) {
        if (a == Atomic::Inc) return atomic<Atomic::Inc, T>;
        if (a == Atomic::Dec) return atomic<Atomic::Dec, T>;
    }
    return nullptr;
}

struct Words {
    std::uint64_t low, high;
    bool operator==(const Words&) const = default;
};

template <bool Compares>
const MicroOp* wide_atomic(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    const auto* const addresses = reinterpret_cast<const std::uint64_t*>(frame + op->a);
    const std::uint32_t* const list = w->lists + op->d + 1;
    const auto words = [&](unsigned i) { return reinterpret_cast<std::uint64_t*>(frame + list[2 * i]); };
    for (std::uint32_t rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(std::countr_zero(rest));
        const auto operand = [&](unsigned i) { return Words{words(i)[lane], words(i + 1)[lane]}; };
        const std::uint64_t address = with_offset(op, Space(op->y), addresses[lane]);
        std::byte* const at = Compares ? lane_bytes_written(w, op, Space(op->y), lane, address, sizeof(Words), true)
                                       : bytes_to_exchange(w, op, Space(op->y), lane, address, sizeof(Words));
        if (!at) return nullptr;
        std::unique_lock<std::mutex> alone;  // if blocks run at the same time
        if (w->parallel) alone = std::unique_lock(w->memory->wide_exchange(address));
        const Words written = operand(2);
        Words old;
        std::memcpy(&old, at, sizeof old);
        if (!Compares || old == operand(4)) {
            std::memcpy(at, &written, sizeof written);
            w->changes += written != old;
        }
        words(0)[lane] = old.low;
        words(1)[lane] = old.high;
    }
    IKAT_NEXT;
}

/// Small floats, and packed pairs lane by lane; min and max only occur in vectors.
template <class T>
Handler for_small(Atomic a) {
    switch (a) {
        case Atomic::Add: return atomic<Atomic::Add, T>;
        case Atomic::Min: return atomic<Atomic::Min, T>;
        case Atomic::Max: return atomic<Atomic::Max, T>;
        default: return nullptr;
    }
}

}  // namespace

Reducer select_reducer(Atomic a, Type type) {
    switch (type) {
        case Type::U32: return integer_reducer<std::uint32_t>(a);
        case Type::I32: return integer_reducer<std::int32_t>(a);
        case Type::U64: return integer_reducer<std::uint64_t>(a);
        case Type::I64: return integer_reducer<std::int64_t>(a);
        case Type::F16: return small_reducer<half>(a);
        case Type::BF16: return small_reducer<bfloat16>(a);
        case Type::F32: return a == Atomic::Add ? reduce_elements<Atomic::Add, float> : nullptr;
        case Type::F64: return a == Atomic::Add ? reduce_elements<Atomic::Add, double> : nullptr;
        default: return nullptr;
    }
}

namespace {

Handler atomic_handler(Atomic a, Type type) {
    switch (type) {
        case Type::U16: return a == Atomic::CompareSwap ? atomic<Atomic::CompareSwap, std::uint16_t> : nullptr;
        case Type::U32: return for_integer<std::uint32_t>(a);
        case Type::I32: return for_integer<std::int32_t>(a);
        case Type::U64: return for_integer<std::uint64_t>(a);
        case Type::I64: return for_integer<std::int64_t>(a);
        case Type::F16: return for_small<half>(a);
        case Type::BF16: return for_small<bfloat16>(a);
        case Type::F16x2: return for_small<half2>(a);
        case Type::BF16x2: return for_small<bfloat16x2>(a);
        case Type::F32: return a == Atomic::Add ? atomic<Atomic::Add, float> : nullptr;
        case Type::F64: return a == Atomic::Add ? atomic<Atomic::Add, double> : nullptr;
        default: return nullptr;
    }
}

MicroInfo info_of(Atomic a, Space space, std::uint32_t bytes) {
    static_assert(int(Op::AtomicCas) - int(Op::AtomicAdd) == int(Atomic::CompareSwap));
    return {.operation = Op(int(Op::AtomicAdd) + int(a)),
            .access = {.space = space, .bytes = bytes, .direction = Direction::Atomic, .is_strong = true},
            .use = DefinedUse::Atomic};
}

}  // namespace

Behaviour select_atomic(Atomic a, Type type, Space space) {
    return {atomic_handler(a, type), info_of(a, space, ir::info(type).bytes)};
}
Behaviour select_wide_atomic(bool compares, Space space) {
    return {compares ? wide_atomic<true> : wide_atomic<false>,
            info_of(compares ? Atomic::CompareSwap : Atomic::Exchange, space, sizeof(Words))};
}

}  // namespace ikat::emulator
