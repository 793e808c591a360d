// SPDX-License-Identifier: Apache-2.0
// Threads: indices, barriers, and messages to the host. For exchange between the lanes of a warp see
// dsl/threads/warp.hpp, for atomics dsl/threads/atomic.hpp.
#pragma once
#include "dsl/threads/atomic.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/warp.hpp"

namespace ikat {

// ---- indices

/// Three numbers: .x, .y, .z.
template <class X>
struct Index3 {
    X x, y, z;
};
using Special = Leaf<std::uint32_t>;

namespace detail {

inline Index3<Special> special3(ir::SpecialRegister x) {
    const auto nth = [&](int n) { return Special(trace::special(ir::SpecialRegister(int(x) + n))); };
    return {nth(0), nth(1), nth(2)};
}

}  // namespace detail

/// The thread within its block, the extents of a block in threads, the block within the grid, the extents of the grid
/// in blocks: .x, .y and .z, each a u32.
inline Index3<Special> thread_id() { return detail::special3(ir::SpecialRegister::TidX); }
inline Index3<Special> block_dim() { return detail::special3(ir::SpecialRegister::NtidX); }
inline Index3<Special> block_id() { return detail::special3(ir::SpecialRegister::CtaidX); }
inline Index3<Special> grid_dim() { return detail::special3(ir::SpecialRegister::NctaidX); }
/// block_id() * block_dim() + thread_id().
inline auto global_id() {
    const Index3<Special> b = block_id(), d = block_dim(), t = thread_id();
    return Index3{b.x * d.x + t.x, b.y * d.y + t.y, b.z * d.z + t.z};
}
/// The thread's number in its warp, 0 to 31.
inline Special lane_id() { return Special(trace::special(ir::SpecialRegister::LaneId)); }
/// The warp's number in its block.
inline auto warp_id() {
    const Index3<Special> t = thread_id(), d = block_dim();
    return (t.x + d.x * (t.y + d.y * t.z)) / 32;
}

/// The warpgroup's number in its block: four warps each.
inline auto warpgroup_id() { return warp_id() / 4; }

namespace detail {

template <class R>
Leaf<R> sample(ir::SpecialRegister which, const trace::Where& where) {
    return ask<R>(
        {.op = ir::Op::Sample, .type = ir::type_of<R>, .operand_type = ir::type_of<R>, .attribute = ir::Word(which)},
        where);
}

}  // namespace detail

#define IKAT_REGISTER(name, which) \
    inline Special name() { return Special(trace::special(ir::SpecialRegister::which)); }
/// Bit masks of the lane itself, and of those below and above it.
IKAT_REGISTER(lane_mask_eq, LanemaskEq)
IKAT_REGISTER(lane_mask_le, LanemaskLe)
IKAT_REGISTER(lane_mask_lt, LanemaskLt)
IKAT_REGISTER(lane_mask_ge, LanemaskGe)
IKAT_REGISTER(lane_mask_gt, LanemaskGt)
/// Where the warp runs: its slot on the multiprocessor, and which multiprocessor. For profiling: a thread may be moved.
IKAT_REGISTER(hardware_warp_id, WarpId)
IKAT_REGISTER(hardware_warp_count, NwarpId)
IKAT_REGISTER(multiprocessor_id, SmId)
IKAT_REGISTER(multiprocessor_count, NsmId)
/// Bytes of shared memory: the dynamic part that the launch asked for, and the block's total.
IKAT_REGISTER(dynamic_shared_bytes, DynamicSmemSize)
IKAT_REGISTER(total_shared_bytes, TotalSmemSize)
/// The block's position in its cluster, and the number of blocks in a cluster. From sm_90 on, like everything about
/// clusters.
IKAT_REGISTER(cluster_rank, ClusterCtarank)
IKAT_REGISTER(cluster_size, ClusterNctarank)
#undef IKAT_REGISTER
/// The cluster within the grid, the extents of the grid in clusters, the block within its cluster, the extents of a
/// cluster in blocks.
inline Index3<Special> cluster_id() { return detail::special3(ir::SpecialRegister::ClusteridX); }
inline Index3<Special> cluster_count() { return detail::special3(ir::SpecialRegister::NclusteridX); }
inline Index3<Special> block_id_in_cluster() { return detail::special3(ir::SpecialRegister::ClusterCtaidX); }
inline Index3<Special> cluster_dim() { return detail::special3(ir::SpecialRegister::ClusterNctaidX); }
/// The number of the launch.
inline Leaf<std::uint64_t> grid_number() { return Leaf<std::uint64_t>(trace::special(ir::SpecialRegister::GridId)); }
/// Cycles of the multiprocessor, and nanoseconds, at this point.
inline Leaf<std::uint32_t> clock32(const trace::Where& where = trace::Where::current()) {
    return detail::sample<std::uint32_t>(ir::SpecialRegister::Clock, where);
}
inline Leaf<std::uint64_t> clock64(const trace::Where& where = trace::Where::current()) {
    return detail::sample<std::uint64_t>(ir::SpecialRegister::Clock64, where);
}
inline Leaf<std::uint64_t> global_timer(const trace::Where& where = trace::Where::current()) {
    return detail::sample<std::uint64_t>(ir::SpecialRegister::Globaltimer, where);
}

// Requirements on blocks and grids: declared by functions that need them, checked by each launch.

/// Blocks are a multiple of 32 threads: every warp has all its lanes.
inline void require_whole_warps() { trace::require_whole_warps(); }
/// Blocks have one dimension: thread_id().x is the number of the thread.
inline void require_linear_blocks() { trace::require_linear_blocks(); }
/// ... and so has the grid: a block's work depends only on block_id().x, so a second row of blocks would repeat it.
inline void require_linear_grid() { trace::require_linear_grid(); }
/// Blocks have exactly that many threads.
inline void require_threads(std::uint32_t count) { trace::require_threads(count); }

/// Assigns each of n elements to one thread of the grid, with a stride of the grid along x: for (auto i :
/// grid_stride(n)).
template <class N>
auto grid_stride(N&& n, const trace::Where& where = trace::Where::current()) {
    using T = std::conditional_t<DeviceValue<N>, DeviceTypeOf<N>, std::uint32_t>;
    static_assert(std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>,
                  "grid_stride counts in u32 or u64");
    return detail::make_range(cast<T>(block_id().x) * cast<T>(block_dim().x) + cast<T>(thread_id().x),
                              std::forward<N>(n), cast<T>(grid_dim().x) * cast<T>(block_dim().x), where);
}

// ---- waiting

/// All threads of the block wait for each other, and then see what the others have written.
inline void sync_block(const trace::Where& where = trace::Where::current()) { trace::barrier(where); }
/// Waits at barrier `id`, 0 to 15, for `threads` threads of the block, a multiple of the warp size; arrive_block counts
/// as arrived without waiting. sync_block() without a number is barrier 0.
template <Operand I, Operand N>
void sync_block(I&& id, N&& threads, const trace::Where& where = trace::Where::current()) {
    const trace::Recorded arguments[] = {Incoming<std::uint32_t>(std::forward<I>(id)).value(),
                                         Incoming<std::uint32_t>(std::forward<N>(threads)).value()};
    trace::effect({.op = ir::Op::Barrier, .attribute = ir::pack(ir::BarrierForm{.kind = ir::BarrierForm::Kind::Sync})},
                  {arguments, 2}, where);
}
template <Operand I, Operand N>
void arrive_block(I&& id, N&& threads, const trace::Where& where = trace::Where::current()) {
    const trace::Recorded arguments[] = {Incoming<std::uint32_t>(std::forward<I>(id)).value(),
                                         Incoming<std::uint32_t>(std::forward<N>(threads)).value()};
    trace::effect(
        {.op = ir::Op::Barrier, .attribute = ir::pack(ir::BarrierForm{.kind = ir::BarrierForm::Kind::Arrive})},
        {arguments, 2}, where);
}

namespace detail {
template <ir::BarrierForm::Kind kind, DeviceValue P>
auto sync_and_ask(P&& p, const trace::Where& where) {
    constexpr ir::BarrierForm form{.kind = kind};
    using Answer = std::conditional_t<form.type() == ir::Type::Pred, bool, std::uint32_t>;
    return ask<Answer>(
        {.op = ir::Op::Barrier, .type = form.type(), .operand_type = form.type(), .attribute = ir::pack(form)}, where,
        Incoming<bool>(std::forward<P>(p)).value());
}
}  // namespace detail

namespace detail {
template <int N>
void set_registers(ir::RegistersForm::Kind kind, const trace::Where& where) {
    static_assert(N >= 24 && N <= 256 && N % 8 == 0, "a thread has 24 to 256 registers, a multiple of 8");
    trace::effect(
        {.op = ir::Op::SetRegisters, .attribute = ir::pack(ir::RegistersForm{.kind = kind, .count = std::uint16_t(N)})},
        {}, where);
}
}  // namespace detail

/// sync_block() with a reduction over all threads: whether p holds in all of them, in any, in how many.
template <DeviceValue P>
Leaf<bool> sync_block_and(P&& p, const trace::Where& where = trace::Where::current()) {
    return detail::sync_and_ask<ir::BarrierForm::Kind::And>(std::forward<P>(p), where);
}
template <DeviceValue P>
Leaf<bool> sync_block_or(P&& p, const trace::Where& where = trace::Where::current()) {
    return detail::sync_and_ask<ir::BarrierForm::Kind::Or>(std::forward<P>(p), where);
}
template <DeviceValue P>
Leaf<std::uint32_t> sync_block_count(P&& p, const trace::Where& where = trace::Where::current()) {
    return detail::sync_and_ask<ir::BarrierForm::Kind::Count>(std::forward<P>(p), where);
}

// ---- registers

/// From here on, the threads of this warpgroup may use N registers each, which waits until others have given back
/// enough of them; registers_shrink gives back those beyond N. All four warps call it. N is a multiple of 8 from 24 to
/// 256; the kernel has launch_bounds(threads, blocks). From sm_90a on.
template <int N>
void registers_grow(const trace::Where& where = trace::Where::current()) {
    detail::set_registers<N>(ir::RegistersForm::Kind::Grow, where);
}
template <int N>
void registers_shrink(const trace::Where& where = trace::Where::current()) {
    detail::set_registers<N>(ir::RegistersForm::Kind::Shrink, where);
}

// ---- messages to the host

/// A text for print(), and the location of the call.
struct Text {
    const char* text;
    trace::Where where;
    Text(const char* text, const trace::Where& where = trace::Where::current()) : text(text), where(where) {}
};

/// Prints from each thread: print("x[{}] = {}\n", i, x[i]). {{ and }} print braces. Values may be host numbers, too.
template <Operand... V>
void print(const Text& text, V&&... v) {
    [[maybe_unused]] constexpr ir::TypeSet printed = ir::AnyNum | ir::set(ir::Type::Pred);
    static_assert((ir::contains(printed, ir::type_of<DeviceTypeOf<V>>) && ...),
                  "print() is for numbers and pred: convert 8-bit floats, print the lanes of packed values");
    const trace::Recorded arguments[] = {detail::operand<DeviceTypeOf<V>>(std::forward<V>(v))..., {}};
    trace::print(text.text, {arguments, sizeof...(V)}, text.where);
}
/// Stops the kernel with the text if the condition is false in any thread: check(i < n, "{} of {}", i, n). Without
/// values the text is literal.
template <DeviceValue C, Operand... V>
void check(C&& condition, const Text& text, V&&... v) {
    const trace::Recorded test = Incoming<bool>(std::forward<C>(condition)).value();
    const trace::Recorded arguments[] = {detail::operand<DeviceTypeOf<V>>(std::forward<V>(v))..., {}};
    trace::check(test, text.text, {arguments, sizeof...(V)}, text.where);
}

}  // namespace ikat
