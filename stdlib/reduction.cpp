// SPDX-License-Identifier: Apache-2.0
#include "stdlib/reduction.hpp"

#include <algorithm>

#include "stdlib/reduce.hpp"
#include "stdlib/size.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;

/// The kernel of one element type and one way to combine.
template <class T>
ReductionKernel<T> make_reduction(const char* name, float neutral, auto combine) {
    return kernel(name, params("x", "partial", "n"),
                  [=](In<T> x, Out<float> partial, u32 n) {
                      f32 total = neutral;
                      for (auto i : grid_stride(n)) total = combine(total, cast<f32>(x[i]));
                      total = block_reduce(total, neutral, combine);
                      if_(thread_id().x == 0, [&] { partial[block_id().x] = total; });
                  })
        .launch_bounds(1024);
}

/// Both launches: the shares of the blocks, then the blocks' results.
template <class T>
float reduce(const runtime::Device& device, const ReductionKernel<T>& shares, const ReductionKernel<float>& rest,
             const runtime::Buffer<T>& x) {
    const std::uint32_t n = u32_size(shares.name(), "x", x.size());
    const runtime::Grid grid = reduction_grid(n);
    const std::uint32_t blocks = grid.blocks.x;
    auto partial = device.buffer<float>(blocks, "partial");
    device.launch(shares, grid, x, partial, n);
    if (blocks == 1) return partial.download()[0];
    auto total = device.buffer<float>(1, "total");
    device.launch(rest, runtime::grid(1, threads), partial, total, blocks);
    return total.download()[0];
}

}  // namespace

const ReductionKernel<float>& sum_f32() {
    static const auto made = make_reduction<float>("sum_f32", 0, plus);
    return made;
}
const ReductionKernel<half>& sum_f16() {
    static const auto made = make_reduction<half>("sum_f16", 0, plus);
    return made;
}
const ReductionKernel<float>& max_f32() {
    static const auto made = make_reduction<float>("max_f32", lowest<float>(), maximum);
    return made;
}
const ReductionKernel<half>& max_f16() {
    static const auto made = make_reduction<half>("max_f16", lowest<float>(), maximum);
    return made;
}

runtime::Grid reduction_grid(std::uint64_t n) {
    constexpr std::uint64_t per_block = 2048, most = 1024;
    const std::uint64_t blocks = std::clamp<std::uint64_t>((n + per_block - 1) / per_block, 1, most);
    return runtime::grid(blocks * threads, threads);
}

float sum(const runtime::Device& device, const runtime::Buffer<float>& x) {
    return reduce(device, sum_f32(), sum_f32(), x);
}
float sum(const runtime::Device& device, const runtime::Buffer<half>& x) {
    return reduce(device, sum_f16(), sum_f32(), x);
}
float max(const runtime::Device& device, const runtime::Buffer<float>& x) {
    return reduce(device, max_f32(), max_f32(), x);
}
float max(const runtime::Device& device, const runtime::Buffer<half>& x) {
    return reduce(device, max_f16(), max_f32(), x);
}

}  // namespace ikat::stdlib
