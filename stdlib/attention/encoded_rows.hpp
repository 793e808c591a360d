// SPDX-License-Identifier: Apache-2.0
// Rows of Q8_0 or e4m3 that become a tile of f32, f16 or bf16: their bytes are copied to shared memory as they are,
// some time ahead, and decoded from there, both by the same threads. Rows that are in pages become tiles by the same
// copies, also where they are not encoded.
//
//     EncodedRows<Tile, 2, 32> rows(CacheEncoding::q8_0, 8, lane_id());
//     rows.load(stage, RowsOfBytes{bytes, first, pitch}, count);     from byte `first` on; `count` rows are there
//     copy_commit();
//     copy_wait<0>(), sync_warp();
//     rows.decode(stage, tile[0]);                        then sync_warp() again
#pragma once
#include <optional>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/attention/encoding.hpp"
#include "stdlib/quantised/blocks.hpp"
#include "stdlib/quantised/e4m3.hpp"
#include "stdlib/tile/warp_rows.hpp"

namespace ikat::stdlib {

/// Rows in global memory: from byte `first` on, `pitch` bytes apart.
struct RowsOfBytes {
    Indexable<std::uint8_t, Direction::Read> bytes;
    Leaf<std::uint64_t> first;
    Leaf<std::uint32_t> pitch;

    /// Where a row begins, if it is there.
    Leaf<std::uint64_t> at(const Leaf<std::uint32_t>& row, const Leaf<bool>&) const {
        return value(first + mul_wide(row, pitch));
    }
};
/// ... of pages of 2^shift rows: row `first` and on of a sequence whose pages a table has. Those of the head begin at
/// byte `head` of each page.
struct RowsOfPages {
    Indexable<std::uint8_t, Direction::Read> bytes;
    Indexable<std::uint32_t, Direction::Read> table;
    Leaf<std::uint64_t> head;
    Leaf<std::uint32_t> first, shift, page_pitch, pitch;

    /// Where a row begins, if it is there: otherwise its page is not looked up.
    Leaf<std::uint64_t> at(const Leaf<std::uint32_t>& row, const Leaf<bool>& is_there) const {
        const auto key = value(first + row), page = value(table.load_if(is_there, value(key >> shift), 0u));
        const auto in_page = value(key & ((value(word(1u)) << shift) - 1u));
        return value(head + mul_wide(page, page_pitch) + mul_wide(in_page, pitch));
    }
};

namespace detail {

/// What all EncodedRows of an element type have in common.
template <class T>
class EncodedCopies {
    using U32 = Leaf<std::uint32_t>;

protected:
    EncodedCopies(const TileShape& tile, const std::optional<SharedBytes>& memory, std::uint32_t threads,
                  CacheEncoding encoding, std::uint32_t access, const U32& thread)
        : tile_(tile), memory_(memory), threads_(threads), encoding_(encoding), access_(access), thread_(thread) {}

    /// To byte `to` of the memory; of elements that are not encoded, to the tile.
    void load(const U32& to, const auto& from, const U32& count, const std::optional<U32>& begin,
              const StageBytes* tile) const {
        const std::uint32_t bytes = access_ ? access_ : element(), of_row = row_bytes() / bytes;
        const std::uint32_t all = tile_.rows * of_row;
        const auto take = [&](const U32& at) {
            const UnitOfRow of = encoding_ == CacheEncoding::none ? tile_.unit_of_row(at, bytes, tile_.rows)
                                                                  : UnitOfRow{value(at / of_row), value(at % of_row)};
            const auto byte = value(of.unit * bytes);
            pred is_there = of.row < count;
            if (begin) is_there = is_there & (of.row >= *begin);
            const auto source = value(from.at(of.row, value(is_there)) + cast<u64>(byte));
            if (encoding_ == CacheEncoding::none)
                copy(tile->bytes, value(tile->first + tile_.place(of.row, value(byte / tile_.element_bytes))),
                     from.bytes, source, is_there);
            else
                copy(*memory_, value(to + of.row * pitch() + byte), from.bytes, source, is_there);
        };
        each_of(all, take);
    }

