// SPDX-License-Identifier: Apache-2.0
// Sum and maximum of an array of any length, the same in every run.
//
// Each block reduces a grid-stride share of x to one partial result; a second launch of one block reduces those. Which
// elements meet in which order depends on n alone, and no atomics are used. Sums are made in f32, also of 16-bit types.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "runtime/device.hpp"

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

/// The sum or the maximum of all elements of x.
template <class T>
float sum(const runtime::Device& device, const runtime::Buffer<T>& x);
template <class T>
float max(const runtime::Device& device, const runtime::Buffer<T>& x);

}  // namespace ikat::stdlib
