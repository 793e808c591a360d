// SPDX-License-Identifier: Apache-2.0
// A kernel of one's own: the sum of each row of a matrix, a block per row.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <cstdio>
#include <vector>

using namespace ikat;

const auto row_sum =
    kernel("row_sum", params("x", "y", "rows", "columns"), [](In<float> x, Out<float> y, u32 rows, u32 columns) {
        u32 row = block_id().x;
        return_if(row >= rows);
        f32 sum = 0;
        for (auto c : range(thread_id().x, columns, block_dim().x)) sum += x[row * columns + c];
        sum = stdlib::block_sum(sum);
        if_(thread_id().x == 0, [&] { y[row] = sum; });
    });

int main() try {
    const std::uint32_t rows = 5, columns = 1000;
    std::vector<float> host(rows * columns);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = float(i % 7);  // small integers: every sum is exact

    const auto device = runtime::Device::open();
    const auto x = device.upload(host, "x");
    auto y = device.buffer<float>(rows, "y");
    device.launch(row_sum, runtime::Grid{{rows}, {128}}, x, y, rows, columns);

    bool right = true;
    const std::vector<float> sums = device.download(y);
    for (std::uint32_t row = 0; row < rows; ++row) {
        float want = 0;
        for (std::uint32_t c = 0; c < columns; ++c) want += host[row * columns + c];
        std::printf("row %u: %g%s\n", row, double(sums[row]), sums[row] == want ? "" : "  WRONG");
        right = right && sums[row] == want;
    }
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
