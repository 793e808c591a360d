// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/proxies/warp_order.hpp"

#include <bit>
#include <utility>

namespace ikat::emulator {

void WarpOrder::Clock::join(const Clock& other) {
    const auto take = [](Events& mine, const Events& theirs) {
        for (std::size_t i = 0; i < max_warps; ++i) mine[i] = std::max(mine[i], theirs[i]);
    };
    take(known, other.known);
    for (std::size_t kind = 0; kind < shown_kinds; ++kind) take(shown[kind], other.shown[kind]);
}

void WarpOrder::clear(std::size_t warps, WarpOrder& first) {
    first_ = &first;
    now_ = 0;
    clocks_.assign(warps, {});
    meetings_.clear();
    acquired_.clear();
    released_ = {};
    for (auto& each : fenced_) each.assign(warps * warp_size, 0);
}

void WarpOrder::meet(std::uint32_t warp) { clocks_[warp].known[warp] = ++first_->now_; }

void WarpOrder::arrive(std::uint32_t warp, const Meeting& at) {
    meet(warp);
    meetings_[key(at)].arrived.join(clocks_[warp]);
}

void WarpOrder::leave(std::uint32_t warp, const Meeting& at) {
    if (const auto found = meetings_.find(key(at)); found != meetings_.end()) clocks_[warp].join(found->second.over);
}

void WarpOrder::complete(const Meeting& at) {
    if (const auto found = meetings_.find(key(at)); found != meetings_.end())
        found->second.over = found->second.arrived;
}

void WarpOrder::fence(std::uint32_t warp, std::uint32_t lanes, std::uint32_t shown) {
    Clock& clock = clocks_[warp];
    ++first_->now_;
    for (std::size_t kind = 0; kind < shown_kinds; ++kind) {
        if (!(shown >> kind & 1)) continue;
        for (std::uint32_t rest = lanes; rest; rest &= rest - 1)
            fenced_[kind][warp * warp_size + unsigned(std::countr_zero(rest))] = now();
        for (std::size_t i = 0; i < max_warps; ++i)
            clock.shown[kind][i] = std::max(clock.shown[kind][i], clock.known[i]);
    }
}

void WarpOrder::release(std::uint32_t warp) { released_[warp] = ++first_->now_; }

void WarpOrder::acquire_released() {
    for (std::uint32_t warp = 0; warp < warps(); ++warp) {
        const std::uint32_t when = std::exchange(released_[warp], 0);
        for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
            std::uint32_t& last = fenced_[int(Shown::Barriers)][warp * warp_size + lane];
            last = std::max(last, when);
        }
    }
}

}  // namespace ikat::emulator
