// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/gemv.hpp"

#include "stdlib/quantised/quantised.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256, strip = 32;  // columns of a block of gemv_coalesced

template <class T>
void rows_times_vector(const RowPlaces& places, const In<T>& A, const In<T>& x, const Out<T>& y) {
    require_linear_grid();
    require_threads(WarpGroup::block);
    const auto row = WarpGroup::row();
    const auto active = value(row < places.rows);
    u32 length = select(active, value(places.columns), 0u);
    f32 sum = 0;
    for_each_in_row<T>(places, row, length, WarpGroup::thread(), WarpGroup::threads,
                       [&]<int N>(Width<N>, const auto& at, const auto& column) {
                           const auto a = load_lanes<N>(A, at[RowPlaces::X]), b = load_lanes<N>(x, column);
                           for (std::size_t k = 0; k < N; ++k) sum = fma(a[k], b[k], sum);
                       });
    sum = warp_sum(sum);
    y.store_if(active & (lane_id() == 0), row, cast<T>(sum));
}

/// For rows that are `pitch` elements apart.
template <class T>
void vector_times_rows(const In<T>& A, const In<T>& x, const Out<T>& y, const u32& rows, const u32& columns,
                       const u32& pitch) {
    require_linear_grid();
    require_threads(threads);
    Shared<float, threads / strip, strip> of_warp;
    const auto column = value(block_id().x * strip + lane_id());
    const auto inside = value(column < columns);
    f32 sum = 0;
    for (auto row : range(value(warp_id()), rows, threads / strip)) {
        const auto a = value(cast<f32>(A.load_if(inside, row * pitch + column, 0)));
        sum = fma(a, cast<f32>(x[row]), sum);
    }
    of_warp[warp_id(), lane_id()] = sum;
    sync_block();
    if_(warp_id() == 0, [&] {
        f32 total = 0;
        for (std::uint32_t k = 0; k < threads / strip; ++k) total += of_warp[k, lane_id()];
        y.store_if(inside, column, cast<T>(total));
    });
}

template <class T>
const auto& gemv_coalesced_pitched() {
    static const auto made =
        kernel(name_of<T>("gemv_coalesced_pitched"), params("A", "x", "y", "rows", "columns", "pitch"),
               [](In<T> A, In<T> x, Out<T> y, u32 rows, u32 columns, u32 pitch) {
                   vector_times_rows(A, x, y, rows, columns, pitch);
               })
            .launch_bounds(threads);
    return made;
}

}  // namespace

template <class T>
const GemvKernel<T>& gemv_warp_reduce() {
    static const auto made = kernel(name_of<T>("gemv_warp_reduce"), params("A", "x", "y", "rows", "columns"),
                                    [](In<T> A, In<T> x, Out<T> y, u32 rows, u32 columns) {
                                        rows_times_vector(RowPlaces(rows, columns), A, x, y);
                                    })
                                 .require(aligned<16>("A"), aligned<16>("x"))
                                 .require(at_least("A", "rows", "columns"), at_least("x", "columns"))
                                 .require(at_least("y", "rows"))
                                 .launch_bounds(WarpGroup::block);
    return made;
}

template <class T>
const GemvKernel<T>& gemv_coalesced() {
    static const auto made = kernel(name_of<T>("gemv_coalesced"), params("A", "x", "y", "rows", "columns"),
                                    [](In<T> A, In<T> x, Out<T> y, u32 rows, u32 columns) {
                                        vector_times_rows(A, x, y, rows, columns, columns);
                                    })
                                 .require(at_least("A", "rows", "columns"), at_least("x", "rows"))
                                 .require(at_least("y", "columns"))
                                 .launch_bounds(threads);
    return made;
}

template <class T>
const GemmNaiveKernel<T>& gemm_naive() {
    static const auto made = kernel(name_of<T>("gemm_naive"), params("A", "B", "C", "m", "n", "k"),
                                    [](In<T> A, In<T> B, Out<T> C, u32 m, u32 n, u32 k) {
                                        require_linear_grid();
                                        for (auto i : grid_stride(m * n)) {
                                            const auto row = value(i / n), column = value(i % n);
                                            f32 sum = 0;
                                            for (auto l : range(k))
                                                sum = fma(cast<f32>(A[row * k + l]), cast<f32>(B[l * n + column]), sum);
                                            C[i] = cast<T>(sum);
                                        }
                                    })
                                 .require(at_least("A", "m", "k"), at_least("B", "k", "n"), at_least("C", "m", "n"))
                                 .launch_bounds(threads);
    return made;
}

