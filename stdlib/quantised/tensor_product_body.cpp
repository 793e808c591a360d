// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "dsl/threads/grids.hpp"
#include "stdlib/math/activation.hpp"
#include "stdlib/quantised/tensor_formats.hpp"
#include "stdlib/quantised/tensor_slices.hpp"
#include "stdlib/tile/pipeline.hpp"
#include "stdlib/tile/tile_source.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::H2, blocks::LaneRow, blocks::Memory, blocks::Operands, blocks::TensorUnits, blocks::U;
using M = Mma<16, 8, 16, half, float>;
constexpr std::uint32_t tile_rows = TensorProductKernel::rows, threads = TensorProductKernel::threads;

/// What is subtracted from the sums of a slice: products of minima with sums of activations.
template <class Format, std::uint32_t tokens>
class Minima {
    static constexpr std::uint32_t columns = 512 / TensorUnits<Format>::group_of_minima;
    using Sums = SharedTile<half, 2, tokens, columns>;

public:
    Minima(const In<half, 2>& sums, const U& first_token) : from_(sums), first_token_(first_token) {}

    void load(const U& number) const {
        const TileSource<Sums, threads, Along::Columns> source(from_, first_token_, {.bytes = 16});
        source.load(sums_[Word(value(number % 2u))], number);
    }
    /// From the totals of 16 rows, in the place of two that a lane has; of units from `end` on, nothing.
    void subtract_from(auto& totals, std::uint32_t t, const LaneRow* rows, const U& number, const U& end) const {
        const RightOperand<M, Sums, Major::K> right(sums_, 0);  // here, for its registers are not needed elsewhere
        std::vector<typename M::A> operands(columns / 16);
        std::vector<F> factors;
        for (std::uint32_t r = 0; r < 2; ++r) {
            const LaneRow& row = rows[2 * t + r];
            const std::vector<H2> minima = TensorUnits<Format>::minima(row);
            for (std::size_t k = 0; k < minima.size(); ++k)
                for (std::uint32_t half = 0; half < 2; ++half)
                    operands[k][int(r + 2 * half)] = those_before(end, minima[k], row.q());
            factors.push_back(F(value(TensorUnits<Format>::factor_of_minima(row) / -ArrangeKernel::scale_of_sums)));
        }
        for (std::uint32_t j = 0; j < tokens / 8; j += 2) {
            typename M::B of_x[columns / 16][2];
            for (std::uint32_t k = 0; k < columns / 16; ++k)
                right.fragments(sums_[Word(value(number % 2u))], j / 2, k, of_x[k], 2);
            for (std::uint32_t c = 0; c < 2; ++c) {
                typename M::C sum(0.0f);
                for (std::uint32_t k = 0; k < columns / 16; ++k) sum = mma(operands[k], of_x[k][c], sum);
                for (int e = 0; e < 4; ++e)
                    totals(t, j + c)[e] = fma(factors[std::size_t(e) / 2], sum[e], totals(t, j + c)[e]);
            }
        }
    }

private:
    /// Units end in a slice where blocks are of 32 weights: what is further is not of the row.
    static H2 those_before(const U& end, const H2& minima, const U& q) {
        if (Format::weights != 32) return minima;
        const auto bits = [&](std::uint32_t unit, std::uint32_t mask) {
            return U(value(select(q * 2u + unit < end, mask, 0u)));
        };
        return value(bit_cast<f16x2>(bit_cast<u32>(minima) & (bits(0, 0xffffu) | bits(1, 0xffff0000u))));
    }

    const In<half, 2>& from_;
    const U& first_token_;
    Sums sums_;
};
struct NothingToSubtract {
    void load(const U&) const {}
};

template <class Format, std::uint32_t tokens, bool is_aligned>
class TensorProduct {
    using Units = TensorUnits<Format>;
    static constexpr std::uint32_t stages = TensorProductKernel::stages;
    static constexpr SliceShape slice{Format::bytes * 256 / Format::weights, is_aligned, Format::bytes % 2 == 0};
    static constexpr bool has_minima = Units::group_of_minima != 0;
    using X = SharedTile<half, stages, tokens, 64>;
    using Totals = WarpTiles<M, 32, tokens>;

public:
    explicit TensorProduct(const TensorProductArguments& of)
        : of_(of),
          tile_(std::uint32_t(of.weights.size()), value(of.rows), value(of.x.extent(0)), value((of.units + 7u) / 8u),
                value(of.slices_of_part)),
          copies_(rows_of_blocks(of.weights, of.rows, is_aligned, tile_.first_row())),
          minima_([&] {
              if constexpr (has_minima)
                  return Less(*of.sums, tile_.first_token());
              else
                  return Less();
          }()) {}

