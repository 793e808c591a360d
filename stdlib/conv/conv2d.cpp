// SPDX-License-Identifier: Apache-2.0
#include "stdlib/conv/conv2d.hpp"

#include <fmt/format.h>

#include "codegen/support/diagnostic.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
constexpr std::uint32_t threads = 256;

template <class T>
const Conv2dKernel<T>& conv2d_kernel() {
    static const auto made =
        kernel(name_of<T>("conv2d"),
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
                               // Above the image the subtraction wraps, which gives a large number.
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
            .require(at_least("x", "batch", "channels", "height", "width"))
            .require(at_least("y", "batch", "filters", "out_h", "out_w"))
            .launch_bounds(threads);
    return made;
}

void conv2d(const Queue& queue, const TensorView& x, const TensorView& w, const MutableTensorView& y,
            const ConvolutionOptions& options) {
    const ViewCall call(queue, conv2d_recipe, {x, w, y});
    for (std::size_t i = 0; i < call.views().size(); ++i)
        if (!is_packed(call.views()[i], 1))
            call.fail(fmt::format("'{}' has gaps between its elements", conv2d_recipe.operands.all()[i].name),
                      "copy it to an array without gaps");
    const auto& o = options;
    const std::uint32_t channels = call.extent("channels"), depth = call.extent("depth");
    if (std::uint64_t(depth) * o.groups != channels)
        call.fail(fmt::format("'groups' is {}, and 'w' is for {} channels of the {} of 'x'", o.groups, depth, channels),
                  "w has channels / groups");
    run_kernel(call, conv2d_recipe.kernels[0], conv2d_recipe.kernels[0].instances[call.type()](),
               {{"batch", call.extent("batch")},
                {"channels", channels},
                {"height", call.extent("height")},
                {"width", call.extent("width")},
                {"filters", call.extent("filters")},
                {"kernel_h", call.extent("kernel_h")},
                {"kernel_w", call.extent("kernel_w")},
                {"stride_h", o.stride_h},
                {"stride_w", o.stride_w},
                {"pad_h", o.pad_h},
                {"pad_w", o.pad_w},
                {"dilation_h", o.dilation_h},
                {"dilation_w", o.dilation_w},
                {"groups", o.groups},
                {"out_h", call.extent("out_h")},
                {"out_w", call.extent("out_w")}});
}

static Grid grid_of(const Call& a) {
    const std::uint64_t n = std::uint64_t(a["batch"]) * a["filters"] * a["out_h"] * a["out_w"];
    return runtime::grid(std::max<std::uint64_t>(n, 1), a.threads(threads));
}

static void check_convolution(const Call& a) {
    const Convolution c = convolution_of([&](const char* name) { return a[name]; });
    if (!c.stride_h || !c.stride_w || !c.dilation_h || !c.dilation_w)
        a.fail("conv2d: a stride or dilation is 0", "they are at least 1");
    if (!c.groups || c.channels % c.groups || c.filters % c.groups)
        a.fail("conv2d: 'groups' does not divide the channels and the filters", "each group has an equal part of both");
    if (a["out_h"] != c.out_h() || a["out_w"] != c.out_w())
        a.fail(fmt::format("conv2d: 'out_h' and 'out_w' are {} and {}, not {} and {}", a["out_h"], a["out_w"],
                           c.out_h(), c.out_w()),
               "they follow from the image, the kernel, stride, padding and dilation");
}

static ConvolutionOptions options_of(const FunctionSettings& settings) {
    const auto count = [&](std::string_view name, std::uint32_t otherwise) {
        return settings.count(name).value_or(otherwise);
    };
    return {count("stride_h", 1),   count("stride_w", 1),   count("pad_h", 0), count("pad_w", 0),
            count("dilation_h", 1), count("dilation_w", 1), count("groups", 1)};
}
static void run_convolution(const Queue& queue, std::span<const MutableTensorView> arrays,
                            const FunctionSettings& settings) {
    conv2d(queue, arrays[0], arrays[1], arrays[2], options_of(settings));
}
static void add_extents(NamedExtents& extents, const FunctionSettings& settings) {
    const auto extent = [&](std::string_view name) { return std::uint32_t(extents.find(name)->second); };
    const ConvolutionOptions o = options_of(settings);
    const Convolution c{.height = extent("height"),
                        .width = extent("width"),
                        .kernel_h = extent("kernel_h"),
                        .kernel_w = extent("kernel_w"),
                        .stride_h = o.stride_h,
                        .stride_w = o.stride_w,
                        .pad_h = o.pad_h,
                        .pad_w = o.pad_w,
                        .dilation_h = o.dilation_h,
                        .dilation_w = o.dilation_w};
    extents.try_emplace("out_h", c.out_h());
    extents.try_emplace("out_w", c.out_w());
}

// ---- the recipe

IKAT_INSTANTIATE(conv2d_kernel)

constexpr Recipe conv2d_recipe{
    .call = "conv2d(queue, x, w, y, options)",
    .kernels = {{"convolution of images with stride, padding, dilation and groups", IKAT_FLOATS(conv2d_kernel<T>()),
                 grid_of}},
    .operands = {{"x", "batch channels height width"},
                 {"w", "filters depth kernel_h kernel_w"},
                 {"y", "batch filters out_h out_w", Access::Out, ir::Type::Void, false, true}},
    .settings = {{"stride_h", "1 if it is not set"},
                 {"stride_w", "1 if it is not set"},
                 {"pad_h", "lines of zeros on each side; none if it is not set"},
                 {"pad_w", "columns of zeros on each side; none if it is not set"},
                 {"dilation_h", "1 if it is not set"},
                 {"dilation_w", "1 if it is not set"},
                 {"groups", "of the channels; 1 if it is not set"}},
    .extents = add_extents,
    .run = run_convolution,
    .document =
        "x is batch x channels x height x width, w is filters x (channels / groups) x kernel_h x kernel_w, y\n"
        "is batch x filters x out_h x out_w, row-major, with fewer than 2^32 elements each. Outside the image\n"
        "x is 0, for pad_h lines and pad_w columns on each side. out_h = (height + 2 pad_h - dilation_h\n"
        "(kernel_h - 1) - 1) / stride_h + 1, out_w likewise. groups divides channels and filters. A thread\n"
        "per element, summed in f32 and rounded once.",
    .sizes = {{"x", "batch channels height width"},
              {"w", "channels /groups filters kernel_h kernel_w"},
              {"y", "batch filters out_h out_w"}},
    .check = check_convolution,
    .reference = reference::conv2d,
    .bound_by = "bound by arithmetic, and by the second-level cache: each element of x is used for many of y",
    .note = "direct; stride, padding, dilation, groups; NCHW"};

}  // namespace ikat::stdlib
