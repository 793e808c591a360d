// SPDX-License-Identifier: Apache-2.0
// All warps of a block have the same rows of queries, up to 16, and each goes through chunks of 16 keys of its own,
// which it copies itself, some chunks ahead; at the end they put together what they have:
//
//     keys   0 ... 15   16 ... 31   32 ... 47   48 ... 63   64 ... 79   ...      a chunk is in one page
//     warp      0           1           2           3           0
//
// Of an encoded cache a warp copies bytes; it decodes a chunk just before it works on it.
#pragma once
#include <functional>
#include <numbers>
#include <optional>

#include "dsl/threads/grids.hpp"
#include "stdlib/attention/encoded_rows.hpp"
#include "stdlib/attention/incremental/fma.hpp"
#include "stdlib/attention/incremental/mma.hpp"
#include "stdlib/attention/incremental/place.hpp"
#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/tile_rows.hpp"
#include "stdlib/tile/warp_rows.hpp"

namespace ikat::stdlib::decode {

using Step = DecodeKernel::Step;
using U32 = Leaf<std::uint32_t>;
constexpr std::uint32_t max_rows = 16;  // of a block

/// Of a row: the largest exponent, and the sum of 2^(exponent - that), by which its sums are to be divided.
struct SumsScale {
    Leaf<float> largest, total;
};
/// Takes four sums of a row of a block, from a column on.
using TakeSums = std::function<void(const DecodePlace& of, const U32& row, const U32& column, const Regs<f32, 4>& sum,
                                    const SumsScale& scale)>;
/// Puts a warp's rows of sums, `pitch` apart, and calls store(row, offset, total) for each row.
using PutRows =
    std::function<void(const SharedNumbers& to, std::uint32_t pitch,
                       const std::function<void(const U32&, const Leaf<float>&, const Leaf<float>&)>& store)>;

/// What the warps have, of rows of d, in their order, by way of shared memory, where chunks were.
template <std::uint32_t warps>
void put_together(const DecodePlace& place, std::uint32_t rows, std::uint32_t d, const SharedNumbers& floats,
                  const PutRows& put, const TakeSums& take) {
    constexpr std::uint32_t threads = 32 * warps;
    const std::uint32_t pitch = scratch_pitch(d);
    // Wavefronts of 8 lanes read from one row.
    const std::uint32_t of_row = (d / 4 + 7) / 8 * 8;
    const std::uint32_t of_warp = rows * pitch, all = rows * of_row;
    const Shared<float, 2, warps, max_rows> statistics;
    const auto warp = value(warp_id());
    put(floats.slice(value(warp * of_warp)), pitch,
        [&](const U32& row, const Leaf<float>& offset, const Leaf<float>& total) {
            statistics[0, warp, row] = offset;
            statistics[1, warp, row] = place.total_if_valid(total);
        });
    sync_block();
    for (auto begin : range(0u, all, threads)) {
        const auto at = value(begin + thread_id().x);
        const auto combine = [&] {
            const auto row = value(at / of_row), column = value(at % of_row * 4u);
            f32 largest = -std::numeric_limits<float>::infinity(), total = 0;
            for (std::uint32_t w = 0; w < warps; ++w) largest = max(largest, statistics[0, w, row]);
            const auto offset = value(select(largest == -std::numeric_limits<float>::infinity(), 0.0f, largest));
            Regs<f32, 4> sum(0.0f);
            for (std::uint32_t w = 0; w < warps; ++w) {
                const auto weight = value(exp2_or_zero(statistics[0, w, row] - offset));
                total = fma(weight, statistics[1, w, row], total);
                sum = fma(weight, floats.template vec<4>((row * pitch + column + w * of_warp) / 4u), sum);
            }
            const auto offset_of_all = value(largest), all = value(total);
            take(place, row, column, sum, {offset_of_all, all});
        };
        if (all % threads == 0 && of_row == d / 4)
            combine();
        else
            if_((at < all) & (at % of_row < d / 4), combine);
    }
}

/// Of elements of T; K and V of E, which is T or, encoded, bytes.
template <class T, class E>
struct DecodeArrays {
    In<T, 4> q;
    In<E, 4> k, v;
    Optional<In<std::uint32_t>> lengths;
    Optional<In<std::uint32_t, 2>> table;
};

/// The elements from a view's first on, without its extents.
template <class View>
auto elements_of(const View& x) {
    return Pointer<typename View::element_type, View::access>(x.array());
}
/// How many elements of them are before a row of a head.
Leaf<std::uint64_t> place_in(const auto& x, const U32& sequence, const U32& head, const U32& row) {
    const auto of_sequence = value(mul_wide(sequence, x.pitch(0))), of_head = value(mul_wide(head, x.pitch(1)));
    return value(of_sequence + of_head + mul_wide(row, x.pitch(2)));
}

template <class T, class E, std::uint32_t d>
class DecodeBlock {
    static constexpr DecodeTile tile = decode_tile(d * sizeof(T));
    static constexpr std::uint32_t keys = tile.keys, ahead = tile.stages - 1;
    static constexpr bool is_encoded = !std::is_same_v<E, T>;
    static constexpr std::uint32_t all_stages = tile.warps * tile.stages * 2;
    // Of encoded keys a warp has one decoded chunk of each; at the end there is room for all sums.
    static constexpr std::uint32_t bytes_of_sums = tile.warps * max_rows * scratch_pitch(d) * 4;
    static constexpr std::uint32_t decoded =
        std::max<std::uint32_t>(tile.warps * 2, (bytes_of_sums - 1) / (keys * d * sizeof(T)) + 1);
    using Chunks = SharedTile<T, is_encoded ? decoded : all_stages, keys, d>;
    using Encoded = EncodedRows<Chunks, all_stages, 32>;
    using Rows = std::conditional_t<sizeof(T) == 4, DecodeByFma<Chunks>, DecodeByMma<Chunks>>;
    using Queries = typename Rows::Queries;
    static_assert(bytes_of_sums <= Chunks::stages * Chunks::stage_bytes, "all sums have room");

public:
    DecodeBlock(const DecodeKernel& is, const DecodeNumbers& with, const DecodeArrays<T, E>& arrays)
        : is_(is), with_(with), arrays_(arrays), place_(is, with, arrays.lengths, arrays.table) {
        require_linear_blocks();
        require_threads(tile.threads());
    }

