// SPDX-License-Identifier: Apache-2.0
#include "stdlib/norm/norm.hpp"

#include <limits>

#include "stdlib/families.hpp"
#include "stdlib/size.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {
namespace {

using Block = BlockGroup<256>;
template <class T>
constexpr int vectors_per_thread = 32 / lanes_of<T>;  // of a row that is kept
using F = Leaf<float>;

F reciprocal_root(const auto& mean_of_squares, const auto& epsilon) {
    return value(rcp(sqrt(mean_of_squares + epsilon)));
}

F mean_of(const auto& row, const u32& columns, auto&& f) {
    f32 sum = 0;
    row.each([&](const auto& v, const auto&) {
        for (const auto& x : v) sum += f(x);
    });
    return value(row.group.sum(sum) / cast<f32>(columns));
}

/// What a row is normed with: y = (x * scale - mean) * factor.
struct Moments {
    f32 scale = 1, mean = 0, factor = 0;
};

/// 1 / sqrt(the variance + epsilon) and the mean, or, not centred, the same of the squares and no mean. Where squares
/// or sums overflow, all is computed again for x * 2^-100. What underflows there is too small to count: the largest
/// element is at least 2^48.
void find_moments(Moments& out, bool centred, const auto& row, const u32& columns, const f32& epsilon) {
    f32 variance;
    const auto compute = [&](auto&& scaled) {
        if (centred) out.mean = mean_of(row, columns, scaled);
        variance = mean_of(row, columns, [&](const F& x) {
            const F from_mean = centred ? value(scaled(x) - out.mean) : value(scaled(x));
            return from_mean * from_mean;
        });
    };
    compute([](const F& x) { return x; });
    if_(!(variance <= std::numeric_limits<float>::max()), [&] {
        out.scale = 0x1p-100f;
        compute([&](const F& x) { return value(x * 0x1p-100f); });
    });
    out.factor = reciprocal_root(variance, epsilon * out.scale * out.scale);
}

template <class T, class Group>
RmsnormKernel<T> make_rmsnorm(const char* name) {
    return kernel(name, params("x", "gamma", "y", "rows", "columns", "epsilon"),
                  [](In<T> x, In<T> gamma, Out<T> y, u32 rows, u32 columns, f32 epsilon) {
                      with_row<Group, T, vectors_per_thread<T>>(x, rows, columns, [&](const auto& row) {
                          Moments of;
                          find_moments(of, false, row, columns, epsilon);
                          const F scale = value(of.scale), factor = value(of.factor);
                          row.map(
                              y, [&](const F& x, const F& weight) { return x * scale * factor * weight; }, gamma);
                      });
                  })
        .require(aligned<16>("x"), aligned<16>("gamma"), aligned<16>("y"))
        .launch_bounds(Group::block);
}

}  // namespace

template <class T>
const LayernormKernel<T>& layernorm() {
    static const auto made =
        kernel(name_of<T>("layernorm", "layernorm_f16", "layernorm_bf16"),
               params("x", "gamma", "beta", "y", "rows", "columns", "epsilon"),
               [](In<T> x, In<T> gamma, In<T> beta, Out<T> y, u32 rows, u32 columns, f32 epsilon) {
                   with_row<Block, T, vectors_per_thread<T>>(x, rows, columns, [&](const auto& row) {
                       Moments of;
                       find_moments(of, true, row, columns, epsilon);
                       const F scale = value(of.scale), mean = value(of.mean), factor = value(of.factor);
                       row.map(
                           y,
                           [&](const F& x, const F& weight, const F& bias) {
                               return fma(fma(x, scale, -mean) * factor, weight, bias);
                           },
                           gamma, beta);
                   });
               })
            .require(aligned<16>("x"), aligned<16>("gamma"), aligned<16>("beta"), aligned<16>("y"))
            .launch_bounds(Block::block);
    return made;
}
template <class T>
const PlainNormKernel<T>& layernorm_plain() {
    static const auto made =
        kernel(name_of<T>("layernorm_plain", "layernorm_plain_f16", "layernorm_plain_bf16"),
               params("x", "y", "rows", "columns", "epsilon"),
               [](In<T> x, Out<T> y, u32 rows, u32 columns, f32 epsilon) {
                   with_row<Block, T, vectors_per_thread<T>>(x, rows, columns, [&](const auto& row) {
                       Moments of;
                       find_moments(of, true, row, columns, epsilon);
                       const F scale = value(of.scale), mean = value(of.mean), factor = value(of.factor);
                       row.map(y, [&](const F& x) { return fma(x, scale, -mean) * factor; });
                   });
               })
            .require(aligned<16>("x"), aligned<16>("y"))
            .launch_bounds(Block::block, 4);  // without the 4, ptxas makes room for a fifth and spills
    return made;
}
template <class T>
const RmsnormKernel<T>& rmsnorm() {
    static const auto made = make_rmsnorm<T, Block>(name_of<T>("rmsnorm", "rmsnorm_f16", "rmsnorm_bf16"));
    return made;
}
template <class T>
const RmsnormKernel<T>& rmsnorm_per_head() {
    static const auto made =
        make_rmsnorm<T, WarpGroup>(name_of<T>("rmsnorm_per_head", "rmsnorm_per_head_f16", "rmsnorm_per_head_bf16"));
    return made;
}
template <class T>
const ResidualRmsnormKernel<T>& fused_residual_rmsnorm() {
    static const auto made =
        kernel(name_of<T>("fused_residual_rmsnorm", "fused_residual_rmsnorm_f16", "fused_residual_rmsnorm_bf16"),
               params("x", "residual", "gamma", "y", "rows", "columns", "epsilon"),
               [](In<T> x, InOut<T> residual, In<T> gamma, Out<T> y, u32 rows, u32 columns, f32 epsilon) {
                   with_sum_of_rows<Block, T, vectors_per_thread<T>>(x, residual, rows, columns, [&](const auto& row) {
                       Moments of;
                       find_moments(of, false, row, columns, epsilon);
                       const F scale = value(of.scale), factor = value(of.factor);
                       row.map(
                           y, [&](const F& x, const F& weight) { return x * scale * factor * weight; }, gamma);
                   });
               })
            .require(aligned<16>("x"), aligned<16>("residual"), aligned<16>("gamma"), aligned<16>("y"))
            .launch_bounds(Block::block);
    return made;
}

