// SPDX-License-Identifier: Apache-2.0
// Kernels whose threads have elements of their own.
#include "bench/code_quality/samples.hpp"

#include <ikat/dsl.hpp>

namespace ikat::bench {
namespace {

const auto saxpy = kernel("saxpy", params("x", "y", "a", "n"), [](In<float> x, InOut<float> y, f32 a, u32 n) {
    for (auto i : grid_stride(n)) y[i] = fma(a, x[i], y[i]);
});

const auto scale4 = kernel("scale4", params("x", "a", "n"), [](InOut<float> x, f32 a, u32 n) {
                        for (auto i : grid_stride(n)) x.vec<4>(i) *= a;
                    }).require(aligned<16>("x"));

const auto grey = kernel("grey", params("x", "y", "n"), [](In<std::uint32_t> x, Out<std::uint8_t> y, u32 n) {
    u32 i = global_id().x;
    return_if(i >= n);
    auto p = value(x[i]);
    y[i] = cast<u8>(((p & 255) * 77 + (p >> 8 & 255) * 150 + (p >> 16 & 255) * 29) >> 8);
});

const auto philox = kernel("philox", params("y", "key0", "key1"), [](Out<std::uint32_t> y, u32 key0, u32 key1) {
                        u32 i = global_id().x, a = i, b = 0, c = 0, d = 0, k0 = key0, k1 = key1;
                        for (int round = 0; round < 10; ++round) {
                            auto high0 = value(mul_hi(a, 0xd2511f53u)), low0 = value(a * 0xd2511f53u);
                            auto high1 = value(mul_hi(c, 0xcd9e8d57u)), low1 = value(c * 0xcd9e8d57u);
                            a = high1 ^ b ^ k0, b = low1, c = high0 ^ d ^ k1, d = low0;
                            k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
                        }
                        y.vec<4>(i) = {a, b, c, d};
                    }).require(aligned<16>("y"));

const auto rope = kernel("rope", params("x", "cosines", "sines", "half", "heads", "n"),
                         [](InOut<float> x, In<float> cosines, In<float> sines, u32 half, u32 heads, u32 n) {
                             u32 i = global_id().x;
                             return_if(i >= n);
                             u32 position = i / (half * heads), at = position * half + i % half;
                             auto pair = value(x.vec<2>(i));
                             auto c = value(cosines[at]), s = value(sines[at]);
                             x.vec<2>(i) = {fma(pair[0], c, -(pair[1] * s)), fma(pair[0], s, pair[1] * c)};
                         })
                      .require(aligned<8>("x"));

const auto mandelbrot =
    kernel("mandelbrot", params("y", "columns", "most"), [](Out<std::uint32_t> y, u32 columns, u32 max_steps) {
        u32 j = global_id().x, i = global_id().y;
        auto cx = value(fma(cast<f32>(j), 0.02f, -2.0f)), cy = value(fma(cast<f32>(i), 0.05f, -1.0f));
        f32 a = 0, b = 0;
        u32 steps = 0;
        while_([&] { return (steps < max_steps) & (fma(a, a, b * b) < 4.0f); },
               [&] {
                   auto next = value(fma(a, a, cx) - b * b);
                   b = fma(a * 2, b, cy);
                   a = next;
                   ++steps;
               });
        y[i * columns + j] = steps;
    });

const auto nbody = kernel("nbody", params("bodies", "forces", "n"),
                          [](In<float> bodies, Out<float> forces, u32 n) {
                              Shared<float, 128, 4> tile;
                              u32 t = thread_id().x, i = block_id().x * 128 + t;
                              auto own = bodies.vec<4>(i);
                              f32 fx = 0, fy = 0, fz = 0;
                              for (auto first : range(0u, n, 128u)) {
                                  tile.flat().vec<4>(t) = bodies.vec<4>(first + t);
                                  sync_block();
                                  for (auto k : range(128u)) {
                                      auto other = tile.flat().vec<4>(k);
                                      auto dx = value(other[0] - own[0]), dy = value(other[1] - own[1]),
                                           dz = value(other[2] - own[2]);
                                      auto r = value(approx::rsqrt(fma(dx, dx, fma(dy, dy, fma(dz, dz, 0.01f)))));
                                      auto s = value(other[3] * (r * r * r));
                                      fx = fma(dx, s, fx), fy = fma(dy, s, fy), fz = fma(dz, s, fz);
                                  }
                                  sync_block();
                              }
                              forces.vec<4>(i) = {fx, fy, fz, f32(0)};
                          })
                       .require(aligned<16>("bodies"), aligned<16>("forces"))
                       .launch_bounds(128);

}  // namespace

std::vector<Row> elements() {
    constexpr std::uint32_t n = 3000;
    return {
        {"saxpy", "saxpy", saxpy, {4, 1}, {256, 1}, {floats(n), floats(n), 2.0f, n}, {{"LDG", 2}}},
        {"scale4", "scale by float4", scale4, {2, 1}, {256, 1}, {floats(4 * n), 2.0f, n}, {{"STG"}}},
        {"grey", "RGBA to grey*", grey, {12, 1}, {256, 1}, {words(n), zeros(n), n}},
        {"philox", "Philox*", philox, {4, 1}, {256, 1}, {zeros(4096), 17u, 42u}},
        {"rope", "rope*", rope, {12, 1}, {256, 1}, {floats(2 * n), floats(n), floats(n), 40u, 5u, n}},
        {"mandelbrot", "Mandelbrot", mandelbrot, {5, 5}, {32, 8}, {zeros(6400), 160u, 50u}, {{"FSETP"}}},
        {"nbody", "n-body", nbody, {3, 1}, {128, 1}, {floats(1536), zeros(1536), 384u}, {{"MUFU.RSQ"}}},
    };
}

}  // namespace ikat::bench
