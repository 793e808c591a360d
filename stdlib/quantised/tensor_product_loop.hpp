// SPDX-License-Identifier: Apache-2.0
// The loop of a product of quantised weights on tensor cores: slices of rows and of tokens come to shared memory,
// weights become operands in registers, and Products multiplies them: by mma.sync, or by wgmma.
//
//     class Products
//         static constexpr std::uint32_t threads, rows_of_warp;     of a block; 16 or 32
//         static constexpr PipelineReader reader;
//         explicit Products(const X& x);
//         multiply(totals, x, stage, u, operands, scales)           unit u of a stage, with all tokens: operands and,
//                                                                   if not is_grouped, scales of the lane's rows
//         end_stage(totals)                                         after both units
//         add_parts(totals, t, factors)                             if is_grouped, at the end of a slice, of 16 rows
#pragma once
#include <algorithm>
#include <vector>

#include "dsl/threads/grids.hpp"
#include "stdlib/math/activation.hpp"
#include "stdlib/quantised/tensor_formats.hpp"
#include "stdlib/quantised/tensor_slices.hpp"
#include "stdlib/tile/pipeline.hpp"
#include "stdlib/tile/tile_source.hpp"

namespace ikat::stdlib {

/// The tokens of a tile, 64 columns of each, in stages.
template <std::uint32_t tokens>
using TokenSlices = SharedTile<half, TensorProductKernel::stages, tokens, 64>;
using QuantisedMma = Mma<16, 8, 16, half, float>;

/// Operands of the rows that a lane has, and scales of a unit, or of its halves.
using OperandsOfRows = std::vector<blocks::Operands>;
using ScalesOfRows = std::vector<std::vector<blocks::F>>;

/// What is subtracted from the sums of a slice: products of minima with sums of activations.
template <class Format, std::uint32_t tokens, std::uint32_t threads>
class Minima {
    using M = QuantisedMma;
    using U = blocks::U;
    static constexpr std::uint32_t columns = 512 / blocks::TensorUnits<Format>::group_of_minima;
    using Sums = SharedTile<half, 2, tokens, columns>;

public:
    Minima(const In<half, 2>& sums, const U& first_token) : from_(sums), first_token_(first_token) {}

