// SPDX-License-Identifier: Apache-2.0
// softmax(scores) V of rows whose scores are not all there at once: they come in tiles, and when a larger score comes,
// what has been summed so far is scaled down.
//
//     OnlineSoftmax<32> softmax;                           of a warp's 32 rows
//     for each tile:
//         scores = ...;                                    WarpTiles: 32 x 64; -infinity where there is no score
//         softmax.take(scores, factor, accumulators);      scores become 2^(factor * score - offset), and
//         accumulators += scores * V;                      accumulators are scaled before
//     softmax.finish(accumulators);                        divides by the sums of all exponentials
//
// A lane has numbers of two rows in each fragment of 16; four lanes share them. The offset of a row is its largest
// factor * score so far. Rows without any score get zeros.
#pragma once
#include <limits>

#include "dsl/threads/warp.hpp"
#include "stdlib/tile/lane_rows.hpp"

namespace ikat::stdlib {

using approx::exp2_or_zero;

/// The rows of a warp, 16 or a multiple.
template <std::uint32_t m>
class OnlineSoftmax {
    static_assert(m % 16 == 0, "OnlineSoftmax: 16 rows, or a multiple");
    static constexpr float none = -std::numeric_limits<float>::infinity();

public:
    static constexpr std::uint32_t rows = m / 8;  // of a lane: row 2 i + h is in fragments of rows 16 i, in half h

    /// What a tile of scores changes.
    class Step {
        friend OnlineSoftmax;
        Regs<f32, rows> correction, offset;
        pred is_larger = false;
    };

    /// Before all scores: one without a value, `exponent` of a lane's row; -infinity is none.
    void begin_with(std::uint32_t r, const Incoming<float>& exponent) {
        const auto of_sink = value(Leaf<float>(exponent.value()));
        offset_[r] = of_sink;
        total_[r] = select((lane_id() % 4u == 0u) & !(of_sink == none), 1.0f, 0.0f);
    }

    /// The next scores, of which `factor` > 0 times each is the exponent of 2. They become the exponentials, and
    /// accumulators what they would be, had the offset been the new one from the beginning.
    template <class Scores, class Accumulators>
    void take(Scores& scores, const Incoming<float>& factor, Accumulators& accumulators) {
        const auto scale = value(Leaf<float>(factor.value()));
        Step step;
        begin(step, scores, scale);
        rescale(step, accumulators);
        weigh(step, scores, scale);
    }

    /// The same in steps, where the accumulators are not there yet: begin() and weigh(), and then rescale().
    template <class Scores>
    void begin(Step& step, const Scores& scores, const Leaf<float>& scale) {
        static_assert(Scores::m == m, "OnlineSoftmax: scores have its rows");
        for (std::uint32_t r = 0; r < rows; ++r) {
            f32 maximum = none;
            each_of_row(scores, r, [&](const auto& score, std::uint32_t) { maximum = max(maximum, score); });
            const auto largest =
                value(max(offset_[r], over_row(value(maximum), [](auto&& a, auto&& b) { return max(a, b); }) * scale));
            step.is_larger = step.is_larger | (largest > offset_[r]);
            step.offset[r] = select(largest == none, 0.0f, largest);
            step.correction[r] = exp2_or_zero(offset_[r] - step.offset[r]);
            offset_[r] = largest;
        }
    }
    /// Scores become the exponentials.
    template <class Scores>
    void weigh(const Step& step, Scores& scores, const Leaf<float>& scale) {
        for (std::uint32_t r = 0; r < rows; ++r) {
            f32 sum = 0;
            each_of_row(scores, r, [&](auto& score, std::uint32_t) {
                score = exp2_or_zero(fma(score, scale, -step.offset[r]));
                sum += score;
            });
            total_[r] = fma(total_[r], step.correction[r], sum);
        }
    }
    /// 0. It is computed from all exponentials so far, so that what needs it comes after them.
    auto zero_after_weights() const {
        pred is_negative = false;
        for (std::uint32_t r = 0; r < rows; ++r) is_negative = is_negative | (total_[r] < 0.0f);
        return value(select(is_negative, 1u, 0u));
    }
    template <class Accumulators>
    void rescale(const Step& step, Accumulators& accumulators) {
        static_assert(Accumulators::m == m, "OnlineSoftmax: accumulators have its rows");
        // All corrections are 1 in most tiles.
        if_(any(step.is_larger), [&] {
            for (std::uint32_t r = 0; r < rows; ++r)
                each_of_row(accumulators, r, [&](auto& v, std::uint32_t) { v = v * step.correction[r]; });
        });
    }

    /// accumulators / the sum of all exponentials; 0 in rows without scores. take() must not follow.
    template <class Accumulators>
    void finish(Accumulators& accumulators) {
        add_up();
        for (std::uint32_t r = 0; r < rows; ++r) {
            const auto inverse = value(select(total_[r] == 0.0f, 0.0f, approx::rcp(total_[r])));
            each_of_row(accumulators, r, [&](auto& v, std::uint32_t) { v = v * inverse; });
        }
    }
    /// In place of finish(), where accumulators of several warps or blocks become one: total() is then that of all four
    /// lanes of a row. take() must not follow.
    void add_up() {
        for (std::uint32_t r = 0; r < rows; ++r)
            total_[r] = over_row(value(total_[r]), [](auto&& a, auto&& b) { return a + b; });
    }
    /// Of a lane's row: the largest factor * score, -infinity without scores; the sum of 2^(factor * score - that).
    auto offset(std::uint32_t r) const { return value(offset_[r]); }
    auto total(std::uint32_t r) const { return value(total_[r]); }
    /// After finish(): the logarithm to base 2 of the sum of 2^(factor * score) of a lane's row; -infinity of none.
    auto log2_sum(std::uint32_t r) const { return value(offset_[r] + approx::log2(total_[r])); }

private:
    Regs<f32, rows> offset_{none}, total_{0.0f};
};

}  // namespace ikat::stdlib