    void run() {
        const TileSource<X, threads, Along::Columns> from_x(of_.x, tile_.first_token(), {.bytes = 16});
        u32 slice_of_w = tile_.first_slice();
        pipeline<stages>(
            value((tile_.end_slice() - tile_.first_slice()) * 4u),
            [&](const auto& stage, const auto& further) {
                const U number = value(tile_.first_slice() * 4u + further), of_w = value(number / 4u);
                from_x.load(x_[stage], number);
                if_((number % 4u == 0u) & (of_w < tile_.end_slice()), [&] {
                    copies_.load(weights_, of_w);
                    minima_.load(of_w);
                });
            },
            [&](const auto& stage) {
                work_on(U(value(word(stage))), x_[stage], value(slice_of_w));
                if_(stage == 3u, [&] { slice_of_w = slice_of_w + 1u; });
            });
        launch_next();  // which adds up parts
        const auto scale = [&](const auto& is_there, const U& token) {
            return F(value(of_.scales.load_if(is_there, token, 0.0f)));
        };
        if (of_.weights.size() == 1) return tile_.store(totals_, scale, of_.store);
        tile_.store_pairs(totals_, scale,
                          [&](const auto& condition, const U& token, const U& row, const F& gate, const F& up) {
                              of_.store(condition, token, row, value(silu(gate) * up));
                          });
    }

private:
    using Less = std::conditional_t<has_minima, Minima<Format, tokens>, NothingToSubtract>;

    /// Two units of a slice.
    void work_on(const U& stage, const auto& x, const U& number) {
        const std::vector<LaneRow> rows = tile_.rows_of(weights_, copies_, number);
        if constexpr (Units::is_grouped)
            if_(stage == 0u, [&] {
                for (std::uint32_t r = 0; r < 4; ++r) scales_[r] = Units::scales(rows[r]);
            });
        std::vector<typename Units::Words> words;
        std::vector<U> scales;
        for (std::uint32_t r = 0; r < 4; ++r) {
            words.push_back(Units::words(rows[r], stage));
            if constexpr (Units::is_grouped)
                scales.push_back(U(value(shuffle_idx(scales_[r], (lane_id() & ~3u) | stage))));
        }
        for (std::uint32_t u = 0; u < 2; ++u) {
            typename M::A operands[2][2];  // of 16 rows, and of 16 further: the first half of the unit, and the second
            std::vector<std::vector<F>> scales_of_rows;
            for (std::uint32_t r = 0; r < 4; ++r) {
                const auto set = [&](const Operands& of_row) {
                    for (std::uint32_t i = 0; i < 4; ++i) operands[r / 2][i / 2][int(r % 2 + 2 * (i % 2))] = of_row[i];
                };
                if constexpr (Units::is_grouped) {
                    set(Units::operands(words[r], u, scales_of_halves(scales[r], u)));
                } else {
                    const blocks::ScaledUnit unit = Units::unit(words[r], rows[r], stage, u);
                    set(unit.operands);
                    scales_of_rows.push_back(limited(unit.scales, stage, u, number));
                }
            }
            multiply(x, u, [&](std::uint32_t t, std::uint32_t j, const auto& of_x) {
                if constexpr (Units::is_grouped)
                    for (std::uint32_t half = 0; half < 2; ++half)
                        parts_(t, j) = mma(operands[t][half], of_x[half], parts_(t, j));
                else
                    add_scaled(totals_(t, j), operands[t], of_x, &scales_of_rows[2 * t]);
            });
        }
        if constexpr (Units::is_grouped || has_minima) if_(stage == 3u, [&] { end_slice(rows, number); });
    }
    /// work(t, j, operands of the halves) for 16 t rows and 8 j tokens on.
    void multiply(const auto& x, std::uint32_t u, auto&& work) {
        for (std::uint32_t j = 0; j < tokens / 8; j += 2) {
            typename M::B of_x[2][2];
            for (std::uint32_t half = 0; half < 2; ++half) right_.fragments(x, j / 2, u * 2 + half, of_x[half], 2);
            for (std::uint32_t c = 0; c < 2; ++c)
                for (std::uint32_t t = 0; t < 2; ++t) {
                    const typename M::B of_both[2] = {of_x[0][c], of_x[1][c]};
                    work(t, j + c, of_both);
                }
        }
    }
    static std::array<blocks::GroupScale, 2> scales_of_halves(const U& bytes, std::uint32_t u) {
        const auto of = [&](std::uint32_t half) {
            return blocks::GroupScale(bytes, Units::group == 16 ? u * 2 + half : u, Units::offset_of_scales);
        };
        return {of(0), of(1)};
    }
    /// 0 where the row has ended: what is there is not of it.
    std::vector<F> limited(const std::vector<F>& scales, const U& stage, std::uint32_t u, const U& number) const {
        if (Format::weights != 32) return scales;
        std::vector<F> out;
        const auto is_there = value(number * 8u + stage * 2u + u < of_.units);
        for (const F& scale : scales) out.push_back(F(value(select(is_there, scale, 0.0f))));
        return out;
    }
    /// To the totals of two rows, the products of a unit with their scales, of one or of each half.
    static void add_scaled(auto& totals, const typename M::A (&operands)[2], const typename M::B (&of_x)[2],
                           const std::vector<F>* scales) {
        const bool are_two = scales[0].size() == 2;
        typename M::C sum(0.0f);
        for (std::uint32_t half = 0; half < 2; ++half) {
            sum = mma(operands[half], of_x[half], sum);
            if (half == 0 && !are_two) continue;
            for (int e = 0; e < 4; ++e) totals[e] = fma(scales[e / 2][are_two ? half : 0], sum[e], totals[e]);
            if (half == 0) sum = typename M::C(0.0f);
        }
    }
    void end_slice(const std::vector<LaneRow>& rows, const U& number) {
        for (std::uint32_t t = 0; t < 2; ++t) {
            if constexpr (Units::is_grouped) {
                const F factors[2] = {Units::factor(rows[2 * t]), Units::factor(rows[2 * t + 1])};
                for (std::uint32_t j = 0; j < tokens / 8; ++j)
                    for (int e = 0; e < 4; ++e) {
                        totals_(t, j)[e] = fma(factors[e / 2], parts_(t, j)[e], totals_(t, j)[e]);
                        parts_(t, j)[e] = 0.0f;
                    }
            }
            if constexpr (has_minima)
                minima_.subtract_from(totals_, t, rows.data(), number, value(of_.units - number * 8u));
        }
    }

