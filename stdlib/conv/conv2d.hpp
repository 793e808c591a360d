// SPDX-License-Identifier: Apache-2.0
// Convolution of images, computed directly, f32, f16 or bf16.
//
//     y[b, f, i, j] = sum over c, r, s of  w[f, c, r, s] x[b, first + c, i stride_h - pad_h + r dilation_h,
//                                                          j stride_w - pad_w + s dilation_w]
//
// where x is 0 outside the image. x is batch x channels x height x width, w is filters x (channels / groups) x kernel_h
// x kernel_w, y is batch x filters x out_h x out_w, all row-major with fewer than 2^32 elements. The filters are
// divided into `groups` equal parts, each of which reads its own part of the channels, from `first` on.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// The shape of a convolution: x is batch x channels x height x width, w is filters x channels / groups x kernel_h x
/// kernel_w. Strides, padding and dilation in elements.
struct Convolution {
    std::uint32_t batch = 1, channels = 1, height = 1, width = 1, filters = 1, kernel_h = 1, kernel_w = 1;
    std::uint32_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;

    /// The output's height and width; 0 where the kernel does not fit into the padded image.
    std::uint32_t out_h() const { return out(height, kernel_h, stride_h, pad_h, dilation_h); }
    std::uint32_t out_w() const { return out(width, kernel_w, stride_w, pad_w, dilation_w); }

private:
    static std::uint32_t out(std::uint64_t extent, std::uint64_t kernel, std::uint64_t stride, std::uint64_t pad,
                             std::uint64_t dilation) {
        const std::uint64_t reach = kernel == 0 ? 0 : dilation * (kernel - 1) + 1, padded = extent + 2 * pad;
        return reach == 0 || padded < reach || stride == 0 ? 0 : std::uint32_t((padded - reach) / stride + 1);
    }
};

/// From a function that gives the member of a name.
Convolution convolution_of(auto&& number) {
    return {number("batch"),    number("channels"),   number("height"),     number("width"),    number("filters"),
            number("kernel_h"), number("kernel_w"),   number("stride_h"),   number("stride_w"), number("pad_h"),
            number("pad_w"),    number("dilation_h"), number("dilation_w"), number("groups")};
}

/// The arguments are x, w, y, the members of Convolution in their order, then out_h and out_w. A thread per element of
/// y, summed in f32 and rounded once.
template <class T>
using Conv2dKernel =
    Kernel<In<T>, In<T>, Out<T>, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32>;
template <class T>
const Conv2dKernel<T>& conv2d_kernel();

/// For the catalogue: names, launches, checks and references.
extern const Recipe conv2d_recipe;
struct ConvolutionOptions {
    std::uint32_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;
};
/// y = x convolved with w: x is batch×channels×height×width, w is filters×(channels / groups)×kernel_h×kernel_w, y is
/// batch×filters×out_h×out_w. Lines, channels, filters and images are at any pitches and begin anywhere; the elements
/// of a line follow each other. Throws Error for shapes and types that do not fit, an array that from its first element
/// to its last has 2^32 or more, a stride or dilation of 0, and groups that do not divide channels and filters.
void conv2d(const Queue& queue, const TensorView& x, const TensorView& w, const MutableTensorView& y,
            const ConvolutionOptions& options = {});

}  // namespace ikat::stdlib
