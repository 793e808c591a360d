// SPDX-License-Identifier: Apache-2.0
// Step 5 of the tutorial: a matrix of bytes, with one scale per 32 of them (the format Q8_0), times a vector.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
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

const auto gemv_bytes = kernel("gemv_bytes", params("scales", "weights", "x_scales", "x", "y", "rows", "columns"),
                               [](In<half> scales, In<std::int32_t> weights, In<half> x_scales, In<std::int32_t> x,
                                  Out<float> y, u32 rows, u32 columns) {
                                   u32 row = block_id().x * (block_dim().x / 32) + warp_id();
                                   return_if(row >= rows);
                                   u32 pieces = columns / 16;  // of 16 bytes; two share a scale
                                   f32 sum = 0;
                                   for (auto i : range(lane_id(), pieces, 32)) {
                                       auto w = weights.vec<4>(row * pieces + i);
                                       auto v = x.vec<4>(i);
                                       i32 dot = 0;
                                       for (int k = 0; k < 4; ++k) dot = dp4a(w[k], v[k], dot);
                                       f32 scale =
                                           cast<f32>(scales[(row * pieces + i) / 2]) * cast<f32>(x_scales[i / 2]);
                                       sum = fma(scale, cast<f32>(dot), sum);
                                   }
                                   sum = stdlib::warp_sum(sum);
                                   if_(lane_id() == 0, [&] { y[row] = sum; });
                               })
                            .require(multiple_of<block_size>("columns"), aligned<16>("weights"), aligned<16>("x"))
                            .launch_bounds(128);

struct Quantised {
    std::vector<half> scales;
    std::vector<std::int8_t> weights;

    double operator[](std::size_t i) const { return double(float(scales[i / block_size])) * weights[i]; }
    std::vector<std::int32_t> words() const {
        std::vector<std::int32_t> out(weights.size() / 4);
        std::memcpy(out.data(), weights.data(), weights.size());
        return out;
    }
};

/// In each group of 32 numbers, the one of largest magnitude becomes 127 or -127.
Quantised quantise(const std::vector<float>& numbers) {
    Quantised out;
    for (std::size_t first = 0; first < numbers.size(); first += block_size) {
        float largest = 0;
        for (std::size_t i = first; i < first + block_size; ++i) largest = std::max(largest, std::abs(numbers[i]));
        const half scale(largest / 127);
        for (std::size_t i = first; i < first + block_size; ++i) {
            const float q = float(scale) > 0 ? std::round(numbers[i] / float(scale)) : 0;
            out.weights.push_back(std::int8_t(std::clamp(q, -127.f, 127.f)));
        }
        out.scales.push_back(scale);
    }
    return out;
}

/// Whether each row equals the product of w and x up to that many roundings, and how far it is from that of the matrix.
bool check(const char* what, const std::vector<float>& rows, const auto& w, const auto& x, int roundings,
           const std::vector<float>& matrix, const std::vector<float>& vector) {
    bool right = true;
    double distance = 0;
    for (std::size_t row = 0, i = 0; row < rows.size(); ++row) {
        double exact = 0, magnitude = 0, unquantised = 0;
        for (std::size_t k = 0; k < vector.size(); ++k, ++i) {
            exact += w[i] * x[k], magnitude += std::abs(w[i] * x[k]);
            unquantised += double(matrix[i]) * vector[k];
        }
        right = right && std::abs(rows[row] - exact) <= magnitude * roundings * 0x1p-24;
        distance = std::max(distance, std::abs(rows[row] - unquantised));
    }
    std::printf("%s: %s, at most %.2f from the product of floats\n", what, right ? "right" : "WRONG", distance);
    return right;
}

int main() try {
    const std::uint32_t rows = 50, columns = 1024;
    std::vector<float> matrix(rows * columns), vector(columns);
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::sin(float(i));
    for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = std::cos(float(i));
    const Quantised w = quantise(matrix), v = quantise(vector);
    std::printf("%zu bytes instead of %zu\n", w.weights.size() + 2 * w.scales.size(), 4 * matrix.size());

    const auto device = Device::open();
    const auto scales = device.upload(w.scales, "scales");
    const auto bytes = device.upload(w.weights, "weights");
    const auto x = device.upload(vector, "x");
    auto y = device.buffer<float>(rows, "y");
    const Grid four_rows_a_block{{(rows + 3) / 4}, {128}};
    device.launch(gemv_q8_0, four_rows_a_block, scales, bytes, x, y, rows, columns);
    // A weight is affected by 4 roundings in its group, 8 in its lane's sum and 5 in the warp's.
    bool right = check("floats", device.download(y), w, vector, 17, matrix, vector);

    const auto words = device.upload(w.words(), "weights"), x_words = device.upload(v.words(), "x");
    const auto x_scales = device.upload(v.scales, "x_scales");
    device.launch(gemv_bytes, four_rows_a_block, scales, words, x_scales, x_words, y, rows, columns);
    // Sums of bytes are exact, and so is the product of two scales: 2 of the lane's sum and 5 of the warp's.
    right = check("bytes", device.download(y), w, v, 7, matrix, vector) && right;
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