    void run(const TakeSums& take) {
        load_queries();
        copy_commit();
        const auto sources = sources_of_both();
        const auto &from_k = sources.first, &from_v = sources.second;
        Rows rows(is_, sight_, queries_, chunks_);
        const auto [first, count] = place_.chunks_of_warp(tile.warps);
        const auto chunk = [&, at = first](const U32& number) { return value(at + number * tile.warps); };
        const auto page = [&](const U32& number) {
            const auto of = chunk(number);
            return place_.page_of(of, value(number < count));
        };
        // Chunks of which no row sees a key are not copied, and not worked on.
        const auto is_needed = [&](const U32& number) { return rows.may_see(value(chunk(number) * keys)); };
        const auto load = [&](const U32& number, const U32& in_page, const U32& stage) {
            pred is_there = number < count;
            if (is_.own.has_sight()) is_there = is_there & is_needed(number);
            if_(is_there, [&] {
                const auto key = value(chunk(number) * keys), end = value(place_.length() - key);
                const auto row = is_.has_pages ? value(key & ((value(word(1u)) << with_.page_shift) - 1u)) : key;
                const auto k = place_in(arrays_.k, in_page, place_.kv_head(), row);
                const auto v = place_in(arrays_.v, in_page, place_.kv_head(), row);
                std::optional<U32> begin;
                if (is_.has_before) begin.emplace(value(place_.first_seen() - min(key, place_.first_seen())));
                if constexpr (is_encoded) {
                    from_k.load(number_of(stage, 0), RowsOfBytes{elements_of(arrays_.k), k, arrays_.k.pitch(2)}, end,
                                begin);
                    from_v.load(number_of(stage, 1), RowsOfBytes{elements_of(arrays_.v), v, arrays_.v.pitch(2)}, end,
                                begin);
                } else {
                    from_k.load(slot(stage, 0), k, end, begin);
                    from_v.load(slot(stage, 1), v, end, begin);
                }
            });
            copy_commit();
        };
        for (std::uint32_t s = 0; s < ahead; ++s) {
            const auto number = value(word(s));
            load(number, page(number), number);
        }
        copy_wait<int(ahead)>();
        sync_block();
        rows.begin();

        u32 stage = 0, free = ahead, next_page = page(value(word(ahead)));
        for (auto i : range(count)) {
            const auto number = value(i + ahead), in_page = value(next_page), to = value(free), from = value(stage);
            copy_wait<int(ahead) - 1>();
            sync_warp();
            load(number, in_page, to);
            next_page = page(value(i + tile.stages));
            const auto take = [&] {
                if constexpr (is_encoded) {
                    from_k.decode(number_of(from, 0), slot(from, 0));
                    from_v.decode(number_of(from, 1), slot(from, 1));
                    sync_warp();
                }
                rows.take(slot(from, 0), slot(from, 1), value(chunk(value(i)) * keys));
            };
            if (is_.own.has_sight())
                if_(is_needed(value(i)), take);
            else
                take();
            free = from;
            stage = select(from == ahead, 0u, from + 1u);
        }
        copy_wait<0>();
        sync_block();
        if (is_.step == Step::Part) launch_next();
        put_together<tile.warps>(
            place_, is_.rows, d, chunks_.bytes().template as<float>(),
            [&](const SharedNumbers& to, std::uint32_t pitch, const auto& store) { rows.put(to, pitch, store); }, take);
    }

private:
    /// A warp's stage of K, `which` 0, or V: its number.
    static U32 number_of(const U32& stage, std::uint32_t which) {
        return value((warp_id() * tile.stages + stage) * 2u + which);
    }
    /// ... where its elements are.
    auto slot(const U32& stage, std::uint32_t which) const {
        return chunks_[is_encoded ? value(warp_id() * 2u + which) : number_of(stage, which)];
    }
    /// Where K and V come from.
    auto sources_of_both() const {
        if constexpr (is_encoded) {
            const Encoded of_k(is_.encoding, is_.k_access, value(lane_id()));
            return std::pair(of_k, Encoded(of_k, is_.v_access));
        } else {
            const WarpRows<Chunks> of_k(elements_of(arrays_.k), arrays_.k.pitch(2), is_.k_access),
                of_v(elements_of(arrays_.v), arrays_.v.pitch(2), is_.v_access);
            return std::pair(of_k, of_v);
        }
    }

