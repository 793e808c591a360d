// SPDX-License-Identifier: Apache-2.0
// Random choices of a launch with a seed, in code that makes few of them.
#pragma once
#include <cstdint>

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

}  // namespace ikat::emulator
