// SPDX-License-Identifier: Apache-2.0
// Which tiles a block of attention_backward() goes through.
#pragma once
#include "stdlib/attention/scores.hpp"
#include "stdlib/attention_backward/kernels.hpp"

namespace ikat::stdlib::gradient {

/// The tiles of `walked` rows of the others that some of `owned` rows, of queries or of keys, see or are seen by: from
/// `begin` on, to the one before row `end`. Of these, the ones from `whole` on that are before row `end_whole` have
/// nothing to hide; whether there may be others before, and after.
struct SeenTiles {
    Leaf<std::uint32_t> begin, whole, end_whole, end;
    bool hides_first, hides_last;
};

/// `hides_queries`: those that are not there have to be hidden, too.
template <bool are_keys>
SeenTiles seen_tiles(const GradientKernel& is, const QueriesPlace& at, const Leaf<std::uint32_t>& first_row,
                     std::uint32_t owned, std::uint32_t walked, bool hides_queries) {
    using U32 = Leaf<std::uint32_t>;
    const auto first = value(bit_cast<i32>(first_row));
    const auto last = value(bit_cast<i32>(min(first_row + owned, are_keys ? at.keys : at.queries)) - 1);
    const auto all = are_keys ? at.queries : at.keys;
    const auto number_of = [&](const auto& row) { return value(bit_cast<u32>(max(row, 0)) / walked); };
    const auto rows_to = [&](const auto& row) {
        return value(bit_cast<u32>(max(min(bit_cast<i32>(all), row + 1), 0)));
    };
    const bool hides_first = are_keys ? is.has_after : is.has_before, has_end = are_keys ? is.has_before : is.has_after;
    // query + first <= key <= query + last
    const auto down = [&](const auto& row) { return are_keys ? value(row - at.last) : value(row + at.first); };
    const auto up = [&](const auto& row) { return are_keys ? value(row - at.first) : value(row + at.last); };
    const U32 none = value(word(0u));
    return {hides_first ? number_of(down(first)) : none,
            hides_first ? number_of(down(first) + std::int32_t(owned - 1 + walked - 1)) : none,
            has_end ? rows_to(up(first)) : all,
            has_end ? rows_to(up(last)) : all,
            hides_first,
            !are_keys || has_end || hides_queries};
}

}  // namespace ikat::stdlib::gradient
