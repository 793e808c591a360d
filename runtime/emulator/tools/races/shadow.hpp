// SPDX-License-Identifier: Apache-2.0
// Who has accessed each word of shared memory last: a write, and the reads behind it. Nearly all words have one write
// and reads of one warp, and are kept in place. What does not fit there has a list of all accesses that later ones may
// have to be ordered with: accesses of parts of the word, reads of several warps.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/emulator/tools/races/clock.hpp"

namespace ikat::emulator::races {

/// An access to a word, by lanes of an agent, with an op.
struct Access {
    Stamp stamp = 0;
    std::uint32_t op = 0;
    std::uint32_t lanes = 0;
    std::uint8_t agent = 0;
    std::uint8_t bytes = whole;  // of the word, as a set
    bool writes = false;
    bool is_strong = false;  // an atomic, or volatile or relaxed: two of these are no race
    bool is_of_all = false;  // a read by all lanes of a warp together, each of which goes on when it is over

    static constexpr std::uint8_t whole = 15;

    bool conflicts(const Access& other) const {
        return (bytes & other.bytes) && (writes || other.writes) && !(is_strong && other.is_strong);
    }
    /// Whether who is ordered behind this one is ordered behind the other, which comes before it, as far as that
    /// matters.
    bool subsumes(const Access& before) const {
        return !(before.bytes & ~bytes) && (writes || !before.writes) && (!is_strong || before.is_strong);
    }
};

class Shadow {
public:
    struct Conflict {
        Access before;
        std::uint64_t offset = 0, bytes = 0;  // from the first byte of the access
    };
    /// Of so many words. `exact`: warps may meet otherwise than all at a barrier.
    void clear(std::size_t words, bool exact);
    std::size_t words() const { return write_stamps_.size(); }

    /// An access to a word. The access that it races with, or nullptr.
    const Access* access(std::size_t word, const Access& now, const Knower& by) {
        return access_known(word, now, *by.clock) ? nullptr : access_slowly(word, now, by);
    }

    /// The same if it is known to the clock alone that there is no race, as for most. Otherwise false, and nothing has
    /// been done. A read may be of several lanes.
    bool access_known(std::size_t word, const Access& now, const BlockClock& clock) {
        if (now.bytes != Access::whole) return false;
        const std::uint32_t packed = now.stamp << 4 | now.bytes;
        const std::uint32_t written = write_stamps_[word], read = read_stamps_[word];
        const auto is_known = [&](std::uint32_t stamp, std::uint32_t by_whom) {
            return stamp >> 4 <= clock.of(by_whom >> agent_at & 63);
        };
        const bool is_own = written == packed && !((write_whos_[word] ^ who(now)) & of_lane);
        if (!is_known(written, write_whos_[word]) && !(is_own && std::has_single_bit(now.lanes))) return false;
        const bool is_known_read = is_known(read, read_whos_[word]);
        const bool is_same = read == packed && !((read_whos_[word] ^ who(now)) & of_agent);
        if (!now.writes && (is_known_read || is_same)) {
            read_lanes_[word] = is_same ? read_lanes_[word] | now.lanes : now.lanes;
            read_stamps_[word] = packed;
            read_whos_[word] = who(now);
            return true;
        }
        // Where only barriers of all threads order warps, reads of several in one phase are as one.
        if (!now.writes && !exact_ && (read & Access::whole) == Access::whole) {
            const std::uint32_t others = read_whos_[word], flags = who(now) & others & of_flags;
            read_whos_[word] = (who(now) & ~(of_agent | 31)) | std::uint32_t(several_warps) << agent_at | flags;
            read_lanes_[word] |= now.lanes;
            read_stamps_[word] = std::max(read, packed);
            return true;
        }
        if (!now.writes || !(is_known_read || (is_same && read_lanes_[word] == now.lanes))) return false;
        write_stamps_[word] = packed;
        write_whos_[word] = who(now);
        read_stamps_[word] = 0;
        return true;
    }

private:
    // In place: stamps with the set of bytes below them, 0: none. A list has the stamp `listed`, and its number for
    // who.
    static constexpr std::uint32_t listed = ~std::uint32_t{0};
    static constexpr int agent_at = 5, strong_at = 11, of_all_at = 12, op_at = 13;
    static constexpr std::uint32_t of_agent = 255 << agent_at, of_flags = 3 << strong_at,
                                   of_lane = of_agent | 31;  // and how strong it is
    static std::uint32_t who(const Access& access) {
        return access.op << op_at | std::uint32_t(access.is_of_all) << of_all_at |
               std::uint32_t(access.is_strong) << strong_at | std::uint32_t(access.agent) << agent_at |
               std::uint32_t(std::countr_zero(access.lanes)) % 32;
    }
    const Access* access_slowly(std::size_t word, const Access& now, const Knower& by);
    void take(std::size_t word);
    void put(std::size_t word);

    bool exact_ = false;
    std::vector<std::uint32_t> write_stamps_, write_whos_, read_stamps_, read_whos_, read_lanes_;
    std::vector<std::vector<Access>> lists_;
    std::vector<std::uint32_t> free_;
    std::vector<Access> all_;  // of the word at hand
    Access found_{};
};

}  // namespace ikat::emulator::races
