// SPDX-License-Identifier: Apache-2.0
// What tests of products of quantised weights share: weights in a buffer, a model of the product with activations in
// Q8_1, and the comparison of a product with gemv() and that model, bit for bit.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/quantised/product.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/quantised/tensor_product.hpp"
#include "stdlib/reference/quantised.hpp"
#include "tests/catch.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/differential/stdlib/samples.hpp"

namespace ikat::test {

using stdlib::Quantised;

/// A block, a few, and more than a piece of the kernels.
inline Extents columns_of(Quantised format) {
    const std::uint64_t weights = stdlib::weights_of(format);
    return {weights, 3 * weights, 1024 + weights};
}

/// A matrix of weights in a buffer, with `gap` blocks of 0xff between rows, from byte `first` on.
class ProductWeights {
public:
    ProductWeights(const runtime::Device& device, Quantised format, std::uint64_t rows, std::uint64_t columns,
                   std::uint32_t gap, std::uint32_t first, std::uint32_t seed = 7)
        : format_(format),
          rows_(rows),
          columns_(columns),
          row_bytes_(columns / stdlib::weights_of(format) * stdlib::bytes_of(format)),
          pitch_bytes_(row_bytes_ + gap * stdlib::bytes_of(format)),
          first_(first),
          blocks_(random_blocks(format, rows * columns / stdlib::weights_of(format), seed)) {
        buffer_.emplace(device.buffer<std::uint8_t>(first + rows * pitch_bytes_ + 3, "W"));
        upload();
    }

    TensorView view() const {
        const std::uint64_t extents[] = {rows_, columns_},
                            pitch = pitch_bytes_ / stdlib::bytes_of(format_) * stdlib::weights_of(format_);
        return TensorView(format_, buffer_->memory().whole().from(first_), extents, {&pitch, 1});
    }
    runtime::Buffer<std::uint8_t>& buffer() const { return *buffer_; }
    Quantised format() const { return format_; }
    std::uint64_t rows() const { return rows_; }
    std::uint64_t columns() const { return columns_; }
    /// Row after row.
    const std::vector<std::uint8_t>& blocks() const { return blocks_; }
    std::span<const std::uint8_t> row(std::uint64_t i) const {
        return std::span(blocks_).subspan(i * row_bytes_, row_bytes_);
    }

    /// Gives the first block of each row this scale, of f16; in MXFP4 its upper byte.
    void set_scales(std::span<const std::uint16_t> scales) {
        using enum Quantised;
        const std::size_t at = format_ == Q2_K ? 80 : format_ == Q3_K ? 108 : format_ == Q6_K ? 208 : 0;
        for (std::size_t i = 0; i < rows_; ++i) {
            if (format_ == MXFP4)
                blocks_[i * row_bytes_] = std::uint8_t(scales[i] >> 8);
            else
                std::memcpy(&blocks_[i * row_bytes_ + at], &scales[i], 2);
        }
        upload();
    }

private:
    void upload() {
        std::vector<std::uint8_t> host(buffer_->size(), 0xff);
        for (std::uint64_t i = 0; i < rows_; ++i)
            std::copy_n(blocks_.data() + i * row_bytes_, row_bytes_, host.data() + first_ + i * pitch_bytes_);
        buffer_->upload(host);
    }

    Quantised format_;
    std::uint64_t rows_, columns_, row_bytes_, pitch_bytes_;
    std::uint32_t first_;
    std::vector<std::uint8_t> blocks_;
    mutable std::optional<runtime::Buffer<std::uint8_t>> buffer_;
};

/// Of 32 weights and a block of Q8_1: sums of integers, of the first and the second 16; what the format has.
struct PackedSums {
    bool has_two, has_minimum;
    int products[2] = {}, sums[2] = {};
    float d;

