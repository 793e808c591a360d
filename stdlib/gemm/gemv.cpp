// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/gemv.hpp"

#include "stdlib/families.hpp"
#include "stdlib/size.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256, strip = 32;  // columns of a block of gemv_coalesced

runtime::Grid strips(std::uint64_t columns) {
    return {.blocks = {std::uint32_t((columns + strip - 1) / strip), 1, 1}, .threads = {threads, 1, 1}};
}
runtime::Grid naive_grid(Arguments a, std::uint32_t block) {
    rows_of_matrix(a, 3, 5), rows_of_matrix(a, 5, 4);
    const std::uint64_t n = std::uint64_t(rows_of_matrix(a, 3, 4)) * number(a, 4);
    return runtime::grid(std::max<std::uint64_t>(n, 1), block ? block : threads);
}

}  // namespace

template <class T>
const GemvKernel<T>& gemv_warp_reduce() {
    static const auto made = kernel(name_of<T>("gemv_warp_reduce", "gemv_warp_reduce_f16", "gemv_warp_reduce_bf16"),
                                    params("A", "x", "y", "rows", "columns"),
                                    [](In<T> A, In<T> x, Out<T> y, u32 rows, u32 columns) {
                                        require_linear_grid();
                                        require_threads(WarpGroup::block);
                                        const auto row = WarpGroup::row();
                                        const auto active = value(row < rows);
                                        u32 length = select(active, value(columns), 0u);
                                        f32 sum = 0;
                                        for_each_in_row<T>(row, length, WarpGroup::thread(), WarpGroup::threads,
                                                           [&]<int N>(Width<N>, const auto& i, const auto& column) {
                                                               const auto a = load_lanes<N>(A, i),
                                                                          b = load_lanes<N>(x, column);
                                                               for (std::size_t k = 0; k < N; ++k)
                                                                   sum = fma(a[k], b[k], sum);
                                                           });
                                        sum = warp_sum(sum);
                                        y.store_if(active & (lane_id() == 0), row, cast<T>(sum));
                                    })
                                 .require(aligned<16>("A"), aligned<16>("x"))
                                 .launch_bounds(WarpGroup::block);
    return made;
}

template <class T>
const GemvKernel<T>& gemv_coalesced() {
    static const auto made = kernel(name_of<T>("gemv_coalesced", "gemv_coalesced_f16", "gemv_coalesced_bf16"),
                                    params("A", "x", "y", "rows", "columns"),
                                    [](In<T> A, In<T> x, Out<T> y, u32 rows, u32 columns) {
                                        require_linear_grid();
                                        require_threads(threads);
                                        Shared<float, threads / strip, strip> of_warp;
                                        const auto column = value(block_id().x * strip + lane_id());
                                        const auto inside = value(column < columns);
                                        f32 sum = 0;
                                        for (auto row : range(value(warp_id()), rows, threads / strip)) {
                                            const auto a =
                                                value(cast<f32>(A.load_if(inside, row * columns + column, 0)));
                                            sum = fma(a, cast<f32>(x[row]), sum);
                                        }
                                        of_warp[warp_id(), lane_id()] = sum;
                                        sync_block();
                                        if_(warp_id() == 0, [&] {
                                            f32 total = 0;
                                            for (std::uint32_t k = 0; k < threads / strip; ++k)
                                                total += of_warp[k, lane_id()];
                                            y.store_if(inside, column, cast<T>(total));
                                        });
                                    })
                                 .launch_bounds(threads);
    return made;
}

template <class T>
const GemmNaiveKernel<T>& gemm_naive() {
    static const auto made =
        kernel(name_of<T>("gemm_naive", "gemm_naive_f16", "gemm_naive_bf16"), params("A", "B", "C", "m", "n", "k"),
               [](In<T> A, In<T> B, Out<T> C, u32 m, u32 n, u32 k) {
                   require_linear_grid();
                   for (auto i : grid_stride(m * n)) {
                       const auto row = value(i / n), column = value(i % n);
                       f32 sum = 0;
                       for (auto l : range(k)) sum = fma(cast<f32>(A[row * k + l]), cast<f32>(B[l * n + column]), sum);
                       C[i] = cast<T>(sum);
                   }
               })
            .launch_bounds(threads);
    return made;
}

template <class T>
void gemv(const runtime::Queue& queue, const runtime::Buffer<T>& A, const runtime::Buffer<T>& x, runtime::Buffer<T>& y,
          std::uint32_t rows, std::uint32_t columns) {
    require_size("gemv", "A", A.size(), u32_size("gemv", "A", std::uint64_t(rows) * columns));
    require_size("gemv", "x", x.size(), columns);
    require_size("gemv", "y", y.size(), rows);
    if (rows != 0) queue.launch(gemv_warp_reduce<T>(), row_grid<WarpGroup>(rows), A, x, y, rows, columns);
}
template <class T>
void gemv_transposed(const runtime::Queue& queue, const runtime::Buffer<T>& A, const runtime::Buffer<T>& x,
                     runtime::Buffer<T>& y, std::uint32_t rows, std::uint32_t columns) {
    require_size("gemv_transposed", "A", A.size(), u32_size("gemv_transposed", "A", std::uint64_t(rows) * columns));
    require_size("gemv_transposed", "x", x.size(), rows);
    require_size("gemv_transposed", "y", y.size(), columns);
    if (columns != 0) queue.launch(gemv_coalesced<T>(), strips(columns), A, x, y, rows, columns);
}

#define IKAT_INSTANTIATE(T)                                                                                    \
    template const GemvKernel<T>& gemv_warp_reduce();                                                          \
    template const GemvKernel<T>& gemv_coalesced();                                                            \
    template const GemmNaiveKernel<T>& gemm_naive();                                                           \
    template void gemv(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::Buffer<T>&,            \
                       runtime::Buffer<T>&, std::uint32_t, std::uint32_t);                                     \
    template void gemv_transposed(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::Buffer<T>&, \
                                  runtime::Buffer<T>&, std::uint32_t, std::uint32_t);
IKAT_INSTANTIATE(float)
IKAT_INSTANTIATE(half)
IKAT_INSTANTIATE(bfloat16)
#undef IKAT_INSTANTIATE

namespace {

constexpr std::string_view gemv_document =
    "A is rows x columns, row-major, with fewer than 2^32 elements. y = A x has x by columns and y by rows; y = x A "
    "has\n"
    "x by rows and y by columns. Any sizes; a sum over nothing is 0. Sums in f32, rounded once. For y = A x, A and x\n"
    "begin at multiples of 16 bytes.";
constexpr std::string_view gemm_document =
    "A is m x k, B is k x n, C is m x n, row-major, with fewer than 2^32 elements each. Any sizes; k = 0 gives zeros. "
    "A\n"
    "thread computes an element in f32 and rounds it once: a check for better kernels.";

constexpr Entry entries[] = {
    IKAT_ENTRIES("gemv_warp_reduce", "y = A x, a warp to a row", gemv_document, gemv_warp_reduce, (),
                 row_grid<WarpGroup>(rows_of_matrix(a, 3, 4))),
    IKAT_ENTRIES("gemv_coalesced", "y = x A, neighbouring threads to neighbouring columns", gemv_document,
                 gemv_coalesced, (), (rows_of_matrix(a, 3, 4), strips(number(a, 4)))),
    IKAT_ENTRIES("gemm_naive", "C = A B, a thread to an element", gemm_document, gemm_naive, (), naive_grid(a, block)),
};

}  // namespace

std::span<const Entry> gemv_entries() { return entries; }

}  // namespace ikat::stdlib
