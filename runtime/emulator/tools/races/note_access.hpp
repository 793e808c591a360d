// SPDX-License-Identifier: Apache-2.0
// The op before an access, by which warps tell what they are about to do. It is compiled once per instruction set.
#pragma once
#include "runtime/emulator/tools/races/races.hpp"

namespace ikat::emulator::races {

/// Field c of note_access.
struct AccessForm {
    std::uint8_t slot = 0;  // of the tool
    bool is_wide = false;   // addresses have 8 bytes
    std::uint8_t bytes = 4;
    Direction direction = Direction::Read;
    bool is_strong = false, is_of_all = false, has_values = false;
    Scope scope = Scope::Thread;
    Space space = Space::Shared;

    std::uint32_t bits() const {
        return slot | std::uint32_t(is_wide) << 8 | std::uint32_t(direction) << 9 | std::uint32_t(is_strong) << 11 |
               std::uint32_t(is_of_all) << 12 | std::uint32_t(has_values) << 13 | std::uint32_t(scope) << 14 |
               std::uint32_t(space) << 17 | std::uint32_t(bytes) << 20;
    }
    /// Plain accesses to shared memory, at addresses of 32 bits.
    bool is_row() const { return space == Space::Shared && !is_wide && !is_strong; }
    bool may_be_grouped() const { return is_row() && direction == Direction::Read; }
    static AccessForm of(std::uint32_t bits) {
        const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
        return {std::uint8_t(bits),
                bit(8),
                std::uint8_t(bits >> 20),
                Direction(bits >> 9 & 3),
                bit(11),
                bit(12),
                bit(13),
                Scope(bits >> 14 & 7),
                Space(bits >> 17 & 7)};
    }
};

/// Before an access: a + x is its address, b the lanes that give one, c the form, d what is stored.
Handler select_note_access(const AccessForm& form);
/// Before the first of some loads: x is the smallest of their offsets, y how many bytes they span, d has the group
/// (LoadGroup).
Handler select_note_group();

/// Of the ops of a block, those before loads with the same base, between which nothing happens that orders memory or
/// writes it, become one. It costs as much as one of them.
void join_notes(Lowering& code, std::uint32_t begin, std::uint32_t end);

inline BlockRaces& races_of(const Warp* w, std::uint32_t slot) { return static_cast<BlockRaces&>(*w->tools[slot]); }

}  // namespace ikat::emulator::races
