// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "bench/gpu/data.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/quantised/fused.hpp"
#include "stdlib/quantised/product.hpp"
#include "stdlib/quantised/quantise.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/reference/quantised.hpp"

namespace ikat::bench {
namespace {

using runtime::Quantised;

/// Weights are rows of random numbers, a few that follow each other again and again. There are enough copies of them
/// that no cache has one when it is used next.
constexpr std::uint32_t distinct_rows = 16;
constexpr std::uint64_t bytes_of_copies = std::uint64_t{256} << 20;

Quantised format_of(Words& words) {
    const std::string name = words.word("the format");
    const auto found = std::ranges::find(runtime::quantised_formats, name, &runtime::QuantisedInfo::name);
    if (found == std::end(runtime::quantised_formats)) words.fail(fmt::format("there is no format {}", name));
    return Quantised(found - std::begin(runtime::quantised_formats));
}

struct Arrays {
    std::vector<std::vector<double>> rows;  // the distinct ones, decoded
    std::vector<Buffer<std::uint8_t>> copies;
    Data<float> x;  // a row for each token
    Buffer<std::uint32_t> packed;
    Buffer<float> y;
    std::size_t next = 0;
};

std::shared_ptr<Arrays> arrays_of(const Device& device, Quantised format, std::uint32_t tokens, std::uint32_t rows,
                                  std::uint32_t columns) {
    std::vector<float> numbers(std::size_t{distinct_rows} * columns);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = normal(i);
    const std::vector<std::uint8_t> distinct = stdlib::stored::quantise(format, numbers, columns);
    const std::vector<float> decoded = stdlib::reference::dequantise(format, distinct);
    std::vector<std::uint8_t> all(distinct.size() / distinct_rows * rows);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = distinct[i % distinct.size()];
    const auto out = std::make_shared<Arrays>(Arrays{{},
                                                     {},
                                                     random<float>(device, std::uint64_t{tokens} * columns, 2, "x"),
                                                     device.buffer<std::uint32_t>(columns / 32 * 9, "packed"),
                                                     results<float>(device, std::uint64_t{tokens} * rows, "y")});
    for (std::uint32_t row = 0; row < distinct_rows; ++row)
        out->rows.emplace_back(decoded.begin() + std::ptrdiff_t{row} * columns,
                               decoded.begin() + std::ptrdiff_t{row + 1} * columns);
    const bool is_gpu = device.properties().kind != runtime::DeviceKind::Emulator;
    for (std::uint64_t bytes = 0; bytes == 0 || (is_gpu && bytes < bytes_of_copies); bytes += all.size())
        out->copies.push_back(device.upload(all, "W"));
    return out;
}

/// The product of a row of weights and a token, in double.
double product(const Arrays& arrays, std::uint64_t row, std::uint64_t token) {
    const std::vector<double>& w = arrays.rows[row % distinct_rows];
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] * double(arrays.x.host[token * w.size() + i]);
    return sum;
}
/// How far some elements of Y, tokens x rows, are from those that wanted(row, token) gives.
double error_of(const Arrays& arrays, std::uint32_t tokens, std::uint32_t rows, auto&& wanted) {
    const std::vector<float> host = arrays.y.download();
    Difference difference;
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
        const std::uint64_t row = mixed(sample) % rows, token = mixed(sample + samples) % tokens;
        difference.add(double(host[token * rows + row]), wanted(row, token));
    }
    return difference.value();
}
double error_of(const Arrays& arrays, std::uint32_t tokens, std::uint32_t rows) {
    return error_of(arrays, tokens, rows,
                    [&](std::uint64_t row, std::uint64_t token) { return product(arrays, row, token); });
}

/// What a line says of products with several matrices.
struct Fused {
    Quantised format;
    bool is_packed;
    std::uint32_t tokens;

    explicit Fused(Words& words)
        : format(format_of(words)),
          is_packed(words.one_of("the activations", {"exact", "q8_1"}) == 1),
          tokens(words.number("tokens")) {}
    stdlib::FusedProductOptions options() const {
        return {.activations = is_packed ? stdlib::Activations::q8_1 : stdlib::Activations::exact};
    }
    /// `count` rows of the weights of a copy, from number `first` on.
    runtime::TensorView rows_of(const Buffer<std::uint8_t>& copy, std::uint64_t first, std::uint64_t count,
                                std::uint64_t columns) const {
        const std::uint64_t bytes = columns / stdlib::weights_of(format) * stdlib::bytes_of(format);
        return stdlib::quantised_view(copy.slice(first * bytes, count * bytes), format, {count, columns});
    }
    void check_columns(Words& words, std::uint32_t columns) const {
        words.end();
        if (columns % stdlib::weights_of(format) != 0) words.fail("a row is not a whole number of blocks");
    }
    /// Of `rows` rows in all: what it takes, and `stored` elements of each token.
    Case as_case(const Arrays& data, std::uint32_t rows, std::uint32_t columns, std::uint32_t stored) const {
        Case out;
        out.allowed = is_packed ? 2e-2 : 2e-3;
        out.operations = 2.0 * tokens * rows * columns;
        out.bytes = double(data.copies[0].size()) + 4.0 * tokens * (double(stored) + columns);
        return out;
    }
};

}  // namespace

