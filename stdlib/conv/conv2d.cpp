// SPDX-License-Identifier: Apache-2.0
#include "stdlib/conv/conv2d.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/support/diagnostic.hpp"
#include "dsl/memory/structs.hpp"
#include "dsl/threads/simt.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {

/// How far apart images, channels and lines of x are, filters, channels and lines of w, images, filters and lines of y,
/// all in elements.
struct ConvolutionPitches {
    BOOST_HANA_DEFINE_STRUCT(ConvolutionPitches, (std::uint32_t, x_image), (std::uint32_t, x_channel),
                             (std::uint32_t, x_line), (std::uint32_t, w_filter), (std::uint32_t, w_channel),
                             (std::uint32_t, w_line), (std::uint32_t, y_image), (std::uint32_t, y_filter),
                             (std::uint32_t, y_line));
};

namespace {

constexpr std::uint32_t threads = 256;

/// The numbers of a launch.
struct ConvolutionNumbers {
    const u32 &batch, &channels, &height, &width, &filters, &kernel_h, &kernel_w;
    const u32 &stride_h, &stride_w, &pad_h, &pad_w, &dilation_h, &dilation_w, &groups, &out_h, &out_w;
};

/// Where elements are in arrays whose elements follow each other.
struct DensePlaces {
    const ConvolutionNumbers& of;

    /// Channel number `channel` of an image, and a line of a channel that many after it.
    auto channel(const auto& image, const auto& channel) const { return value(image * of.channels + channel); }
    auto line(const auto& first, const auto& channel, const auto& line) const {
        return value((first + channel) * of.height + line);
    }
    auto element(const auto& line, const auto& column) const { return line * of.width + column; }
    auto weights(const auto& filter, const auto& depth, const auto& channel, const auto& line) const {
        return value(((filter * depth + channel) * of.kernel_h + line) * of.kernel_w);
    }
    /// Element number i of y, which is here.
    auto output(const auto& i, const auto&, const auto&, const auto&, const auto&) const { return i; }
};
/// And in arrays with gaps.
struct PitchedPlaces {
    const Struct<ConvolutionPitches>& of;

    auto channel(const auto& image, const auto& channel) const {
        return value(image * of[&ConvolutionPitches::x_image] + channel * of[&ConvolutionPitches::x_channel]);
    }
    auto line(const auto& first, const auto& channel, const auto& line) const {
        return value(first + channel * of[&ConvolutionPitches::x_channel] + line * of[&ConvolutionPitches::x_line]);
    }
    auto element(const auto& line, const auto& column) const { return line + column; }
    auto weights(const auto& filter, const auto&, const auto& channel, const auto& line) const {
        return value(filter * of[&ConvolutionPitches::w_filter] + channel * of[&ConvolutionPitches::w_channel] +
                     line * of[&ConvolutionPitches::w_line]);
    }
    auto output(const auto&, const auto& image, const auto& filter, const auto& row, const auto& column) const {
        return value(image * of[&ConvolutionPitches::y_image] + filter * of[&ConvolutionPitches::y_filter] +
                     row * of[&ConvolutionPitches::y_line] + column);
    }
};

/// A thread for each element of y.
template <class T>
void convolve(const In<T>& x, const In<T>& w, const Out<T>& y, const ConvolutionNumbers& of, const auto& places) {
    require_linear_grid();
    const auto depth = value(of.channels / of.groups), filters_of_group = value(of.filters / of.groups);
    for (auto i : grid_stride(of.batch * of.filters * of.out_h * of.out_w)) {
        const auto column = value(i % of.out_w), row = value(i / of.out_w % of.out_h);
        const auto filter = value(i / of.out_w / of.out_h % of.filters),
                   image = value(i / of.out_w / of.out_h / of.filters);
        const auto first = places.channel(image, filter / filters_of_group * depth);
        f32 sum = 0;
        for (auto c : range(depth))
            for (auto r : range(of.kernel_h)) {
                // Above the image the subtraction wraps, which gives a large number.
                const auto at_h = value(row * of.stride_h + r * of.dilation_h - of.pad_h);
                const auto line = places.line(first, c, at_h);
                const auto weights = places.weights(filter, depth, c, r);
                for (auto s : range(of.kernel_w)) {
                    const auto at_w = value(column * of.stride_w + s * of.dilation_w - of.pad_w);
                    const auto v =
                        value(x.load_if((at_h < of.height) & (at_w < of.width), places.element(line, at_w), 0));
                    sum = fma(cast<f32>(v), cast<f32>(w[weights + s]), sum);
                }
            }
        y[places.output(i, image, filter, row, column)] = cast<T>(sum);
    }
}

template <class T>
const auto& conv2d_pitched() {
    static const auto made =
        kernel(
            name_of<T>("conv2d_pitched"),
            params("x", "w", "y", "batch", "channels", "height", "width", "filters", "kernel_h", "kernel_w", "stride_h",
                   "stride_w", "pad_h", "pad_w", "dilation_h", "dilation_w", "groups", "out_h", "out_w", "pitches"),
            [](In<T> x, In<T> w, Out<T> y, u32 batch, u32 channels, u32 height, u32 width, u32 filters, u32 kernel_h,
               u32 kernel_w, u32 stride_h, u32 stride_w, u32 pad_h, u32 pad_w, u32 dilation_h, u32 dilation_w,
               u32 groups, u32 out_h, u32 out_w, Struct<ConvolutionPitches> pitches) {
                convolve(x, w, y,
                         {batch, channels, height, width, filters, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w,
                          dilation_h, dilation_w, groups, out_h, out_w},
                         PitchedPlaces{pitches});
            })
            .launch_bounds(threads);
    return made;
}

/// The pitches of a view of rank 4.
struct Distances {
    std::uint32_t outer, plane, line;
};
Distances distances(const ViewCall& call, std::size_t operand) {
    const TensorView& view = call.views()[operand];
    call.check().reached(conv2d_recipe.operands.all()[operand].name, view.part.bytes / info(view.type).bytes);
    return {std::uint32_t(view.strides[0]), std::uint32_t(view.strides[1]), std::uint32_t(view.strides[2])};
}

}  // namespace

