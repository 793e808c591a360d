// SPDX-License-Identifier: Apache-2.0
// The accesses of a block to its shared memory between two barriers of all its threads, if these alone order warps. As
// nearly all are reads, or of bytes that nobody else accesses in this phase, they are only written down. A bit for each
// line of 128 bytes says whether a later one may race with them; if so, the shadow is told of them first. Where warps
// write the same lines, a bit for each word says the same. What is left at the barrier is ordered before all that
// comes.
//
//     store   lines 0 to 31                        kept
//     barrier                                      forgotten
//     load    lines 0 to 31, and once more         kept
//     store   line 3: loads have been there        all go into the shadow, and the store, which finds out
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/emulator/core/warp.hpp"
#include "runtime/emulator/tools/races/clock.hpp"

namespace ikat::emulator::races {

/// Loads with one base that are noted together, as the kernel's lists have them: how many, and of each its distance
/// from the first byte of all, and from the op that notes them: in this code, and in the plain one.
class LoadGroup {
public:
    explicit LoadGroup(const std::uint32_t* list) : list_(list) {}
    /// An access by itself.
    static constexpr std::uint32_t one[] = {1, 0, 0, 0};

    struct Load {
        std::uint32_t offset = 0, distance = 0, plain_distance = 0;
    };
    std::uint32_t size() const { return list_[0]; }
    /// Until f(load) is false; then it is.
    template <class F>
    bool each(F f) const {
        for (const std::uint32_t *at = list_ + 1, *const end = at + std::size_t{3} * size(); at != end; at += 3)
            if (!f(Load{at[0], at[1], at[2]})) return false;
        return true;
    }

private:
    const std::uint32_t* list_;
};

class Phase {
public:
    /// Accesses by lanes of a warp with an op, or several, each of `count` bytes: from `first` plus the distances of
    /// lane and load on.
    struct Row {
        alignas(32) std::array<std::uint16_t, warp_size> distances{};
        LoadGroup loads{LoadGroup::one};
        std::uint32_t first = 0;  // byte of the block's memory
        std::uint32_t count = 0;
        std::uint32_t lanes = 0;
        std::uint32_t op = 0;
        Stamp stamp = 0;
        std::uint8_t warp = 0;
        bool writes = false, is_of_all = false;

        std::uint32_t byte(unsigned lane) const { return first + distances[lane]; }
        /// Whether another one of the same warp is this once more.
        bool is_again(const Row& other) const {
            return op == other.op && warp == other.warp && stamp == other.stamp && first == other.first &&
                   lanes == other.lanes && distances == other.distances;
        }
    };
    static constexpr std::uint32_t max_distance = 0xffff;
    static constexpr std::size_t max_bytes = std::size_t{1} << 18, max_rows = 1 << 14;

    /// Whether what has been written down, for bytes from one on up to another, may race with a read or a write.
    bool rows_may_race(std::uint32_t from, std::uint32_t to, bool writes) const {
        return meets(from, to, [&](std::size_t i) { return rows_written_[i] | (writes ? rows_read_[i] : 0); });
    }
    /// To write down another one: its row, to be filled in; nullptr if there are too many.
    Row* new_row() {
        if (is_full()) return nullptr;
        if (!rows_) rows_ = std::make_unique_for_overwrite<Row[]>(max_rows);
        return &rows_[count_];
    }
    /// The new row, whose accesses end before `to`, is written down. False: it may race with something of this phase.
    /// `are_apart`: no two lanes have a byte in common.
    bool keep(std::uint32_t to, bool are_apart) {
        const Row& row = rows_[count_];
        std::uint16_t& last = last_of(row);
        if (last < count_ && rows_[last].is_again(row)) return true;
        if (row.writes ? !is_free_to_write(row, to, are_apart) : !is_free_to_read(row, to)) return false;
        mark(row.writes ? rows_written_ : rows_read_, row.first, to);
        last = std::uint16_t(count_++);
        return true;
    }
    /// The shadow has been told of accesses to bytes ...
    void mark(std::uint32_t from, std::uint32_t to, bool writes) { mark(writes ? written_ : read_, from, to); }
    /// ... by an agent, until it is known to all what it has done up to the stamp.
    void mark_async(std::uint32_t from, std::uint32_t to, unsigned agent, std::uint32_t lanes, Stamp stamp) {
        if (async_.empty() || async_.back().agent != agent || async_.back().stamp != stamp)
            async_.push_back({.agent = agent, .stamp = stamp});
        async_.back().lanes |= lanes;
        mark(async_.back().lines, from, to);
        mark(written_, from, to);
    }

    bool is_full() const { return count_ == max_rows; }
    std::span<const Row> rows() const { return {rows_.get(), count_}; }
    /// The shadow has been told of them.
    void forget_rows() {
        for (std::size_t i = 0; i < read_.size(); ++i) read_[i] |= rows_read_[i], written_[i] |= rows_written_[i];
        count_ = 0, rows_read_.fill(0), rows_written_.fill(0), has_words_ = false;
    }