    /// In units as large as may be, of which each thread takes some; 0 bytes: in words, by elements.
    void load_queries() {
        const std::uint32_t bytes = is_.q_access ? is_.q_access : 4, all = is_.rows * (Queries::row_bytes / bytes);
        const std::uint32_t elements = bytes / std::uint32_t(sizeof(T));
        for (auto begin : range(0u, all, tile.threads())) {
            const auto at = value(begin + thread_id().x);
            const auto [row, unit] = Queries::shape.unit_of_row(at, bytes, is_.rows);
            const auto number = value(place_.first_row() + row), query = value(number / with_.group);
            const auto head = value(place_.kv_head() * with_.group + number % with_.group);
            const auto column = value(unit * elements);
            const auto from = elements_of(arrays_.q).slice(
                value(place_in(arrays_.q, place_.sequence(), head, query) + cast<u64>(column)));
            const auto place = Queries::place(row, column);
            const pred is_there = query < with_.queries;
            const auto copy = [&] {
                copy_unit_if(is_.q_access, is_there, queries_.bytes()[place],
                             from.template as<std::uint8_t>()[word(0u)]);
                for (std::uint32_t k = 0; k < (is_.q_access ? 0 : elements); ++k)
                    queries_[0][row, column + k] = from.load_if(is_there, word(k), T{});
            };
            if (all % tile.threads() != 0)
                if_(at < all, copy);
            else
                copy();
        }
    }

    const DecodeKernel& is_;
    const DecodeNumbers& with_;
    const DecodeArrays<T, E>& arrays_;
    DecodePlace place_;
    Queries queries_;
    Chunks chunks_;
    DecodeSight sight_{is_,          with_, place_.length(), place_.first_row(), place_.sequence(), place_.kv_head(),
                       place_.part()};
};

/// Four elements of O, and, with the first of a row, the logarithm of the sum.
template <class T>
struct Result {
    Out<T, 4> to;
    Optional<Out<float, 3>> log_sum;
    bool is_aligned = true;  // its rows, to four elements

