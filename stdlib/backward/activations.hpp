// SPDX-License-Identifier: Apache-2.0
// The gradients of activations, for each element by itself. Their table is activations.def.
//
//     stdlib::elementwise(device, Backward::gelu_backward, dy, x, dx);                // dx = dy gelu'(x)
//     stdlib::elementwise(device, Backward1::leaky_relu_backward, dy, x, dx, 0.1f);
//
// dy is the gradient of what the activation gave, dx that of what it was given; the other array is what it was given,
// x, or what it gave, y. All compute in f32 and round once to the type in memory: f32, f16 or bf16. Kernels and
// functions take arrays as those of elementwise.hpp do. dx must not overlap what is read.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

// By how many numbers they take. The enumerators are the kernels' names.
#define IKAT_BACKWARD(name, ...) name,
enum class Backward : std::uint8_t {
#include "stdlib/backward/activations.def"
};
#define IKAT_BACKWARD_1(name, ...) name,
enum class Backward1 : std::uint8_t {
#include "stdlib/backward/activations.def"
};

/// dx[i] = dy[i] f'(x[i], number) for i < n. All arrays have at least n elements.
template <class T>
using BackwardKernel = Kernel<In<T>, In<T>, Out<T>, u32>;
template <class T>
using Backward1Kernel = Kernel<In<T>, In<T>, Out<T>, f32, u32>;

/// The kernel of that name. elementwise_grid() is its grid.
template <class T>
const BackwardKernel<T>& elementwise_kernel(Backward what);
template <class T>
const Backward1Kernel<T>& elementwise_kernel(Backward1 what);

/// The recipes of the rows of the table, in their order.
std::span<const Recipe> recipes(Backward);
std::span<const Recipe> recipes(Backward1);

// Functions, which wait on a device and only enqueue on a stream. Throw Error unless all arrays have the same shape and
// type.
void elementwise(const Queue& queue, Backward what, const TensorView& dy, const TensorView& x,
                 const MutableTensorView& dx);
void elementwise(const Queue& queue, Backward1 what, const TensorView& dy, const TensorView& x,
                 const MutableTensorView& dx, float p);

}  // namespace ikat::stdlib
