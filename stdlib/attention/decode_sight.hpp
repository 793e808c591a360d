// SPDX-License-Identifier: Apache-2.0
// What the kernels behind incremental_attention() are given, and which keys a query sees.
#pragma once
#include <limits>
#include <numbers>
#include <optional>

#include "dsl/kernel/optional.hpp"
#include "stdlib/attention/decode_kernels.hpp"
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

    template <class T>
    DecodeNumbers(const In<T, 4>& Q, const Struct<DecodeParameters>& with)
        : queries(Q.extent(2)),
          heads(Q.extent(1)),
          keys(with[&DecodeParameters::keys]),
          group(with[&DecodeParameters::group]),
          parts(with[&DecodeParameters::parts]),
          page_shift(with[&DecodeParameters::page_shift]),
          factor(with[&DecodeParameters::factor]),
          cap(with[&DecodeParameters::cap]),
          before(with[&DecodeParameters::before]) {}
};

/// Which keys the queries of a block see. All outlive it.
class DecodeSight {
    using U32 = Leaf<std::uint32_t>;
    using I32 = Leaf<std::int32_t>;

public:
    DecodeSight(const DecodeKernel& is, const DecodeNumbers& with, const U32& length, const U32& first_row)
        : is_(is), with_(with), length_(length), first_row_(first_row) {}

    /// Keys from `seen` on, if it is there, and before `unseen`.
    struct Keys {
        std::optional<I32> seen;
        I32 unseen;
    };
    /// Of a row of the block, counted from a key on.
    Keys of_row(const U32& row, const I32& key) const {
        const auto length = value(bit_cast<i32>(length_));
        Keys out{{}, value(length - key)};
        if (!is_.is_causal && !is_.has_before) return out;
        const auto query = value((first_row_ + row) / with_.group);
        const auto own = value(length + bit_cast<i32>(query - with_.queries) - key);
        if (is_.is_causal) out.unseen = value(min(out.unseen, own + 1));
        if (is_.has_before) out.seen.emplace(value(own - bit_cast<i32>(with_.before)));
        return out;
    }
    /// From a product to a score: its cap, and -infinity for a key, so many further, that the query does not see.
    void finish(auto& score, const Keys& keys, std::uint32_t further) const {
        if (is_.has_cap)
            score = is_.has_wide_cap ? value(wide_cap(score, with_.factor, with_.cap) * std::numbers::log2e_v<float>)
                                     : narrow_cap(score, with_.factor, with_.cap);
        pred sees = keys.unseen > std::int32_t(further);
        if (keys.seen) sees = sees & (*keys.seen <= std::int32_t(further));
        score = select(sees, score, -std::numeric_limits<float>::infinity());
    }
    /// What finished scores are multiplied with for the exponents of 2.
    Leaf<float> factor() const { return is_.has_cap ? exponent_of_capped(is_.has_wide_cap) : with_.factor; }

private:
    const DecodeKernel& is_;
    const DecodeNumbers& with_;
    const U32 &length_, &first_row_;
};

}  // namespace ikat::stdlib