    void store(const U32& sequence, const U32& head, const U32& query, const U32& column, const Regs<f32, 4>& sum,
               const SumsScale& scale) const {
        const auto inverse = value(select(scale.total == 0.0f, 0.0f, approx::rcp(scale.total)));
        const auto row = to[sequence, head, query];
        const Regs<f32, 4> result(sum * inverse);
        if (is_aligned) row.template vec<4>(column / 4u) = cast<Var<T>>(result);
        for (std::uint32_t k = 0; k < (is_aligned ? 0 : 4); ++k) row[column + k] = cast<Var<T>>(result[k]);
        if (!log_sum) return;
        if_(column == 0u, [&] {
            (*log_sum)[sequence, head, query] =
                (scale.largest + approx::log2(scale.total)) * std::numbers::ln2_v<float>;
        });
    }
    /// For as long as this is there.
    TakeSums taking() const {
        return [this](const DecodePlace& of, const U32& row, const U32& column, const Regs<f32, 4>& sum,
                      const SumsScale& scale) {
            of.with_query(
                row, [&](const U32& head, const U32& query) { store(of.sequence(), head, query, column, sum, scale); });
        };
    }
};

/// Whole or Part; the parameters of all are compiled once for each type.
template <class T, class E>
using Body = std::function<void(const DecodeNumbers&, const DecodeArrays<T, E>&, const TakeSums&)>;

template <class T, class E>
KernelHandle whole(const DecodeKernel& is, const Body<T, E>& body) {
    const MoreParameters more = is.own.more();
    return kernel(is.name().c_str(),
                  params("Q", "K", "V", "O", "with", only_if(is.has_lengths, "lengths"), only_if(is.has_pages, "pages"),
                         only_if(is.has_sinks, "sinks"), only_if(is.has_log_sum, "log_sum"), more),
                  [=](In<T, 4> Q, In<E, 4> K, In<E, 4> V, Out<T, 4> O, Struct<DecodeParameters> with,
                      Optional<In<std::uint32_t>> lengths, Optional<In<std::uint32_t, 2>> pages,
                      Optional<In<float>> sinks, Optional<Out<float, 3>> log_sum, More rest) {
                      const BoundAttention functions(is.own, rest);
                      const Result<T> result{O, log_sum, is.o_is_aligned};
                      body(DecodeNumbers(Q, with, sinks, is.own ? &functions : nullptr), {Q, K, V, lengths, pages},
                           result.taking());
                  })
        .launch_bounds(decode_tile(is.head_dim * sizeof(T)).threads(), 1)
        .handle();
}
template <class T, class E>
KernelHandle part(const DecodeKernel& is, const Body<T, E>& body) {
    const MoreParameters more = is.own.more();
    return kernel(is.name().c_str(),
                  params("Q", "K", "V", "sums", "statistics", "with", only_if(is.has_lengths, "lengths"),
                         only_if(is.has_pages, "pages"), only_if(is.has_sinks, "sinks"), more),
                  [body, d = is.head_dim, own = is.own](
                      In<T, 4> Q, In<E, 4> K, In<E, 4> V, Out<float> sums, Out<float> statistics,
                      Struct<DecodeParameters> with, Optional<In<std::uint32_t>> lengths,
                      Optional<In<std::uint32_t, 2>> pages, Optional<In<float>> sinks, More rest) {
                      const BoundAttention functions(own, rest);
                      const DecodeNumbers numbers(Q, with, sinks, own ? &functions : nullptr);
                      body(numbers, {Q, K, V, lengths, pages},
                           [&](const DecodePlace& of, const U32& row, const U32& column, const Regs<f32, 4>& sum,
                               const SumsScale& scale) {
                               of.with_query(row, [&](const U32& head, const U32& query) {
                                   const auto of_head =
                                       value((of.sequence() * numbers.heads + head) * numbers.queries + query);
                                   const auto at = value(mul_wide(of_head, numbers.parts) + cast<u64>(of.part()));
                                   sums.slice(value(at * std::uint64_t{d})).template vec<4>(column / 4u) = sum;
                                   if_(column == 0u, [&] {
                                       statistics.template vec<2>(at) = Vec<float, 2>(scale.largest, scale.total);
                                   });
                               });
                           });
                  })
        .launch_bounds(decode_tile(is.head_dim * sizeof(T)).threads(), 1)
        .handle();
}

template <class T, class E, std::uint32_t d>
Body<T, E> body_of(const DecodeKernel& is) {
    return [is](const DecodeNumbers& numbers, const DecodeArrays<T, E>& arrays, const TakeSums& take) {
        DecodeBlock<T, E, d>(is, numbers, arrays).run(take);
    };
}
template <class T, class E>
Body<T, E> body_of_head_dim(const DecodeKernel& is) {
    switch (is.head_dim) {
        case 64: return body_of<T, E, 64>(is);
        case 80: return body_of<T, E, 80>(is);
        case 96: return body_of<T, E, 96>(is);
        case 128: return body_of<T, E, 128>(is);
        default: return body_of<T, E, 256>(is);
    }
}
/// Whole or Part.
template <class T, class E>
KernelHandle attending(const DecodeKernel& is) {
    const Body<T, E> body = body_of_head_dim<T, E>(is);
    return is.step == Step::Part ? part(is, body) : whole(is, body);
}

}  // namespace ikat::stdlib::decode
