// SPDX-License-Identifier: Apache-2.0
// The rows of a block of incremental_attention() by fused multiply-adds of f32, one warp's part. Eight lanes, or 16 of
// long rows, are a team. Teams have keys of their own, up to the end, where their sums are added up. A lane has some
// columns of its team's keys and of up to eight rows, so that it reads each element of K and V once for all of these:
//
//     lanes   0 1 2 ... 7   8 ... 15   16 ... 23   24 ... 31
//     keys         0           1           2           3         of 9 to 16 rows: of half of them, 0, 1, 0, 1
//                  4           5           6           7
//     columns of lane 0: 0 ... 3, 32 ... 35, 64 ... 67, ...      neighbours read neighbouring 16 bytes
//
// Adding up the products of its columns, the lanes of a team divide the rows: each has the scores of one, row lane % 8
// of eight, and its softmax.
#pragma once
#include <algorithm>
#include <vector>

#include "stdlib/attention/incremental/sight.hpp"
#include "stdlib/tile/shared_tile.hpp"

namespace ikat::stdlib {

/// Chunks of 16 keys in stages of `Chunks`.
template <class Chunks>
class DecodeByFma {
    using U32 = Leaf<std::uint32_t>;
    static constexpr std::uint32_t d = Chunks::columns, keys = Chunks::rows;
    static constexpr std::uint32_t lanes = d > 128 ? 16 : 8, each = d / lanes;  // of a team; columns of a lane
    static constexpr std::uint32_t width = each % 4 ? 2 : 4, steps = each / width, step = lanes * width;
    static constexpr std::uint32_t at_once = 4;  // keys
    static constexpr float none = -std::numeric_limits<float>::infinity();
    static_assert(step * 4 % Chunks::panel_row == 0, "a team reads whole rows of panels");

public:
    /// A team reads from a row at a time: there is nothing to swizzle.
    using Queries = SharedTile<float, 1, 16, d, 0>;
    DecodeByFma(const DecodeKernel& is, const DecodeSight& sight, const Queries& queries, const Chunks&)
        : sight_(sight), queries_(queries), rows_(std::min(is.rows, 8u)), teams_(32 / lanes / (is.rows / rows_)) {
        sums_.reserve(rows_ * each);
        for (std::uint32_t i = 0; i < rows_ * each; ++i) sums_.emplace_back(0.0f);
        sight.with_sink(row_, value(team_ == 0u), [&](const Leaf<float>& exponent) {
            offset_ = exponent;
            total_ = select(exponent == none, 0.0f, 1.0f);
        });
    }

    /// Whether some row of the warp may see a key of the chunk from `first` on, as far as sees() tells.
    Leaf<bool> may_see(const U32& first) const { return sight_.may_see(own_, first, keys); }
    void begin() {}
    /// A chunk, from key `first` on.
    void take(const TileStage<Chunks>& k, const TileStage<Chunks>& v, const U32& first) {
        const std::uint32_t at_once_by_all = at_once * teams_;
        if (at_once_by_all == keys) return take(k, v, first, team_);
        for (auto begin : range(0u, keys, at_once_by_all)) take(k, v, first, value(begin + team_));
    }
    /// Rows of sums, `pitch` apart, to a warp's own; of each row its offset and total by store(row, offset, total).
    void put(const SharedNumbers& to, std::uint32_t pitch, auto&& store) {
        const auto over_teams = [&](Leaf<float> x, auto&& f) {
            for (std::uint32_t far = lanes; far < lanes * teams_; far *= 2) x = value(f(x, shuffle_xor(x, int(far))));
            return x;
        };
        const auto add = [](auto&& a, auto&& b) { return a + b; };
        const auto own = value(offset_);
        const auto largest = over_teams(own, [](auto&& a, auto&& b) { return max(a, b); });
        const auto weight = value(exp2_or_zero(own - select(largest == none, 0.0f, largest)));
        const auto total = over_teams(value(total_ * weight), add);
        for (std::uint32_t r = 0; r < rows_; ++r) {
            const auto of_row = of_lane(weight, r);
            std::vector<Leaf<float>> sums;
            for (std::uint32_t e = 0; e < each; ++e)
                sums.push_back(over_teams(value(sums_[r * each + e] * of_row), add));
            const auto place = value((first_row_ + r) * pitch + lane_ * width);
            if_(team_ == 0u, [&] {
                for (std::uint32_t s = 0; s < steps; ++s) {
                    LaneValues<float, LaneShape<width>> values;
                    for (std::uint32_t e = 0; e < width; ++e) values.set(e, sums[s * width + e].recorded());
                    to.template vec<int(width)>((place + s * step) / width) = values;
                }
            });
        }
        if_((team_ == 0u) & (lane_ < rows_), [&] { store(row_, largest, total); });
    }

private:
    /// Of the lane's keys `row` of the chunk, `teams_` further, 2 `teams_`, 3 `teams_`.
    void take(const TileStage<Chunks>& k, const TileStage<Chunks>& v, const U32& first, const U32& row) {
        const auto place = value(Chunks::place(row, value(lane_ * width)));
        std::vector<U32> places;
        for (std::uint32_t i = 0; i < at_once; ++i) {
            // The bits of i * teams_ are not in `row`: it is swizzled by both.
            const std::uint32_t down = i * teams_;
            places.push_back(value((place ^ Chunks::turn(down) * 16) + down * Chunks::panel_row));
        }
        const auto weights = weights_of(scores_of(k, places), value(first + row));
        std::vector<Leaf<float>> of_rows;
        for (std::uint32_t i = 0; i < rows_ * at_once; ++i) of_rows.push_back(of_lane(weights[i / rows_], i % rows_));
        for (std::uint32_t s = 0; s < steps; ++s)
            for (std::uint32_t i = 0; i < at_once; ++i) {
                const auto x = columns(v, places[i], s);
                for (std::uint32_t r = 0; r < rows_; ++r)
                    for (std::uint32_t e = 0; e < width; ++e) {
                        f32& sum = sums_[r * each + s * width + e];
                        sum = fma(of_rows[i * rows_ + r], x.lane(e), sum);
                    }
            }
    }
    /// What lane r of the team has of row r.
    Leaf<float> of_lane(const Leaf<float>& x, std::uint32_t r) const {
        return rows_ == 1 ? x : value(shuffle_idx(x, r, all_lanes, int(lanes)));
    }
    /// Some columns of a key, in step s of them.
    static auto columns(const TileStage<Chunks>& stage, const U32& place, std::uint32_t s) {
        constexpr std::uint32_t further = step * 4 / Chunks::panel_row * Chunks::panel_bytes;
        const auto from = stage.tile().bytes().slice(value(stage.first() + place)).template as<float>();
        return value(from.template vec<int(width)>(s * further / (4 * width)));
    }

