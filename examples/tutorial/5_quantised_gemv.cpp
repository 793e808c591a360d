// SPDX-License-Identifier: Apache-2.0
// Step 5 of the tutorial: a matrix of bytes with a scale for each 32 of them (the format Q8_0) times a vector.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;

constexpr std::uint32_t block_size = 32;  // weights that share a scale

const auto gemv_q8_0 =
    kernel("gemv_q8_0", params("scales", "weights", "x", "y", "rows", "columns"),
           [](In<half> scales, In<std::int8_t> weights, In<float> x, Out<float> y, u32 rows, u32 columns) {
               u32 row = block_id().x * (block_dim().x / 32) + warp_id();
               return_if(row >= rows);
               u32 fours = columns / 4;  // groups of four weights in a row
               f32 sum = 0;
               for (auto i : range(lane_id(), fours, 32)) {
                   auto w = weights.vec<4>(row * fours + i);
                   auto v = x.vec<4>(i);
                   f32 part = cast<f32>(w[0]) * v[0];
                   for (int k = 1; k < 4; ++k) part = fma(cast<f32>(w[k]), v[k], part);
                   f32 scale = cast<f32>(scales[(row * fours + i) / (block_size / 4)]);
                   sum = fma(scale, part, sum);
               }
               sum = stdlib::warp_sum(sum);
               if_(lane_id() == 0, [&] { y[row] = sum; });
           })
        .require(multiple_of<block_size>("columns"), aligned<4>("weights"), aligned<16>("x"))
        .launch_bounds(128);

struct Quantised {
    std::vector<half> scales;
    std::vector<std::int8_t> weights;
};

/// Of each 32 numbers, the one of largest magnitude becomes 127 or -127.
Quantised quantise(const std::vector<float>& matrix) {
    Quantised out;
    for (std::size_t first = 0; first < matrix.size(); first += block_size) {
        float largest = 0;
        for (std::size_t i = first; i < first + block_size; ++i) largest = std::max(largest, std::abs(matrix[i]));
        const half scale(largest / 127);
        const float rounded = float(scale);
        for (std::size_t i = first; i < first + block_size; ++i)
            out.weights.push_back(
                std::int8_t(rounded > 0 ? std::clamp(std::round(matrix[i] / rounded), -127.f, 127.f) : 0));
        out.scales.push_back(scale);
    }
    return out;
}

int main() try {
    const std::uint32_t rows = 50, columns = 1024;
    std::vector<float> matrix(rows * columns), host_x(columns);
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::sin(float(i));
    for (std::size_t i = 0; i < host_x.size(); ++i) host_x[i] = std::cos(float(i));
    const Quantised quantised = quantise(matrix);

    const auto device = Device::open();
    const auto scales = device.upload(quantised.scales, "scales");
    const auto weights = device.upload(quantised.weights, "weights");
    const auto x = device.upload(host_x, "x");
    auto y = device.buffer<float>(rows, "y");
    device.launch(gemv_q8_0, Grid{{(rows + 3) / 4}, {128}}, scales, weights, x, y, rows, columns);

    bool right = true;
    double from_matrix = 0;  // how far the quantised product is from the one of the matrix itself
    const std::vector<float> result = device.download(y);
    for (std::uint32_t row = 0; row < rows; ++row) {
        double exact = 0, magnitude = 0, unquantised = 0;
        for (std::uint32_t i = row * columns, k = 0; k < columns; ++i, ++k) {
            const double w = double(float(quantised.scales[i / block_size])) * quantised.weights[i];
            exact += w * host_x[k], magnitude += std::abs(w * host_x[k]);
            unquantised += double(matrix[i]) * host_x[k];
        }
        // A weight goes through 4 roundings of its group, 8 of its lane's sum and 5 of the warp's.
        right = right && std::abs(result[row] - exact) <= magnitude * 17 * 0x1p-24;
        from_matrix = std::max(from_matrix, std::abs(result[row] - unquantised));
    }
    std::printf("%zu bytes instead of %zu; %s, at most %.2f from the matrix of floats\n",
                quantised.weights.size() + 2 * quantised.scales.size(), 4 * matrix.size(), right ? "right" : "WRONG",
                from_matrix);
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
