// SPDX-License-Identifier: Apache-2.0
// Tiled matrix product in f32: C = A B, all row-major, dimensions at run time.
//
// A block computes a tile of C. It walks along k in steps: its threads copy a slice of A and a slice of B to shared
// memory, then each thread multiplies its own small tile in registers.
//
//            k →                n →
//        ┌────┬──────┐      ┌──┬──────┐          ┌──┬──────┐
//      m │ As │      │    k │Bs│      │   =    m │Cs│      │      As is kept transposed, so that a thread's rows
//      ↓ └────┴──────┘    ↓ └──┴──────┘        ↓ └──┴──────┘      of A are contiguous: one vector load.
//
// At the edges loads are masked (they give 0) and stores are guarded: any m, n and k will do, 0 included.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/spec/recipe.hpp"
#include "stdlib/tile/matrix_order.hpp"

namespace ikat::stdlib {

/// Tuning parameters, in elements: a block's tile of C is m x n, a slice is k deep, a thread's tile is thread_m x
/// thread_n.
struct GemmTile {
    std::uint32_t m = 64, n = 64, k = 16;
    std::uint32_t thread_m = 4, thread_n = 4;
    constexpr std::uint32_t threads() const { return (m / thread_m) * (n / thread_n); }
};

namespace detail {

/// A tile of A B from element (first_row, first_column) on. a(is_there, row, column) and b(is_there, row, column) are
/// elements of A and of B, or 0; put(is_there, row, column, sum) takes those of the tile. Neighbouring threads ask for
/// neighbours in memory: of a row, or of a column of what is stored by columns.
template <GemmTile tile, MatrixOrder order_a = MatrixOrder::Rows, MatrixOrder order_b = MatrixOrder::Rows>
void tiled_product(const auto& first_row, const auto& first_column, const auto& m, const auto& n, const auto& k,
                   auto&& a_at, auto&& b_at, auto&& put) {
    constexpr std::uint32_t threads = tile.threads(), threads_n = tile.n / tile.thread_n;
    require_threads(threads);
    Shared<float, tile.k, tile.m> As;  // transposed
    Shared<float, tile.k, tile.n> Bs;
    Regs<Regs<Vec<float, 4>, tile.thread_n / 4>, tile.thread_m> sum(0);

    u32 thread = thread_id().x;
    u32 row_group = thread / threads_n * (tile.thread_m / 4);  // of the thread's tile, in fours
    u32 column_group = thread % threads_n * (tile.thread_n / 4);

    for (auto depth : range(0u, k, tile.k)) {
        for (std::uint32_t element = 0; element < tile.m * tile.k; element += threads) {
            constexpr std::uint32_t length = order_a == MatrixOrder::Rows ? tile.k : tile.m;
            u32 line = (thread + element) / length, along = (thread + element) % length;
            const u32 &r = order_a == MatrixOrder::Rows ? line : along,
                      &c = order_a == MatrixOrder::Rows ? along : line;
            u32 row = first_row + r, column = depth + c;
            As[c, r] = a_at((row < m) & (column < k), row, column);
        }
        for (std::uint32_t element = 0; element < tile.k * tile.n; element += threads) {
            constexpr std::uint32_t length = order_b == MatrixOrder::Rows ? tile.n : tile.k;
            u32 line = (thread + element) / length, along = (thread + element) % length;
            const u32 &r = order_b == MatrixOrder::Rows ? line : along,
                      &c = order_b == MatrixOrder::Rows ? along : line;
            u32 row = depth + r, column = first_column + c;
            Bs[r, c] = b_at((row < k) & (column < n), row, column);
        }
        sync_block();
        for (std::uint32_t slice = 0; slice < tile.k; ++slice) {
            Regs<Vec<float, 4>, tile.thread_m / 4> a;
            Regs<Vec<float, 4>, tile.thread_n / 4> b;
            for (std::uint32_t i = 0; i < tile.thread_m / 4; ++i)
                a[i] = As.flat().template vec<4>(row_group + slice * tile.m / 4 + i);
            for (std::uint32_t j = 0; j < tile.thread_n / 4; ++j)
                b[j] = Bs.flat().template vec<4>(column_group + slice * tile.n / 4 + j);
            for (std::uint32_t i = 0; i < tile.thread_m; ++i) sum[i] = fma(a[i / 4][i % 4], b, sum[i]);
        }
        sync_block();
    }
    for (std::uint32_t i = 0; i < tile.thread_m; ++i) {
        u32 row = first_row + row_group * 4 + i;
        for (std::uint32_t j = 0; j < tile.thread_n; ++j) {
            u32 column = first_column + column_group * 4 + j;
            put((row < m) & (column < n), row, column, sum[i][j / 4][j % 4]);
        }
    }
}

/// How far apart the rows of A, B and C are, in elements.
struct GemmPitches {
    const u32 &a, &b, &c;
};

/// The tile of a block of gemm_tiled_grid().
template <GemmTile tile>
void tile_of_block(const In<float>& A, const In<float>& B, const Out<float>& C, const u32& m, const u32& n,
                   const u32& k, const GemmPitches& pitches) {
    require_linear_blocks();
    u32 first_row = (block_id().z * grid_dim().y + block_id().y) * tile.m;
    u32 first_column = block_id().x * tile.n;
    tiled_product<tile>(
        first_row, first_column, m, n, k,
        [&](auto&& is, const u32& i, const u32& j) { return A.load_if(is, i * pitches.a + j, 0.0f); },
        [&](auto&& is, const u32& i, const u32& j) { return B.load_if(is, i * pitches.b + j, 0.0f); },
        [&](auto&& is, const u32& i, const u32& j, auto&& x) { C.store_if(is, i * pitches.c + j, x); });
}

}  // namespace detail

/// A, B, C, m, n, k.
using GemmKernel = Kernel<In<float>, In<float>, Out<float>, u32, u32, u32>;

/// C[m×n] = A[m×k] · B[k×n], f32, row-major, without gaps between rows. m·k, k·n and m·n must be below 2^32. k = 0
/// gives zeros. The arguments are A, B, C, m, n, k.
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
                      detail::tile_of_block<tile>(A, B, C, m, n, k, {k, n, n});
                  })
        .require(at_least("A", "m", "k"), at_least("B", "k", "n"), at_least("C", "m", "n"))
        .launch_bounds(tile.threads());
}

