// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/machine/idle.hpp"

#include <algorithm>
#include <cstring>

namespace ikat::emulator {

namespace {

std::vector<Split> places(const ScheduledWarp& warp) {
    std::vector<Split> splits = warp.splits();
    std::ranges::sort(splits, {}, &Split::pc);  // no two are at the same op
    return splits;
}

bool same_places(const std::vector<Split>& a, const std::vector<Split>& b) {
    return std::ranges::equal(
        a, b, [](const Split& x, const Split& y) { return x.pc == y.pc && x.mask == y.mask && x.wait == y.wait; });
}

}  // namespace

std::vector<std::uint8_t> effects_of_turns(const DecodedKernel& kernel) {
    std::vector<std::uint8_t> effects(kernel.effects.size());
    for (std::size_t i = effects.size(); i-- > 0;) {
        effects[i] = kernel.effects[i] & (ReadsBlock | ReadsOthers | Changes);
        if (!(kernel.effects[i] & Branches) && i + 1 < effects.size()) effects[i] |= effects[i + 1];
    }
    return effects;
}

Watch::Watch(const DecodedKernel& kernel, const std::vector<std::uint8_t>& effects, ScheduledWarp& warp)
    : kernel_(kernel), effects_(effects), warp_(warp), changes_(warp.changes) {
    remember();
}

std::span<const std::byte> Watch::local_memory() const {
    if (kernel_.local.host_bytes == 0) return {};
    return {warp_.windows[int(Space::Local)].views[0].host, kernel_.local.host_bytes * warp_size};
}

void Watch::remember() {
    const std::span<const std::byte> local = local_memory();
    splits_ = places(warp_);
    bytes_.assign(warp_.frame(), warp_.frame() + kernel_.register_bytes);
    bytes_.insert(bytes_.end(), local.begin(), local.end());
    ran_ = 0;
    reads_ = 0;
}

void Watch::before() {
    if (const auto next = warp_.next()) {
        ran_ |= next->mask;
        reads_ |= effects_[next->pc];
    }
}

bool Watch::is_as_before(const std::vector<Split>& now) const {
    const std::span<const std::byte> local = local_memory();
    const auto same = [&](const std::byte* bytes, std::size_t count, std::size_t at) {
        return count == 0 || std::memcmp(bytes, bytes_.data() + at, count) == 0;
    };
    return same_places(now, splits_) && same(warp_.frame(), kernel_.register_bytes, 0) &&
           same(local.data(), local.size(), kernel_.register_bytes);
}

bool Watch::is_back() {
    if (warp_.changes != changes_) reads_ |= Changes;
    return !is_alive() && is_as_before(places(warp_));
}

bool Watch::after() {
    if (warp_.changes != changes_) reads_ |= Changes;
    if (is_alive()) return false;
    const std::vector<Split> now = places(warp_);
    std::uint32_t ready = 0;
    for (const Split& split : now)
        if (split.wait == Split::Wait::None) ready |= split.mask;
    if (!(ready & ~ran_) && is_as_before(now)) return true;
    // States before the cycle do not recur: from time to time, compare with a later state.
    if (++turns_; (turns_ & (turns_ - 1)) == 0) remember();
    return false;
}

}  // namespace ikat::emulator
