// SPDX-License-Identifier: Apache-2.0
// Tiled matrix product in f32: C = A B, all row-major, dimensions at run time.
//
// A block computes a tile of C. It walks along k in steps: the threads bring a slice of A and a slice of B to shared
// memory, then each multiplies its own small tile out of registers.
//
//            k →                n →
//        ┌────┬──────┐      ┌──┬──────┐          ┌──┬──────┐
//      m │ As │      │    k │Bs│      │   =    m │Cs│      │      As is kept transposed, so that a thread's rows
//      ↓ └────┴──────┘    ↓ └──┴──────┘        ↓ └──┴──────┘      of A are neighbours: one vector load.
//
// Tails are masked loads of zero and guarded stores: any m, n, k, also 0.
#pragma once
#include "ikat/ikat.hpp"

namespace ikat::stdlib {

/// The tuning choices: a block's tile of C, the depth of a slice, and a thread's tile.
struct GemmTile {
    std::uint32_t m = 64, n = 64, k = 16;
    std::uint32_t thread_m = 4, thread_n = 4;
    constexpr std::uint32_t threads() const { return (m / thread_m) * (n / thread_n); }
};

using GemmKernel = Kernel<In<float>, In<float>, Out<float>, u32, u32, u32>;

/// C[m×n] = A[m×k] · B[k×n], f32, row-major. m·k, k·n and m·n must be below 2^32. k = 0 gives zeros.
template <GemmTile tile>
GemmKernel make_gemm_tiled(const char* name) {
    static_assert(tile.m % tile.thread_m == 0 && tile.n % tile.thread_n == 0,
                  "a tile is a whole number of thread tiles");
    static_assert(tile.m * tile.k % tile.threads() == 0 && tile.k * tile.n % tile.threads() == 0,
                  "a slice is a whole number of elements per thread");
    static_assert(tile.thread_m % 4 == 0 && tile.thread_n % 4 == 0,
                  "a thread reads its rows and columns four at a time");
    return kernel(name, params("A", "B", "C", "m", "n", "k"),
                  [](In<float> A, In<float> B, Out<float> C, u32 m, u32 n, u32 k) {
                      constexpr std::uint32_t threads = tile.threads();
                      Shared<float, tile.k, tile.m> As;  // transposed
                      Shared<float, tile.k, tile.n> Bs;
                      Regs<float, tile.thread_m * tile.thread_n> sum;
                      for (std::uint32_t i = 0; i < tile.thread_m * tile.thread_n; ++i) sum[i] = 0;

                      u32 thread = thread_id().x;
                      u32 tile_row = block_id().y * tile.m, tile_column = block_id().x * tile.n;
                      u32 row = thread / (tile.n / tile.thread_n) * tile.thread_m;
                      u32 column = thread % (tile.n / tile.thread_n) * tile.thread_n;

                      for (auto depth : range(0u, k, tile.k)) {
                          for (std::uint32_t i = 0; i < tile.m * tile.k / threads; ++i) {
                              u32 element = thread + i * threads;
                              u32 r = element / tile.k, c = element % tile.k;
                              As[c, r] =
                                  A.load_if((tile_row + r < m) & (depth + c < k), (tile_row + r) * k + depth + c, 0.0f);
                          }
                          for (std::uint32_t i = 0; i < tile.k * tile.n / threads; ++i) {
                              u32 element = thread + i * threads;
                              u32 r = element / tile.n, c = element % tile.n;
                              Bs[r, c] = B.load_if((depth + r < k) & (tile_column + c < n),
                                                   (depth + r) * n + tile_column + c, 0.0f);
                          }
                          sync_block();
                          for (std::uint32_t kk = 0; kk < tile.k; ++kk) {
                              Regs<float, tile.thread_m> a;
                              Regs<float, tile.thread_n> b;
                              for (std::uint32_t i = 0; i < tile.thread_m; ++i) a[i] = As[kk, row + i];
                              for (std::uint32_t j = 0; j < tile.thread_n; ++j) b[j] = Bs[kk, column + j];
                              for (std::uint32_t i = 0; i < tile.thread_m; ++i)
                                  for (std::uint32_t j = 0; j < tile.thread_n; ++j)
                                      sum[i * tile.thread_n + j] = fma(a[i], b[j], sum[i * tile.thread_n + j]);
                          }
                          sync_block();
                      }
                      for (std::uint32_t i = 0; i < tile.thread_m; ++i)
                          for (std::uint32_t j = 0; j < tile.thread_n; ++j) {
                              u32 r = tile_row + row + i, c = tile_column + column + j;
                              if_((r < m) & (c < n), [&] { C[r * n + c] = sum[i * tile.thread_n + j]; });
                          }
                  })
        .launch_bounds(tile.threads());
}

/// With the default tile.
const GemmKernel& gemm_tiled();

/// Its launch for an m×n result; m and n are not 0.
runtime::Grid gemm_tiled_grid(std::uint32_t m, std::uint32_t n);

/// C = A B by gemm_tiled. Throws Error when a buffer is too small or too large for its dimensions.
void gemm(const runtime::Device& device, const runtime::Buffer<float>& A, const runtime::Buffer<float>& B,
          runtime::Buffer<float>& C, std::uint32_t m, std::uint32_t n, std::uint32_t k);

}  // namespace ikat::stdlib
