// SPDX-License-Identifier: Apache-2.0
// The product of large matrices in f32. A block makes 128 x 128 of C, each of its 256 threads 8 x 8: 64
// multiplications for four reads of 16 bytes. While it works on a slice of 16 of k, the next one is on its way to the
// other half of the shared memory.
//
//     warps of a block, 32 x 64 each      a thread has rows 4 g and on, and 16 further, of its warp's, and columns 4 h
//     ┌───┬───┐                           and on, and 32 further: g = lane / 16 * 2 + lane % 2, h = lane / 2 % 8.
//     │ 0 │ 1 │                           So of 16 lanes each two neighbours, or each two at a distance of 2, read the
//     ├───┼───┤                           same 16 bytes, and 16 lanes are served at once where 8 would be.
//     │ 2 │ 3 │
//       ...
//
// The slice of A is kept transposed. Threads write four columns of eight rows at once, which would meet in the same
// banks: so row r of column c is where row r ^ c % 4 * 8 would be.
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/tile/pipeline.hpp"
#include "stdlib/tile/schedule.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t extent = 128, depth = 16, threads = 256, slice_size = extent * depth;
using Number = Leaf<std::uint32_t>;

/// What a thread copies of each slice: of A two rows, 64 apart, and every fourth column; of B two rows, eight apart,
/// by 16 bytes where n is a multiple of four, else every 32nd column of them.
class SliceCopies {
public:
    SliceCopies(const In<float>& A, const In<float>& B, const u32& m, const u32& n, const u32& k, const Number& row,
                const Number& column)
        : n_(value(n)), k_(value(k)), first_of_b_(value(lane_id() * select(n % 4u == 0u, 4u, 1u))) {
        for (std::uint32_t pass = 0; pass < 2; ++pass) {
            const auto i = value(min(row + row_of_a_ + pass * 64u, m - 1u));  // nothing is kept of rows beyond the last
            a_.push_back(A.slice(i * k + column_of_a_).as<std::uint8_t>());
        }
        const auto first = value(column + first_of_b_);
        left_.push_back(value(select(n > first, n - first, 0u)));
        b_.push_back(B.slice(row_of_b_ * n + first).as<std::uint8_t>());
    }

    /// Begins to copy slice number `slice` to stage `stage`, with zeros after the end of k.
    void load(const SharedBytes& a, const SharedBytes& b, const Number& stage, const Number& slice) const {
        const auto first = value(slice * depth);
        const auto from_a = value(mul_wide(first, 4u)), from_b = value(mul_wide(first, n_) * 4u);
        const auto begin_a = value((stage * slice_size + to_a_) * 4u),
                   begin_b = value((stage * slice_size + to_b_) * 4u);
        for (std::uint32_t step = 0; step < depth; step += 4) {
            const auto is_there = value(first + column_of_a_ + step < k_);
            for (std::uint32_t pass = 0; pass < 2; ++pass)
                copy_async_if<4>(is_there, a[begin_a + (step * extent + pass * 64) * 4], a_[pass][from_a + step * 4]);
        }
        const auto copy_b = [&](auto&& copy) {
            for (std::uint32_t pass = 0; pass < 2; ++pass) {
                const auto is_row = value(first + row_of_b_ + pass * 8 < k_);
                const auto from = value(from_b + mul_wide(n_, pass * 32));
                copy(is_row, value(begin_b + pass * 8 * extent * 4), from);
            }
        };
        if_(n_ % 4u == 0u, [&] {
            copy_b([&](const auto& is_row, const auto& to, const auto& from) {
                copy_async_if<16>(is_row & (left_[0] > 0u), b[to], b_[0][from]);
            });
        }).else_([&] {
            copy_b([&](const auto& is_row, const auto& to, const auto& from) {
                for (std::uint32_t j = 0; j < extent; j += 32)
                    copy_async_if<4>(is_row & (left_[0] > j), b[to + j * 4], b_[0][from + j * 4]);
            });
        });
    }

private:
    const Number n_, k_;
    const Number row_of_a_ = value(thread_id().x / 4u), column_of_a_ = value(thread_id().x % 4u);
    const Number to_a_ = value(column_of_a_ * extent + (row_of_a_ ^ column_of_a_ * 8u));
    const Number first_of_b_, row_of_b_ = value(warp_id()), to_b_ = value(row_of_b_ * extent + first_of_b_);
    std::vector<Indexable<std::uint8_t, Direction::Read>> a_, b_;
    std::vector<Number> left_;  // of a row of B, from its first column on
};

