// SPDX-License-Identifier: Apache-2.0
// Where a block of incremental_attention() is: its rows, and the keys that each of its warps goes through.
#pragma once
#include <functional>
#include <optional>
#include <utility>

#include "stdlib/attention/incremental/sight.hpp"
#include "stdlib/tile/schedule.hpp"

namespace ikat::stdlib {

class DecodePlace {
    using U32 = Leaf<std::uint32_t>;
    static constexpr std::uint32_t keys = DecodeTile::keys;

public:
    DecodePlace(const DecodeKernel& is, const DecodeNumbers& with, const Optional<In<std::uint32_t>>& lengths,
                const Optional<In<std::uint32_t, 2>>& table)
        : is_(is), with_(with), lengths_(lengths), table_(table) {}
    DecodePlace(const DecodePlace&) = delete;
    DecodePlace& operator=(const DecodePlace&) = delete;

    const U32& part() const { return part_; }
    const U32& sequence() const { return sequence_; }
    const U32& kv_head() const { return kv_head_; }
    /// Among those of the heads that share one of K and V, query after query.
    const U32& first_row() const { return first_row_; }
    /// How many keys the sequence has; the first that some query sees.
    const U32& length() const { return length_; }
    const U32& first_seen() const { return seen_; }

    /// Calls f(head, query) for a row of the block, if there is one.
    void with_query(const U32& row, const std::function<void(const U32& head, const U32& query)>& f) const {
        const auto at = value(first_row_ + row);
        if_(at < with_.group * with_.queries, [&] {
            const auto head = value(kv_head_ * with_.group + at % with_.group), query = value(at / with_.group);
            f(head, query);
        });
    }
    /// A warp's first chunk of the part and how many it has, one of as many as there are warps.
    std::pair<U32, U32> chunks_of_warp(std::uint32_t warps) const {
        const auto begin = value(seen_ / keys), all = value(tiles_of(length_, keys) - begin);
        const auto rounds = tiles_of(all, warps);
        const auto of_part = value((rounds + with_.parts - 1u) / with_.parts * warps);
        const auto first = value(min(part_ * of_part, all)), last = value(min(first + of_part, all));
        const auto warp = value(warp_uniform(warp_id())), mine = value(first + warp);
        const auto count = value(select(mine < last, (last - mine + (warps - 1)) / warps, 0u));
        return {value(begin + mine), count};
    }
    /// The page that a chunk is in; the sequence where there are none.
    U32 page_of(const U32& chunk, const Leaf<bool>& is_there) const {
        if (!is_.has_pages) return sequence_;
        return value(table_->load_if(is_there, sequence_, value((chunk * keys) >> with_.page_shift), 0u));
    }
    /// Of a length that is too large everything is NaN.
    Leaf<float> total_if_valid(const Leaf<float>& total) const {
        constexpr float nan = std::numeric_limits<float>::quiet_NaN();
        return given_ ? value(select(*given_ <= with_.keys, total, nan)) : total;
    }

private:
    U32 made_length() const {
        if (!given_) return with_.keys;
        return value(select(*given_ <= with_.keys, *given_, 0u));
    }
    U32 made_first_seen() const {
        if (!is_.has_before) return value(word(0u));
        const auto own = value(bit_cast<i32>(length_) - bit_cast<i32>(with_.queries));  // of the first query
        return value(bit_cast<u32>(max(own - bit_cast<i32>(with_.before), 0)));
    }

    const DecodeKernel& is_;
    const DecodeNumbers& with_;
    const Optional<In<std::uint32_t>>& lengths_;
    const Optional<In<std::uint32_t, 2>>& table_;
    U32 row_tiles_ = tiles_of(value(with_.group * with_.queries), is_.rows);
    U32 part_ = value(block_id().x % with_.parts), block_ = value(block_id().x / with_.parts);
    U32 first_row_ = value(block_ % row_tiles_ * is_.rows), kv_heads_ = value(with_.heads / with_.group);
    U32 kv_head_ = value(block_ / row_tiles_ % kv_heads_), sequence_ = value(block_ / row_tiles_ / kv_heads_);
    std::optional<U32> given_ = lengths_ ? std::optional(value((*lengths_)[sequence_])) : std::nullopt;
    U32 length_ = made_length(), seen_ = made_first_seen();
};

}  // namespace ikat::stdlib
