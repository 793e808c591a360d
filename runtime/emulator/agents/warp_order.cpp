// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/warp_order.hpp"

#include <bit>
#include <utility>

#include "runtime/emulator/machine/block.hpp"

namespace ikat::emulator {

void WarpOrder::Clock::join(const Clock& other) {
    const auto take = [](Events& mine, const Events& theirs) {
        for (std::size_t i = 0; i < most_warps; ++i) mine[i] = std::max(mine[i], theirs[i]);
    };
    take(known, other.known);
    for (std::size_t kind = 0; kind < shown_kinds; ++kind) take(shown[kind], other.shown[kind]);
}

void WarpOrder::clear(std::size_t warps, bool is_used, WarpOrder& first) {
    is_used_ = is_used;
    first_ = &first;
    now_ = 0;
    if (!is_used) return;
    clocks_.assign(warps, {});
    meetings_.clear();
    acquired_.clear();
    released_ = {};
    for (auto& each : fenced_) each.assign(warps * warp_size, 0);
}

void WarpOrder::meet(std::uint32_t warp) {
    if (is_used_) clocks_[warp].known[warp] = ++first_->now_;
}

void WarpOrder::arrive(std::uint32_t warp, std::uint64_t key) {
    if (!is_used_) return;
    meet(warp);
    meetings_[key].arrived.join(clocks_[warp]);
}

void WarpOrder::leave(std::uint32_t warp, std::uint64_t key) {
    if (!is_used_) return;
    if (const auto found = meetings_.find(key); found != meetings_.end()) clocks_[warp].join(found->second.over);
}

void WarpOrder::complete(std::uint64_t key) {
    if (!is_used_) return;
    if (const auto found = meetings_.find(key); found != meetings_.end()) found->second.over = found->second.arrived;
}

void WarpOrder::fence(std::uint32_t warp, std::uint32_t lanes, std::uint32_t shown) {
    if (!is_used_) return;
    Clock& clock = clocks_[warp];
    ++first_->now_;
    for (std::size_t kind = 0; kind < shown_kinds; ++kind) {
        if (!(shown >> kind & 1)) continue;
        for (std::uint32_t rest = lanes; rest; rest &= rest - 1)
            fenced_[kind][warp * warp_size + unsigned(std::countr_zero(rest))] = now();
        for (std::size_t i = 0; i < most_warps; ++i)
            clock.shown[kind][i] = std::max(clock.shown[kind][i], clock.known[i]);
    }
}

void WarpOrder::release(std::uint32_t warp) {
    if (is_used_) released_[warp] = ++first_->now_;
}

void WarpOrder::acquire_released() {
    if (!is_used_) return;
    for (std::uint32_t warp = 0; warp < warps(); ++warp) {
        const std::uint32_t when = std::exchange(released_[warp], 0);
        for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
            std::uint32_t& last = fenced_[int(Shown::Barriers)][warp * warp_size + lane];
            last = std::max(last, when);
        }
    }
}

const MicroOp* fence_proxies(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    w->block->order_of_warps.fence(w->index, mask, op->x);
    IKAT_NEXT;
}

const MicroOp* note_meeting(const MicroOp* op, Warp* w, [[maybe_unused]] std::byte* frame, std::uint32_t mask) {
    w->block->order_of_warps.meet(w->index);
    IKAT_NEXT;
}

}  // namespace ikat::emulator
