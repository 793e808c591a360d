// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include "bench/gpu/data.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/quantised/quantise.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/reference/quantised.hpp"

namespace ikat::bench {
namespace {

using runtime::Quantised;

/// Weights are rows of random numbers, a few that follow each other again and again. There are so many copies of them
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
    Data<float> x;
    Buffer<std::uint32_t> packed;
    Buffer<float> y;
    std::size_t next = 0;
};

std::shared_ptr<Arrays> arrays_of(const Device& device, Quantised format, std::uint32_t rows, std::uint32_t columns) {
    std::vector<float> numbers(std::size_t{distinct_rows} * columns);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = normal(i);
    const std::vector<std::uint8_t> distinct = stdlib::stored::quantise(format, numbers, columns);
    const std::vector<float> decoded = stdlib::reference::dequantise(format, distinct);
    std::vector<std::uint8_t> all(distinct.size() / distinct_rows * rows);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = distinct[i % distinct.size()];
    const auto out = std::make_shared<Arrays>(Arrays{{},
                                                     {},
                                                     random<float>(device, columns, 2, "x"),
                                                     device.buffer<std::uint32_t>(columns / 32 * 9, "packed"),
                                                     results<float>(device, rows, "y")});
    for (std::uint32_t row = 0; row < distinct_rows; ++row)
        out->rows.emplace_back(decoded.begin() + std::ptrdiff_t{row} * columns,
                               decoded.begin() + std::ptrdiff_t{row + 1} * columns);
    const bool is_gpu = device.properties().kind != runtime::DeviceKind::Emulator;
    for (std::uint64_t bytes = 0; bytes == 0 || (is_gpu && bytes < bytes_of_copies); bytes += all.size())
        out->copies.push_back(device.upload(all, "W"));
    return out;
}

}  // namespace

Case quantised_gemv_case(const Device& device, Words& words) {
    const Quantised format = format_of(words);
    const bool is_packed = words.one_of("the type of x", {"f32", "q8_1"}) == 1;
    const std::uint32_t rows = words.number("rows"), columns = words.number("columns");
    words.end();
    if (columns % stdlib::weights_of(format) != 0) words.fail("a row is not a whole number of blocks");
    const std::shared_ptr<Arrays> data = arrays_of(device, format, rows, columns);
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
    out.error = [=] {
        const std::vector<float> host = data->y.download();
        Difference difference;
        for (std::uint64_t sample = 0; sample < samples; ++sample) {
            const std::uint64_t row = mixed(sample) % rows;
            double sum = 0;
            for (std::uint32_t i = 0; i < columns; ++i)
                sum += data->rows[row % distinct_rows][i] * double(data->x.host[i]);
            difference.add(double(host[row]), sum);
        }
        return difference.value();
    };
    out.allowed = is_packed ? 2e-2 : 1e-5;
    out.operations = 2.0 * rows * columns;
    out.bytes = double(data->copies[0].size()) + 4.0 * rows + (is_packed ? 36.0 / 32 : 4.0) * columns;
    return out;
}

}  // namespace ikat::bench
