// SPDX-License-Identifier: Apache-2.0
// By mma.sync.
#include "stdlib/quantised/tensor_product_loop.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::TensorUnits, blocks::U;
using M = QuantisedMma;

/// Each warp has 32 rows, in two tiles of 16.
template <class Format, std::uint32_t tokens>
class WarpProducts {
    static constexpr bool is_grouped = TensorUnits<Format>::is_grouped;
    using X = TokenSlices<tokens>;

public:
    static constexpr std::uint32_t threads = 128, rows_of_warp = 32;
    static constexpr PipelineReader reader = PipelineReader::threads;

    explicit WarpProducts(const X& x) : right_(x, 0) {}

    void multiply(auto& totals, const auto& x, const U&, std::uint32_t u, const OperandsOfRows& of_rows,
                  const ScalesOfRows& scales) {
        typename M::A operands[2][2];  // of 16 rows, and of 16 further: the first half of the unit, and the second
        for (std::uint32_t r = 0; r < 4; ++r)
            for (std::uint32_t i = 0; i < 4; ++i) operands[r / 2][i / 2][int(r % 2 + 2 * (i % 2))] = of_rows[r][i];
        for (std::uint32_t j = 0; j < tokens / 8; j += 2) {
            typename M::B of_x[2][2];
            for (std::uint32_t half = 0; half < 2; ++half) right_.fragments(x, j / 2, u * 2 + half, of_x[half], 2);
            for (std::uint32_t c = 0; c < 2; ++c)
                for (std::uint32_t t = 0; t < 2; ++t) {
                    const typename M::B of_both[2] = {of_x[0][c], of_x[1][c]};
                    if constexpr (is_grouped)
                        for (std::uint32_t half = 0; half < 2; ++half)
                            parts_(t, j + c) = mma(operands[t][half], of_both[half], parts_(t, j + c));
                    else
                        add_scaled(totals(t, j + c), operands[t], of_both, &scales[2 * t]);
                }
        }
    }
    void add_parts(auto& totals, std::uint32_t t, const F (&factors)[2]) {
        for (std::uint32_t j = 0; j < tokens / 8; ++j)
            for (int e = 0; e < 4; ++e) {
                totals(t, j)[e] = fma(factors[e / 2], parts_(t, j)[e], totals(t, j)[e]);
                parts_(t, j)[e] = 0.0f;
            }
    }
    void end_stage(auto&) {}

private:
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

    RightOperand<M, X, Major::K> right_;
    std::conditional_t<is_grouped, WarpTiles<M, 32, tokens>, WarpTiles<M, 16, 8>> parts_{0.0f};  // of the slice
};

template <class Format>
using Of16 = WarpProducts<Format, 16>;
template <class Format>
using Of32 = WarpProducts<Format, 32>;
template <class Format>
using Of64 = WarpProducts<Format, 64>;

}  // namespace

void record_tensor_product(const TensorProductKernel& is, const TensorProductArguments& of) {
    require_linear_blocks();
    require_threads(is.threads());
    if (is.tokens == 128) return record_warpgroup_product(is, of);
    if (is.tokens == 16) return record_loop<Of16, 16>(is, of);
    if (is.tokens == 32) return record_loop<Of32, 32>(is, of);
    record_loop<Of64, 64>(is, of);
}

std::uint32_t max_tokens_of_stream(runtime::Quantised format) {
    switch (format) {
#define IKAT_ROW(format, name, weights, bytes)             \
    case runtime::Quantised::format: {                     \
        using Units = TensorUnits<blocks::format>;         \
        if constexpr (Units::group_of_minima == 0)         \
            return 64;                                     \
        else if constexpr (Units::is_grouped)              \
            return Units::group_of_minima == 32 ? 64 : 32; \
        else                                               \
            return 32;                                     \
    }
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
    return 32;
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
