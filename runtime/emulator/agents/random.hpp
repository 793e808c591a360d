// SPDX-License-Identifier: Apache-2.0
// Choices of a launch by its schedule, in code that makes few of them.
#pragma once
#include <cstdint>

#include "runtime/emulator/core/schedule.hpp"

namespace ikat::emulator {

/// xorshift; with seed 0 there is nothing to choose.
struct Chances {
    std::uint32_t state = 0;

    explicit operator bool() const { return state != 0; }
    unsigned draw(unsigned choices) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return state % choices;
    }
};

/// When asynchronous work arrives: at once, later by chance, or at last, as late as it may.
template <class Arrival>
Arrival drawn_arrival(const Schedule& schedule, Chances& chances, Arrival at_last) {
    switch (schedule.arrivals) {
        case Schedule::Arrivals::Early: return Arrival::Over;
        case Schedule::Arrivals::Late: return at_last;
        case Schedule::Arrivals::BySeed: break;
    }
    return chances ? Arrival(chances.draw(3)) : at_last;
}

}  // namespace ikat::emulator
