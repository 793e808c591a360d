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
// Arrays begin at multiples of 16 bytes, pieces at multiples of 2. The first and the last sector of a piece are loaded
// whole; nothing beyond the end of the array is touched.
#pragma once
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {

/// A place for a piece of up to `most` bytes, one for each group of threads of a block. With a `line`, pieces begin at
/// multiples of 32, and 16 bytes are left free behind every `line` bytes. Then threads that read a line each use
/// different banks.
template <class Group, std::uint32_t most, std::uint32_t line = 0>
class Stage {
    static constexpr std::uint32_t threads = Group::threads;
    /// Of 16 bytes: a piece with the rest of its sectors, and the word behind the last that words() reads.
    static constexpr std::uint32_t quads = line ? (most + 31) / 32 * 2 : (most + 30 + 30 + 4 + 15) / 16;
    static constexpr std::uint32_t loads = (quads + threads - 1) / threads;
    using Word = Leaf<std::uint32_t>;

    /// Where byte i of the memory without lines is, in units of so many bytes.
    static auto spread(const auto& i, std::uint32_t unit) {
        if constexpr (line == 0)
            return i;
        else
            return i + i / (line / unit) * (16 / unit);
    }
    static constexpr std::uint32_t size = loads * threads * (line ? line + 16 : 16) / (line ? line : 16) * 4;
    static_assert(line == 0 || threads * 16 % line == 0, "a group's loads are whole lines");

public:
    Stage() : memory_(Shared<std::uint32_t, Group::rows_of_block * size>().flat().slice(Group::number() * size)) {}

    /// Loads bytes first ... first + count - 1 of an array that has `bytes` bytes; nothing where count is 0.
    template <class E>
    void load(const In<E>& from, const auto& first, const auto& count, const auto& bytes) {
        const auto words = from.template as<std::uint32_t>();
        const auto begin = value(first / 32u * 2u), whole = value(bytes / 16u);  // in quads
        const auto end = value(select(count == 0u, 0u, ((first + count - 1u) / 32u + 1u) * 2u));
        quad_ = begin + Group::thread();
        end_ = min(end, whole);
        for (std::uint32_t k = 0; k < loads; ++k) {
            const auto quad = value(quad_ + k * threads);
            words_[k] = words.template load_if<4>(quad < end_, quad, 0);
        }
        const auto rest = value(whole * 8u + Group::thread());  // the pairs of bytes behind the last quad of the array
        has_rest_ = (whole < end) & (rest < bytes / 2u);
        rest_ = from.template as<std::uint16_t>().load_if(value(has_rest_), rest, 0);
        rest_at_ = spread(value(whole - begin), 16) * 8u + Group::thread();
        first_ = first % 32u;
    }
    /// What was loaded, where the threads of the group can read it. They synchronise before and after.
    void put() const {
        const auto place = value(spread(Group::thread(), 16));
        for (std::uint32_t k = 0; k < loads; ++k)
            memory_.store_if(quad_ + k * threads < end_, place + spread(k * threads, 16), words_[k]);
        memory_.template as<std::uint16_t>().store_if(value(has_rest_), value(rest_at_), value(rest_));
    }

    /// Where byte i of the piece is.
    auto at(const auto& i) const { return value(spread(value(first_ + i), 1)); }

    /// N words, from word number `skip` behind that place on. `alignment` is the place's: where it is less than 4, each
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

private:
    Indexable<std::uint32_t, Direction::ReadWrite> memory_;
    Regs<Vec<std::uint32_t, 4>, loads> words_;
    u16 rest_;
    u32 quad_, end_;  // of the array: the first that this thread loads, and the first that nobody does
    u32 rest_at_, first_;
    pred has_rest_;
};

}  // namespace ikat::stdlib
