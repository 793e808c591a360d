// SPDX-License-Identifier: Apache-2.0
// conv2d of arrays with gaps and of slices that begin anywhere: the bits of the same arrays without gaps.
#include <string>

#include "runtime/exec/recorder.hpp"
#include "stdlib/conv/conv2d.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {

constexpr Place all_places[] = {Place::packed, Place::aligned, Place::odd, Place::permuted};
constexpr stdlib::Convolution shape{.batch = 2,
                                    .channels = 4,
                                    .height = 7,
                                    .width = 6,
                                    .filters = 6,
                                    .kernel_h = 3,
                                    .kernel_w = 2,
                                    .stride_h = 2,
                                    .pad_h = 1,
                                    .pad_w = 2,
                                    .dilation_w = 2,
                                    .groups = 2};
constexpr stdlib::ConvolutionOptions options{
    .stride_h = 2, .pad_h = 1, .pad_w = 2, .dilation_w = 2, .groups = shape.groups};

}  // namespace

TEST_CASE("conv2d of views") {
    const runtime::Device device = open_device();
    const Extents of_x{shape.batch, shape.channels, shape.height, shape.width},
        of_w{shape.filters, shape.channels / shape.groups, shape.kernel_h, shape.kernel_w},
        of_y{shape.batch, shape.filters, shape.out_h(), shape.out_w()};
    const auto check = [&]<class T>(T) {
        const Placed<T> x(device, Place::packed, of_x, 1), w(device, Place::packed, of_w, 2),
            y(device, Place::packed, of_y, 3);
        stdlib::conv2d(device, x, w, y, options);
        for (const Place place : all_places)
            for (std::size_t which = 0; which < 4; ++which) {  // x, w, y, or all of them
                INFO("place " << int(place) << ", array " << which);
                const auto at = [&](std::size_t array) { return which == array || which == 3 ? place : Place::packed; };
                const Placed<T> a(device, at(0), of_x, 1), b(device, at(1), of_w, 2), c(device, at(2), of_y, 3);
                stdlib::conv2d(device, a, b, c, options);
                CHECK(c.elements() == y.elements());
                CHECK(c.changed_gaps() == 0);
            }
    };
    check(float());
    check(half());
    check(bfloat16());
}

TEST_CASE("conv2d of slices without gaps is the kernel for such arrays, wherever they begin") {
    const runtime::Device device = runtime::Device::open({.device = "emulator", .is_plan = true});
    auto x = device.buffer<float>(100, "x"), y = device.buffer<float>(100, "y");
    const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
    stdlib::conv2d(recorder, x.slice(1, 24).view(1, 2, 3, 4), x.slice(30, 2).view(1, 2, 1, 1),
                   y.slice(3, 12).view(1, 1, 3, 4));
    stdlib::conv2d(recorder, x.slice(1, 29).view(1, 2, 3, 4).pitched(15, 15, 5), x.slice(30, 2).view(1, 2, 1, 1),
                   y.slice(3, 12).view(1, 1, 3, 4));
    REQUIRE(recorder.launches().size() == 2);
    CHECK(recorder.launches()[0].kernel->name() == std::string("conv2d"));
    CHECK(recorder.launches()[1].kernel->name() == std::string("conv2d_pitched"));
}

TEST_CASE("conv2d of views without elements") {
    const runtime::Device device = open_device();
    auto w = device.upload(std::vector<float>(8, 1.0f), "w");
    const Placed<float> none(device, Place::odd, {0, 2, 3, 4}, 1), no_channels(device, Place::odd, {2, 0, 3, 4}, 1),
        no_lines(device, Place::odd, {2, 2, 0, 4}, 1);
    const Placed<float> nothing(device, Place::odd, {0, 1, 3, 4}, 2), y(device, Place::odd, {2, 1, 3, 4}, 2),
        of_padding(device, Place::odd, {2, 1, 2, 4}, 2);
    stdlib::conv2d(device, none, w.slice(0, 2).view(1, 2, 1, 1), nothing);
    stdlib::conv2d(device, no_channels, w.slice(0, 0).view(1, 0, 1, 1), y);
    CHECK(y.elements() == std::vector<float>(24));
    stdlib::conv2d(device, no_lines, w.slice(0, 2).view(1, 2, 1, 1), of_padding, {.pad_h = 1});
    CHECK(of_padding.elements() == std::vector<float>(16));
    CHECK(y.changed_gaps() + of_padding.changed_gaps() + nothing.changed_gaps() == 0);
}

TEST_CASE("views that conv2d does not take") {
    const runtime::Device device = runtime::Device::open({.device = "emulator", .is_plan = true});
    auto x = device.buffer<half>((std::uint64_t{1} << 32) + 8, "x"), w = device.buffer<half>(1, "w"),
         y = device.buffer<half>(16, "y");
    const auto part = x.memory().whole();
    const auto check = [&](const std::string& wanted, const TensorView& of_x) {
        CHECK_THAT(tests::message_of(
                       [&] { stdlib::conv2d(device, of_x, w.view(1, 1, 1, 1), y.slice(0, 8).view(2, 1, 2, 2)); }),
                   Catch::Contains(wanted) && Catch::Contains("conv_views_test.cpp:"));
    };
    check("conv2d: 'x' has 4294967298 elements, more than a 32-bit index reaches",
          TensorView(ir::Type::F16, part, Extents{2, 1, 2, 2}, Extents{0xfffffffe, 4, 2}));
    check("conv2d: the elements of a row of 'x' are 2 apart",
          TensorView(ir::Type::F16, part, Extents{2, 1, 2, 2}).permuted({0, 1, 3, 2}));
}

}  // namespace ikat::test
