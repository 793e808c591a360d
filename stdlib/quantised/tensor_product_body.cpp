// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <vector>

#include "stdlib/quantised/tensor_product.hpp"
#include "stdlib/tile/pipeline.hpp"
#include "stdlib/tile/tile_source.hpp"
#include "stdlib/tile/warp_tiles.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::U;
using M = Mma<16, 8, 16, half, float>;
using Memory = Indexable<std::uint32_t, Direction::ReadWrite>;
constexpr std::uint32_t tile_rows = TensorProductKernel::rows, threads = TensorProductKernel::threads;

/// The slices of a block's rows in shared memory: one is multiplied, one is on its way. A row begins as many bytes
/// after a multiple of 16 as in global memory.
template <std::uint32_t row_bytes>
class Slices {
public:
    static constexpr std::uint32_t all = tile_rows * row_bytes + 16;  // words() may read one after the last row

    Slices() {
        for (std::uint32_t i = 0; i < 2; ++i)
            memory_.vec<4>(value(u32((i * all + tile_rows * row_bytes) / 16))) = Regs<u32, 4>(0u).lanes();
    }
    const Memory& memory() const { return memory_; }
    static U place(const U& slice, const U& row) { return value(slice % 2u * all + row * row_bytes); }

private:
    Memory memory_ = Shared<std::uint32_t, 2 * all / 4>().flat();
};

/// A stage, see blocks.hpp, of what a lane has of 32 integers: word q in place of the first four words, and word q + 4
/// in place of the others, q = lane % 4.
struct LaneStage {
    const Memory& memory;
    const U& q;
    bool is_aligned;

    template <int N, std::uint32_t alignment = 2>
    std::array<U, N> words(const U& at, std::uint32_t skip = 0) const {
        const auto read = [&]<std::size_t... k>(auto&& word, std::index_sequence<k...>) {
            return std::array<U, sizeof...(k)>{U(value(word(std::uint32_t(k))))...};
        };
        constexpr std::make_index_sequence<N> all{};
        const U first = value(at / 4u);
        const auto word = [&](std::uint32_t k) { return U(value(memory[first + (skip + k)])); };
        if (is_aligned && alignment % 4 == 0) return read(word, all);
        const auto w = read(word, std::make_index_sequence<N + 1>{});
        const U shift = value(at % 4u * 8u);
        return read([&](std::uint32_t k) { return funnel_right(w[k], w[k + 1], shift); }, all);
    }
    template <int N, std::uint32_t alignment = 2>
    std::array<U, N> integers(const U& at, std::uint32_t skip = 0) const {
        const U mine = value(at + q * 4u);
        const auto word = [&](std::uint32_t k) { return words<1, alignment>(mine, skip + k)[0]; };
        if constexpr (N == 8) {
            const U low = word(0), high = word(4);
            return {low, low, low, low, high, high, high, high};
        } else if constexpr (N == 4) {
            const U all = word(0);
            return {all, all, all, all};
        } else {  // a word of fifth bits, and four of the others
            const U bits = value(words<1, alignment>(at, skip)[0] >> (q * 4u)), all = word(1);
            return {bits, all, all, all, all};
        }
    }
};

/// Bytes 2 h and 2 h + 1 of a word, less `offset`, as f16: 0x6400 + byte are the bits of 1024 + byte.
Leaf<half2> integers_of(const U& word, std::uint32_t h, std::uint32_t offset) {
    const U both = value(byte_permute(word, 0x64646464u, h == 0 ? 0x4140u : 0x4342u));
    const f32 less(1024.0f + float(offset));
    return value(bit_cast<f16x2>(both) - pack<f16x2>(less, less));
}

