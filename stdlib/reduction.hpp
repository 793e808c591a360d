// SPDX-License-Identifier: Apache-2.0
// Sum and maximum of an array of any length, the same in every run.
//
// Each block reduces a grid-stride share of x to one partial result; a second launch of one block reduces those. Which
// elements meet in which order depends on n alone, and no atomics are used. Sums are made in f32, also of f16.
#pragma once
#include "dsl/kernel.hpp"
#include "dsl/simt.hpp"
#include "runtime/device.hpp"

namespace ikat::stdlib {

/// partial[b] = the sum (or maximum) of the elements that block b visits, f32. With one block, partial[0] is the
/// result. x has at least n elements, partial one per block. Blocks are 1-dimensional, a multiple of 32 and at most
/// 1024 threads. n = 0 gives 0 (or -infinity). A maximum ignores NaNs, as PTX's max does.
template <class T>
using ReductionKernel = Kernel<In<T>, Out<float>, u32>;

const ReductionKernel<float>& sum_f32();
const ReductionKernel<half>& sum_f16();
const ReductionKernel<float>& max_f32();
const ReductionKernel<half>& max_f16();

/// The launch for n elements: blocks of 256 threads, each for 2048 elements or more, at most 1024 blocks.
runtime::Grid reduction_grid(std::uint64_t n);

/// The sum or the maximum of all elements of x.
float sum(const runtime::Device& device, const runtime::Buffer<float>& x);
float sum(const runtime::Device& device, const runtime::Buffer<half>& x);
float max(const runtime::Device& device, const runtime::Buffer<float>& x);
float max(const runtime::Device& device, const runtime::Buffer<half>& x);

}  // namespace ikat::stdlib
