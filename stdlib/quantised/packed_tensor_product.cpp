// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/packed_tensor_product.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/grids.hpp"
#include "stdlib/math/activation.hpp"
#include "stdlib/quantised/kernel_arrays.hpp"
#include "stdlib/quantised/tensor_formats.hpp"
#include "stdlib/quantised/tensor_slices.hpp"
#include "stdlib/quantised/units.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/tile/pipeline.hpp"

namespace ikat::stdlib {
namespace {

using blocks::F, blocks::LaneRow, blocks::U;
using I = Leaf<std::int32_t>;
constexpr std::uint32_t tile_rows = TensorProductKernel::rows, threads = PackedTensorKernel::threads();
/// 256 activations of a token: eight blocks of nine words.
constexpr SliceShape slice_of_x{.bytes = 288, .rows_are_aligned = true};

/// What the body of a kernel has, whatever the type of y is.
struct Arguments {
    std::vector<TensorProductArguments::Weights> weights;  // one, or two if it is_gated
    const In<std::uint32_t>& x;
    const u32 &rows, &tokens, &units, &x_pitch, &x_words, &division;  // slices_of_part, or streamed
    StoreResult store;
    const Out<float>* shares = nullptr;  // if it is_streamed
};

/// A unit of a row as operands of mma: four signed bytes of the first half, and of the second.
struct SignedUnit {
    U words[2];
    std::vector<F> scales, minima;  // of the unit, or of its halves

    explicit SignedUnit(const blocks::Unit& of) : words{of.q[0], of.q[4]}, scales{of.scale} {
        if (of.scale_of_second_half) scales.push_back(*of.scale_of_second_half);
        if (of.minimum) minima.push_back(*of.minimum);
        if (of.minimum_of_second_half) minima.push_back(*of.minimum_of_second_half);
    }
};

template <class Format, std::uint32_t tokens, bool is_aligned>
class PackedProduct {
    static constexpr SliceShape slice{Format::bytes * 256 / Format::weights, is_aligned, Format::bytes % 2 == 0};
    using Whole = Mma<16, 8, 32, std::int8_t, std::int32_t>;
    using Half = Mma<16, 8, 16, std::int8_t, std::int32_t>;
    using Totals = WarpTiles<Mma<16, 8, 16, half, float>, 32, tokens>;
    using Tile = ProductTile<slice, tokens>;

    PackedProduct(const Arguments& of, const Tile& tile)
        : of_(of),
          tile_(tile),
          of_w_(rows_of_blocks(of.weights, of.rows, is_aligned, tile_.first_row())),
          of_x_({{of.x.as<std::uint8_t>(), value(u32(0u)), value(of.x_pitch * 4u), value(of.x_words * 4u),
                  value(of.tokens), tile_.first_token()}}) {}

public:
    /// The tile of the block.
    explicit PackedProduct(const Arguments& of)
        : PackedProduct(of, Tile(std::uint32_t(of.weights.size()), value(of.rows), value(of.tokens),
                                 value((of.units + 7u) / 8u), value(of.division))) {}
    /// One of those that it has by stream-k.
    PackedProduct(const Arguments& of, const Share& share)
        : PackedProduct(of, Tile(value(of.rows), value(of.tokens), share())) {
        share_ = share;
    }
    static void each_share(const Arguments& of, auto&& f) {
        Tile::each_share(value(of.rows), value(of.tokens), value((of.units + 7u) / 8u), of.division, f);
    }