void gemv(const Queue& queue, const TensorView& A, const TensorView& x, const MutableTensorView& y) {
    if (A.format) return quantised_gemv(queue, A, x, y);
    const ViewCall call(queue, gemv_recipe, {A, x, y});
    const std::uint32_t rows = call.extent("rows"), columns = call.extent("columns");
    call.check().reached("A", A.extents[0] * std::max<std::uint64_t>(A.strides[0], columns));
    const Variant& variant = gemv_recipe.kernels[0];
    const bool has_gaps = columns != 0 && (!is_packed(A) || !is_packed(x));
    run_kernel(call, variant, (has_gaps ? variant.pitched : variant.instances)[call.type()](),
               with_pitches({{"rows", rows}, {"columns", columns}}, columns, {A.strides[0]}, {&A, &x}));
}
void gemv_transposed(const Queue& queue, const TensorView& A, const TensorView& x, const MutableTensorView& y) {
    const ViewCall call(queue, gemv_transposed_recipe, {A, x, y});
    const std::uint32_t rows = call.extent("rows"), columns = call.extent("columns");
    call.check().reached("A", A.extents[0] * std::max<std::uint64_t>(A.strides[0], columns));
    const Variant& variant = gemv_transposed_recipe.kernels[0];
    run_kernel(call, variant, (is_packed(A) ? variant.instances : variant.pitched)[call.type()](),
               {{"rows", rows}, {"columns", columns}, {"pitch", std::uint32_t(A.strides[0])}});
}

// ---- the recipes

IKAT_INSTANTIATE(gemv_warp_reduce)
IKAT_INSTANTIATE(gemv_coalesced)
IKAT_INSTANTIATE(gemm_naive)

constexpr Recipe gemv_recipe{
    .call = "gemv(queue, A, x, y)",
    .kernels = {{.summary = "y = A x, a warp per row",
                 .instances = IKAT_FLOATS(gemv_warp_reduce<T>()),
                 .grid = rows_to<WarpGroup>,
                 .pitched =
                     IKAT_PITCHED("gemv_warp_reduce", (rows_times_vector<T>), WarpGroup::block, 0, "A", "x", "y")}},
    .operands = {{"A", "rows columns"}, {"x", "columns"}, {"y", "rows", Access::Out}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { gemv(queue, arrays[0], arrays[1], arrays[2]); },
    .document =
        "A is rows x columns, row-major, with fewer than 2^32 elements. For y = A x, x has `columns` elements\n"
        "and y has `rows`; for y = x A, x has `rows` and y has `columns`. Any sizes; a sum over nothing is 0.\n"
        "Sums in f32, rounded once. For y = A x, A and x begin at multiples of 16 bytes.",
    .sizes = {{"A", "rows columns"}, {"x", "columns"}, {"y", "rows"}},
    .reference = reference::gemv,
    .traffic = "E s, s the weights",
    .note = "y = A x, a warp per row"};
constexpr Recipe gemv_transposed_recipe{
    .call = "gemv_transposed(queue, A, x, y)",
    .kernels = {{.summary = "y = x A, neighbouring threads on neighbouring columns",
                 .instances = IKAT_FLOATS(gemv_coalesced<T>()),
                 .grid =
                     [](const Call& call) {
                         return Grid{{std::uint32_t((std::uint64_t(call["columns"]) + strip - 1) / strip)}, {threads}};
                     },
                 .pitched = IKAT_FLOATS(gemv_coalesced_pitched<T>())}},
    .operands = {{"A", "rows columns"}, {"x", "rows"}, {"y", "columns", Access::Out}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { gemv_transposed(queue, arrays[0], arrays[1], arrays[2]); },
    .document = gemv_recipe.document,
    .sizes = {{"A", "rows columns"}, {"x", "rows"}, {"y", "columns"}},
    .reference = reference::gemv_transposed,
    .traffic = "E s, s the weights",
    .note = "y = x A, neighbouring threads on neighbouring columns"};
constexpr Recipe gemm_naive_recipe{
    .kernels = {{"C = A B, a thread per element", IKAT_FLOATS(gemm_naive<T>()),
                 [](const Call& call) {
                     const std::uint64_t n = std::uint64_t(call["m"]) * call["n"];
                     return runtime::grid(std::max<std::uint64_t>(n, 1), call.threads(threads));
                 }}},
    .document =
        "A is m x k, B is k x n, C is m x n, row-major, with fewer than 2^32 elements each. Any sizes; k = 0\n"
        "gives zeros. A thread computes an element in f32 and rounds it once: a reference for faster kernels.",
    .sizes = {{"A", "m k"}, {"B", "k n"}, {"C", "m n"}},
    .reference = reference::gemm,
    .bound_by = "bound by arithmetic: each element is used for many of C; a reference for faster kernels"};

}  // namespace ikat::stdlib
