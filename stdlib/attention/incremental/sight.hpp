// SPDX-License-Identifier: Apache-2.0
// What the kernels of incremental_attention() are given, and which keys a query sees.
#pragma once
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "dsl/kernel/optional.hpp"
#include "dsl/threads/warp.hpp"
#include "stdlib/attention/bound_attention.hpp"
#include "stdlib/attention/incremental/kernels.hpp"
#include "stdlib/attention/soft_cap.hpp"
#include "stdlib/tile/online_softmax.hpp"

namespace ikat::stdlib {

/// Sums in shared memory.
using SharedNumbers = Indexable<float, Direction::ReadWrite>;

/// The numbers of a launch, see DecodeKernel.
struct DecodeParameters {
    BOOST_HANA_DEFINE_STRUCT(DecodeParameters, (std::uint32_t, keys), (std::uint32_t, group), (std::uint32_t, parts),
                             (std::uint32_t, page_shift), (float, factor), (float, cap), (std::uint32_t, before));
};
/// ... and the extents of Q.
struct DecodeNumbers {
    Leaf<std::uint32_t> queries, heads, keys, group, parts, page_shift;
    Leaf<float> factor, cap;
    Leaf<std::uint32_t> before;
    Optional<In<float>> sinks;
    const BoundAttention* own;  // null if there are no functions

    template <class T>
    DecodeNumbers(const In<T, 4>& Q, const Struct<DecodeParameters>& with, const Optional<In<float>>& sinks,
                  const BoundAttention* own)
        : queries(Q.extent(2)),
          heads(Q.extent(1)),
          keys(with[&DecodeParameters::keys]),
          group(with[&DecodeParameters::group]),
          parts(with[&DecodeParameters::parts]),
          page_shift(with[&DecodeParameters::page_shift]),
          factor(with[&DecodeParameters::factor]),
          cap(with[&DecodeParameters::cap]),
          before(with[&DecodeParameters::before]),
          sinks(sinks),
          own(own) {}
};

/// Which keys the queries of a block see. All outlive it.
class DecodeSight {
    using U32 = Leaf<std::uint32_t>;
    using I32 = Leaf<std::int32_t>;

public:
    DecodeSight(const DecodeKernel& is, const DecodeNumbers& with, const U32& length, const U32& first_row,
                const U32& sequence, const U32& kv_head, const U32& part)
        : is_(is),
          with_(with),
          length_(length),
          first_row_(first_row),
          sequence_(sequence),
          kv_head_(kv_head),
          part_(part) {}

    /// Calls f(exponent of the sink) for a row, if there are sinks. It counts once: for other warps, and of other
    /// parts, it is -infinity, and where it is not the lane's.
    void with_sink(const U32& row, const Leaf<bool>& is_of_lane, auto&& f) const {
        if (!with_.sinks) return;
        const auto head = value(kv_head_ * with_.group + (first_row_ + row) % with_.group);
        const auto counts = value(is_of_lane & (part_ == 0u) & (warp_id() == 0u));
        const auto sink = with_.sinks->load_if(counts, head, -std::numeric_limits<float>::infinity());
        f(value(sink * std::numbers::log2e_v<float>));
    }

    /// The functions of a row, and where its query is among the keys.
    struct Own {
        HeadScores of_head;
        I32 query;
    };
    /// ... of some rows of a lane; none if there are no functions.
    std::vector<Own> own_of(const std::vector<U32>& rows) const {
        std::vector<Own> out;
        for (const U32& row : rows) {
            if (!with_.own) break;
            const auto at = value(first_row_ + row), head = value(kv_head_ * with_.group + at % with_.group);
            const auto query = value(bit_cast<i32>(length_ + at / with_.group - with_.queries));
            out.push_back({with_.own->at(sequence_, head, {with_.queries, length_}), query});
        }
        return out;
    }
    /// Whether sees() tells that the rows of all lanes of a warp see none of the keys from `first` on.
    Leaf<bool> may_see(const std::vector<Own>& rows, const U32& first, std::uint32_t keys) const {
        const auto last = value(bit_cast<i32>(min(first + keys, length_)) - 1);
        pred possibly = false;
        for (const Own& row : rows)
            possibly =
                possibly | row.of_head.sees({row.query, row.query}, {value(bit_cast<i32>(first)), last}).possibly;
        return any(possibly);
    }

    /// Keys from `seen` on, if it is there, and before `unseen`.
    struct Keys {
        std::optional<I32> seen;
        I32 unseen;
        I32 first;  // the key from which they are counted
        const Own* own;
    };
    /// Of a row of the block, counted from a key on.
    Keys of_row(const U32& row, const I32& key, const Own* functions) const {
        const auto length = value(bit_cast<i32>(length_));
        Keys out{{}, value(length - key), key, functions};
        if (!is_.is_causal && !is_.has_before) return out;
        const auto query = value((first_row_ + row) / with_.group);
        const auto own = value(length + bit_cast<i32>(query - with_.queries) - key);
        if (is_.is_causal) out.unseen = value(min(out.unseen, own + 1));
        if (is_.has_before) out.seen.emplace(value(own - bit_cast<i32>(with_.before)));
        return out;
    }
    /// From a product to a score: its cap, what functions make of it, and -infinity for a key, this many further, that
    /// the query does not see.
    void finish(auto& score, const Keys& keys, std::uint32_t further) const {
        if (is_.has_cap)
            score = is_.has_wide_cap ? wide_cap(score, with_.factor, with_.cap)
                                     : narrow_cap(score, with_.factor, with_.cap);
        if (is_.own.has_scores()) {
            const auto given = is_.has_cap ? value(score) : value(score * with_.factor);
            score = keys.own->of_head.score(given, keys.own->query, value(keys.first + std::int32_t(further)));
        }
        if (is_.has_wide_cap) score = score * std::numbers::log2e_v<float>;
        pred sees = keys.unseen > std::int32_t(further);
        if (keys.seen) sees = sees & (*keys.seen <= std::int32_t(further));
        if (is_.own.has_sight())
            sees = sees & keys.own->of_head.sees(keys.own->query, value(keys.first + std::int32_t(further)));
        score = select(sees, score, -std::numeric_limits<float>::infinity());
    }
    /// What finished scores are multiplied with for the exponents of 2.
    Leaf<float> factor() const {
        return is_.has_cap || is_.own.has_scores() ? exponent_of_capped(is_.has_wide_cap) : with_.factor;
    }

private:
    const DecodeKernel& is_;
    const DecodeNumbers& with_;
    const U32 &length_, &first_row_, &sequence_, &kv_head_, &part_;
};

}  // namespace ikat::stdlib