    void run() {
        u32 number = tile_.first_slice();
        pipeline<2>(
            value(tile_.end_slice() - tile_.first_slice()),
            [&](const auto&, const auto& further) {
                const U next = value(tile_.first_slice() + further);
                if_(next < tile_.end_slice(), [&] {
                    of_w_.load(w_, next);
                    of_x_.load(x_, next);
                });
            },
            [&](const auto&) {
                work_on(value(number));
                number = number + 1u;
            });
        launch_next();  // which adds up parts
        const auto none = [](const auto&, const U&) { return std::optional<F>(); };
        if (share_) return tile_.store_share(share_, totals_, none, of_.store, *of_.shares);
        if (of_.weights.size() == 1) return tile_.store(totals_, none, of_.store);
        tile_.store_pairs(totals_, none,
                          [&](const auto& condition, const U& token, const U& row, const F& gate, const F& up) {
                              of_.store(condition, token, row, value(silu(gate) * up));
                          });
    }

private:
    void work_on(const U& number) {
        const std::vector<LaneRow> rows = tile_.rows_of(w_, of_w_, number);
        const U first_of_x = value((x_.place(number, value(lane_id() / 4u))) / 4u);
        const U heads = value(x_.place(number, value(tile_.q() * 2u)) / 4u);
        for (auto n : range(0u, value(min(of_.units - number * 8u, 8u)))) {
            const U unit = value(n);
            std::vector<SignedUnit> of_rows;
            for (const LaneRow& row : rows) of_rows.push_back(SignedUnit(signed_unit(row, unit)));
            for (std::uint32_t j = 0; j < tokens / 8; ++j)
                multiply(of_rows, j, value(first_of_x + unit * 9u), value(heads + unit * 9u));
        }
    }
    static blocks::Unit signed_unit(const LaneRow& row, const U& unit) {
        return Format::unit(blocks::LaneStage{row}, bytes_before<Format>(unit), value(unit % units_of<Format>))
            .with_signs();
    }
    /// Eight tokens: the lane's word of the unit's block in the first of its tokens, and the head of that in the two
    /// whose totals it has, are words of x_.
    void multiply(const std::vector<SignedUnit>& of_rows, std::uint32_t j, const U& block, const U& head) {
        const std::uint32_t pitch = slice_of_x.row_bytes() / 4, of_tokens = 8 * j * pitch;
        const U bytes[2] = {value(x_.memory()[block + tile_.q() + (of_tokens + 1)]),
                            value(x_.memory()[block + tile_.q() + (of_tokens + 5)])};
        const auto scale = [&](std::uint32_t e) {
            return blocks::lower_half(value(x_.memory()[head + (of_tokens + e * pitch)]));
        };
        const F d[2] = {scale(0), scale(1)};
        for (std::size_t part = 0; part < of_rows[0].scales.size(); ++part)
            for (std::uint32_t t = 0; t < 2; ++t) {
                const SignedUnit *first = &of_rows[2 * t], *second = first + 1;
                const auto sums = sums_of(*first, *second, bytes, part);
                for (int e = 0; e < 4; ++e) {
                    const F factor = value((e < 2 ? *first : *second).scales[part] * d[e % 2]);
                    totals_(t, j)[e] = fma(factor, cast<f32>(sums[e]), totals_(t, j)[e]);
                }
            }
        const SignedUnit ones(blocks::Unit{.q = blocks::eight([](std::size_t) { return u32(blocks::four(1)); }),
                                           .scale = value(f32(1.0f)),
                                           .scale_of_second_half = of_second(of_rows[0])});
        for (std::size_t part = 0; part < of_rows[0].minima.size(); ++part) {
            const auto sums = sums_of(ones, ones, bytes, part);
            for (std::uint32_t t = 0; t < 2; ++t)
                for (int e = 0; e < 4; ++e) {
                    const F sum = value(d[e % 2] * cast<f32>(sums[e % 2]));
                    const F& minimum = of_rows[2 * t + std::uint32_t(e) / 2].minima[part];
                    totals_(t, j)[e] = fma(-minimum, sum, totals_(t, j)[e]);
                }
        }
    }
    static std::optional<F> of_second(const SignedUnit& unit) {
        if (unit.scales.size() == 2) return unit.scales[1];
        return {};
    }
    /// Of 16 rows, two of them the lane's, and eight tokens: of the unit, or of half `part` of it.
    static Whole::C sums_of(const SignedUnit& first, const SignedUnit& second, const U (&bytes)[2], std::size_t part) {
        typename Whole::C sums(0);
        if (first.scales.size() == 1) {
            typename Whole::A a;
            typename Whole::B b;
            for (int half = 0; half < 2; ++half) {
                a[2 * half] = first.words[half], a[2 * half + 1] = second.words[half];
                b[half] = bytes[half];
            }
            sums = mma(a, b, sums);
        } else {
            typename Half::A a;
            typename Half::B b;
            typename Half::C of_half(0);
            a[0] = first.words[part], a[1] = second.words[part], b[0] = bytes[part];
            of_half = mma(a, b, of_half);
            for (int e = 0; e < 4; ++e) sums[e] = of_half[e];
        }
        return sums;
    }

