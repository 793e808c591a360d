// SPDX-License-Identifier: Apache-2.0
// Memory traffic counted by the emulator: a transposition in which each warp writes a column, and the library's, which
// uses shared memory. docs/emulator.md explains the numbers.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <cstdio>
#include <vector>

using namespace ikat;

const auto transpose = kernel("transpose_directly", params("x", "y", "rows", "columns"),
                              [](In<float> x, Out<float> y, u32 rows, u32 columns) {
                                  for (auto i : grid_stride(rows * columns)) y[i % columns * rows + i / columns] = x[i];
                              });

void print(const LaunchTraffic& launch) {
    std::printf("%s\n", launch.entry.c_str());
    for (const BufferTraffic& buffer : launch.buffers)
        for (const Traffic& part : {buffer.read, buffer.written})
            if (part.accesses)
                std::printf("  %s: %d bytes asked for, %d moved, efficiency %.3f\n", buffer.name.c_str(),
                            int(part.requested), int(part.moved), part.efficiency());
}

int main() try {
    std::vector<LaunchTraffic> traffic;
    const auto device = Device::open({.device = "emulator", .traffic = &traffic});
    const std::uint32_t rows = 256, columns = 128;
    const auto x = device.upload(std::vector<float>(rows * columns, 1.0f), "x");
    auto y = device.buffer<float>(rows * columns, "y");
    device.launch(transpose, grid(rows * columns, 256), x, y, rows, columns);
    stdlib::transpose(device, x.view(rows, columns), y.view(columns, rows));
    for (const LaunchTraffic& launch : traffic) print(launch);
    return traffic[1].buffers[1].written.moved == rows * columns * sizeof(float) ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
