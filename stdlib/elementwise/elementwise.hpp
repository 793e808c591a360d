// SPDX-License-Identifier: Apache-2.0
// Kernels that treat each element by itself: activations, sums and products, conversions. Their table is
// elementwise.def.
//
//     stdlib::elementwise(device, Unary::relu, x, y);              // y = max(x, 0), arrays of f32, f16 or bf16
//     stdlib::elementwise(device, Unary1::leaky_relu, x, y, 0.1f);
//     queue.launch(stdlib::elementwise_kernel<float>(Binary::add), stdlib::elementwise_grid(n), a, b, y, n);
//
// All compute in f32 and round once to the type in memory, T: float, half or bfloat16. The functions take arrays of one
// shape, of one to five dimensions, whose rows may begin anywhere. The kernels take n elements one after the other,
// from multiples of 16 bytes on; they move 16 bytes at a time, and the rest of n element by element. What is read must
// not overlap what is written.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/math/activation.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

// The kernels by how many arrays they read, and how many numbers they take. The enumerators are the kernels' names.
#define IKAT_UNARY(name, ...) name,
enum class Unary : std::uint8_t {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_1(name, ...) name,
enum class Unary1 : std::uint8_t {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_2(name, ...) name,
enum class Unary2 : std::uint8_t {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_BINARY(name, ...) name,
enum class Binary : std::uint8_t {
#include "stdlib/elementwise/elementwise.def"
};

/// y[i] = f(x[i], numbers) for i < n. x and y have at least n elements.
template <class T>
using UnaryKernel = Kernel<In<T>, Out<T>, u32>;
template <class T>
using Unary1Kernel = Kernel<In<T>, Out<T>, f32, u32>;
template <class T>
using Unary2Kernel = Kernel<In<T>, Out<T>, f32, f32, u32>;
/// y[i] = f(a[i], b[i]) for i < n. a, b and y have at least n elements.
template <class T>
using BinaryKernel = Kernel<In<T>, In<T>, Out<T>, u32>;
/// y[i] += x[i] for i < n, rounded once.
template <class T>
using ResidualAddKernel = Kernel<In<T>, InOut<T>, u32>;
/// y[i] = x[i] converted for i < n, rounded to nearest; what is too large becomes infinity.
template <class From, class To>
using CastKernel = Kernel<In<From>, Out<To>, u32>;

/// The kernel of that name.
template <class T>
const UnaryKernel<T>& elementwise_kernel(Unary what);
template <class T>
const Unary1Kernel<T>& elementwise_kernel(Unary1 what);
template <class T>
const Unary2Kernel<T>& elementwise_kernel(Unary2 what);
template <class T>
const BinaryKernel<T>& elementwise_kernel(Binary what);
template <class T>
const ResidualAddKernel<T>& residual_add();
/// From float to half or bfloat16, or from these to float.
template <class From, class To>
const CastKernel<From, To>& cast_kernel();

/// The launch of any of these kernels for n elements; element_bytes is the size of an element of its widest array.
Grid elementwise_grid(std::uint64_t n, std::size_t element_bytes = 4, std::uint32_t threads = 256);

/// y[row, column] = activation(x[row, column] + bias[column]). x and y are row-major with rows * columns < 2^32
/// elements, bias has `columns`.
template <class T>
using BiasActivationKernel = Kernel<In<T>, In<T>, Out<T>, u32, u32>;
template <class T>
const BiasActivationKernel<T>& bias_activation_kernel(Activation activation);

/// The recipes of the rows of the table, in their order.
std::span<const Recipe> recipes(Unary);
std::span<const Recipe> recipes(Unary1);
std::span<const Recipe> recipes(Unary2);
std::span<const Recipe> recipes(Binary);
extern const Recipe residual_add_recipe, cast_recipe, bias_activation_recipe;

// Functions, which wait on a device and only enqueue on a stream. Throw Error unless all arrays have the same shape and
// type.
void elementwise(const Queue& queue, Unary what, const TensorView& x, const MutableTensorView& y);
void elementwise(const Queue& queue, Unary1 what, const TensorView& x, const MutableTensorView& y, float p);
void elementwise(const Queue& queue, Unary2 what, const TensorView& x, const MutableTensorView& y, float p, float q);
void elementwise(const Queue& queue, Binary what, const TensorView& a, const TensorView& b, const MutableTensorView& y);
/// y += x.
void residual_add(const Queue& queue, const TensorView& x, const MutableTensorView& y);
/// y = x, rounded to nearest, from f32 to f16 or bf16, or from these to f32.
void cast(const Queue& queue, const TensorView& x, const MutableTensorView& y);
/// y = activation(x + bias), where bias has an element for each column, the last dimension.
void bias_activation(const Queue& queue, Activation activation, const TensorView& x, const TensorView& bias,
                     const MutableTensorView& y);

}  // namespace ikat::stdlib
