// SPDX-License-Identifier: Apache-2.0
// Kernels whose threads exchange elements, and those that read neighbours.
#include "bench/code_quality/samples.hpp"

#include <ikat/dsl.hpp>

namespace ikat::bench {
namespace {

const auto stencil =
    kernel("stencil", params("x", "y", "columns", "rows"), [](In<float> x, Out<float> y, u32 columns, u32 rows) {
        u32 j = global_id().x, i = global_id().y;
        return_if((i == 0) | (j == 0) | (i >= rows - 1) | (j >= columns - 1));
        u32 at = i * columns + j;
        y[at] = fma(x[at], 0.5f, (x[at - 1] + x[at + 1] + x[at - columns] + x[at + columns]) * 0.125f);
    });

const auto sobel = kernel(
    "sobel", params("x", "y", "columns", "rows"), [](In<std::uint8_t> x, Out<std::uint8_t> y, u32 columns, u32 rows) {
        u32 j = global_id().x, i = global_id().y;
        return_if((i == 0) | (j == 0) | (i >= rows - 1) | (j >= columns - 1));
        u32 at = i * columns + j;
        const auto pixel = [&](const auto& index) { return value(cast<i32>(x[index])); };
        auto a = pixel(at - columns - 1), b = pixel(at - columns), c = pixel(at - columns + 1), d = pixel(at - 1),
             e = pixel(at + 1), f = pixel(at + columns - 1), g = pixel(at + columns), h = pixel(at + columns + 1);
        i32 across = c + 2 * e + h - a - 2 * d - f, down = f + 2 * g + h - a - 2 * b - c;
        y[at] = cast<u8>(min(abs(across) + abs(down), 255));
    });

const auto transpose = kernel("transpose", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 32, 33> tile;
    u32 tx = thread_id().x, ty = thread_id().y, column = block_id().x * 32, row = block_id().y * 32;
    for (std::uint32_t k = 0; k < 32; k += 8) tile[ty + k, tx] = x[(row + ty + k) * n + column + tx];
    sync_block();
    for (std::uint32_t k = 0; k < 32; k += 8) y[(column + ty + k) * n + row + tx] = tile[tx, ty + k];
});

const auto scan = kernel("scan", params("x", "y"), [](In<std::uint32_t> x, Out<std::uint32_t> y) {
                      Shared<std::uint32_t, 8> sums;
                      u32 t = thread_id().x, lane = t % 32, warp = t / 32, i = block_id().x * 256 + t;
                      u32 v = x[i];
                      for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
                          auto below = shuffle_up(v, distance);
                          v = select(lane >= distance, v + below, v);
                      }
                      if_(lane == 31, [&] { sums[warp] = v; });
                      sync_block();
                      u32 before = 0;
                      for (std::uint32_t k = 0; k < 7; ++k) {
                          auto part = value(sums[k]);
                          before += select(warp > k, part, 0u);
                      }
                      y[i] = v + before;
                  }).launch_bounds(256);

const auto scan4 = kernel("scan4", params("x", "y"),
                          [](In<std::uint32_t> x, Out<std::uint32_t> y) {
                              Shared<std::uint32_t, 8> sums;
                              u32 t = thread_id().x, lane = t % 32, warp = t / 32, i = block_id().x * 256 + t;
                              auto own = value(x.vec<4>(i));
                              u32 a = own[0], b = a + own[1], c = b + own[2], d = c + own[3], v = d;
                              for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
                                  auto below = shuffle_up(v, distance);
                                  v = select(lane >= distance, v + below, v);
                              }
                              if_(lane == 31, [&] { sums[warp] = v; });
                              sync_block();
                              u32 before = v - d;
                              for (std::uint32_t k = 0; k < 7; ++k) {
                                  auto part = value(sums[k]);
                                  before += select(warp > k, part, 0u);
                              }
                              y.vec<4>(i) = {before + a, before + b, before + c, before + d};
                          })
                       .require(aligned<16>("x"), aligned<16>("y"))
                       .launch_bounds(256);

const auto histogram =
    kernel("histogram", params("x", "y", "n"), [](In<std::uint8_t> x, InOut<std::uint32_t> y, u32 n) {
        Shared<std::uint32_t, 256> bins;
        u32 t = thread_id().x;
        bins[t] = 0;
        sync_block();
        for (auto i : grid_stride(n)) {
            auto bin = value(cast<u32>(x[i]));
            atomic_add(bins[bin], 1);
        }
        sync_block();
        auto own = value(bins[t]);
        atomic_add(y[t], own);
    }).launch_bounds(256);

const auto bitonic = kernel("bitonic", params("x", "y"), [](In<std::uint32_t> x, Out<std::uint32_t> y) {
                         Shared<std::uint32_t, 512> s;
                         u32 t = thread_id().x, first = block_id().x * 512;
                         s[t] = x[first + t];
                         s[t + 256] = x[first + t + 256];
                         sync_block();
                         u32 size = 2;
                         while_([&] { return size <= 512; },
                                [&] {
                                    u32 stride = size / 2;
                                    while_([&] { return stride > 0; },
                                           [&] {
                                               auto low = value(2 * t - (t & (stride - 1)));
                                               auto high = value(low + stride);
                                               auto a = value(s[low]), b = value(s[high]);
                                               auto up = value((low & size) == 0);
                                               s[low] = select(up, min(a, b), max(a, b));
                                               s[high] = select(up, max(a, b), min(a, b));
                                               sync_block();
                                               stride = stride / 2;
                                           });
                                    size = size * 2;
                                });
                         y[first + t] = s[t];
                         y[first + t + 256] = s[t + 256];
                     }).launch_bounds(256);

}  // namespace

std::vector<Row> blocks() {
    return {
        {"stencil", "stencil*", stencil, {3, 6}, {32, 8}, {floats(4000), zeros(4000), 80u, 50u}},
        {"sobel", "Sobel*", sobel, {3, 6}, {32, 8}, {words(1000), zeros(1000), 80u, 50u}},
        {"transpose", "transpose*", transpose, {3, 3}, {32, 8}, {floats(9216), zeros(9216), 96u}},
        {"scan", "scan*", scan, {4, 1}, {256, 1}, {words(1024), zeros(1024)}},
        {"scan4", "scan of 4*", scan4, {4, 1}, {256, 1}, {words(4096), zeros(4096)}},
        {"histogram", "histogram", histogram, {4, 1}, {256, 1}, {words(2500), zeros(256), 10000u}, {{"ATOMS"}}},
        {"bitonic", "bitonic sort", bitonic, {3, 1}, {256, 1}, {words(1536), zeros(1536)}, {{"STS", 2}}},
    };
}

}  // namespace ikat::bench