    PackedSums(Quantised format, std::span<const stdlib::reference::QuantisedWeight> w,
               std::span<const std::uint32_t> block)
        : d(float(half::from_bits(std::uint16_t(block[0])))) {
        using enum Quantised;
        has_two = format == Q2_K || format == Q3_K || format == Q6_K;
        has_minimum = format == Q2_K || format == Q4_1 || format == Q5_1 || format == Q4_K || format == Q5_K;
        for (std::size_t i = 0; i < 32; ++i) {
            const int u = std::int8_t(block[1 + i / 4] >> (i % 4 * 8));
            products[i / 16] += w[i].q * u, sums[i / 16] += u;
        }
    }
};

/// The product of 32 weights with a block of Q8_1, in the order of the kernels for up to eight tokens.
inline float packed_unit(Quantised format, std::span<const stdlib::reference::QuantisedWeight> w,
                         std::span<const std::uint32_t> block) {
    const auto [has_two, has_minimum, products, sums, d] = PackedSums(format, w, block);
    float out = has_two ? w[0].scale * float(products[0]) + w[16].scale * float(products[1])
                        : w[0].scale * float(products[0] + products[1]);
    if (has_minimum && has_two)
        out = out - w[0].minimum * float(sums[0]) - w[16].minimum * float(sums[1]);
    else if (has_minimum)
        out = out - w[0].minimum * float(sums[0] + sums[1]);
    return out * d;
}

/// The first slices of parts.
using FirstSlices = std::vector<std::uint64_t>;
inline FirstSlices first_slices(const stdlib::PartsOfColumns& parts) {
    FirstSlices out;
    for (std::uint64_t part = 0; part < parts.count; ++part) out.push_back(part * parts.slices);
    return out;
}

/// A row of weights times a token in Q8_1, in the order of the kernels on tensor cores, which add up parts in order.
inline float packed_tensor_product(Quantised format, std::span<const std::uint8_t> row,
                                   std::span<const std::uint32_t> token, const FirstSlices& parts) {
    const auto weights = stdlib::reference::quantised_weights(format, row);
    const std::size_t units = weights.size() / 32;
    std::vector<float> totals(parts.size());
    std::size_t number = 0;
    for (std::size_t unit = 0; unit < units; ++unit) {
        if (number + 1 < parts.size() && unit / 8 == parts[number + 1]) ++number;
        float& total = totals[number];
        const auto w = std::span(weights).subspan(unit * 32, 32);
        const auto [has_two, has_minimum, products, sums, d] = PackedSums(format, w, token.subspan(unit * 9, 9));
        if (!has_two) {
            total = std::fma(w[0].scale * d, float(products[0] + products[1]), total);
            if (has_minimum) total = std::fma(-w[0].minimum, d * float(sums[0] + sums[1]), total);
            continue;
        }
        for (std::size_t i = 0; i < 2; ++i) total = std::fma(w[16 * i].scale * d, float(products[i]), total);
        for (std::size_t i = 0; i < 2 && has_minimum; ++i)
            total = std::fma(-w[16 * i].minimum, d * float(sums[i]), total);
    }
    for (std::size_t part = 1; part < totals.size(); ++part) totals[0] += totals[part];
    return totals[0];
}

/// A row of weights times a token in Q8_1, in the order of the kernels: lane i of a warp has units i, i + 32, ...
inline float packed_product(Quantised format, std::span<const std::uint8_t> row, std::span<const std::uint32_t> token) {
    const auto weights = stdlib::reference::quantised_weights(format, row);
    std::array<float, 32> lanes{};
    for (std::size_t unit = 0; unit < weights.size() / 32; ++unit)
        lanes[unit % 32] += packed_unit(format, std::span(weights).subspan(unit * 32, 32), token.subspan(unit * 9, 9));
    for (std::size_t distance = 16; distance > 0; distance /= 2)
        for (std::size_t i = 0; i < distance; ++i) lanes[i] += lanes[i + distance];
    return lanes[0];
}

/// What a product is, token after token, before it is rounded: one by one by gemv(), or of Q8_1 by the model.
inline std::vector<float> wanted_product(const runtime::Device& device, const ProductWeights& weights,
                                         const std::vector<float>& x, stdlib::Activations activations) {
    const std::uint64_t columns = weights.columns();
    std::vector<float> out;
    for (std::size_t token = 0; token < x.size() / columns; ++token) {
        const std::vector<float> of_token(x.begin() + std::ptrdiff_t(token * columns),
                                          x.begin() + std::ptrdiff_t((token + 1) * columns));
        if (activations == stdlib::Activations::q8_1) {
            const auto words = stdlib::reference::quantise_q8_1(of_token);
            const std::uint64_t tokens = x.size() / columns;
            const auto parts = first_slices(stdlib::PartsOfColumns::of(weights.rows(), tokens, columns));
            for (std::uint64_t row = 0; row < weights.rows(); ++row)
                out.push_back(tokens > 8 ? packed_tensor_product(weights.format(), weights.row(row), words, parts)
                                         : packed_product(weights.format(), weights.row(row), words));
            continue;
        }
        auto y = device.buffer<float>(weights.rows(), "wanted");
        stdlib::gemv(device, weights.view(), device.upload(of_token, "token"), y);
        for (const float each : y.download()) out.push_back(each);
    }
    return out;
}

/// How many elements are not the same bits; any NaN is like any other.
template <class T>
std::size_t different_elements(const std::vector<T>& got, const std::vector<float>& want) {
    std::size_t out = got.size() == want.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
        const float a = float(got[i]), b = float(T(want[i]));
        out += std::bit_cast<std::uint32_t>(a) != std::bit_cast<std::uint32_t>(b) && !(std::isnan(a) && std::isnan(b));
    }
    return out;
}

