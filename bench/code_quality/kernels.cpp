// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels.cu in ikat.
#include "bench/code_quality/kernels.hpp"

#include <cstring>
#include <limits>

#include "stdlib/math/math.hpp"

#include <ikat/dsl.hpp>

namespace ikat::bench {
namespace {

const auto saxpy = kernel("saxpy", params("x", "y", "a", "n"), [](In<float> x, InOut<float> y, f32 a, u32 n) {
    for (auto i : grid_stride(n)) y[i] = fma(a, x[i], y[i]);
});

const auto scale4 = kernel("scale4", params("x", "a", "n"), [](InOut<float> x, f32 a, u32 n) {
                        for (auto i : grid_stride(n)) x.vec<4>(i) *= a;
                    }).require(aligned<16>("x"));

/// A reduction over all threads of a block of 256.
auto of_block(const auto& own, auto&& combine) {
    require_linear_blocks();
    Shared<float, 8> parts;
    f32 v = own;
    for (int distance = 16; distance > 0; distance /= 2) v = combine(v, shuffle_xor(v, distance));
    if_(lane_id() == 0, [&] { parts[warp_id()] = v; });
    sync_block();
    f32 all = parts[0];
    for (int k = 1; k < 8; ++k) all = combine(all, parts[k]);
    sync_block();
    return value(all);
}
const auto added = [](const auto& a, const auto& b) { return a + b; };
const auto larger = [](const auto& a, const auto& b) { return max(a, b); };

const auto sum = kernel("sum", params("x", "y", "n"), [](In<float> x, InOut<float> y, u32 n) {
                     f32 v = 0;
                     for (auto i : grid_stride(n)) v += x[i];
                     auto all = of_block(v, added);
                     if_(thread_id().x == 0, [&] { y[block_id().x] = all; });
                 }).launch_bounds(256);

const auto softmax = kernel("softmax", params("x", "y", "columns"), [](In<float> x, Out<float> y, u32 columns) {
                         auto row = x.slice(cast<u64>(block_id().x) * cast<u64>(columns));
                         auto out = y.slice(cast<u64>(block_id().x) * cast<u64>(columns));
                         f32 maximum = -std::numeric_limits<float>::max();
                         for (auto i : range(thread_id().x, columns, 256u)) maximum = max(maximum, row[i]);
                         auto highest = of_block(maximum, larger);
                         f32 total = 0;
                         for (auto i : range(thread_id().x, columns, 256u))
                             total += stdlib::exp(value(row[i] - highest));
                         auto factor = value(rcp(of_block(total, added)));
                         for (auto i : range(thread_id().x, columns, 256u))
                             out[i] = stdlib::exp(value(row[i] - highest)) * factor;
                     }).launch_bounds(256);

const auto layernorm =
    kernel("layernorm", params("x", "y", "columns", "scale"), [](In<float> x, Out<float> y, u32 columns, f32 scale) {
        auto row = x.slice(cast<u64>(block_id().x) * cast<u64>(columns));
        auto out = y.slice(cast<u64>(block_id().x) * cast<u64>(columns));
        f32 total = 0;
        for (auto i : range(thread_id().x, columns, 256u)) total += row[i];
        auto mean = value(of_block(total, added) * scale);
        f32 squares = 0;
        for (auto i : range(thread_id().x, columns, 256u)) {
            auto from_mean = value(row[i] - mean);
            squares = fma(from_mean, from_mean, squares);
        }
        auto factor = value(approx::rsqrt(fma(of_block(squares, added), scale, 1e-5f)));
        for (auto i : range(thread_id().x, columns, 256u)) out[i] = (row[i] - mean) * factor;
    }).launch_bounds(256);

const auto matmul = kernel("matmul", params("A", "B", "C", "n"), [](In<float> A, In<float> B, Out<float> C, u32 n) {
    u32 i = global_id().y, j = global_id().x;
    return_if((i >= n) | (j >= n));
    f32 v = 0;
    for (auto k : range(n)) v = fma(A[i * n + k], B[k * n + j], v);
    C[i * n + j] = v;
});

const auto gemm = kernel("gemm", params("A", "B", "C", "n"),
                         [](In<float> A, In<float> B, Out<float> C, u32 n) {
                             Shared<float, 16, 64> a, b;
                             u32 t = thread_id().x, row = t / 16 * 4, column = t % 16 * 4;
                             u32 first_row = block_id().y * 64, first_column = block_id().x * 64;
                             Regs<f32, 16> sums(0);
                             for (auto slice : range(0u, n, 16u)) {
                                 for (std::uint32_t s = 0; s < 4; ++s) {
                                     auto at = value(t + 256 * s);
                                     a[at % 16, at / 16] = A[(first_row + at / 16) * n + slice + at % 16];
                                     b[at / 64, at % 64] = B[(slice + at / 64) * n + first_column + at % 64];
                                 }
                                 sync_block();
                                 for (std::uint32_t k = 0; k < 16; ++k) {
                                     auto x = a.flat().vec<4>((row + 64 * k) / 4);
                                     auto y = b.flat().vec<4>((column + 64 * k) / 4);
                                     for (int i = 0; i < 4; ++i)
                                         for (int j = 0; j < 4; ++j) sums[4 * i + j] = fma(x[i], y[j], sums[4 * i + j]);
                                 }
                                 sync_block();
                             }
                             for (int i = 0; i < 4; ++i)
                                 C.vec<4>(((first_row + row + i) * n + first_column + column) / 4) = {
                                     sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
                         })
                      .require(multiple_of<16>("n"), aligned<16>("C"))
                      .launch_bounds(256);

const auto stencil =
    kernel("stencil", params("x", "y", "columns", "rows"), [](In<float> x, Out<float> y, u32 columns, u32 rows) {
        u32 j = global_id().x, i = global_id().y;
        return_if((i == 0) | (j == 0) | (i >= rows - 1) | (j >= columns - 1));
        u32 at = i * columns + j;
        y[at] = fma(x[at], 0.5f, (x[at - 1] + x[at + 1] + x[at - columns] + x[at + columns]) * 0.125f);
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

const auto q4k = kernel("q4k", params("x", "y"),
                        [](In<std::uint8_t> x, Out<float> y) {
                            u32 t = thread_id().x, group = t / 32, lane = t % 32;
                            auto block = x.slice(cast<u64>(block_id().x) * 144);
                            auto halves = block.as<half>();
                            auto d = value(cast<f32>(halves[0])), minimum = value(cast<f32>(halves[1]));
                            u32 q = cast<u32>(block[16 + t]);
                            auto out = y.slice(cast<u64>(block_id().x) * 256).slice(group * 64 + lane);
                            for (std::uint32_t part = 0; part < 2; ++part) {
                                u32 j = group * 2 + part, scale, offset;
                                const auto at = [&](const auto& i) { return cast<u32>(block[i]); };
                                if_(j < 4, [&] {
                                    scale = at(4 + j) & 63;
                                    offset = at(8 + j) & 63;
                                }).else_([&] {
                                    scale = (at(8 + j) & 15) | (at(j) >> 6) << 4;
                                    offset = at(8 + j) >> 4 | (at(4 + j) >> 6) << 4;
                                });
                                u32 number = part ? u32(q >> 4) : u32(q & 15);
                                out[part * 32] =
                                    fma(d * cast<f32>(scale), cast<f32>(number), -(minimum * cast<f32>(offset)));
                            }
                        })
                     .require(aligned<4>("x"))
                     .launch_bounds(128);

const auto gemv_dp4a = kernel("gemv_dp4a", params("A", "x", "y", "words"),
                              [](In<std::int32_t> A, In<std::int32_t> x, Out<std::int32_t> y, u32 words) {
                                  u32 row = block_id().x * 8 + thread_id().x / 32, lane = thread_id().x % 32;
                                  i32 v = 0;
                                  for (auto k : range(lane, words, 32u)) v = dp4a(A[row * words + k], x[k], v);
                                  for (int distance = 16; distance > 0; distance /= 2) v += shuffle_xor(v, distance);
                                  if_(lane == 0, [&] { y[row] = v; });
                              })
                           .launch_bounds(256);

const auto conv = kernel("conv", params("x", "w", "y", "channels", "rows", "columns"),
                         [](In<float> x, In<float> w, Out<float> y, u32 channels, u32 rows, u32 columns) {
                             u32 j = global_id().x, i = global_id().y;
                             return_if((i >= rows) | (j >= columns));
                             f32 v = 0;
                             for (auto c : range(channels))
                                 for (std::uint32_t di = 0; di < 3; ++di)
                                     for (std::uint32_t dj = 0; dj < 3; ++dj) {
                                         auto r = value(i + di - 1), s = value(j + dj - 1);
                                         if_((r < rows) & (s < columns), [&] {
                                             v = fma(x[(c * rows + r) * columns + s], w[c * 9 + (di * 3 + dj)], v);
                                         });
                                     }
                             y[i * columns + j] = v;
                         });

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

const auto gemv_i8 = kernel("gemv_i8", params("A", "x", "y", "vectors"),
                            [](In<std::int8_t> A, In<float> x, Out<float> y, u32 vectors) {
                                u32 row = block_id().x * 8 + thread_id().x / 32, lane = thread_id().x % 32;
                                f32 v = 0;
                                for (auto k : range(lane, vectors, 32u)) {
                                    auto a = value(A.vec<4>(row * vectors + k));
                                    auto b = value(x.vec<4>(k));
                                    for (int i = 0; i < 4; ++i) v = fma(cast<f32>(a[i]), b[i], v);
                                }
                                for (int distance = 16; distance > 0; distance /= 2) v += shuffle_xor(v, distance);
                                if_(lane == 0, [&] { y[row] = v; });
                            })
                         .require(aligned<4>("A"), aligned<16>("x"))
                         .launch_bounds(256);

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

const auto batched4x4 =
    kernel("batched4x4", params("A", "B", "C", "n"), [](In<float> A, In<float> B, Out<float> C, u32 n) {
        u32 i = global_id().x;
        return_if(i >= n);
        auto b0 = value(B.vec<4>(i * 4)), b1 = value(B.vec<4>(i * 4 + 1)), b2 = value(B.vec<4>(i * 4 + 2)),
             b3 = value(B.vec<4>(i * 4 + 3));
        for (std::uint32_t row = 0; row < 4; ++row) {
            auto a = value(A.vec<4>(i * 4 + row));
            C.vec<4>(i * 4 + row) = fma(a[3], b3, fma(a[2], b2, fma(a[1], b1, a[0] * b0)));
        }
    }).require(aligned<16>("A"), aligned<16>("B"), aligned<16>("C"));

const auto masked_softmax = kernel("masked_softmax", params("x", "mask", "y", "columns"),
                                   [](In<bfloat16> x, In<std::uint8_t> mask, Out<float> y, u32 columns) {
                                       auto row = x.slice(cast<u64>(block_id().x) * cast<u64>(columns));
                                       auto out = y.slice(cast<u64>(block_id().x) * cast<u64>(columns));
                                       const auto masked = [&](const auto& i) {
                                           auto bits = value(cast<f32>(row[i]));
                                           return value(select((cast<u32>(mask[i]) & 1) != 0, bits, f32(-1e30f)));
                                       };
                                       f32 maximum = -1e30f;
                                       for (auto i : range(thread_id().x, columns, 256u))
                                           maximum = max(maximum, masked(i));
                                       auto highest = of_block(maximum, larger);
                                       f32 total = 0;
                                       for (auto i : range(thread_id().x, columns, 256u))
                                           total += stdlib::exp(value(masked(i) - highest));
                                       auto factor = value(rcp(of_block(total, added)));
                                       for (auto i : range(thread_id().x, columns, 256u))
                                           out[i] = stdlib::exp(value(masked(i) - highest)) * factor;
                                   })
                                .launch_bounds(256);

const auto top4 =
    kernel("top4", params("x", "y", "columns", "rows"), [](In<float> x, Out<float> y, u32 columns, u32 rows) {
        u32 row = global_id().x;
        return_if(row >= rows);
        f32 a = -1e30f, b = -1e30f, c = -1e30f, d = -1e30f;
        for (auto i : range(columns)) {
            f32 v = x[i * rows + row];
            const auto keep = [&](f32& of) {
                auto less = value(min(of, v));
                of = max(of, v);
                v = less;
            };
            keep(a), keep(b), keep(c);
            d = max(d, v);
        }
        y.vec<4>(row) = {a, b, c, d};
    }).require(aligned<16>("y"));

const auto layernorm_backward =
    kernel("layernorm_backward", params("x", "dy", "gamma", "dx", "columns", "scale", "mean", "factor"),
           [](In<float> x, In<float> dy, In<float> gamma, Out<float> dx, u32 columns, f32 scale, f32 mean, f32 factor) {
               auto first = value(cast<u64>(block_id().x) * cast<u64>(columns));
               auto row = x.slice(first), above = dy.slice(first);
               auto out = dx.slice(first);
               f32 sum = 0, product = 0;
               for (auto i : range(thread_id().x, columns, 256u)) {
                   auto g = value(above[i] * gamma[i]);
                   sum += g;
                   product = fma(g, (row[i] - mean) * factor, product);
               }
               auto mean_sum = value(of_block(sum, added) * scale);
               auto mean_product = value(of_block(product, added) * scale);
               for (auto i : range(thread_id().x, columns, 256u)) {
                   auto g = value(above[i] * gamma[i]);
                   out[i] = (g - fma((row[i] - mean) * factor, mean_product, mean_sum)) * factor;
               }
           })
        .launch_bounds(256);

template <class T>
Bytes bytes(const std::vector<T>& values) {
    Bytes out(values.size() * sizeof(T));
    std::memcpy(out.data(), values.data(), out.size());
    return out;
}
/// Small numbers, whose sums are exact.
Bytes floats(std::size_t count) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = float(int(i * 2654435761u >> 20 & 31) - 16) / 8;
    return bytes(out);
}
Bytes words(std::size_t count) {
    std::vector<std::uint32_t> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = std::uint32_t(i * 2654435761u ^ i >> 3);
    return bytes(out);
}
Bytes brain_floats(std::size_t count) {
    const Bytes wide = floats(count);
    Bytes out(count * 2);
    for (std::size_t i = 0; i < count; ++i) std::memcpy(&out[2 * i], &wide[4 * i + 2], 2);
    return out;
}
Bytes zeros(std::size_t count) { return Bytes(count * 4); }

/// Super-blocks of Q4_K with the scales 1 and 1/2.
Bytes quantised(std::size_t blocks) {
    Bytes out = words(blocks * 36);
    for (std::size_t b = 0; b < blocks; ++b) std::memcpy(&out[b * 144], "\x00\x3c\x00\x38", 4);
    return out;
}

}  // namespace

std::vector<Row> rows() {
    constexpr std::uint32_t n = 3000;
    const std::vector<nvdisasm::Loop> softmax_loops{
        {"LDG", 1, "FMNMX", {"FFMA"}}, {"LDG", 1, "FFMA", {"STG"}}, {"STG", 1, "FFMA"}};
    const std::vector<nvdisasm::Loop> masked_loops{
        {"LDG", 2, "FMNMX", {"FFMA"}}, {"LDG", 2, "FFMA", {"STG"}}, {"STG", 1, "FFMA"}};
    const std::vector<nvdisasm::Loop> layernorm_loops{
        {"LDG", 1, "FADD", {"FFMA", "STG"}}, {"LDG", 1, "FFMA", {"STG"}}, {"STG"}};
    return {
        {"saxpy", "saxpy", saxpy, {4, 1}, {256, 1}, {floats(n), floats(n), 2.0f, n}, {{"LDG", 2}}},
        {"scale4", "scale by float4", scale4, {2, 1}, {256, 1}, {floats(4 * n), 2.0f, n}, {{"STG"}}},
        {"sum", "sum", sum, {4, 1}, {256, 1}, {floats(n), zeros(4), n}, {{"LDG"}}},
        {"softmax", "softmax row", softmax, {2, 1}, {256, 1}, {floats(2 * n), zeros(2 * n), n}, softmax_loops, 1e-5},
        {"layernorm",
         "layernorm row",
         layernorm,
         {2, 1},
         {256, 1},
         {floats(2 * n), zeros(2 * n), n, 1.0f / float(n)},
         layernorm_loops,
         1e-5},
        {"matmul",
         "naive matmul",
         matmul,
         {3, 3},
         {16, 16},
         {floats(1600), floats(1600), zeros(1600), 40u},
         {{"FFMA"}}},
        {"gemm",
         "gemm 64x64x16",
         gemm,
         {2, 2},
         {256, 1},
         {floats(16384), floats(16384), zeros(16384), 128u},
         {{"FFMA"}}},
        {"stencil", "stencil*", stencil, {3, 6}, {32, 8}, {floats(4000), zeros(4000), 80u, 50u}},
        {"transpose", "transpose*", transpose, {3, 3}, {32, 8}, {floats(9216), zeros(9216), 96u}},
        {"scan", "scan*", scan, {4, 1}, {256, 1}, {words(1024), zeros(1024)}},
        {"histogram", "histogram", histogram, {4, 1}, {256, 1}, {words(2500), zeros(256), 10000u}, {{"ATOMS"}}},
        {"mandelbrot", "Mandelbrot", mandelbrot, {5, 5}, {32, 8}, {zeros(6400), 160u, 50u}, {{"FSETP"}}},
        {"nbody", "n-body", nbody, {3, 1}, {128, 1}, {floats(1536), zeros(1536), 384u}, {{"MUFU.RSQ"}}},
        {"q4k", "Q4_K dequantise*", q4k, {5, 1}, {128, 1}, {quantised(5), zeros(1280)}},
        {"gemv_dp4a",
         "dp4a GEMV",
         gemv_dp4a,
         {3, 1},
         {256, 1},
         {words(24 * 200), words(200), zeros(24), 200u},
         {{"IDP"}}},
        {"conv",
         "conv 3x3",
         conv,
         {2, 4},
         {32, 8},
         {floats(5 * 1500), floats(45), zeros(1500), 5u, 30u, 50u},
         {{"FFMA", 9}}},
        {"bitonic", "bitonic sort", bitonic, {3, 1}, {256, 1}, {words(1536), zeros(1536)}, {{"STS", 2}}},
        {"grey", "RGBA to grey*", grey, {12, 1}, {256, 1}, {words(n), zeros(n), n}},
        {"philox", "Philox*", philox, {4, 1}, {256, 1}, {zeros(4096), 17u, 42u}},
        {"rope", "rope*", rope, {12, 1}, {256, 1}, {floats(2 * n), floats(n), floats(n), 40u, 5u, n}},
        {"gemv_i8",
         "int8 GEMV",
         gemv_i8,
         {3, 1},
         {256, 1},
         {words(24 * 200), floats(800), zeros(24), 200u},
         {{"FFMA", 4}}},
        {"scan4", "scan of 4*", scan4, {4, 1}, {256, 1}, {words(4096), zeros(4096)}},
        {"sobel", "Sobel*", sobel, {3, 6}, {32, 8}, {words(1000), zeros(1000), 80u, 50u}},
        {"batched4x4", "batched 4x4*", batched4x4, {2, 1}, {128, 1}, {floats(3200), floats(3200), zeros(3200), 200u}},
        {"masked_softmax",
         "masked softmax",
         masked_softmax,
         {2, 1},
         {256, 1},
         {brain_floats(2 * n), words(n / 4), zeros(2 * n), n},
         masked_loops,
         1e-5},
        {"top4", "top 4", top4, {2, 1}, {128, 1}, {floats(200 * 50), zeros(800), 50u, 200u}, {{"LDG"}}},
        {"layernorm_backward",
         "layernorm backward",
         layernorm_backward,
         {2, 1},
         {256, 1},
         {floats(2 * n), floats(2 * n), floats(n), zeros(2 * n), n, 1.0f / float(n), 0.25f, 1.5f},
         {{"LDG", 3, "", {"STG"}}, {"STG"}},
         1e-5},
    };
}

}  // namespace ikat::bench
