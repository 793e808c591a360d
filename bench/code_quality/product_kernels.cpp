// SPDX-License-Identifier: Apache-2.0
// Products of matrices, also of quantised ones, and a convolution.
#include "bench/code_quality/samples.hpp"

#include <ikat/dsl.hpp>

namespace ikat::bench {
namespace {

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

const auto gemv_dp4a = kernel("gemv_dp4a", params("A", "x", "y", "words"),
                              [](In<std::int32_t> A, In<std::int32_t> x, Out<std::int32_t> y, u32 words) {
                                  u32 row = block_id().x * 8 + thread_id().x / 32, lane = thread_id().x % 32;
                                  i32 v = 0;
                                  for (auto k : range(lane, words, 32u)) v = dp4a(A[row * words + k], x[k], v);
                                  for (int distance = 16; distance > 0; distance /= 2) v += shuffle_xor(v, distance);
                                  if_(lane == 0, [&] { y[row] = v; });
                              })
                           .launch_bounds(256);

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

}  // namespace

std::vector<Row> products() {
    return {
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
        {"batched4x4", "batched 4x4*", batched4x4, {2, 1}, {128, 1}, {floats(3200), floats(3200), zeros(3200), 200u}},
        {"gemv_dp4a",
         "dp4a GEMV",
         gemv_dp4a,
         {3, 1},
         {256, 1},
         {words(24 * 200), words(200), zeros(24), 200u},
         {{"IDP"}}},
        {"gemv_i8",
         "int8 GEMV",
         gemv_i8,
         {3, 1},
         {256, 1},
         {words(24 * 200), floats(800), zeros(24), 200u},
         {{"FFMA", 4}}},
        {"q4k", "Q4_K dequantise*", q4k, {5, 1}, {128, 1}, {quantised(5), zeros(1280)}},
        {"conv",
         "conv 3x3",
         conv,
         {2, 4},
         {32, 8},
         {floats(5 * 1500), floats(45), zeros(1500), 5u, 30u, 50u},
         {{"FFMA", 9}}},
    };
}

}  // namespace ikat::bench
