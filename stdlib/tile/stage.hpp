// SPDX-License-Identifier: Apache-2.0
// Pieces of an array, copied to shared memory in whole sectors of 32 bytes. For data that threads cannot load well
// themselves, such as blocks of 18 or of 210 bytes.
//
//     Stage<WarpGroup, 2048> stage;
//     for (auto first : range(begin, end, 2048)) {
//         stage.load(x, first, value(min(end - first, 2048u)), size);    // 16 bytes at a time, all in flight together
//         sync_warp();                                                   // all have read what was there before
//         stage.put();
//         sync_warp();                                                   // all see what is there now
//         const auto four = stage.words<4>(stage.at(i));                 // four words from byte first + i on
//     }
//
// Arrays begin at multiples of 16 bytes, or, where load() is told so, an even number of bytes after one; pieces begin
// at multiples of 2, and with Unit = std::uint8_t at any byte, as arrays do. The first and the last sector of a piece
// are loaded whole; nothing beyond the ends of the array is touched. WordStage is for arrays of words that begin
// anywhere.
#pragma once
#include <optional>

#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {

/// Memory for `quads` times 16 bytes, for each group of threads of a block, and how it is read. With a `line`, 16 bytes
/// are left free after every `line` bytes. Then threads that read a line each use different banks.
template <class Group, std::uint32_t quads, std::uint32_t line>
class StageMemory {
protected:
    using Word = Leaf<std::uint32_t>;

    /// Where byte i of the memory without lines is, in units of this many bytes.
    static auto spread(const auto& i, std::uint32_t unit) {
        if constexpr (line == 0)
            return i;
        else
            return i + i / (line / unit) * (16 / unit);
    }
    static constexpr std::uint32_t size = quads * (line ? line + 16 : 16) / (line ? line : 16) * 4;

public:
    /// Of all groups.
    static constexpr std::uint32_t words_of_block = Group::rows_of_block * size;

    StageMemory() : StageMemory(Shared<std::uint32_t, words_of_block>().flat()) {}
    /// In memory that a block has already, for stages of which it uses one at a time: words_of_block words, or more.
    explicit StageMemory(const Indexable<std::uint32_t, Direction::ReadWrite>& of_block)
        : memory_(of_block.slice(Group::number() * size)) {}

    /// N words, from word number `skip` after that place on. `alignment` is the place's: where it is less than 4, each
    /// word is made of two.
    template <int N, std::uint32_t alignment = 2>
    std::array<Word, N> words(const auto& at, std::uint32_t skip = 0) const {
        const auto read = [&]<std::size_t... k>(auto&& word, std::index_sequence<k...>) {
            return std::array<Word, sizeof...(k)>{Word(value(word(std::uint32_t(k))))...};
        };
        constexpr std::make_index_sequence<N> all{};
        if constexpr (alignment % 16 == 0 && N % 4 == 0) {
            const auto first = value(at / 16u);
            return read([&](std::uint32_t k) { return memory_.template vec<4>(first + (skip + k) / 4)[int(k % 4)]; },
                        all);
        } else {
            const auto first = value(at / 4u);
            const auto word = [&](std::uint32_t k) { return memory_[first + (skip + k)]; };
            if constexpr (alignment % 4 == 0) return read(word, all);
            const auto w = read(word, std::make_index_sequence<N + 1>{});
            const auto shift = value(at % 4u * 8u);
            return read([&](std::uint32_t k) { return funnel_right(w[k], w[k + 1], shift); }, all);
        }
    }

protected:
    Indexable<std::uint32_t, Direction::ReadWrite> memory_;
};

/// A place for a piece of up to `max_bytes` bytes, one for each group of threads of a block. With a `line`, pieces
/// begin at multiples of 32; see StageMemory. What is not a whole 16 bytes is loaded by Units.
template <class Group, std::uint32_t max_bytes, std::uint32_t line = 0>
class StageSize {
    /// Of 16 bytes: a piece with the rest of its sectors, and the word after the last that words() reads.
    static constexpr std::uint32_t quads = line ? (max_bytes + 31) / 32 * 2 : (max_bytes + 30 + 30 + 4 + 15) / 16;

public:
    static constexpr std::uint32_t loads = (quads + Group::threads - 1) / Group::threads;
    static constexpr std::uint32_t all = loads * Group::threads;
};
template <class Group, std::uint32_t max_bytes, std::uint32_t line = 0, class Unit = std::uint16_t>
class Stage : public StageMemory<Group, StageSize<Group, max_bytes, line>::all, line> {
    using Memory = StageMemory<Group, StageSize<Group, max_bytes, line>::all, line>;
    using Memory::memory_;
    using Memory::spread;
    static constexpr std::uint32_t threads = Group::threads, loads = StageSize<Group, max_bytes, line>::loads;
    static constexpr std::uint32_t unit = sizeof(Unit), of_quad = 16 / unit;
    static_assert(line == 0 || threads * 16 % line == 0, "a group's loads are whole lines");

public:
    using Memory::Memory;

