// SPDX-License-Identifier: Apache-2.0
// Step 4 of the tutorial: the 32 lanes of a warp compute a sum without shared memory or barriers.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace ikat;

template <Value<f32> V>
f32 sum_of_warp(const V& mine) {
    require_whole_warps();
    f32 total = mine;
    for (int distance = 16; distance > 0; distance /= 2) total += shuffle_xor(total, distance);
    return total;
}

const auto row_norms = kernel("row_norms", params("x", "y"), [](In<float, 2> x, Out<float> y) {
    u32 row = block_id().x * (block_dim().x / 32) + warp_id();
    return_if(row >= x.extent(0));
    f32 squares = 0;
    for (auto column : range(lane_id(), x.extent(1), 32)) squares = fma(x[row, column], x[row, column], squares);
    squares = sum_of_warp(squares);
    if_(lane_id() == 0, [&] { y[row] = squares; });
});

const auto row_maxima = kernel("row_maxima", params("x", "y"), [](In<float, 2> x, Out<float> y) {
    u32 row = block_id().x * (block_dim().x / 32) + warp_id();
    return_if(row >= x.extent(0));
    f32 largest = stdlib::lowest<float>();
    for (auto column : range(lane_id(), x.extent(1), 32)) largest = max(largest, x[row, column]);
    largest = stdlib::warp_max(largest);
    if_(lane_id() == 0, [&] { y[row] = largest; });
});

int main() try {
    const std::uint32_t rows = 37, columns = 100;
    std::vector<float> host(rows * columns);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = float(i * 7 % 13);  // small integers: every sum is exact

    const auto device = Device::open();
    const auto x = device.upload(host, "x");
    auto norms = device.buffer<float>(rows, "norms"), maxima = device.buffer<float>(rows, "maxima");
    const Grid four_rows_a_block{{(rows + 3) / 4}, {128}};
    device.launch(row_norms, four_rows_a_block, x.view(rows, columns), norms);
    device.launch(row_maxima, four_rows_a_block, x.view(rows, columns), maxima);

    bool right = true;
    const std::vector<float> norm = device.download(norms), maximum = device.download(maxima);
    for (std::uint32_t row = 0; row < rows; ++row) {
        float squares = 0, largest = 0;
        for (std::uint32_t column = 0; column < columns; ++column) {
            const float element = host[row * columns + column];
            squares += element * element, largest = std::max(largest, element);
        }
        right = right && norm[row] == squares && maximum[row] == largest;
    }
    std::printf("row 0: squares %g, maximum %g; all %s\n", double(norm[0]), double(maximum[0]),
                right ? "right" : "WRONG");
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