/// The kernel with the default tile.
const GemmKernel& gemm_tiled();

/// The same for matrices with gaps between rows: the pitches of A, B and C, in elements, follow the arguments.
using GemmPitchedKernel = Kernel<In<float>, In<float>, Out<float>, u32, u32, u32, u32, u32, u32>;
const GemmPitchedKernel& gemm_tiled_pitched();

/// The same for large matrices, which tiles of 128 x 128 cover well. Of the same bits: both add along k. If n is a
/// multiple of 4, B and C are accessed by 16 bytes.
const GemmKernel& gemm_tiled_large();

/// The launches for an m×n result; m and n are not 0.
runtime::Grid gemm_tiled_grid(std::uint32_t m, std::uint32_t n);
runtime::Grid gemm_tiled_large_grid(std::uint32_t m, std::uint32_t n);

/// What a block makes of C: 64 x 64 by gemm_tiled, 128 x 128 by gemm_tiled_large. Chosen: the latter if there is such a
/// tile for each multiprocessor of the device, and m and n are more than 64.
enum class GemmBlock : std::uint8_t { chosen, small, large };

/// For the catalogue: names, launches, checks and references.
extern const Recipe gemm_recipe;
/// C = A B: A is m×k, B is k×n, C is m×n, of f32, with any pitches: of others than the columns, by small blocks. Throws
/// Error for shapes that do not fit, or of 2^32 elements or more. An A of quantised weights is another product, see
/// quantised_gemm().
void gemm(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
          GemmBlock block = GemmBlock::chosen);

/// What gemm_f32() computes besides A B.
struct GemmF32Options {
    float alpha = 1, beta = 0;
    MatrixOrder a = MatrixOrder::Rows, b = MatrixOrder::Rows;
    /// As for gemm().
    GemmBlock block = GemmBlock::chosen;
};
/// C = alpha A B + beta C for each of the matrices, of f32, by fma along k, without tensor cores: A is m x k, B is
/// k x n, C is m x n; by columns, A is stored as k x m, B as n x k. Views are (rows, columns), or (matrices, rows,
/// columns), with any pitches. Where beta is 0, C is not read. The sums have the bits of gemm(). Throws Error for
/// shapes and types that do not fit.
void gemm_f32(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
              const GemmF32Options& options = {});

}  // namespace ikat::stdlib