void product(const In<float>& A, const In<float>& B, const Out<float>& C, const u32& m, const u32& n, const u32& k) {
    require_linear_blocks();
    require_threads(threads);
    const auto down = tiles_of(m, extent), across = tiles_of(n, extent);
    const auto at = grouped_raster(block_id().x, down, across);
    const auto first_row = value(at.row * extent), first_column = value(at.column * extent);
    const auto as = Shared<float, 2 * slice_size>().flat(), bs = Shared<float, 2 * slice_size>().flat();
    const SliceCopies copies(A, B, m, n, k, first_row, first_column);

    const auto lane = value(lane_id()), warp = value(warp_id());
    const auto row = value(warp / 2u * 32u + (lane / 16u * 2u + lane % 2u) * 4u);
    const auto column = value(warp % 2u * 64u + lane / 2u % 8u * 4u);
    const Number rows[] = {row, value(row ^ 8u)};  // in even and odd columns of A
    Regs<Regs<Vec<float, 4>, 2>, 8> sum(0);
    pipeline<2>(
        tiles_of(k, depth),
        [&](const auto& stage, const auto& slice) {
            copies.load(as.as<std::uint8_t>(), bs.as<std::uint8_t>(), stage, slice);
        },
        [&](const auto& stage) {
            const auto begin = value(stage * slice_size);
            const Number from_a[] = {value((begin + rows[0]) / 4u), value((begin + rows[1]) / 4u)};
            const auto from_b = value((begin + column) / 4u);
            for (std::uint32_t step = 0; step < depth; ++step) {
                Regs<Vec<float, 4>, 2> a, b;
                for (std::uint32_t half = 0; half < 2; ++half) {
                    const std::uint32_t further = (half ^ step / 2 % 2) * 16;
                    a[half] = as.vec<4>(from_a[step % 2] + (step * extent + further) / 4);
                    b[half] = bs.vec<4>(from_b + (step * extent + half * 32) / 4);
                }
                for (std::uint32_t i = 0; i < 8; ++i) sum[i] = fma(a[i / 4][i % 4], b, sum[i]);
            }
        });

    const auto is_wide = value(n % 4u == 0u);
    for (std::uint32_t i = 0; i < 8; ++i) {
        const auto to_row = value(first_row + row + (i / 4 * 16 + i % 4));
        for (std::uint32_t half = 0; half < 2; ++half) {
            const auto to_column = value(first_column + column + half * 32);
            const auto place = value(to_row * n + to_column);
            if_(is_wide, [&] { C.store_if((to_row < m) & (to_column < n), place / 4u, sum[i][half]); }).else_([&] {
                for (std::uint32_t j = 0; j < 4; ++j)
                    C.store_if((to_row < m) & (to_column + j < n), place + j, sum[i][half][j]);
            });
        }
    }
}

}  // namespace

const GemmKernel& gemm_tiled_large() {
    static const GemmKernel made =
        kernel("gemm_tiled_large", params("A", "B", "C", "m", "n", "k"),
               [](In<float> A, In<float> B, Out<float> C, u32 m, u32 n, u32 k) { product(A, B, C, m, n, k); })
            .require(at_least("A", "m", "k"), at_least("B", "k", "n"), at_least("C", "m", "n"))
            .launch_bounds(threads, 2);
    return made;
}

runtime::Grid gemm_tiled_large_grid(std::uint32_t m, std::uint32_t n) {
    return {.blocks = {((m - 1) / extent + 1) * ((n - 1) / extent + 1), 1, 1}, .threads = {threads, 1, 1}};
}

}  // namespace ikat::stdlib
