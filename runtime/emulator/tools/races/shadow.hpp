// SPDX-License-Identifier: Apache-2.0
// Who has accessed each word of shared memory last: a write, and the reads after it. Nearly all words have one write
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
    bool is_of_all = false;  // a read by all lanes of a warp together, each of which continues when it is over

    static constexpr std::uint8_t whole = 15;

    bool operator==(const Access&) const = default;
    bool conflicts(const Access& other) const {
        return (bytes & other.bytes) && (writes || other.writes) && !(is_strong && other.is_strong);
    }
    /// Whether who is ordered after this one is ordered after the other, which comes before it, as far as that
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
    /// Of this many words. `exact`: warps may meet otherwise than all at a barrier.
    void clear(std::size_t words, bool exact);
    std::size_t words() const { return write_stamps_.size(); }

    /// An access to a word. The access that it races with, or nullptr.
    const Access* access(std::size_t word, const Access& now, const Knower& by) {
        return access_known(word, now, *by.clock) ? nullptr : access_slowly(word, now, by);
    }

    /// What an access has made of a word: it makes the same of the next one that is like it.
    class Memo {
    public:
        Memo() = default;
        Memo(const Memo&) = delete;
        Memo& operator=(const Memo&) = delete;
        ~Memo() { reset(); }
        void reset() {
            if (!of_) return;
            of_->release(before_);
            if (is_known_) of_->release(after_);
            of_ = nullptr, is_known_ = false;
        }

    private:
        friend Shadow;
        struct State {
            std::uint32_t write_stamp = 0, write_who = 0, read_stamp = 0, read_who = 0, read_lanes = 0;
            bool operator==(const State&) const = default;
        };
        Shadow* of_ = nullptr;
        bool is_known_ = false;
        State before_{}, after_{};  // whose lists it uses, so that their numbers stay theirs
    };
    /// An access to whole words, with a memo or without. Calls f(word, access) for each race, until it is false; then
    /// this is.
    template <class F>
    bool access_words(std::size_t first, std::size_t last, const Access& now, const Knower& by, Memo* memo, F f) {
        for (std::size_t word = first; word < last; ++word) {
            if (memo && follows(word, *memo, by)) continue;
            if (memo) begin(word, *memo, by);
            const Access* const before = access(word, now, by);
            if (before && !f(word, *before)) return false;
            if (memo && !before) end(word, *memo);
        }
        return true;
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
    using State = Memo::State;
    State state_of(std::size_t word) const {
        return {write_stamps_[word], write_whos_[word], read_stamps_[word], read_whos_[word], read_lanes_[word]};
    }
    void set_state(std::size_t word, const State& state) {
        write_stamps_[word] = state.write_stamp, write_whos_[word] = state.write_who;
        read_stamps_[word] = state.read_stamp, read_whos_[word] = state.read_who;
        read_lanes_[word] = state.read_lanes;
    }
    /// Of words that are alike, one list may be that of all.
    struct List {
        std::vector<Access> accesses{};
        std::uint32_t uses = 0;
    };
    std::uint32_t new_list();
    void use(const State& state) {
        if (state.write_stamp == listed) ++lists_[state.write_who].uses;
    }
    void release(const State& state) {
        if (state.write_stamp == listed) release_list(state.write_who);
    }
    void release_list(std::uint32_t list);
    /// Without what is known to all, which can race with nothing that follows.
    static State without_known(State state, const Knower& by) {
        const auto is_known = [&](std::uint32_t stamp, std::uint32_t who) {
            return by.is_known_to_all(who >> agent_at & 63, stamp >> 4);
        };
        if (is_known(state.write_stamp, state.write_who)) state.write_stamp = state.write_who = 0;
        if (is_known(state.read_stamp, state.read_who)) state.read_stamp = state.read_who = state.read_lanes = 0;
        return state;
    }
    bool follows(std::size_t word, const Memo& memo, const Knower& by) {
        if (!memo.is_known_) return false;
        const State state = state_of(word);
        if (without_known(state, by) != memo.before_) return false;
        use(memo.after_);
        release(state);
        set_state(word, memo.after_);
        return true;
    }
    void begin(std::size_t word, Memo& memo, const Knower& by) {
        memo.reset();
        memo.of_ = this;
        memo.before_ = without_known(state_of(word), by);
        use(memo.before_);
    }
    void end(std::size_t word, Memo& memo) {
        memo.is_known_ = true;
        memo.after_ = state_of(word);
        use(memo.after_);
    }
    const Access* access_slowly(std::size_t word, const Access& now, const Knower& by);
    void take(std::size_t word);
    void put(std::size_t word);

    bool exact_ = false;
    std::vector<std::uint32_t> write_stamps_, write_whos_, read_stamps_, read_whos_, read_lanes_;
    std::vector<List> lists_;
    std::vector<std::uint32_t> free_;
    std::vector<Access> all_;  // of the word at hand
    Access found_{};
};

}  // namespace ikat::emulator::races
