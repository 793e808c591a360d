// SPDX-License-Identifier: Apache-2.0
#include "stdlib/conv/conv2d.hpp"

#include <fmt/format.h>

#include <array>

#include "codegen/support/diagnostic.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/families.hpp"
#include "stdlib/size.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;

runtime::Grid conv2d_grid(const Convolution& c, std::uint32_t threads = 256) {
    const std::uint64_t n = std::uint64_t(c.batch) * c.filters * c.out_h() * c.out_w();
    return runtime::grid(std::max<std::uint64_t>(n, 1), threads);
}

void check(const Convolution& c) {
    if (c.stride_h == 0 || c.stride_w == 0 || c.dilation_h == 0 || c.dilation_w == 0)
        throw Error("conv2d: a stride or dilation is 0", "they are at least 1");
    if (c.groups == 0 || c.channels % c.groups != 0 || c.filters % c.groups != 0)
        throw Error("conv2d: 'groups' does not divide the channels and the filters",
                    "each group has an equal part of both");
    for (const auto& [name, extents] :
         {std::pair("x", std::array{c.batch, c.channels, c.height, c.width}),
          std::pair("w", std::array{c.filters, c.channels / c.groups, c.kernel_h, c.kernel_w}),
          std::pair("y", std::array{c.batch, c.filters, c.out_h(), c.out_w()})}) {
        std::uint64_t n = 1;
        for (const std::uint32_t extent : extents) n = u32_size("conv2d", name, n * extent);
    }
}

/// The launch for arguments as the kernel takes them.
runtime::Grid conv2d_grid_of(Arguments a, std::uint32_t block) {
    std::array<std::uint32_t, 16> n;
    for (std::size_t i = 0; i < n.size(); ++i) n[i] = number(a, 3 + i);
    const Convolution c{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13]};
    check(c);
    if (n[14] != c.out_h() || n[15] != c.out_w())
        throw Error(
            fmt::format("conv2d: 'out_h' and 'out_w' are {} and {}, not {} and {}", n[14], n[15], c.out_h(), c.out_w()),
            "they follow from the image, the kernel, stride, padding and dilation");
    return conv2d_grid(c, block ? block : threads);
}

template <class T>
void require(const char* name, const runtime::Buffer<T>& buffer, std::initializer_list<std::uint32_t> extents) {
    std::uint64_t n = 1;
    for (const std::uint32_t extent : extents) n = u32_size("conv2d", name, n * extent);
    require_size("conv2d", name, buffer.size(), n);
}

}  // namespace

template <class T>
const Conv2dKernel<T>& conv2d_kernel() {
    static const auto made =
        kernel(name_of<T>("conv2d", "conv2d_f16", "conv2d_bf16"),
               params("x", "w", "y", "batch", "channels", "height", "width", "filters", "kernel_h", "kernel_w",
                      "stride_h", "stride_w", "pad_h", "pad_w", "dilation_h", "dilation_w", "groups", "out_h", "out_w"),
               [](In<T> x, In<T> w, Out<T> y, u32 batch, u32 channels, u32 height, u32 width, u32 filters, u32 kernel_h,
                  u32 kernel_w, u32 stride_h, u32 stride_w, u32 pad_h, u32 pad_w, u32 dilation_h, u32 dilation_w,
                  u32 groups, u32 out_h, u32 out_w) {
                   require_linear_grid();
                   const auto depth = value(channels / groups), filters_of_group = value(filters / groups);
                   for (auto i : grid_stride(batch * filters * out_h * out_w)) {
                       const auto column = value(i % out_w), row = value(i / out_w % out_h);
                       const auto filter = value(i / out_w / out_h % filters),
                                  image = value(i / out_w / out_h / filters);
                       const auto first = value(image * channels + filter / filters_of_group * depth);
                       f32 sum = 0;
                       for (auto c : range(depth))
                           for (auto r : range(kernel_h)) {
                               // Above the image, the subtraction wraps and the number is large.
                               const auto at_h = value(row * stride_h + r * dilation_h - pad_h);
                               const auto line = value((first + c) * height + at_h);
                               const auto weights = value(((filter * depth + c) * kernel_h + r) * kernel_w);
                               for (auto s : range(kernel_w)) {
                                   const auto at_w = value(column * stride_w + s * dilation_w - pad_w);
                                   const auto v =
                                       value(x.load_if((at_h < height) & (at_w < width), line * width + at_w, 0));
                                   sum = fma(cast<f32>(v), cast<f32>(w[weights + s]), sum);
                               }
                           }
                       y[i] = cast<T>(sum);
                   }
               })
            .launch_bounds(threads);
    return made;
}

template <class T>
void conv2d(const runtime::Queue& queue, const runtime::Buffer<T>& x, const runtime::Buffer<T>& w,
            runtime::Buffer<T>& y, const Convolution& c) {
    check(c);
    require("x", x, {c.batch, c.channels, c.height, c.width});
    require("w", w, {c.filters, c.channels / c.groups, c.kernel_h, c.kernel_w});
    require("y", y, {c.batch, c.filters, c.out_h(), c.out_w()});
    if (std::uint64_t(c.batch) * c.filters * c.out_h() * c.out_w() == 0) return;
    queue.launch(conv2d_kernel<T>(), conv2d_grid(c), x, w, y, c.batch, c.channels, c.height, c.width, c.filters,
                 c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.pad_h, c.pad_w, c.dilation_h, c.dilation_w, c.groups,
                 c.out_h(), c.out_w());
}

#define IKAT_INSTANTIATE(T)                                                                           \
    template const Conv2dKernel<T>& conv2d_kernel();                                                  \
    template void conv2d(const runtime::Queue&, const runtime::Buffer<T>&, const runtime::Buffer<T>&, \
                         runtime::Buffer<T>&, const Convolution&);
IKAT_INSTANTIATE(float)
IKAT_INSTANTIATE(half)
IKAT_INSTANTIATE(bfloat16)
#undef IKAT_INSTANTIATE

namespace {

constexpr std::string_view document =
    "x is batch x channels x height x width, w is filters x (channels / groups) x kernel_h x kernel_w, y is batch x\n"
    "filters x out_h x out_w, row-major, with fewer than 2^32 elements each. Outside the image x is 0, for pad_h "
    "lines\n"
    "and pad_w columns on each side. out_h = (height + 2 pad_h - dilation_h (kernel_h - 1) - 1) / stride_h + 1, out_w\n"
    "alike. groups divides channels and filters. A thread to an element, summed in f32 and rounded once.";

constexpr Entry entries[] = {
    IKAT_ENTRIES("conv2d", "convolution of images with stride, padding, dilation and groups", document, conv2d_kernel,
                 (), conv2d_grid_of(a, block)),
};

}  // namespace

std::span<const Entry> conv2d_entries() { return entries; }

}  // namespace ikat::stdlib
