// SPDX-License-Identifier: Apache-2.0
// The gradients of swiglu, y = silu(gate) up, from what it was given:
//
//     dgate = dy up silu'(gate),  dup = dy silu(gate)
//
//     stdlib::swiglu_backward(device, dy, gate, up, dgate, dup);
//     stdlib::swiglu_backward_in_place(device, dy, gate, up);      // gate and up become dgate and dup
//
// All arrays have the same shape, of one to five dimensions, with rows that may begin anywhere, and one type: f32, f16
// or bf16. Computed in f32 and rounded once. dy up is rounded before the slope multiplies it, as in PyTorch: where that
// overflows, dgate is infinite, or NaN where the slope is 0.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// The arguments are dy, gate, up, dgate, dup, n: all arrays have at least n elements, from multiples of 16 bytes on.
template <class T>
using SwigluBackwardKernel = Kernel<In<T>, In<T>, In<T>, Out<T>, Out<T>, u32>;
template <class T>
const SwigluBackwardKernel<T>& swiglu_backward_kernel();
/// dgate in the place of gate, and dup in that of up. The arguments are dy, gate, up, n.
template <class T>
using SwigluBackwardInPlaceKernel = Kernel<In<T>, InOut<T>, InOut<T>, u32>;
template <class T>
const SwigluBackwardInPlaceKernel<T>& swiglu_backward_in_place_kernel();

/// For the catalogue: names, launches, checks and references.
extern const Recipe swiglu_backward_recipe, swiglu_backward_in_place_recipe;
/// Throws Error for shapes and types that do not fit, and where an output overlaps another array; but dgate may be
/// gate, where dup is up.
void swiglu_backward(const Queue& queue, const TensorView& dy, const TensorView& gate, const TensorView& up,
                     const MutableTensorView& dgate, const MutableTensorView& dup);
void swiglu_backward_in_place(const Queue& queue, const TensorView& dy, const MutableTensorView& gate,
                              const MutableTensorView& up);

}  // namespace ikat::stdlib