    const Arguments& of_;
    Share share_{};  // by stream-k
    Tile tile_;
    Slices<slice, tile_rows> w_;
    Slices<slice_of_x, tokens> x_;
    RowCopies<slice, tile_rows> of_w_;
    RowCopies<slice_of_x, tokens> of_x_;
    Totals totals_{0.0f};
};

template <class Product>
void record(const Arguments& of) {
    if (of.shares == nullptr) return Product(of).run();
    Product::each_share(of, [&](const Share& share) { Product(of, share).run(); });
}
template <class Format, std::uint32_t tokens>
void record(bool is_aligned, const Arguments& of) {
    if (is_aligned)
        record<PackedProduct<Format, tokens, true>>(of);
    else
        record<PackedProduct<Format, tokens, false>>(of);
}
template <class Format>
void record(const PackedTensorKernel& is, const Arguments& of) {
    if (is.tokens == 16) return record<Format, 16>(is.w_is_aligned, of);
    if (is.tokens == 32) return record<Format, 32>(is.w_is_aligned, of);
    record<Format, 64>(is.w_is_aligned, of);
}
void record(const PackedTensorKernel& is, const Arguments& of) {
    require_linear_blocks();
    require_threads(threads);
    switch (is.format) {
#define IKAT_ROW(format, name, weights, bytes) \
    case runtime::Quantised::format: return record<blocks::format>(is, of);
        IKAT_QUANTISED_FORMATS(IKAT_ROW)
#undef IKAT_ROW
    }
}

}  // namespace

std::string PackedTensorKernel::name() const {
    return fmt::format("{}_{}_q8_1_{}_tokens_{}_tensor_core{}{}", is_gated ? "gate_up_swiglu" : "gemm",
                       runtime::find_info(format)->name, ir::info(y).name, tokens, is_streamed ? "_stream" : "",
                       suffix_of(epilogue));
}
std::uint32_t PackedTensorKernel::rows_of_y() const { return is_gated ? tile_rows / 2 : tile_rows; }
std::uint32_t PackedTensorKernel::shared_bytes() const {
    const auto* info = runtime::find_info(format);
    const SliceShape of_w{info->bytes * 256 / info->weights, w_is_aligned};
    return 2 * (of_w.shared_bytes(tile_rows) + slice_of_x.shared_bytes(tokens)) + (is_streamed ? 24 : 0);
}
KernelHandle PackedTensorKernel::make() const {
    MoreParameters more;
    more.add<In<std::uint8_t>>("w");
    if (is_gated) more.add<In<std::uint8_t>>("up");
    more.add<In<std::uint32_t>>("x");
    add_array<Out>(more, "y", y);
    if (is_streamed) more.add<Out<float>>("shares");
    add_numbers(more, {"rows", "tokens", "units", "w_begin", "w_pitch", "w_bytes", "x_pitch", "x_words",
                       is_streamed ? "streamed" : "slices_of_part", "y_pitch"});
    if (is_gated) add_numbers(more, {"up_begin", "up_pitch", "up_bytes"});
    add_epilogue(more, epilogue);
    auto made = kernel(name().c_str(), params(more), [is = *this](More rest) {
        grid_wait();  // for the kernel that has quantised the activations
        const auto w = rest.next<In<std::uint8_t>>(), up = is.is_gated ? rest.next<In<std::uint8_t>>() : w;
        const auto x = rest.next<In<std::uint32_t>>();
        const StoreElement y = next_results(rest, is.y);
        std::optional<Out<float>> shares;
        if (is.is_streamed) shares.emplace(rest.next<Out<float>>());
        const auto rows = rest.next<u32>(), tokens = rest.next<u32>(), units = rest.next<u32>();
        std::vector<TensorProductArguments::Weights> weights;
        weights.emplace_back(w, rest);
        const auto x_pitch = rest.next<u32>(), x_words = rest.next<u32>(), division = rest.next<u32>(),
                   y_pitch = rest.next<u32>();
        if (is.is_gated) weights.emplace_back(up, rest);
        record(is, {std::move(weights), x, rows, tokens, units, x_pitch, x_words, division,
                    by_epilogue(is.epilogue, rest, rows,
                                [&](const Leaf<bool>& condition, const U& token, const U& row, const F& sum) {
                                    y(condition, token, y_pitch, row, sum);
                                }),
                    shares ? &*shares : nullptr});
    });
    auto of_w = std::move(made).require(aligned<16>("w"), aligned<16>("x")).launch_bounds(threads(), 2);
    return is_gated ? std::move(of_w).require(aligned<16>("up")).handle() : of_w.handle();
}
const KernelHandle& PackedTensorKernel::handle() const { return Kernels<PackedTensorKernel>::of(*this); }

}  // namespace ikat::stdlib