template <class T>
const Conv2dKernel<T>& conv2d_kernel() {
    static const auto made =
        kernel(name_of<T>("conv2d"),
               params("x", "w", "y", "batch", "channels", "height", "width", "filters", "kernel_h", "kernel_w",
                      "stride_h", "stride_w", "pad_h", "pad_w", "dilation_h", "dilation_w", "groups", "out_h", "out_w"),
               [](In<T> x, In<T> w, Out<T> y, u32 batch, u32 channels, u32 height, u32 width, u32 filters, u32 kernel_h,
                  u32 kernel_w, u32 stride_h, u32 stride_w, u32 pad_h, u32 pad_w, u32 dilation_h, u32 dilation_w,
                  u32 groups, u32 out_h, u32 out_w) {
                   const ConvolutionNumbers of{batch,      channels, height,   width, filters, kernel_h,
                                               kernel_w,   stride_h, stride_w, pad_h, pad_w,   dilation_h,
                                               dilation_w, groups,   out_h,    out_w};
                   convolve(x, w, y, of, DensePlaces{of});
               })
            .require(at_least("x", "batch", "channels", "height", "width"))
            .require(at_least("y", "batch", "filters", "out_h", "out_w"))
            .launch_bounds(threads);
    return made;
}

void conv2d(const Queue& queue, const TensorView& x, const TensorView& w, const MutableTensorView& y,
            const ConvolutionOptions& options) {
    const ViewCall call(queue, conv2d_recipe, {x, w, y});
    const auto& o = options;
    const std::uint32_t channels = call.extent("channels"), depth = call.extent("depth");
    if (std::uint64_t(depth) * o.groups != channels)
        call.fail(fmt::format("'groups' is {}, and 'w' is for {} channels of the {} of 'x'", o.groups, depth, channels),
                  "w has channels / groups");
    const bool is_dense = std::ranges::all_of(call.views(), [](const TensorView& view) { return is_packed(view, 1); });
    const Variant& variant = conv2d_recipe.kernels[0];
    const Distances of_x = distances(call, 0), of_w = distances(call, 1), of_y = distances(call, 2);
    run_kernel(call, variant, (is_dense ? variant.instances : variant.pitched)[call.type()](),
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
                {"out_w", call.extent("out_w")},
                {"pitches_x_image", of_x.outer},
                {"pitches_x_channel", of_x.plane},
                {"pitches_x_line", of_x.line},
                {"pitches_w_filter", of_w.outer},
                {"pitches_w_channel", of_w.plane},
                {"pitches_w_line", of_w.line},
                {"pitches_y_image", of_y.outer},
                {"pitches_y_filter", of_y.plane},
                {"pitches_y_line", of_y.line}});
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

static constexpr SettingList settings_of_options{{"stride_h", "1 if it is not set"},
                                                 {"stride_w", "1 if it is not set"},
                                                 {"pad_h", "lines of zeros on each side; none if it is not set"},
                                                 {"pad_w", "columns of zeros on each side; none if it is not set"},
                                                 {"dilation_h", "1 if it is not set"},
                                                 {"dilation_w", "1 if it is not set"},
                                                 {"groups", "of the channels; 1 if it is not set"}};
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
    .kernels = {{.summary = "convolution of images with stride, padding, dilation and groups",
                 .instances = IKAT_FLOATS(conv2d_kernel<T>()),
                 .grid = grid_of,
                 .pitched = IKAT_FLOATS(conv2d_pitched<T>())}},
    .operands = {{"x", "batch channels height width"},
                 {"w", "filters depth kernel_h kernel_w"},
                 {"y", "batch filters out_h out_w", Access::Out, ir::Type::Void, false, true}},
    .settings = settings_of_options,
    .extents = add_extents,
    .run = run_convolution,
    .document =
        "Row-major, with fewer than 2^32 elements each; w has channels / groups. Outside the image x is 0, for\n"
        "pad_h lines and pad_w columns on each side. out_h = (height + 2 pad_h - dilation_h (kernel_h - 1) - 1)\n"
        "/ stride_h + 1. A thread per element, summed in f32 and rounded once.",
    .sizes = {{"x", "batch channels height width"},
              {"w", "channels /groups filters kernel_h kernel_w"},
              {"y", "batch filters out_h out_w"}},
    .check = check_convolution,
    .reference = reference::conv2d,
    .bound_by = "bound by arithmetic, and by the second-level cache: each element of x is used for many of y",
    .note = "direct; stride, padding, dilation, groups; NCHW"};

}  // namespace ikat::stdlib