    /// From byte `from` of the memory.
    void decode(const U32& from, const StageBytes& to) const {
        const std::uint32_t of_row = tile_.columns() / 4, four = 4 * tile_.element_bytes;
        each_of(tile_.rows * of_row, [&](const U32& at) {
            const UnitOfRow of = tile_.unit_of_row(at, four, tile_.rows);
            put(to, of, encoding_ == CacheEncoding::q8_0 ? q8_0(from, of) : e4m3(from, of));
        });
    }

private:
    /// Bytes that rows begin at multiples of, whatever their pitch.
    std::uint32_t element() const { return encoding_ == CacheEncoding::e4m3 ? 1 : 2; }
    std::uint32_t row_bytes() const {
        return encoding_ == CacheEncoding::none ? tile_.row_bytes : encoded_bytes(encoding_, tile_.columns());
    }
    std::uint32_t pitch() const { return (row_bytes() + 3) / 4 * 4; }

    /// `access` bytes, or an element.
    void copy(const SharedBytes& to, const U32& place, const Indexable<std::uint8_t, Direction::Read>& from,
              const Leaf<std::uint64_t>& source, const pred& is_there) const {
        if (access_ != 0)
            copy_unit_if(access_, is_there, to[place], from[source]);
        else if (element() == 2)
            to.template as<std::uint16_t>()[place / 2u] =
                from.slice(source).template as<std::uint16_t>().load_if(is_there, 0u, std::uint16_t{0});
        else
            to[place] = from.slice(source).load_if(is_there, 0u, std::uint8_t{0});
    }

    /// f(i) for those of 0 ... all - 1 that are the thread's: few at once, as kernels have few registers left, the
    /// fewest where a block has a tile.
    void each_of(std::uint32_t all, auto&& f) const {
        for (auto at : range(thread_, all, threads_).unroll(threads_ == 32 ? 2 : 1)) f(value(at));
    }

    /// Four neighbours, as floats or in pairs.
    struct Four {
        std::vector<Leaf<float>> floats;
        std::vector<U32> halves;  // pairs of f16, if it has no floats
    };
    /// d q, each rounded to f32, which it is exactly.
    Four q8_0(const U32& from, const UnitOfRow& of) const {
        const auto halves = memory_->template as<std::uint16_t>();
        const U32 block = value((from + of.row * pitch()) / 2u + of.unit / 8u * 17u);
        const U32 first = value(block + 1u + of.unit % 8u * 2u);
        const U32 low = value(cast<u32>(halves[first])), high = value(cast<u32>(halves[first + 1u]));
        const U32 bytes = value((low | high << 16) ^ blocks::four(128));
        const Leaf<float> scale = blocks::lower_half(value(cast<u32>(halves[block])));
        Four out;
        for (std::uint32_t e = 0; e < 4; ++e) out.floats.push_back(value(scale * blocks::byte_of(bytes, e, 128)));
        return out;
    }
    /// Exactly, also in f16.
    Four e4m3(const U32& from, const UnitOfRow& of) const {
        const U32 word = value(memory_->template as<std::uint32_t>()[(from + of.row * pitch()) / 4u + of.unit]);
        Four out;
        for (const U32& pair : {e4m3_pair(word, 0), e4m3_pair(word, 2)}) {
            if constexpr (std::is_same_v<T, half>) {
                out.halves.push_back(pair);
            } else {
                out.floats.push_back(blocks::lower_half(pair));
                out.floats.push_back(blocks::upper_half(pair));
            }
        }
        return out;
    }

    void put(const StageBytes& to, const UnitOfRow& of, const Four& four) const {
        const U32 place = value(to.first + tile_.place(of.row, value(of.unit * 4u)));
        const auto& x = four.floats;
        if constexpr (sizeof(T) == 4) {
            to.bytes.template as<float>().template vec<4>(place / 16u) = Vec<float, 4>(x[0], x[1], x[2], x[3]);
        } else {
            const auto pair = [&](std::size_t n) -> U32 {
                if (x.empty()) return four.halves[n];
                return value(bit_cast<u32>(pack<Pair<T>>(x[2 * n], x[2 * n + 1])));
            };
            to.bytes.template as<std::uint32_t>().template vec<2>(place / 8u) = Vec<std::uint32_t, 2>(pair(0), pair(1));
        }
    }

    TileShape tile_;
    std::optional<SharedBytes> memory_;  // of encoded rows
    std::uint32_t threads_;
    CacheEncoding encoding_;
    std::uint32_t access_;
    U32 thread_;
};

}  // namespace detail

/// Rows for tiles of the type `Tile`, in `stages` stages of shared memory, by groups of `threads` threads.
template <class Tile, std::uint32_t stages, std::uint32_t threads>
class EncodedRows : detail::EncodedCopies<typename Tile::element_type> {
    using Base = detail::EncodedCopies<typename Tile::element_type>;
    static constexpr std::uint32_t row_bytes = (Tile::columns + Tile::columns / 16 + 3) / 4 * 4;  // at most
    static constexpr std::uint32_t stage_bytes = (Tile::rows * row_bytes + 15) / 16 * 16;

public:
    /// Rows, and what is loaded first, begin at multiples of `access` bytes, 16, 8 or 4, which are copied at once, and
    /// are as long; 0: elements of 2 or 1 are loaded and stored.
    EncodedRows(CacheEncoding encoding, std::uint32_t access, const Leaf<std::uint32_t>& thread)
        : EncodedRows(memory(encoding), encoding, access, thread) {}
    /// The same in the stages of others.
    EncodedRows(const EncodedRows& others, std::uint32_t access)
        : EncodedRows(others.bytes_, others.encoding_, access, others.group_thread_) {}

