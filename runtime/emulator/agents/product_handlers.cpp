// SPDX-License-Identifier: Apache-2.0
// The ops of async_products.hpp.
#include <algorithm>

#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/agents/async_products.hpp"
#include "runtime/emulator/core/definedness.hpp"

namespace ikat::emulator {

namespace {

// Separate from the handlers, whose last calls are jumps only if no address of their locals escapes.
[[gnu::noinline]] bool touch(const MicroOp* op, Warp* w) { return agent<AsyncProducts>(w).touch(op, w); }
[[gnu::noinline]] bool start(const MicroOp* op, Warp* w, std::byte* frame) {
    return agent<AsyncProducts>(w).begin(op, w, frame);
}
[[gnu::noinline]] bool start_checked(const MicroOp* op, Warp* w, std::byte* frame) {
    const auto is_undefined = [&](std::uint32_t offset, unsigned bytes) {
        const std::uint32_t* const masks = undefined_at(w, offset);
        return std::any_of(masks, masks + bytes, [](std::uint32_t lanes) { return lanes != 0; });
    };
    const bool has_a = !WarpgroupProduct::of(op->y).a_in_registers;
    if ((has_a && is_undefined(op->a, 8)) || is_undefined(op->b, 8))
        if (!passes(w, op, {.code = FaultCode::UndefinedAddress})) return false;
    if (is_undefined(op->c, 1) && !passes(w, op, {.code = FaultCode::UndefinedWarp})) return false;
    return start(op, w, frame);
}

template <bool Checked>
const MicroOp* start_product(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask) {
    if (!whole_warp(op, w, mask)) return nullptr;
    if (!(Checked ? start_checked(op, w, frame) : start(op, w, frame))) return nullptr;
    IKAT_NEXT;
}

/// False if the warp leaves.
[[gnu::noinline]] bool await(const MicroOp* op, Warp* w, std::uint32_t mask) {
    if (mask != all_lanes && !(w->live & ~mask)) return whole_warp(op, w, mask);
    w->leave = Leave::Barrier;
    w->pc = w->index_of(op);
    w->mask = mask;
    if (mask != all_lanes) return false;
    using enum AsyncProducts::Wait;
    switch (agent<AsyncProducts>(w).await(op, w)) {
        case Over: w->leave = Leave::None; return true;
        case ForOthers: break;
        case Finding: w->leave = Leave::Fault; break;
        case Recheck: w->leave = Leave::Recheck; break;
        case Later:
            w->leave = Leave::Reschedule;
            w->slice_end = w->instructions;
            break;
    }
    return false;
}

}  // namespace

Behaviour select_start_product() {
    return {start_product<false>, {.operation = Op::Wgmma, .checked = start_product<true>}};
}

const MicroOp* touch_registers(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    if (!touch(op, w)) return nullptr;
    IKAT_NEXT;
}

const MicroOp* fence_registers(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    if (!whole_warp(op, w, mask)) return nullptr;
    agent<AsyncProducts>(w).fence(w);
    IKAT_NEXT;
}

const MicroOp* commit_products(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    if (!whole_warp(op, w, mask)) return nullptr;
    agent<AsyncProducts>(w).commit(w);
    IKAT_NEXT;
}

const MicroOp* await_products(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    if (!await(op, w, mask)) return nullptr;
    IKAT_NEXT;
}

}  // namespace ikat::emulator