Case quantised_gemm_case(const Device& device, Words& words) {
    const Quantised format = format_of(words);
    const bool is_packed = words.one_of("the activations", {"exact", "q8_1"}) == 1;
    const std::uint32_t tokens = words.number("tokens"), rows = words.number("rows"), columns = words.number("columns");
    words.end();
    if (columns % stdlib::weights_of(format) != 0) words.fail("a row is not a whole number of blocks");
    const std::shared_ptr<Arrays> data = arrays_of(device, format, tokens, rows, columns);
    const auto view_of = [=](std::size_t copy) {
        const Buffer<std::uint8_t>& weights = data->copies[copy];
        return stdlib::quantised_view(weights, format, {rows, columns});
    };
    const auto X = std::as_const(data->x.buffer).view(tokens, columns);
    const auto Y = data->y.view(tokens, rows);
    stdlib::QuantisedGemmOptions options{.activations =
                                             is_packed ? stdlib::Activations::q8_1 : stdlib::Activations::exact};
    const auto space = std::make_shared<Buffer<std::uint8_t>>(
        device.buffer<std::uint8_t>(stdlib::gemm_workspace(device, view_of(0), X, Y, options), "workspace"));
    options.workspace = *space;
    Case out;
    out.launch = [=](const Queue& queue) {
        stdlib::quantised_gemm(queue, view_of(data->next++ % data->copies.size()), X, Y, options), void(space);
    };
    out.error = [=] { return error_of(*data, tokens, rows); };
    out.allowed = is_packed ? 2e-2 : 2e-3;
    out.operations = 2.0 * tokens * rows * columns;
    out.bytes = double(data->copies[0].size()) + 4.0 * tokens * (double(rows) + columns);
    return out;
}

Case gate_up_swiglu_case(const Device& device, Words& words) {
    const Fused is(words);
    const std::uint32_t rows = words.number("rows"), columns = words.number("columns");
    is.check_columns(words, columns);
    const std::shared_ptr<Arrays> data = arrays_of(device, is.format, is.tokens, 2 * rows, columns);
    const auto X = std::as_const(data->x.buffer).view(is.tokens, columns);
    const auto Y = data->y.slice(0, std::uint64_t{is.tokens} * rows).view(is.tokens, rows);
    const auto matrix = [=](std::size_t copy, std::uint32_t number) {
        return is.rows_of(data->copies[copy], number * rows, rows, columns);
    };
    stdlib::FusedProductOptions options = is.options();
    const auto space = std::make_shared<Buffer<std::uint8_t>>(device.buffer<std::uint8_t>(
        stdlib::gate_up_swiglu_workspace(device, matrix(0, 0), matrix(0, 1), X, Y, options), "workspace"));
    options.workspace = *space;
    Case out = is.as_case(*data, 2 * rows, columns, rows);
    out.launch = [=](const Queue& queue) {
        const std::size_t copy = data->next++ % data->copies.size();
        stdlib::gate_up_swiglu(queue, matrix(copy, 0), matrix(copy, 1), X, Y, options), void(space);
    };
    out.error = [=] {
        return error_of(*data, is.tokens, rows, [&](std::uint64_t row, std::uint64_t token) {
            const double gate = product(*data, row, token);
            return gate / (1 + std::exp(-gate)) * product(*data, rows + row, token);
        });
    };
    return out;
}

Case qkv_case(const Device& device, Words& words) {
    const Fused is(words);
    const std::uint32_t rows = words.number("rows"), kv_rows = words.number("kv_rows"),
                        columns = words.number("columns"), all = rows + 2 * kv_rows;
    is.check_columns(words, columns);
    const std::shared_ptr<Arrays> data = arrays_of(device, is.format, is.tokens, all, columns);
    const auto X = std::as_const(data->x.buffer).view(is.tokens, columns);
    const auto parts = [=](std::size_t copy) {
        std::vector<stdlib::ProductPart> out;
        for (const auto& [first, count] : {std::pair(0u, rows), {rows, kv_rows}, {rows + kv_rows, kv_rows}}) {
            const auto Y = data->y.slice(std::uint64_t{first} * is.tokens, std::uint64_t{count} * is.tokens);
            out.push_back({is.rows_of(data->copies[copy], first, count, columns), Y.view(is.tokens, count)});
        }
        return out;
    };
    stdlib::FusedProductOptions options = is.options();
    const auto space = std::make_shared<Buffer<std::uint8_t>>(
        device.buffer<std::uint8_t>(stdlib::gemm_parts_workspace(device, X, parts(0), options), "workspace"));
    options.workspace = *space;
    Case out = is.as_case(*data, all, columns, all);
    out.launch = [=](const Queue& queue) {
        stdlib::gemm_parts(queue, X, parts(data->next++ % data->copies.size()), options), void(space);
    };
    out.error = [=] {  // of Q, which comes first
        return error_of(*data, is.tokens, rows);
    };
    return out;
}

Case quantised_gemv_case(const Device& device, Words& words) {
    const Quantised format = format_of(words);
    const bool is_packed = words.one_of("the type of x", {"f32", "q8_1"}) == 1;
    const std::uint32_t rows = words.number("rows"), columns = words.number("columns");
    words.end();
    if (columns % stdlib::weights_of(format) != 0) words.fail("a row is not a whole number of blocks");
    const std::shared_ptr<Arrays> data = arrays_of(device, format, 1, rows, columns);
    if (is_packed) stdlib::quantise_q8_1(device, data->x.buffer, data->packed);
    Case out;
    out.launch = [=](const Queue& queue) {
        const Buffer<std::uint8_t>& weights = data->copies[data->next++ % data->copies.size()];
        const auto W = stdlib::quantised_view(weights, format, {rows, columns});
        if (is_packed)
            stdlib::gemv(queue, W, data->packed, data->y);
        else
            stdlib::gemv(queue, W, data->x.buffer, data->y);
    };
    out.error = [=] { return error_of(*data, 1, rows); };
    out.allowed = is_packed ? 2e-2 : 1e-5;
    out.operations = 2.0 * rows * columns;
    out.bytes = double(data->copies[0].size()) + 4.0 * rows + (is_packed ? 36.0 / 32 : 4.0) * columns;
    return out;
}

}  // namespace ikat::bench
