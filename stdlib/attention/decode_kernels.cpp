// SPDX-License-Identifier: Apache-2.0
// All warps of a block have the same rows of queries, up to 16, and each goes through chunks of 16 keys of its own,
// which it copies itself, some chunks ahead; at the end they put together what they have:
//
//     keys   0 ... 15   16 ... 31   32 ... 47   48 ... 63   64 ... 79   ...      a chunk is in one page
//     warp      0           1           2           3           0
#include "stdlib/attention/decode_kernels.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numbers>
#include <optional>

#include "stdlib/attention/decode_fma.hpp"
#include "stdlib/attention/decode_mma.hpp"
#include "stdlib/tile/schedule.hpp"
#include "stdlib/tile/tile_rows.hpp"
#include "stdlib/tile/warp_rows.hpp"

namespace ikat::stdlib {
namespace {

using Step = DecodeKernel::Step;
using U32 = Leaf<std::uint32_t>;
using U64 = Leaf<std::uint64_t>;
template <class T>
using Source = Indexable<T, trace::Direction::Read>;

template <class T, std::uint32_t d>
class DecodeBlock {
    static constexpr DecodeTile tile = decode_tile(d * sizeof(T));
    static constexpr std::uint32_t keys = tile.keys, ahead = tile.stages - 1, most_rows = 16;
    using Chunks = SharedTile<T, tile.warps * tile.stages * 2, keys, d>;
    using Rows = std::conditional_t<sizeof(T) == 4, DecodeByFma<Chunks>, DecodeByMma<Chunks>>;
    using Queries = typename Rows::Queries;

public:
    DecodeBlock(const DecodeKernel& is, const DecodeNumbers& with, const Source<std::uint32_t>& lengths,
                const Source<std::uint32_t>& table)
        : is_(is), with_(with), lengths_(lengths), table_(table) {
        require_linear_blocks();
        require_threads(tile.threads());
    }