    /// Begins to copy the rows, of which those before `count` are there, or from `begin` to there; others are not read
    /// and become zeros. Those that are not encoded go to `tile` at once.
    void load(const Word& stage, const auto& from, const Leaf<std::uint32_t>& count,
              const std::optional<Leaf<std::uint32_t>>& begin = {}, const StageBytes* tile = nullptr) const {
        Base::load(value(word(stage) * stage_bytes), from, count, begin, tile);
    }
    /// What load() has copied, which all threads of the group see, becomes a tile, which they see after they have met.
    void decode(const Word& stage, const TileStage<Tile>& to) const {
        Base::decode(value(word(stage) * stage_bytes), to);
    }

private:
    EncodedRows(const std::optional<SharedBytes>& bytes, CacheEncoding encoding, std::uint32_t access,
                const Leaf<std::uint32_t>& thread)
        : Base(Tile::shape, bytes, threads, encoding, access, thread),
          bytes_(bytes),
          encoding_(encoding),
          group_thread_(thread) {}
    static std::optional<SharedBytes> memory(CacheEncoding encoding) {
        if (encoding == CacheEncoding::none) return {};
        return Shared<std::uint8_t, std::size_t{stages} * stage_bytes>().flat();
    }

    std::optional<SharedBytes> bytes_;
    CacheEncoding encoding_;
    Leaf<std::uint32_t> group_thread_;
};

/// The pages of sequences, and the shift of RowsOfPages.
struct PageTable {
    const In<std::uint32_t, 2>& of_sequences;
    Leaf<std::uint32_t> shift;
};

/// The keys of a head in tiles, by all threads of a block: as a TileSource Along::Rows, but encoded tiles have to be
/// decoded.
template <class Tile, std::uint32_t threads>
class EncodedTiles {
    using U32 = Leaf<std::uint32_t>;

public:
    /// Which head of which sequence, and its keys, which begin at row `first`, or, of pages, in page 0 of the sequence
    /// whose number is that in the table.
    struct Head {
        const In<std::uint8_t, 4>& x;
        U32 sequence, head, keys;
        std::optional<U32> first;
        U32 number;
    };
    EncodedTiles(const Head& of, const std::optional<PageTable>& pages, CacheEncoding encoding, std::uint32_t access)
        : of_(of), pages_(pages), encoded_(encoding, access, value(thread_id().x)) {}

    /// Begins to copy a tile, or its bytes; beyond the last row are zeros.
    void load(const TileStage<Tile>& to, const Word& tile) const {
        const U32 first = value(word(tile) * Tile::rows), left = value(select(of_.keys > first, of_.keys - first, 0u));
        const StageBytes stage = to;
        const auto head = value(mul_wide(of_.head, of_.x.pitch(1)));
        const Indexable<std::uint8_t, Direction::Read> bytes = Pointer<std::uint8_t, Direction::Read>(of_.x.array());
        if (pages_) {
            const auto table = pages_->of_sequences.row(of_.number).slice(0);
            const RowsOfPages from{bytes, table, head, first, pages_->shift, of_.x.pitch(0), of_.x.pitch(2)};
            encoded_.load(0, from, left, {}, &stage);
        } else {
            const U32 row = of_.first ? value(first + *of_.first) : first;
            const auto of_sequence = value(mul_wide(of_.sequence, of_.x.pitch(0)));
            const RowsOfBytes from{bytes, value(of_sequence + head + mul_wide(row, of_.x.pitch(2))), of_.x.pitch(2)};
            encoded_.load(0, from, left, {}, &stage);
        }
    }
    /// Of what has been copied, which the block sees.
    void decode(const TileStage<Tile>& to) const { encoded_.decode(0, to); }

private:
    Head of_;
    std::optional<PageTable> pages_;
    EncodedRows<Tile, 1, threads> encoded_;
};

}  // namespace ikat::stdlib
