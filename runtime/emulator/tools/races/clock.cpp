// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/races/clock.hpp"

namespace ikat::emulator::races {

KnownBlocks joined(const KnownBlocks& a, const KnownBlocks& b) {
    if (!b || a == b) return a;
    if (!a) return b;
    std::shared_ptr<Blocks> all;
    for (const auto& [block, clock] : *b) {
        const auto mine = a->find(block);
        if (mine != a->end() && (mine->second == clock || mine->second->covers(*clock))) continue;
        if (!all) all = std::make_shared<Blocks>(*a);
        auto& known = (*all)[block];
        if (!known || clock->covers(*known)) {
            known = clock;
        } else {
            const auto both = std::make_shared<BlockClock>(*known);
            both->join(*clock);
            known = both;
        }
    }
    return all ? all : a;
}

void Clock::join(const KnownBlocks& blocks, std::uint64_t own) {
    if (!blocks) return;
    if (const auto mine = blocks->find(own); mine != blocks->end()) BlockClock::join(*mine->second);
    others_ = joined(others_, blocks);
}

KnownBlocks Clock::blocks(std::uint64_t own) const {
    const auto all = others_ ? std::make_shared<Blocks>(*others_) : std::make_shared<Blocks>();
    (*all)[own] = std::make_shared<BlockClock>(*this);
    return all;
}

void Clock::show(std::uint64_t own, unsigned by, unsigned agent, std::uint32_t lanes, Stamp stamp) {
    const Blocks known = others_ ? *others_ : Blocks{};
    const auto all = std::make_shared<Blocks>(known);
    for (const auto& [block, clock] : known)
        if (block < shown(0, 1)) (*all)[shown(block, by)] = clock;
    const auto mine = std::make_shared<BlockClock>(*this);
    mine->learn(agent, lanes, stamp);
    (*all)[shown(own, by)] = mine;
    others_ = all;
}

}  // namespace ikat::emulator::races