template <class T>
void layernorm(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::Buffer<T>& gamma,
               const runtime::Buffer<T>& beta, runtime::Buffer<T>& y, std::uint32_t rows, std::uint32_t columns,
               float epsilon) {
    const std::uint32_t n = u32_size("layernorm", "y", std::uint64_t(rows) * columns);
    require_size("layernorm", "x", x.size(), n);
    require_size("layernorm", "gamma", gamma.size(), columns);
    require_size("layernorm", "beta", beta.size(), columns);
    require_size("layernorm", "y", y.size(), n);
    if (n != 0) queue.launch(layernorm<T>(), row_grid<Block>(rows), x, gamma, beta, y, rows, columns, epsilon);
}
template <class T>
void rmsnorm(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::Buffer<T>& gamma,
             runtime::Buffer<T>& y, std::uint32_t rows, std::uint32_t columns, float epsilon) {
    const std::uint32_t n = u32_size("rmsnorm", "y", std::uint64_t(rows) * columns);
    require_size("rmsnorm", "x", x.size(), n);
    require_size("rmsnorm", "gamma", gamma.size(), columns);
    require_size("rmsnorm", "y", y.size(), n);
    if (n == 0) return;
    if (columns <= 256)
        queue.launch(rmsnorm_per_head<T>(), row_grid<WarpGroup>(rows), x, gamma, y, rows, columns, epsilon);
    else
        queue.launch(rmsnorm<T>(), row_grid<Block>(rows), x, gamma, y, rows, columns, epsilon);
}
template <class T>
void fused_residual_rmsnorm(const runtime::Queue& queue, const runtime::Buffer<T>& x, runtime::Buffer<T>& residual,
                            const runtime::Buffer<T>& gamma, runtime::Buffer<T>& y, std::uint32_t rows,
                            std::uint32_t columns, float epsilon) {
    const std::uint32_t n = u32_size("fused_residual_rmsnorm", "y", std::uint64_t(rows) * columns);
    require_size("fused_residual_rmsnorm", "x", x.size(), n);
    require_size("fused_residual_rmsnorm", "residual", residual.size(), n);
    require_size("fused_residual_rmsnorm", "gamma", gamma.size(), columns);
    require_size("fused_residual_rmsnorm", "y", y.size(), n);
    if (n == 0) return;
    queue.launch(fused_residual_rmsnorm<T>(), row_grid<Block>(rows), x, residual, gamma, y, rows, columns, epsilon);
}

#define IKAT_INSTANTIATE(T)                                                                                            \
    template const LayernormKernel<T>& layernorm();                                                                    \
    template const PlainNormKernel<T>& layernorm_plain();                                                              \
    template const RmsnormKernel<T>& rmsnorm();                                                                        \
    template const RmsnormKernel<T>& rmsnorm_per_head();                                                               \
    template const ResidualRmsnormKernel<T>& fused_residual_rmsnorm();                                                 \
    template void layernorm(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::Buffer<T>&,               \
                            const runtime::Buffer<T>&, runtime::Buffer<T>&, std::uint32_t, std::uint32_t, float);      \
    template void rmsnorm(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::Buffer<T>&,                 \
                          runtime::Buffer<T>&, std::uint32_t, std::uint32_t, float);                                   \
    template void fused_residual_rmsnorm(const runtime::Queue&, const runtime::Buffer<T>&, runtime::Buffer<T>&,        \
                                         const runtime::Buffer<T>&, runtime::Buffer<T>&, std::uint32_t, std::uint32_t, \
                                         float);
IKAT_INSTANTIATE(float)
IKAT_INSTANTIATE(half)
IKAT_INSTANTIATE(bfloat16)
#undef IKAT_INSTANTIATE

namespace {

constexpr std::string_view norm_document =
    "x and y are row-major, rows x columns, with fewer than 2^32 elements; gamma and beta have an element for each\n"
    "column. All begin at multiples of 16 bytes. Any sizes. Computed in f32 over each row and rounded once.";

#define IKAT_ROW(id, Group, rows, text) \
    IKAT_ENTRIES(#id, text, norm_document, id, (), row_grid<Group>(rows_of_matrix(a, rows, rows + 1)))
constexpr Entry entries[] = {
    IKAT_ROW(layernorm, Block, 4, "y = (x - mean) / sqrt(variance + epsilon) gamma + beta, row by row"),
    IKAT_ROW(layernorm_plain, Block, 2, "y = (x - mean) / sqrt(variance + epsilon), row by row"),
    IKAT_ROW(rmsnorm, Block, 3, "y = x / sqrt(mean of x^2 + epsilon) gamma, row by row"),
    IKAT_ROW(rmsnorm_per_head, WarpGroup, 3, "rmsnorm, a warp to a row: for heads of attention"),
    IKAT_ROW(fused_residual_rmsnorm, Block, 4, "residual += x, y = rmsnorm of that"),
};

}  // namespace

std::span<const Entry> norm_entries() { return entries; }

}  // namespace ikat::stdlib