    void load(const U& number) const {
        const TileSource<Sums, threads, Along::Columns> source(from_, first_token_, {.bytes = 16});
        source.load(sums_[Word(value(number % 2u))], number);
    }
    /// From the totals of 16 rows, in the place of two that a lane has; of units from `end` on, nothing.
    void subtract_from(auto& totals, std::uint32_t t, const blocks::LaneRow* rows, const U& number,
                       const U& end) const {
        using Units = blocks::TensorUnits<Format>;
        const RightOperand<M, Sums, Major::K> right(sums_, 0);  // here, for its registers are not needed elsewhere
        std::vector<typename M::A> operands(columns / 16);
        std::vector<blocks::F> factors;
        for (std::uint32_t r = 0; r < 2; ++r) {
            const blocks::LaneRow& row = rows[2 * t + r];
            const std::vector<blocks::H2> minima = Units::minima(row);
            for (std::size_t k = 0; k < minima.size(); ++k)
                for (std::uint32_t half = 0; half < 2; ++half)
                    operands[k][int(r + 2 * half)] = those_before(end, minima[k], row.q());
            factors.push_back(blocks::F(value(Units::factor_of_minima(row) / -ArrangeKernel::scale_of_sums)));
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
    static blocks::H2 those_before(const U& end, const blocks::H2& minima, const U& q) {
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
    void load(const blocks::U&) const {}
};

template <class Format, std::uint32_t tokens, bool is_aligned, class Products>
class TensorProduct {
    using U = blocks::U;
    using F = blocks::F;
    using Units = blocks::TensorUnits<Format>;
    static constexpr std::uint32_t stages = TensorProductKernel::stages, threads = Products::threads,
                                   rows_of_lane = Products::rows_of_warp / 8;
    static constexpr SliceShape slice{Format::bytes * 256 / Format::weights, is_aligned, Format::bytes % 2 == 0};
    static constexpr bool has_minima = Units::group_of_minima != 0;
    using X = TokenSlices<tokens>;
    using Tile = ProductTile<slice, tokens, Products::rows_of_warp>;
    using Totals = WarpTiles<QuantisedMma, Products::rows_of_warp, tokens>;

public:
    /// The tile of the block.
    explicit TensorProduct(const TensorProductArguments& of)
        : TensorProduct(of, Tile(std::uint32_t(of.weights.size()), value(of.rows), value(of.x.extent(0)),
                                 value((of.units + 7u) / 8u), value(of.division))) {}
    /// One of those that it has by stream-k.
    TensorProduct(const TensorProductArguments& of, const Share& share)
        : TensorProduct(of, Tile(value(of.rows), value(of.x.extent(0)), share())) {
        share_ = share;
    }
    static void each_share(const TensorProductArguments& of, auto&& f) {
        Tile::each_share(value(of.rows), value(of.x.extent(0)), value((of.units + 7u) / 8u), of.division, f);
    }

    void run() {
        const TileSource<X, threads, Along::Columns> from_x(of_.x, tile_.first_token(), {.bytes = 16});
        u32 slice_of_w = tile_.first_slice();
        const auto ask = [&](const auto& stage, const auto& further) {
            const U number = value(tile_.first_slice() * 4u + further), of_w = value(number / 4u);
            from_x.load(x_[stage], number);
            if_((number % 4u == 0u) & (of_w < tile_.end_slice()), [&] {
                copies_.load(weights_, of_w);
                minima_.load(of_w);
            });
        };
        static_assert(stages == 4, "a stage has a quarter of a slice, the one of its number");
        const auto work = [&](const auto& stage) {
            work_on(U(value(word(stage))), x_[stage], value(slice_of_w));
            if_(stage == 3u, [&] { slice_of_w = slice_of_w + 1u; });
        };
        pipeline<stages, Products::reader>(value((tile_.end_slice() - tile_.first_slice()) * 4u), ask, work);
        launch_next();  // which adds up parts
        store();
    }

private:
    using Less = std::conditional_t<has_minima, Minima<Format, tokens, threads>, NothingToSubtract>;

    TensorProduct(const TensorProductArguments& of, const Tile& tile)
        : of_(of),
          tile_(tile),
          copies_(rows_of_blocks(of.weights, of.rows, is_aligned, tile_.first_row())),
          minima_([&] {
              if constexpr (has_minima)
                  return Less(*of.sums, tile_.first_token());
              else
                  return Less();
          }()) {}

    void store() {
        const auto scale = [&](const auto& is_there, const U& token) {
            return F(value(of_.scales.load_if(is_there, token, 0.0f)));
        };
        if (share_) return tile_.store_share(share_, totals_, scale, of_.store, *of_.shares);
        if (of_.weights.size() == 1) return tile_.store(totals_, scale, of_.store);
        if constexpr (Products::rows_of_warp == 32)
            tile_.store_pairs(totals_, scale,
                              [&](const auto& condition, const U& token, const U& row, const F& gate, const F& up) {
                                  of_.store(condition, token, row, value(silu(gate) * up));
                              });
    }
    /// Two units of a slice.
    void work_on(const U& stage, const auto& x, const U& number) {
        const std::vector<blocks::LaneRow> rows = tile_.rows_of(weights_, copies_, number);
        if constexpr (Units::is_grouped)
            if_(stage == 0u, [&] {
                for (std::uint32_t r = 0; r < rows_of_lane; ++r) scales_[r] = Units::scales(rows[r]);
            });
        std::vector<typename Units::Words> words;
        std::vector<U> scales;
        for (std::uint32_t r = 0; r < rows_of_lane; ++r) {
            words.push_back(Units::words(rows[r], stage));
            if constexpr (Units::is_grouped)
                scales.push_back(U(value(shuffle_idx(scales_[r], (lane_id() & ~3u) | stage))));
        }
        for (std::uint32_t u = 0; u < 2; ++u) {
            OperandsOfRows operands;
            ScalesOfRows scales_of_rows;
            for (std::uint32_t r = 0; r < rows_of_lane; ++r) {
                if constexpr (Units::is_grouped) {
                    operands.push_back(Units::operands(words[r], u, scales_of_halves(scales[r], u)));
                } else {
                    const blocks::ScaledUnit unit = Units::unit(words[r], rows[r], stage, u);
                    operands.push_back(unit.operands);
                    scales_of_rows.push_back(limited(unit.scales, stage, u, number));
                }
            }
            products_.multiply(totals_, x, stage, u, operands, scales_of_rows);
        }
        products_.end_stage(totals_);
        if constexpr (Units::is_grouped || has_minima) if_(stage == 3u, [&] { end_slice(rows, number); });
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
    void end_slice(const std::vector<blocks::LaneRow>& rows, const U& number) {
        for (std::uint32_t t = 0; t < rows_of_lane / 2; ++t) {
            if constexpr (Units::is_grouped) {
                const F factors[2] = {Units::factor(rows[2 * t]), Units::factor(rows[2 * t + 1])};
                products_.add_parts(totals_, t, factors);
            }
            if constexpr (has_minima)
                minima_.subtract_from(totals_, t, rows.data(), number, value(of_.units - number * 8u));
        }
    }

    const TensorProductArguments& of_;
    Share share_{};  // by stream-k
    Tile tile_;
    X x_;
    Slices<slice, TensorProductKernel::rows> weights_;
    RowCopies<slice, TensorProductKernel::rows, threads> copies_;
    Less minima_;
    Products products_{x_};
    Totals totals_{0.0f};
    Regs<u32, rows_of_lane> scales_{0u};  // see TensorUnits::scales()
};

/// Records the body of a kernel for a number of tokens: Products<Format> multiplies.
template <template <class> class Products, std::uint32_t tokens>
void record_loop(const TensorProductKernel& is, const TensorProductArguments& of) {
    const auto of_format = [&]<class Format>() {
        const auto by = [&]<bool is_aligned> {
            using Product = TensorProduct<Format, tokens, is_aligned, Products<Format>>;
            if (of.shares == nullptr) return Product(of).run();
            Product::each_share(of, [&](const Share& share) { Product(of, share).run(); });
        };
        if (is.w_is_aligned)
            by.template operator()<true>();
        else
            by.template operator()<false>();
    };
    switch (is.format) {
#define IKAT_ROW(format, name, weights, bytes) \
    case runtime::Quantised::format: return of_format.template operator()<blocks::format>();
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
}

}  // namespace ikat::stdlib