    /// Products of the lane's row with its keys.
    std::vector<f32> scores_of(const TileStage<Chunks>& k, const std::vector<U32>& places) const {
        std::vector<f32> products;  // of its columns, at_once of each row
        products.reserve(rows_ * at_once);
        for (std::uint32_t i = 0; i < rows_ * at_once; ++i) products.emplace_back(0.0f);
        const auto queries = queries_.bytes().slice(value((first_row_ * d + lane_ * width) * 4u)).template as<float>();
        for (std::uint32_t s = 0; s < steps; ++s) {
            std::vector<decltype(columns(k, places[0], s))> of_k;
            for (const U32& place : places) of_k.push_back(columns(k, place, s));
            for (std::uint32_t r = 0; r < rows_; ++r) {
                const auto of_q = value(queries.template vec<int(width)>((r * d + s * step) / width));
                for (std::uint32_t i = 0; i < at_once; ++i) {
                    f32& sum = products[r * at_once + i];
                    for (std::uint32_t e = 0; e < width; ++e) sum = fma(of_q.lane(e), of_k[i].lane(e), sum);
                }
            }
        }
        std::vector<Leaf<float>> sums;
        for (const f32& product : products) sums.push_back(value(product));
        for (std::uint32_t far = 1; far < lanes; far *= 2) sums = added_up(sums, far);
        std::vector<f32> out;
        out.reserve(at_once);
        for (const Leaf<float>& sum : sums) out.emplace_back(sum);
        return out;
    }
    /// Adds the sums of lanes `far` apart. Where there are several rows, each of the two lanes continues with half.
    static std::vector<Leaf<float>> added_up(const std::vector<Leaf<float>>& sums, std::uint32_t far) {
        std::vector<Leaf<float>> out;
        if (sums.size() == at_once) {
            for (const Leaf<float>& sum : sums) out.push_back(value(sum + shuffle_xor(sum, int(far))));
            return out;
        }
        const auto has_odd = value((lane_id() & far) != 0u);
        for (std::size_t r = 0; r < sums.size(); r += 2 * at_once)
            for (std::size_t i = r; i < r + at_once; ++i) {
                const Leaf<float>&even = sums[i], &odd = sums[i + at_once];
                out.push_back(
                    value(select(has_odd, odd, even) + shuffle_xor(value(select(has_odd, even, odd)), int(far))));
            }
        return out;
    }
    /// ... their exponentials, see OnlineSoftmax; sums become what they would be, had the offsets been the new ones.
    std::vector<Leaf<float>> weights_of(std::vector<f32> scores, const U32& first_key) {
        const auto factor = sight_.factor();
        const auto seen = sight_.of_row(row_, value(bit_cast<i32>(first_key)), own_.empty() ? nullptr : &own_[0]);
        f32 maximum = none, sum = 0;
        for (std::uint32_t i = 0; i < at_once; ++i) {
            sight_.finish(scores[i], seen, i * teams_);
            maximum = max(maximum, scores[i]);
        }
        const auto largest = value(max(offset_, maximum * factor));
        const auto offset = value(select(largest == none, 0.0f, largest));
        const auto correction = value(exp2_or_zero(offset_ - offset));
        if_(any(largest > offset_), [&] {
            for (std::uint32_t r = 0; r < rows_; ++r) {
                const auto of_row = of_lane(correction, r);
                for (std::uint32_t e = 0; e < each; ++e) sums_[r * each + e] = sums_[r * each + e] * of_row;
            }
        });
        std::vector<Leaf<float>> out;
        for (f32& score : scores) {
            out.push_back(value(exp2_or_zero(fma(score, factor, -offset))));
            sum += out.back();
        }
        total_ = fma(total_, correction, sum);
        offset_ = largest;
        return out;
    }

    const DecodeSight& sight_;
    const Queries& queries_;
    std::uint32_t rows_, teams_;  // rows of a lane; teams with keys of their own
    U32 lane_ = value(lane_id() % lanes), team_ = value(lane_id() / lanes % teams_);
    U32 first_row_ = value(lane_id() / (lanes * teams_) * rows_);
    U32 row_ = value(first_row_ + lane_ % rows_);  // whose scores it has
    std::vector<DecodeSight::Own> own_ = sight_.own_of({row_});
    f32 offset_ = none, total_ = 0;
    std::vector<f32> sums_;
};

}  // namespace ikat::stdlib