template <class Format, std::uint32_t tokens, bool is_aligned>
class TensorProduct {
    static constexpr std::uint32_t stages = TensorProductKernel::stages;
    static constexpr std::uint32_t slice_bytes = Format::bytes * 256 / Format::weights;
    static constexpr std::uint32_t pieces = (slice_bytes + (is_aligned ? 0 : 30)) / 16, row_bytes = (pieces | 1) * 16;
    using X = SharedTile<half, stages, tokens, 64>;
    using Sums = SharedTile<float, stages, tokens, 4>;
    using Totals = WarpTiles<M, 32, tokens>;

public:
    explicit TensorProduct(const TensorProductArguments& of)
        : of_(of),
          down_(value((of.rows + (tile_rows - 1)) / tile_rows)),
          first_row_(value(block_id().x % down_ * tile_rows)),
          first_token_(value(block_id().x / down_ * tokens)) {}

    void run() {
        const TileSource<X, threads, Along::Columns> from_x(of_.x, first_token_, {.bytes = 16});
        const TileSource<Sums, threads, Along::Columns> from_sums(of_.sums, first_token_, {.bytes = 16});
        const U slices = value((of_.units + 7u) / 8u);
        u32 slice_of_w = 0;
        pipeline<stages>(
            value(slices * 4u),
            [&](const auto& stage, const auto& slice) {
                from_x.load(x_[stage], slice);
                from_sums.load(sums_[stage], slice);
                if_(slice % 4u == 0u, [&] { load_weights(value(slice / 4u), slices); });
            },
            [&](const auto& stage) {
                for (std::uint32_t u = 0; u < 2; ++u) multiply(stage, value(slice_of_w), u);
                if_(stage == 3u, [&] { slice_of_w = slice_of_w + 1u; });
            });
        store();
    }

private:
    /// The byte where a row's slice begins.
    U begin_of(const U& row, const U& slice) const {
        const U last = value(of_.rows - 1u);
        return value((is_aligned ? U(value(u32(0u))) : U(value(of_.w_begin))) + min(row, last) * of_.w_pitch +
                     slice * slice_bytes);
    }
    /// Whole pieces of 16 bytes, as far as there are any.
    void load_weights(const U& slice, const U& slices) const {
        const auto bytes = weights_.memory().template as<std::uint8_t>();
        for (auto i : range(thread_id().x, value(select(slice < slices, tile_rows * pieces, 0u)), threads)) {
            const U row = value(i / pieces), piece = value(i % pieces * 16u);
            const U from = value(begin_of(value(first_row_ + row), slice) / 16u * 16u + piece);
            const U to = value(weights_.place(slice, row) + piece);
            if_(from + 16u <= of_.w_bytes, [&] { copy_async<16>(bytes[to], of_.w[from]); }).else_([&] {
                for (std::uint32_t e = 0; e < 16; ++e)
                    bytes[to + e] = of_.w.load_if(from + e < of_.w_bytes, from + e, std::uint8_t{});
            });
        }
    }