    /// Calls store(row, column, values, largest, total) for four sums of rows and columns, and what they are to be
    /// divided by.
    void run(const Source<T>& Q, const Source<T>& K, const Source<T>& V, auto&& store) {
        load_queries(Q);
        copy_commit();
        const WarpRows<Chunks> from_k(K, with_.k.row, is_.k_access), from_v(V, with_.v.row, is_.v_access);
        Rows rows(is_, sight_, queries_, chunks_);
        const auto [first, count] = chunks_of_warp();
        const auto chunk = [&, at = first](const auto& number) { return value(at + number * tile.warps); };
        const auto page = [&](const auto& number) {
            const auto of = chunk(number);
            return page_of(of, value(number < count));
        };
        const auto load = [&](const auto& number, const U32& in_page, const U32& stage) {
            if_(number < count, [&] {
                const auto key = value(chunk(number) * keys), end = value(length_ - key);
                const auto row = is_.has_pages ? value(key & ((value(word(1u)) << with_.page_shift) - 1u)) : key;
                const auto k = with_.k.place(in_page, kv_head_, row), v = with_.v.place(in_page, kv_head_, row);
                std::optional<U32> begin;
                if (is_.has_before) begin.emplace(value(seen_ - min(key, seen_)));
                from_k.load(slot(stage, 0), k, end, begin);
                from_v.load(slot(stage, 1), v, end, begin);
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
            rows.take(slot(from, 0), slot(from, 1), value(chunk(value(i)) * keys));
            free = from;
            stage = select(from == ahead, 0u, from + 1u);
        }
        copy_wait<0>();
        sync_block();
        put_together(rows, store);
    }

    U32 part() const { return part_; }
    U32 sequence() const { return sequence_; }
    /// Calls f(head, query) for a row of the block, if there is one.
    void with_query(const U32& row, auto&& f) const {
        const auto at = value(first_row_ + row);
        if_(at < with_.group * with_.queries, [&] {
            const auto head = value(kv_head_ * with_.group + at % with_.group), query = value(at / with_.group);
            f(head, query);
        });
    }

private:
    /// A warp's stage of K, `which` 0, or V.
    auto slot(const U32& stage, std::uint32_t which) const {
        return chunks_[value((warp_id() * tile.stages + stage) * 2u + which)];
    }

    /// In units as large as may be, of which each thread takes some; 0 bytes: in words, by elements.
    void load_queries(const Source<T>& Q) {
        const std::uint32_t bytes = is_.q_access ? is_.q_access : 4, all = is_.rows * (Queries::row_bytes / bytes);
        const std::uint32_t elements = bytes / std::uint32_t(sizeof(T));
        for (auto begin : range(0u, all, tile.threads())) {
            const auto at = value(begin + thread_id().x);
            const auto [row, unit] = unit_of_row<Queries>(at, bytes, is_.rows);
            const auto number = value(first_row_ + row), query = value(number / with_.group);
            const auto head = value(kv_head_ * with_.group + number % with_.group);
            const auto column = value(unit * elements);
            const auto from = Q.slice(value(with_.q.place(sequence_, head, query) + cast<u64>(column)));
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

    U32 length() const {
        if (!given_) return value(with_.keys);
        return value(select(*given_ <= with_.keys, *given_, 0u));
    }
    /// The first key that some query sees.
    U32 first_seen() const {
        if (!is_.has_before) return value(word(0u));
        const auto own = value(bit_cast<i32>(length_) - bit_cast<i32>(with_.queries));  // of the first query
        return value(bit_cast<u32>(max(own - bit_cast<i32>(with_.before), 0)));
    }
    /// The warp's first chunk of the part and how many it has, one of as many as there are warps.
    std::pair<U32, U32> chunks_of_warp() const {
        const auto begin = value(seen_ / keys), all = value(tiles_of(length_, keys) - begin);
        const auto rounds = tiles_of(all, tile.warps);
        const auto of_part = value((rounds + with_.parts - 1u) / with_.parts * tile.warps);
        const auto first = value(min(part_ * of_part, all)), last = value(min(first + of_part, all));
        const auto warp = value(warp_uniform(warp_id())), mine = value(first + warp);
        const auto count = value(select(mine < last, (last - mine + (tile.warps - 1)) / tile.warps, 0u));
        return {value(begin + mine), count};
    }

    /// The page that a chunk is in; the sequence where there are none.
    U32 page_of(const U32& chunk, const Leaf<bool>& is_there) const {
        if (!is_.has_pages) return sequence_;
        const auto place = value(mul_wide(sequence_, with_.table_row) + cast<u64>((chunk * keys) >> with_.page_shift));
        return value(table_.load_if(is_there, place, 0u));
    }

    /// What the warps have, in their order, by way of shared memory, where chunks were.
    void put_together(Rows& rows, auto&& store) {
        constexpr std::uint32_t pitch = scratch_pitch(d);
        // Wavefronts of 8 lanes read from one row.
        constexpr std::uint32_t of_row = (d / 4 + 7) / 8 * 8;
        static_assert(tile.warps * most_rows * pitch * 4 <= Chunks::stages * Chunks::stage_bytes, "all sums have room");
        const std::uint32_t of_warp = is_.rows * pitch, all = is_.rows * of_row;
        const auto floats = chunks_.bytes().template as<float>();
        const Shared<float, 2, tile.warps, most_rows> statistics;
        const auto warp = value(warp_id());
        rows.put(floats.slice(value(warp * of_warp)), pitch,
                 [&](const U32& row, const Leaf<float>& offset, const Leaf<float>& total) {
                     statistics[0, warp, row] = offset;
                     // Of a length that is too large everything is NaN.
                     constexpr float nan = std::numeric_limits<float>::quiet_NaN();
                     statistics[1, warp, row] = given_ ? value(select(*given_ <= with_.keys, total, nan)) : total;
                 });
        sync_block();
        for (auto begin : range(0u, all, tile.threads())) {
            const auto at = value(begin + thread_id().x);
            const auto combine = [&] {
                const auto row = value(at / of_row), column = value(at % of_row * 4u);
                f32 largest = -std::numeric_limits<float>::infinity(), total = 0;
                for (std::uint32_t w = 0; w < tile.warps; ++w) largest = max(largest, statistics[0, w, row]);
                const auto offset = value(select(largest == -std::numeric_limits<float>::infinity(), 0.0f, largest));
                Regs<f32, 4> sum(0.0f);
                for (std::uint32_t w = 0; w < tile.warps; ++w) {
                    const auto weight = value(exp2_or_zero(statistics[0, w, row] - offset));
                    total = fma(weight, statistics[1, w, row], total);
                    sum = fma(weight, floats.template vec<4>((row * pitch + column + w * of_warp) / 4u), sum);
                }
                const auto offset_of_all = value(largest), all = value(total);
                store(row, column, sum, offset_of_all, all);
            };
            if (all % tile.threads() == 0 && of_row == d / 4)
                combine();
            else
                if_((at < all) & (at % of_row < d / 4), combine);
        }
    }

    const DecodeKernel& is_;
    const DecodeNumbers& with_;
    const Source<std::uint32_t>&lengths_, &table_;
    U32 row_tiles_ = tiles_of(value(with_.group * with_.queries), is_.rows);
    U32 part_ = value(block_id().x % with_.parts), block_ = value(block_id().x / with_.parts);
    U32 first_row_ = value(block_ % row_tiles_ * is_.rows), kv_heads_ = value(with_.heads / with_.group);
    U32 kv_head_ = value(block_ / row_tiles_ % kv_heads_), sequence_ = value(block_ / row_tiles_ / kv_heads_);
    std::optional<U32> given_ = is_.has_lengths ? std::optional(value(lengths_[sequence_])) : std::nullopt;
    U32 length_ = length(), seen_ = first_seen();
    Queries queries_;
    Chunks chunks_;
    DecodeSight sight_{is_, with_, length_, first_row_};
};

/// Four elements of O, and, with the first of a row, the logarithm of the sum.
template <class T>
struct Result {
    Out<T> to;
    DecodePitches pitches;
    std::optional<Out<float>> log_sum{};
    std::optional<DecodePitches> of_log_sum{};
    bool is_aligned = true;  // its rows, to four elements

    void store(const U32& sequence, const U32& head, const U32& query, const U32& column, const Regs<f32, 4>& sum,
               const Leaf<float>& largest, const Leaf<float>& total) const {
        const auto inverse = value(select(total == 0.0f, 0.0f, approx::rcp(total)));
        const auto row = to.slice(pitches.place(sequence, head, query));
        const Regs<f32, 4> result(sum * inverse);
        if (is_aligned) row.template vec<4>(column / 4u) = cast<Var<T>>(result);
        for (std::uint32_t k = 0; k < (is_aligned ? 0 : 4); ++k) row[column + k] = cast<Var<T>>(result[k]);
        if (!log_sum) return;
        if_(column == 0u, [&] {
            const auto place = of_log_sum->place(sequence, head, query);
            (*log_sum)[place] = (largest + approx::log2(total)) * std::numbers::ln2_v<float>;
        });
    }
};

template <class T, std::uint32_t d>
class DecodeKernels {
    static constexpr std::size_t usual = 28;

public:
    static trace::KernelHandle made(const DecodeKernel& is) {
        if (is.step == Step::Merge) return merge(is);
        if (is.step == Step::Part)
            return first<float, Out<float>>(
                is, {"statistics"},
                [](const auto& block, const DecodeNumbers& with, const Out<float>& O, const Out<float>& statistics) {
                    return [&](const U32& row, const U32& column, const Regs<f32, 4>& sum, const auto& largest,
                               const auto& total) {
                        block.with_query(row, [&](const U32& head, const U32& query) {
                            const auto of_head = value((block.sequence() * with.heads + head) * with.queries + query);
                            const auto at = value(mul_wide(of_head, with.parts) + cast<u64>(block.part()));
                            O.slice(value(at * std::uint64_t{d})).template vec<4>(column / 4u) = sum;
                            if_(column == 0u, [&] { statistics.template vec<2>(at) = Vec<float, 2>(largest, total); });
                        });
                    };
                });
        const auto store = [](const auto& block, const Result<T>& result) {
            return [&block, result](const U32& row, const U32& column, const Regs<f32, 4>& sum, const auto& largest,
                                    const auto& total) {
                block.with_query(row, [&](const U32& head, const U32& query) {
                    result.store(block.sequence(), head, query, column, sum, largest, total);
                });
            };
        };
        if (!is.has_log_sum)
            return first<T>(is, {}, [=](const auto& block, const DecodeNumbers& with, const Out<T>& O) {
                return store(block, Result<T>{.to = O, .pitches = with.o, .is_aligned = is.o_is_aligned});
            });
        return first<T, Out<float>, u32, u32>(
            is, {"log_sum", "log_sum_sequence", "log_sum_head"},
            [=](const auto& block, const DecodeNumbers& with, const Out<T>& O, const Out<float>& log_sum, const u32& l0,
                const u32& l1) {
                return store(block, Result<T>{O, with.o, log_sum, DecodePitches{l0, l1, 1u}, is.o_is_aligned});
            });
    }

private:
    /// Whole or Part: make(block, numbers, O, further...) gives what is called with sums.
    template <class Element, class... E>
    static trace::KernelHandle first(const DecodeKernel& is, const std::array<const char*, sizeof...(E)>& more,
                                     auto make) {
        ParameterNames<usual + sizeof...(E)> names{
            "Q",          "K",      "V",         "O",          "lengths",    "table",  "keys",
            "queries",    "heads",  "group",     "parts",      "Q_sequence", "Q_head", "Q_row",
            "K_sequence", "K_head", "K_row",     "V_sequence", "V_head",     "V_row",  "O_sequence",
            "O_head",     "O_row",  "table_row", "page_shift", "factor",     "cap",    "before"};
        std::ranges::copy(more, names.names + usual);
        return kernel(is.name().c_str(), names,
                      [=](In<T> Q, In<T> K, In<T> V, Out<Element> O, In<std::uint32_t> lengths, In<std::uint32_t> table,
                          u32 keys, u32 queries, u32 heads, u32 group, u32 parts, u32 q0, u32 q1, u32 q2, u32 k0,
                          u32 k1, u32 k2, u32 v0, u32 v1, u32 v2, u32 o0, u32 o1, u32 o2, u32 table_row, u32 page_shift,
                          f32 factor, f32 cap, u32 before, E... further) {
                          const DecodeNumbers numbers{keys,         queries,      heads,        group,        parts,
                                                      {q0, q1, q2}, {k0, k1, k2}, {v0, v1, v2}, {o0, o1, o2}, table_row,
                                                      page_shift,   factor,       cap,          before};
                          DecodeBlock<T, d> block(is, numbers, lengths, table);
                          block.run(Q, K, V, make(block, numbers, O, further...));
                      })
            .launch_bounds(decode_tile(d * sizeof(T)).threads(), 1)
            .handle();
    }

    static trace::KernelHandle merge(const DecodeKernel& is) {
        const auto body = [](const In<float>& sums, const In<float>& statistics, const Result<T>& result,
                             const u32& rows, const u32& queries, const u32& heads, const u32& parts) {
            require_linear_blocks();
            const auto at = value(global_id().x), row = value(at / (d / 4)), column = value(at % (d / 4) * 4u);
            return_if(row >= rows);
            const auto first = value(mul_wide(row, parts));
            const auto of_row = statistics.slice(value(first * std::uint64_t{2}));
            const auto sums_of_row = sums.slice(value(first * std::uint64_t{d}));
            f32 largest = -std::numeric_limits<float>::infinity(), total = 0;
            for (auto part : range(parts)) largest = max(largest, of_row[part * 2u]);
            const auto offset = value(select(largest == -std::numeric_limits<float>::infinity(), 0.0f, largest));
            Regs<f32, 4> sum(0.0f);
            for (auto part : range(parts)) {
                const auto pair = of_row.template vec<2>(part);
                const auto weight = value(exp2_or_zero(pair.lane(0) - offset));
                total = fma(weight, pair.lane(1), total);
                sum = fma(weight, sums_of_row.template vec<4>((part * d + column) / 4u), sum);
            }
            const auto head = value(row / queries % heads), sequence = value(row / queries / heads);
            const auto query = value(row % queries);
            const auto offset_of_all = value(largest), all = value(total);
            result.store(sequence, head, query, column, sum, offset_of_all, all);
        };
        if (!is.has_log_sum)
            return kernel(is.name().c_str(),
                          params("sums", "statistics", "O", "rows", "queries", "heads", "parts", "O_sequence", "O_head",
                                 "O_row"),
                          [=](In<float> sums, In<float> statistics, Out<T> O, u32 rows, u32 queries, u32 heads,
                              u32 parts, u32 o0, u32 o1, u32 o2) {
                              const DecodePitches of_o{o0, o1, o2};
                              const Result<T> result{.to = O, .pitches = of_o, .is_aligned = is.o_is_aligned};
                              body(sums, statistics, result, rows, queries, heads, parts);
                          })
                .handle();
        return kernel(is.name().c_str(),
                      params("sums", "statistics", "O", "rows", "queries", "heads", "parts", "O_sequence", "O_head",
                             "O_row", "log_sum", "log_sum_sequence", "log_sum_head"),
                      [=](In<float> sums, In<float> statistics, Out<T> O, u32 rows, u32 queries, u32 heads, u32 parts,
                          u32 o0, u32 o1, u32 o2, Out<float> log_sum, u32 l0, u32 l1) {
                          const DecodePitches of_o{o0, o1, o2}, of_log_sum{l0, l1, 1u};
                          const Result<T> result{O, of_o, log_sum, of_log_sum, is.o_is_aligned};
                          body(sums, statistics, result, rows, queries, heads, parts);
                      })
            .handle();
    }
};

template <class T>
trace::KernelHandle decode_of_type(const DecodeKernel& is) {
    switch (is.head_dim) {
        case 64: return DecodeKernels<T, 64>::made(is);
        case 80: return DecodeKernels<T, 80>::made(is);
        case 96: return DecodeKernels<T, 96>::made(is);
        case 128: return DecodeKernels<T, 128>::made(is);
        default: return DecodeKernels<T, 256>::made(is);
    }
}
trace::KernelHandle made_decode(const DecodeKernel& is) {
    switch (is.type) {
        case ir::Type::F16: return decode_of_type<half>(is);
        case ir::Type::BF16: return decode_of_type<bfloat16>(is);
        default: return decode_of_type<float>(is);
    }
}

}  // namespace

std::string DecodeKernel::name() const {
    std::string out = "incremental_attention_";
    out += type == ir::Type::F16 ? "f16" : type == ir::Type::BF16 ? "bf16" : "f32";
    out += "_d" + std::to_string(head_dim);
    if (has_lengths) out += "_lengths";
    if (has_pages) out += "_paged";
    if (is_causal) out += "_causal";
    if (has_before) out += "_before";
    if (has_cap) out += has_wide_cap ? "_wide_cap" : "_cap";
    if (has_log_sum) out += "_log_sum";
    const char* const steps[] = {"", "_part", "_merge"};
    return out + steps[int(step)];
}

const trace::KernelHandle& DecodeKernel::handle() const {
    static std::map<DecodeKernel, trace::KernelHandle> kernels;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const auto found = kernels.find(*this);
    return found != kernels.end() ? found->second : kernels.emplace(*this, made_decode(*this)).first->second;
}

}  // namespace ikat::stdlib
