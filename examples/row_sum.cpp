// SPDX-License-Identifier: Apache-2.0
// The program in README.md: a user's own kernel that sums each row of a matrix, one block per row.
// clang-format off
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>
#include <cstdio>
#include <vector>
using namespace ikat;

const auto row_sum = kernel("row_sum", params("x", "y", "rows", "columns"),
    [](In<float> x, Out<float> y, u32 rows, u32 columns) {
        u32 row = block_id().x;
        return_if(row >= rows);
        f32 sum = 0;
        for (auto c : range(thread_id().x, columns, block_dim().x))  // a loop on the device
            sum += x[row * columns + c];
        sum = stdlib::block_sum(sum);                                // shuffles and shared memory
        if_(thread_id().x == 0, [&] { y[row] = sum; });
    });

int main() {
    const auto device = runtime::Device::open();  // a GPU where there is one, else the emulator
    const auto x = device.upload(std::vector<float>(5 * 1000, 1.0f));
    auto y = device.buffer<float>(5);
    device.launch(row_sum, runtime::Grid{{5}, {128}}, x, y, 5, 1000);
    for (float sum : device.download(y)) std::printf("%g\n", sum);
}