    const TensorProductArguments& of_;
    ProductTile<slice, tokens> tile_;
    X x_;
    Slices<slice, tile_rows> weights_;
    RowCopies<slice, tile_rows> copies_;
    Less minima_;
    RightOperand<M, X, Major::K> right_{x_, 0};
    Totals totals_{0.0f};
    std::conditional_t<Units::is_grouped, Totals, WarpTiles<M, 16, 8>> parts_{0.0f};  // of the slice
    Regs<u32, 4> scales_{0u};                                                         // see TensorUnits::scales()
};

template <class Format, std::uint32_t tokens>
void record(const TensorProductKernel& is, const TensorProductArguments& of) {
    if (is.w_is_aligned)
        TensorProduct<Format, tokens, true>(of).run();
    else
        TensorProduct<Format, tokens, false>(of).run();
}
template <class Format>
void record(const TensorProductKernel& is, const TensorProductArguments& of) {
    if (is.tokens == 16) return record<Format, 16>(is, of);
    if (is.tokens == 32) return record<Format, 32>(is, of);
    record<Format, 64>(is, of);
}

}  // namespace

void record_tensor_product(const TensorProductKernel& is, const TensorProductArguments& of) {
    require_linear_blocks();
    require_threads(threads);
    switch (is.format) {
#define IKAT_ROW(format, name, weights, bytes) \
    case runtime::Quantised::format: return record<blocks::format>(is, of);
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
}

std::uint32_t sums_of_slice(runtime::Quantised format) {
    switch (format) {
#define IKAT_ROW(format, name, weights, bytes)                                        \
    case runtime::Quantised::format: {                                                \
        constexpr std::uint32_t group = TensorUnits<blocks::format>::group_of_minima; \
        return group == 0 ? 0 : 512 / std::max(group, 1u);                            \
    }
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
    return 0;
}

}  // namespace ikat::stdlib
