// SPDX-License-Identifier: Apache-2.0
// More reductions of arrays of any length: dot product, sum of squares, position of the maximum. Like sum and max they
// are two launches: each block reduces its share, then one block reduces the results. No atomics are used, so results
// are the same in every run.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/reduction/reduction.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// partial[b] = the sum of x[i] y[i] over the elements that block b visits, f32. x and y have at least n elements,
/// partial one for each block. T is float, half or bfloat16.
template <class T>
using DotKernel = Kernel<In<T>, In<T>, Out<float>, u32>;
template <class T>
const DotKernel<T>& dot_kernel();
/// partial[b] = the sum of x[i]^2.
template <class T>
using SquaresKernel = Kernel<In<T>, Out<float>, u32>;
template <class T>
const SquaresKernel<T>& norm2_kernel();

/// value[b], index[b] = the largest element that block b visits, and where it is; of equal ones the first. A NaN is no
/// largest element. Without any, -infinity and 2^32 - 1.
template <class T>
using ArgmaxKernel = Kernel<In<T>, Out<float>, Out<std::uint32_t>, u32>;
template <class T>
const ArgmaxKernel<T>& argmax_kernel();
/// Parameters values, indices, value, index, n: the same of the n results of another launch.
using ArgmaxFinalKernel = Kernel<In<float>, In<std::uint32_t>, Out<float>, Out<std::uint32_t>, u32>;
const ArgmaxFinalKernel& argmax_final_kernel();

/// For the catalogue: names, launches, checks and references.
extern const Recipe dot_recipe, norm2_recipe, argmax_recipe, argmax_final_recipe;
/// total[0] = the sum of x[i] y[i]. Throws Error if x and y differ in size. On a stream, give a workspace of
/// reduction_workspace(n) bytes; on a device, the functions allocate it.
template <Real T>
void dot(const Queue& queue, const Buffer<T>& x, const Buffer<T>& y, const BufferSlice<float>& total,
         const WorkspaceSlice& workspace = {}) {
    const std::uint32_t n = common_size(queue, dot_recipe, 0, {x.size(), y.size()});
    run<T>(queue, dot_recipe, {x, y, total, n}, {.workspace = workspace});
}
/// The sum of squares, which is the square of the Euclidean norm.
template <Real T>
void norm2(const Queue& queue, const Buffer<T>& x, const BufferSlice<float>& total,
           const WorkspaceSlice& workspace = {}) {
    run<T>(queue, norm2_recipe, {x, total, common_size(queue, norm2_recipe, 0, {x.size()})}, {.workspace = workspace});
}
/// The largest element and its index, the first of equal ones; -infinity and 2^32 - 1 where there is none.
template <Real T>
void argmax(const Queue& queue, const Buffer<T>& x, const BufferSlice<float>& value,
            const BufferSlice<std::uint32_t>& index, const WorkspaceSlice& workspace = {}) {
    const std::uint32_t n = common_size(queue, argmax_recipe, 0, {x.size()});
    run<T>(queue, argmax_recipe, {x, value, index, n}, {.workspace = workspace});
}

// The same as numbers on the host. They wait for the device, so they take no stream.
template <Real T>
float dot(const DeviceQueue& device, const Buffer<T>& x, const Buffer<T>& y) {
    return result<float>(device, [&](auto& total) { dot(device, x, y, total); });
}
template <Real T>
float norm2(const DeviceQueue& device, const Buffer<T>& x) {
    return result<float>(device, [&](auto& total) { norm2(device, x, total); });
}
/// The index.
template <Real T>
std::uint32_t argmax(const DeviceQueue& device, const Buffer<T>& x) {
    auto value = device.device().template buffer<float>(1, "value");
    return result<std::uint32_t>(device, [&](auto& index) { argmax(device, x, value, index); });
}

}  // namespace ikat::stdlib
