// SPDX-License-Identifier: Apache-2.0
// The gradients of rmsnorm and layernorm, from what these were given: with n = (x - mean) / sqrt(variance + epsilon),
// of which rmsnorm has no mean, and g = dy gamma,
//
//     dx = (g - mean of g - n * mean of g n) / sqrt(variance + epsilon)      rmsnorm: without the mean of g
//     dgamma = sum of dy n over all rows,  dbeta = sum of dy over all rows
//
//     stdlib::rmsnorm_backward(device, x.view(rows, columns), dy.view(rows, columns), gamma, dx.view(rows, columns),
//                              dgamma, 1e-6f);
//
// The mean and the variance are computed again: x has to be read for the gradient anyway, and a row that is in
// registers or in shared memory costs no more traffic; the forward functions need no more outputs. They may also come
// from the statistics that the forward functions store if they are asked to:
//
//     stdlib::rmsnorm_backward(device, x, dy, gamma, dx, dgamma, 1e-6f, {.residual = gradient, .statistics =
//     statistics});
//
// x, dy and dx have the same shape, of one
// to five dimensions; rows are the last of these and may begin anywhere. gamma has an element for each column. All of
// these are of one type, f32, f16 or bf16; dgamma and dbeta are of float, with an element for each column. Computed in
// f32. Each block adds what its rows give, and a second launch adds these: in one order, so the results are the same in
// every run.
#pragma once
#include <optional>
#include <span>

#include "dsl/kernel/kernel.hpp"
#include "dsl/kernel/optional.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// What a gradient of a norm is made from.
struct NormGradient {
    bool centred = false;   // of layernorm, which has a mean and beta
    bool saved = false;     // from the statistics that the forward pass has stored
    bool residual = false;  // and another gradient is added
};
/// How many threads a row has: a warp; a block of 128; a block of 512.
enum class RowThreads : std::uint8_t { warp, block, wide };

/// The arguments are x, dy, gamma, statistics, residual, dx, dgamma, dbeta, rows, columns, epsilon; those that the
/// gradient does not need are std::nullopt, as epsilon is with statistics, of which a row has 2. All are row-major,
/// rows * columns < 2^32, from multiples of 16 bytes on. Block b takes share b of the rows, and stores what they give
/// at dgamma[b * columns + c] and dbeta[b * columns + c]: with one block, sums over all rows. A warp keeps rows of up
/// to 512 columns in registers, 128 threads up to 2048, 512 threads up to 8192. Longer rows are read twice.
template <class T>
using NormBackwardKernel = Kernel<In<T>, In<T>, In<T>, Optional<In<float>>, Optional<In<T>>, Out<T>, InOut<float>,
                                  Optional<InOut<float>>, u32, u32, Optional<f32>>;
template <class T>
const NormBackwardKernel<T>& norm_backward_kernel(const NormGradient& of, RowThreads threads);

/// What the gradients are made from beside their arrays.
struct NormBackwardOptions {
    /// Of the shape and type of dx: a gradient that is added to dx, of what comes to x past the norm.
    std::optional<TensorView> residual{};
    /// What the forward function has stored, which then is not computed again. epsilon is not used.
    std::optional<TensorView> statistics{};
    WorkspaceSlice workspace{};
};

/// The bytes of workspace that either function needs for x, dy and dx, which have one shape.
std::uint64_t norm_backward_workspace(const TensorView& x, const TensorView& dy, const TensorView& dx,
                                      const NormBackwardOptions& options = {});
/// For the catalogue: names, launches, checks and references.
std::span<const Recipe> norm_backward_recipes();
/// dx of each row, and the sums over all rows, which are 0 without rows. They throw Error for shapes and types that do
/// not fit, and where an output overlaps another array.
void rmsnorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                      const MutableTensorView& dx, const MutableTensorView& dgamma, float epsilon,
                      const WorkspaceSlice& workspace = {});
void layernorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                        const MutableTensorView& dx, const MutableTensorView& dgamma, const MutableTensorView& dbeta,
                        float epsilon, const WorkspaceSlice& workspace = {});
/// The same with options.
void rmsnorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                      const MutableTensorView& dx, const MutableTensorView& dgamma, float epsilon,
                      const NormBackwardOptions& options);
void layernorm_backward(const Queue& queue, const TensorView& x, const TensorView& dy, const TensorView& gamma,
                        const MutableTensorView& dx, const MutableTensorView& dgamma, const MutableTensorView& dbeta,
                        float epsilon, const NormBackwardOptions& options);

}  // namespace ikat::stdlib
