// SPDX-License-Identifier: Apache-2.0
// Sum and maximum of an array of any length, the same in every run.
//
// Each block reduces a grid-stride share of x to one partial result; a second launch of one block reduces those. Which
// elements meet in which order depends on n alone, and no atomics are used. Sums are made in f32, also of 16-bit types.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/simt.hpp"
#include "runtime/device.hpp"
#include "stdlib/workspace.hpp"

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

namespace detail {

/// What compute(buffer of one element) leaves there.
template <class R>
R result(const runtime::DeviceQueue& queue, auto&& compute) {
    auto out = queue.device().template buffer<R>(1, "result");
    compute(out);
    return out.download()[0];
}

}  // namespace detail

/// The launch for n elements: blocks of 256 threads, each for 2048 elements or more, at most 1024 blocks.
runtime::Grid reduction_grid(std::uint64_t n);

/// The bytes of workspace that sum, max, dot, norm2 and argmax of n elements need.
std::uint64_t reduction_workspace(std::uint64_t n);

/// total[0] = the sum or the maximum of all elements of x.
template <class T>
void sum(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::BufferSlice<float>& total,
         const WorkspaceSlice& workspace = {});
template <class T>
void max(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::BufferSlice<float>& total,
         const WorkspaceSlice& workspace = {});
/// The number itself: of a device alone.
template <class T>
float sum(const runtime::DeviceQueue& device, const runtime::Buffer<T>& x) {
    return detail::result<float>(device, [&](auto& total) { sum(device, x, total); });
}
template <class T>
float max(const runtime::DeviceQueue& device, const runtime::Buffer<T>& x) {
    return detail::result<float>(device, [&](auto& total) { max(device, x, total); });
}

}  // namespace ikat::stdlib