    /// Loads bytes first ... first + count - 1 of an array that has `bytes` bytes; nothing where count is 0.
    template <class E>
    void load(const In<E>& from, const auto& first, const auto& count, const auto& bytes) {
        load_where(from, first, count, bytes,
                   [](const auto& condition, const auto&, std::uint32_t) { return condition; });
    }
    /// The same of an array that begins at byte `start` below 16, a multiple of a Unit; all bytes are counted from byte
    /// 0.
    template <class E>
    void load(const In<E>& from, const auto& first, const auto& count, const auto& bytes, const auto& start) {
        load_where(from, first, count, bytes, [&](const auto& condition, const auto& i, std::uint32_t unit) {
            return condition & (i * unit >= start);
        });
        start_ = value(start);
        const auto part = value(Group::thread());  // of the first 16 bytes
        has_head_ = value((start != 0u) & (first < 32u) & (count != 0u) & (part < of_quad) & (part * unit >= start) &
                          (part < bytes / unit));
        head_ = value(from.template as<Unit>().load_if(*has_head_, part, 0));
    }
    /// What was loaded, where the threads of the group can read it. They synchronise before and after.
    void put() const {
        const auto place = value(spread(Group::thread(), 16));
        for (std::uint32_t k = 0; k < loads; ++k) {
            const auto to = [&](const auto& condition) {
                memory_.store_if(condition, place + spread(k * threads, 16), words_[k]);
            };
            if (start_)
                to((quad_ + k * threads < end_) & ((quad_ + k * threads) * 16u >= *start_));
            else
                to(quad_ + k * threads < end_);
        }
        memory_.template as<Unit>().store_if(value(has_rest_), value(rest_at_), value(rest_));
        if (head_) memory_.template as<Unit>().store_if(*has_head_, value(Group::thread()), *head_);
    }

    /// Where byte i of the piece is.
    auto at(const auto& i) const { return value(spread(value(first_ + i), 1)); }

private:
    /// where(condition, i, unit): the condition for loading element i of this many bytes.
    template <class E>
    void load_where(const In<E>& from, const auto& first, const auto& count, const auto& bytes, auto&& where) {
        const auto words = from.template as<std::uint32_t>();
        const auto begin = value(first / 32u * 2u), whole = value(bytes / 16u);  // in quads
        const auto end = value(select(count == 0u, 0u, ((first + count - 1u) / 32u + 1u) * 2u));
        quad_ = begin + Group::thread();
        end_ = min(end, whole);
        for (std::uint32_t k = 0; k < loads; ++k) {
            const auto quad = value(quad_ + k * threads);
            words_[k] = words.template load_if<4>(where(quad < end_, quad, 16), quad, 0);
        }
        const auto rest = value(whole * of_quad + Group::thread());  // after the last quad of the array
        has_rest_ = where((whole < end) & (rest < bytes / unit), rest, unit);
        rest_ = from.template as<Unit>().load_if(value(has_rest_), rest, 0);
        rest_at_ = spread(value(whole - begin), 16) * of_quad + Group::thread();
        first_ = first % 32u;
    }

    Regs<Vec<std::uint32_t, 4>, loads> words_;
    Var<Unit> rest_;
    u32 quad_, end_;  // of the array: the first that this thread loads, and the first that nobody does
    u32 rest_at_, first_;
    pred has_rest_;
    std::optional<Leaf<std::uint32_t>> start_{};
    std::optional<Leaf<Unit>> head_{};
    std::optional<Leaf<bool>> has_head_{};
};

/// The same for an array of words, which may begin anywhere: each thread loads single ones, and no others than those of
/// the piece. Pieces begin at multiples of 4 bytes.
template <class Group, std::uint32_t max_bytes, std::uint32_t line = 0>
class WordStage : public StageMemory<Group, StageSize<Group, max_bytes, line>::all, line> {
    using Memory = StageMemory<Group, StageSize<Group, max_bytes, line>::all, line>;
    using Memory::memory_;
    using Memory::spread;
    static constexpr std::uint32_t threads = Group::threads, loads = (max_bytes / 4 + threads - 1) / threads;
    static_assert(max_bytes % 4 == 0);

public:
    /// As Stage::load(); the bytes of the array do not matter.
    template <class E>
    void load(const In<E>& from, const auto& first, const auto& count, const auto&) {
        static_assert(sizeof(E) == 4, "a WordStage is for elements of four bytes");
        const auto words = from.template as<std::uint32_t>();
        const auto begin = value(first / 4u);
        end_ = count / 4u;
        for (std::uint32_t k = 0; k < loads; ++k) {
            const auto i = value(Group::thread() + k * threads);
            words_[k] = words.load_if(i < end_, begin + i, 0);
        }
    }
    void put() const {
        for (std::uint32_t k = 0; k < loads; ++k) {
            const auto i = value(Group::thread() + k * threads);
            memory_.store_if(i < end_, value(spread(i, 4)), words_[k]);
        }
    }
    auto at(const auto& i) const { return value(spread(i, 1)); }

private:
    Regs<u32, loads> words_;
    u32 end_;
};

}  // namespace ikat::stdlib
