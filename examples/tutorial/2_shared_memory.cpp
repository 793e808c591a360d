// SPDX-License-Identifier: Apache-2.0
// Step 2 of the tutorial: threads of a block work together through shared memory and barriers.
#include <ikat/ikat.hpp>

#include <cstdio>
#include <vector>

using namespace ikat;

constexpr std::uint32_t side = 16;  // of a tile, and of a block of threads

const auto transpose = kernel("transpose", params("x", "y"), [](In<float, 2> x, Out<float, 2> y) {
    Shared<float, side, side + 1> tile;
    const auto block = block_id(), thread = thread_id();

    u32 row = block.y * side + thread.y, column = block.x * side + thread.x;
    if_((row < x.extent(0)) & (column < x.extent(1)), [&] { tile[thread.y, thread.x] = x[row, column]; });
    sync_block();

    row = block.x * side + thread.y, column = block.y * side + thread.x;
    if_((row < y.extent(0)) & (column < y.extent(1)), [&] { y[row, column] = tile[thread.x, thread.y]; });
});

const auto waits_in_vain = kernel("waits_in_vain", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 256> row;
    u32 i = thread_id().x;
    if_(i < n, [&] {
        row[i] = x[i];
        sync_block();
        y[i] = row[n - 1 - i];
    });
});

int main() try {
    const std::uint32_t rows = 100, columns = 70;
    std::vector<float> host(rows * columns);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = float(i);

    const auto device = Device::open();
    const auto x = device.upload(host, "x");
    auto y = device.buffer<float>(host.size(), "y");
    const Grid tiles{{(columns + side - 1) / side, (rows + side - 1) / side}, {side, side}};
    device.launch(transpose, tiles, x.view(rows, columns), y.view(columns, rows));

    bool right = true;
    const std::vector<float> result = device.download(y);
    for (std::uint32_t row = 0; row < rows; ++row)
        for (std::uint32_t column = 0; column < columns; ++column)
            right = right && result[column * rows + row] == host[row * columns + column];
    std::printf("transposed: %s\n", right ? "right" : "WRONG");

    try {
        waits_in_vain.check();
        return 1;
    } catch (const Error& error) { std::printf("%s\n", error.what()); }
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
