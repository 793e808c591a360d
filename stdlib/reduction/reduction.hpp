// SPDX-License-Identifier: Apache-2.0
// Sum and maximum of an array of any length, the same in every run.
//
// Each block reduces a grid-stride share of x to one partial result; a second launch of one block reduces those. The
// order of the additions depends on n, and for views on their pitches and where they begin; no atomics are used. Sums
// are in f32, for 16-bit types too.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// partial[b] = the sum (or maximum) of the elements that block b visits, f32. With one block, partial[0] is the
/// result. x has at least n elements and begins at a multiple of 16 bytes; partial has one element per block. Blocks
/// are 1-dimensional, a multiple of 32 and at most 1024 threads. n = 0 gives 0 (or -infinity). A maximum ignores NaNs,
/// as PTX's max does.
template <class T>
using ReductionKernel = Kernel<In<T>, Out<float>, u32>;

/// T is float, half or bfloat16.
template <class T>
const ReductionKernel<T>& sum_kernel();
template <class T>
const ReductionKernel<T>& max_kernel();

/// The launch for n elements: blocks of 256 threads, each for 2048 elements or more, at most 1024 blocks.
runtime::Grid reduction_grid(std::uint64_t n);

/// The bytes of workspace that sum, max, dot, norm2 and argmax of n elements need that follow each other, or whose rows
/// are at pitches in at most two dimensions.
std::uint64_t reduction_workspace(std::uint64_t n);
/// The bytes that they need for a view, and dot for two of the same shape: more where it takes several launches.
std::uint64_t reduction_workspace(const TensorView& x);
std::uint64_t reduction_workspace(const TensorView& x, const TensorView& y);

/// For the catalogue: names, launches, checks and references.
extern const Recipe sum_recipe, max_recipe;
/// total[0], of float, = the sum or the maximum of all elements of x, of f32, f16 or bf16, of any shape, size and
/// pitches. A launch reaches rows at pitches in two dimensions and fewer than 2^32 elements, gaps between rows
/// included; for others there are several, whose results one more launch combines.
void sum(const Queue& queue, const TensorView& x, const MutableTensorView& total, const WorkspaceSlice& workspace = {});
void max(const Queue& queue, const TensorView& x, const MutableTensorView& total, const WorkspaceSlice& workspace = {});
/// The same as a number on the host. It waits for the device, so it takes no stream.
float sum(const DeviceQueue& device, const TensorView& x);
float max(const DeviceQueue& device, const TensorView& x);

}  // namespace ikat::stdlib