/// The largest step between numbers of Y near 1.
template <class Y>
constexpr double step_of = std::is_same_v<Y, float>  ? 0x1p-23
                           : std::is_same_v<Y, half> ? 0x1p-10
                                                     : 0x1p-7;

/// Multiplies X and Y of these types in such places on tensor cores, and compares with the bound of product.hpp.
template <class X, class Y>
void check_bound(const runtime::Device& device, const ProductWeights& weights, std::uint64_t tokens, Place place,
                 const stdlib::QuantisedGemmOptions& options = {}) {
    const std::uint64_t rows = weights.rows(), columns = weights.columns();
    INFO("format " << int(weights.format()) << ", " << rows << " x " << columns << ", " << tokens << " tokens, place "
                   << int(place) << ", multiprocessors " << options.multiprocessors);
    const Placed<X> x(device, place, {tokens, columns}, 1);
    const Placed<Y> y(device, place, {tokens, rows}, 2);
    stdlib::gemm(device, weights.view(), x, y, options);
    CHECK(y.changed_gaps() == 0);
    const auto of_x = x.elements();
    const auto got = y.exact();
    const double relative = (std::is_same_v<X, float> ? 0x1p-11 : 0) + (48 + double(columns) / 8) * 0x1p-24;
    std::size_t wrong = 0;
    for (std::uint64_t row = 0; row < rows; ++row) {
        const auto w = stdlib::reference::quantised_weights(weights.format(), weights.row(row));
        for (std::uint64_t token = 0; token < tokens; ++token) {
            double sum = 0, size = 0, of_weights = 0, largest = 0;
            for (std::uint64_t k = 0; k < columns; ++k) {
                const double v = double(of_x[token * columns + k]), product = double(w[k].scale) * w[k].q;
                sum += (product - w[k].minimum) * v;
                of_weights += std::abs(product) + std::abs(double(w[k].minimum));
                size += (std::abs(product) + std::abs(double(w[k].minimum))) * std::abs(v);
                largest = std::max(largest, std::abs(v));
            }
            const double bound = relative * size + of_weights * largest * 0x1p-38;
            wrong +=
                !(std::abs(double(float(got[token * rows + row])) - sum) <= bound + std::abs(sum) * step_of<Y> / 2);
        }
    }
    CHECK(wrong == 0);
}

/// Multiplies X and Y of these types in such places.
template <class X, class Y>
void check_product(const runtime::Device& device, const ProductWeights& weights, std::uint64_t tokens,
                   stdlib::Activations activations, Place place) {
    INFO("format " << int(weights.format()) << ", " << weights.rows() << " x " << weights.columns() << ", " << tokens
                   << " tokens, activations " << int(activations) << ", place " << int(place));
    const Placed<X> x(device, place, {tokens, weights.columns()}, 1);
    const Placed<Y> y(device, place, {tokens, weights.rows()}, 2);
    stdlib::gemm(device, weights.view(), x, y, {.activations = activations});
    CHECK(different_elements(y.exact(), wanted_product(device, weights, x.elements(), activations)) == 0);
    CHECK(y.changed_gaps() == 0);
}

}  // namespace ikat::test
