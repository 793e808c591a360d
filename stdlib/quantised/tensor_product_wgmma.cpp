// SPDX-License-Identifier: Apache-2.0
// By wgmma, with weights from registers: while a unit is multiplied, the next one's weights become operands. At the end
// of a stage no product is in flight, since around a loop registers may be exchanged. The other warpgroup multiplies
// meanwhile.
#include "stdlib/quantised/tensor_product_loop.hpp"
#include "stdlib/tile/warpgroup_tiles.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::TensorUnits, blocks::U;

/// Two warpgroups of 64 rows, 16 of each warp.
template <class Format>
class WarpgroupProducts {
    static constexpr bool is_grouped = TensorUnits<Format>::is_grouped;
    static constexpr std::uint32_t tokens = 128;
    using X = TokenSlices<tokens>;
    using W = Wgmma<64, int(tokens), 16, half, float>;
    using Right = WarpgroupOperand<W, X, Major::K>;

public:
    static constexpr std::uint32_t threads = 256, rows_of_warp = 16;
    static constexpr PipelineReader reader = PipelineReader::wgmma;

    explicit WarpgroupProducts(const X& x) : right_(x, 0u) {
        sums_ = typename W::C(0.0f);
        for (auto& of_unit : operands_)
            for (auto& of_half : of_unit) of_half = typename W::A(blocks::two(0.0f));
    }

    void multiply(auto& totals, const auto& x, const U& stage, std::uint32_t u, const OperandsOfRows& of_rows,
                  const ScalesOfRows& scales) {
        const auto of_x = right_.of(x);
        for (std::uint32_t r = 0; r < 2; ++r)
            for (std::uint32_t i = 0; i < 4; ++i) operands_[u][i / 2][int(r + 2 * (i % 2))] = of_rows[r][i];
        // Sums that are overwritten are so by a predicate: they stay where they are.
        const auto begin = [&](std::uint32_t half, const auto& adds) {
            wgmma(sums_, operands_[u][half], Right::further_on(of_x, u * 2 + half), adds);
        };
        const auto yes = value(pred(true)), no = value(pred(false));
        if constexpr (is_grouped) {
            wgmma_fence();
            begin(0, u == 0 ? value(stage != 0u) : yes);
            begin(1, yes);
            wgmma_commit();
        } else if (scales[0].size() == 1) {
            end_stage(totals);
            wgmma_fence();
            begin(0, no);
            begin(1, yes);
            wgmma_commit();
            scales_ = {scales[0][0], scales[1][0]};
        } else {
            for (std::uint32_t half = 0; half < 2; ++half) {
                end_stage(totals);
                wgmma_fence();
                begin(half, no);
                wgmma_commit();
                scales_ = {scales[0][half], scales[1][half]};
            }
        }
    }
    /// Waits, and adds what is not grouped.
    void end_stage(auto& totals) {
        wgmma_wait<0>();
        if (scales_.empty()) return;
        add(totals, scales_.data());
        scales_.clear();
    }
    void add_parts(auto& totals, std::uint32_t, const F (&factors)[2]) { add(totals, factors); }

private:
    void add(auto& totals, const F* factors) {
        for (std::uint32_t j = 0; j < tokens / 8; ++j)
            for (int e = 0; e < 4; ++e) totals(0, j)[e] = fma(factors[e / 2], sums_[int(4 * j) + e], totals(0, j)[e]);
    }

    Right right_;
    typename W::C sums_;            // of the slice, or of what is in flight
    typename W::A operands_[2][2];  // of the halves of each unit
    std::vector<F> scales_{};       // of two rows: what the sums in flight are to be multiplied with
};

}  // namespace

void record_warpgroup_product(const TensorProductKernel& is, const TensorProductArguments& of) {
    record_loop<WarpgroupProducts, 128>(is, of);
}

}  // namespace ikat::stdlib