    /// All threads have met. is_known(agent, lanes, stamp): whether they know what an agent has done.
    template <class F>
    void end(F is_known) {
        clear();
        std::erase_if(async_, [&](const Work& work) { return is_known(work.agent, work.lanes, work.stamp); });
        for (const Work& work : async_)
            for (std::size_t i = 0; i < work.lines.size(); ++i) written_[i] |= work.lines[i];
    }
    /// A block begins.
    void start() { clear(), async_.clear(); }

private:
    bool is_free_to_read(const Row& row, std::uint32_t to) const {
        return !meets(row.first, to, [&](std::size_t i) { return rows_written_[i] | written_[i]; });
    }
    bool is_free_to_write(const Row& row, std::uint32_t to, bool are_apart) {
        if (meets(row.first, to, [&](std::size_t i) { return written_[i] | rows_read_[i] | read_[i]; })) return false;
        if (!has_words_ && are_apart && !meets(row.first, to, [&](std::size_t i) { return rows_written_[i]; }))
            return true;
        begin_words();
        const bool is_filled = are_apart && to - row.first == row.count * unsigned(std::popcount(row.lanes));
        return is_filled ? take_words(row.first, to) == 0 : take_words(row) == 0;
    }
    /// The last one of its warp and op, or of others.
    std::uint16_t& last_of(const Row& row) { return last_[(row.warp * 64 + row.op) % last_.size()]; }
    /// Takes the words of each lane. Not 0 if one has been taken before, also by a lane of the same row.
    std::uint32_t take_words(const Row& row) {
        std::uint32_t taken = 0;
        for (std::uint32_t rest = row.lanes; rest; rest &= rest - 1) {
            const std::uint32_t byte = row.byte(unsigned(std::countr_zero(rest)));
            taken |= take_words(byte, byte + row.count);
        }
        return taken;
    }
    /// Not 0 if one has been taken before.
    std::uint32_t take_words(std::uint32_t from, std::uint32_t to) {
        const std::uint32_t first = from / 4, last = (to - 1) / 4;
        std::uint32_t taken = 0;
        for (std::uint32_t i = first / 32; i <= last / 32; ++i) {
            const std::uint32_t words =
                (i == first / 32 ? ~0u << first % 32 : ~0u) & (i == last / 32 ? ~0u >> (31 - last % 32) : ~0u);
            taken |= std::exchange(words_written_[i], words_written_[i] | words) & words;
        }
        return taken;
    }
    /// From now on, words are looked at.
    void begin_words() {
        if (std::exchange(has_words_, true)) return;
        words_written_.assign(max_bytes / line, 0);
        for (const Row& row : rows())
            if (row.writes) take_words(row);
    }

    static constexpr std::uint32_t line = 128;
    using Lines = std::array<std::uint64_t, max_bytes / line / 64>;
    struct Work {
        unsigned agent = 0;
        std::uint32_t lanes = 0;
        Stamp stamp = 0;
        Lines lines{};
    };
    /// Of lines whose bits are in one word.
    static std::uint64_t bits_of(std::uint32_t first, std::uint32_t last) {
        return (~std::uint64_t{0} << first % 64) & (~std::uint64_t{0} >> (63 - last % 64));
    }
    /// f(word, bits) for lines. Not inline, as hardly any access is of more than one word's.
    template <class F>
    [[gnu::noinline]] static void each_word(std::uint32_t first, std::uint32_t last, F f) {
        for (; first / 64 < last / 64; first = (first / 64 + 1) * 64) f(first / 64, ~std::uint64_t{0} << first % 64);
        f(first / 64, bits_of(first, last));
    }
    /// Whether lines of bytes are among those of which lines(word) are bits.
    template <class F>
    static bool meets(std::uint32_t from, std::uint32_t to, F lines) {
        const std::uint32_t first = from / line, last = (to - 1) / line;
        if (first / 64 == last / 64) return (bits_of(first, last) & lines(first / 64)) != 0;
        std::uint64_t met = 0;
        each_word(first, last, [&](std::size_t word, std::uint64_t bits) { met |= bits & lines(word); });
        return met != 0;
    }
    static void mark(Lines& lines, std::uint32_t from, std::uint32_t to) {
        const std::uint32_t first = from / line, last = (to - 1) / line;
        if (first / 64 == last / 64) return void(lines[first / 64] |= bits_of(first, last));
        each_word(first, last, [&](std::size_t word, std::uint64_t bits) { lines[word] |= bits; });
    }
    void clear() {
        count_ = 0, has_words_ = false;
        for (Lines* const lines : {&rows_read_, &rows_written_, &read_, &written_}) lines->fill(0);
    }

    std::unique_ptr<Row[]> rows_;
    std::size_t count_ = 0;
    std::array<std::uint16_t, 2048> last_{};
    Lines rows_read_{}, rows_written_{};  // by what is written down
    bool has_words_ = false;
    std::vector<std::uint32_t> words_written_;  // ... of each line, once they are looked at
    Lines read_{}, written_{};                  // by what the shadow has been told
    std::vector<Work> async_;
};

}  // namespace ikat::emulator::races