    /// Unit `u` of 32 weights of a row, and 0 where the row has ended.
    blocks::Unit unit_of_row(const U& slice, const U& unit, std::uint32_t further) const {
        const U row = value(row_ + further);
        const U shift = is_aligned ? U(value(u32(0u))) : U(value(begin_of(value(first_row_ + row), slice) % 16u));
        const U at = value(weights_.place(slice, row) + shift + bytes_before<Format>(unit));
        blocks::Unit out =
            Format::unit(LaneStage{weights_.memory(), q_, is_aligned}, at, value(unit % units_of<Format>));
        const auto is_there = value(slice * 8u + unit < of_.units);
        const auto limit = [&](std::optional<F>& factor) {
            if (factor) factor.emplace(value(select(is_there, *factor, 0.0f)));
        };
        limit(out.scale_of_second_half), limit(out.minimum), limit(out.minimum_of_second_half);
        std::optional<F> scale(out.scale);
        limit(scale);
        return {.q = out.q,
                .offset = out.offset,
                .scale = *scale,
                .scale_of_second_half = out.scale_of_second_half,
                .minimum = out.minimum,
                .minimum_of_second_half = out.minimum_of_second_half};
    }
    /// Unit number `u` of a stage, of two, with all tokens.
    void multiply(const auto& stage, const U& slice, std::uint32_t u) {
        const U unit = value(stage * 2u + u);
        std::vector<blocks::Unit> of_rows;
        for (std::uint32_t r = 0; r < 4; ++r) of_rows.push_back(unit_of_row(slice, unit, 8 * r));
        typename M::A operands[2][2];  // of 16 rows, and of 16 further: the first half of the unit, and the second
        for (std::uint32_t r = 0; r < 4; ++r)
            for (std::uint32_t half = 0; half < 2; ++half)
                for (std::uint32_t h = 0; h < 2; ++h)
                    operands[r / 2][half][int(r % 2 + 2 * h)] =
                        integers_of(of_rows[r].q[half * 4], h, of_rows[r].offset);
        for (std::uint32_t j = 0; j < tokens / 8; j += 2) {
            typename M::B of_x[2][2];
            for (std::uint32_t half = 0; half < 2; ++half)
                right_.fragments(x_[stage], j / 2, u * 2 + half, of_x[half], 2);
            for (std::uint32_t c = 0; c < 2; ++c)
                for (std::uint32_t t = 0; t < 2; ++t) {
                    auto& total = totals_(t, j + c);
                    const auto add = [&](const typename M::C& sum, bool of_second) {
                        for (int e = 0; e < 4; ++e) {
                            const blocks::Unit& of = of_rows[t * 2 + std::uint32_t(e) / 2];
                            total[e] = fma(of_second ? *of.scale_of_second_half : of.scale, sum[e], total[e]);
                        }
                    };
                    typename M::C sum(0.0f);
                    sum = mma(operands[t][0], of_x[0][c], sum);
                    if (of_rows[0].scale_of_second_half) {
                        add(sum, false);
                        typename M::C second(0.0f);
                        second = mma(operands[t][1], of_x[1][c], second);
                        add(second, true);
                    } else {
                        sum = mma(operands[t][1], of_x[1][c], sum);
                        add(sum, false);
                    }
                }
        }
        if (of_rows[0].minimum) subtract_minima(stage, u, of_rows);
    }
    void subtract_minima(const auto& stage, std::uint32_t u, const std::vector<blocks::Unit>& of_rows) {
        for (std::uint32_t j = 0; j < tokens / 8; ++j)
            for (std::uint32_t e = 0; e < 2; ++e) {
                const U token = value(8 * j + q_ * 2u + e);
                const F first = value(sums_[stage][token, 2 * u]), second = value(sums_[stage][token, 2 * u + 1]);
                const F both = value(first + second);
                for (std::uint32_t r = 0; r < 4; ++r) {
                    auto& total = totals_(r / 2, j)[int(r % 2 * 2 + e)];
                    const blocks::Unit& of = of_rows[r];
                    if (of.minimum_of_second_half) {
                        total = fma(-*of.minimum, first, total);
                        total = fma(-*of.minimum_of_second_half, second, total);
                    } else {
                        total = fma(-*of.minimum, both, total);
                    }
                }
            }
    }
    void store() {
        for (std::uint32_t j = 0; j < tokens / 8; ++j)
            for (std::uint32_t e = 0; e < 2; ++e) {
                const U token = value(first_token_ + 8 * j + q_ * 2u + e);
                const auto is_there = value(token < of_.x.extent(0));
                const F scale = value(of_.scales.load_if(is_there, token, 0.0f));
                for (std::uint32_t r = 0; r < 4; ++r) {
                    const U row = value(first_row_ + row_ + 8 * r);
                    of_.store(value(is_there & (row < of_.rows)), token, row,
                              value(totals_(r / 2, j)[int(r % 2 * 2 + e)] * scale));
                }
            }
    }

    const TensorProductArguments& of_;
    U down_, first_row_, first_token_;
    U q_ = value(lane_id() % 4u), row_ = value(warp_id() * 32u + lane_id() / 4u);  // and 8, 16 and 24 rows further
    X x_;
    Sums sums_;
    Slices<row_bytes> weights_;
    RightOperand<M, X, Major::K> right_{x_, 0};
    Totals totals_{0.0f};
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

}  // namespace ikat::stdlib
