// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/grids/footprint.hpp"

#include <algorithm>
#include <bit>

namespace ikat::emulator {

namespace {

/// Calls f(word, bits) for the words that [first, first + count) is in, until it returns false.
template <class F>
void each_word(std::uint64_t first, std::uint64_t count, F f) {
    for (const std::uint64_t end = first + count; first < end;) {
        const std::uint64_t bit = first % 64, here = std::min(end - first, 64 - bit);
        if (!f(first / 64, ~std::uint64_t{0} >> (64 - here) << bit)) return;
        first += here;
    }
}

}  // namespace

void ByteSet::add(std::uint64_t first, std::uint64_t count) {
    each_word(first, count, [&](std::uint64_t word, std::uint64_t bits) {
        std::atomic<std::uint64_t>& its = words_[word];
        if ((its.load(std::memory_order_relaxed) & bits) != bits) its.fetch_or(bits, std::memory_order_relaxed);
        return true;
    });
}

std::optional<std::uint64_t> ByteSet::find(std::uint64_t first, std::uint64_t count) const {
    std::optional<std::uint64_t> out;
    each_word(first, count, [&](std::uint64_t word, std::uint64_t bits) {
        const std::uint64_t has = words_[word].load(std::memory_order_relaxed) & bits;
        if (has) out = word * 64 + std::uint64_t(std::countr_zero(has));
        return !has;
    });
    return out;
}

Footprint::Part* Footprint::part(std::uint64_t address, const Memory::State& memory) {
    const View view = memory.find(address);
    if (address - view.base >= view.bytes) return nullptr;
    const std::lock_guard lock(mutex_);
    return &parts_.try_emplace(view.base, view.base, view.bytes).first->second;
}

const Footprint::Part* Footprint::find(std::uint64_t address) const {
    const auto after = parts_.upper_bound(address);
    if (after == parts_.begin()) return nullptr;
    const Part& part = std::prev(after)->second;
    return part.has(address) ? &part : nullptr;
}

}  // namespace ikat::emulator
