// SPDX-License-Identifier: Apache-2.0
// Structs of the host as parameters: what the kernel reads, what PTX has, what a launch passes.
#include <ikat/ikat.hpp>

#include "codegen/compile.hpp"
#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

struct Affine {
    BOOST_HANA_DEFINE_STRUCT(Affine, (float, scale), (half, offset), (double, wide), (long long, step),
                             (std::uint32_t, n));
    int other = 7;
};

const auto affine = kernel("affine", params("x", "p", "k"), [](InOut<float> x, Struct<Affine> p, i32 k) {
    u32 i = global_id().x;
    if_(i < p[&Affine::n], [&] {
        auto step = p[&Affine::step];
        f32 sum = p[&Affine::scale] * x[i] + cast<f32>(p[&Affine::offset]) + cast<f32>(p[&Affine::wide]);
        x[i] = sum + cast<f32>(step + cast<i64>(k));
    });
});

TEST_CASE("structs: fields are parameters of their own, between the others") {
    CHECK_THAT(
        compile(affine.ast(), {}).ptx,
        contains("(\n    .param .u64 x,\n    .param .f32 p_scale,\n    .param .b16 p_offset,\n    .param .f64 p_wide,\n"
                 "    .param .s64 p_step,\n    .param .u32 p_n,\n    .param .s32 k\n)"));
}

TEST_CASE("structs: a launch passes the fields' values") {
    const Device device = Device::open({.device = "emulator", .threads = 1});
    Buffer<float> x = device.upload(std::vector<float>{1, 2, 3, 4});
    device.launch(affine, grid(4, 32), x, Affine{2.0f, half(0.5f), 0.25, -5, 3}, 100);
    CHECK(x.download() == std::vector<float>{97.75, 99.75, 101.75, 4});
    const Affine constant{0.0f, half(0.0f), 1e300, 1ll << 40, 1};
    const auto wide = kernel("wide", [](Struct<Affine> p, Out<double> y, Out<std::int64_t> z) {
        y[0] = p[&Affine::wide];
        z[0] = p[&Affine::step];
    });
    Buffer<double> y = device.buffer<double>(1);
    Buffer<std::int64_t> z = device.buffer<std::int64_t>(1);
    device.launch(wide, grid(1, 1), constant, y, z);
    CHECK(y.download()[0] == 1e300);
    CHECK(z.download()[0] == 1ll << 40);
}

TEST_CASE("structs: contracts name fields, and launches hold them") {
    const auto even = kernel("even", params("p"), [](Struct<Affine> p) {
                          check(p[&Affine::n] % 2 == 0, "even");
                      }).require(multiple_of<2>("p_n"));
    const Device device = Device::open({.device = "emulator", .threads = 1});
    CHECK_NOTHROW(device.launch(even, grid(1, 1), Affine{0, half(0.0f), 0, 0, 4}));
    CHECK_THAT(message_of([&] {
                   device.launch(even, grid(1, 1), Affine{0, half(0.0f), 0, 0, 5});
               }),
               contains("'p_n' is 5, which is no multiple of 2"));
}

struct Bounds {
    BOOST_HANA_DEFINE_STRUCT(Bounds, (std::int8_t, low), (bool, open), (std::uint16_t, high));
};
struct Narrow {
    BOOST_HANA_DEFINE_STRUCT(Narrow, (bool, on), (Bounds, bounds), (bfloat16, scale), (half2, pair),
                             (std::uint8_t, last));
};

const auto narrow = kernel("narrow", params("p", "y"), [](Struct<Narrow> p, Out<float> y) {
    auto bounds = p[&Narrow::bounds];
    y[0] = cast<f32>(bounds[&Bounds::low]);
    y[1] = cast<f32>(bounds[&Bounds::high]);
    y[2] = select(bounds[&Bounds::open], 1.0f, 0.0f) + select(p[&Narrow::on], 2.0f, 0.0f);
    y[3] = cast<f32>(p[&Narrow::scale]);
    y[4] = cast<f32>(p[&Narrow::pair][1]);
    y[5] = cast<f32>(p[&Narrow::last]);
});

TEST_CASE("structs: narrow fields, truth, and structs in structs") {
    CHECK_THAT(compile(narrow.ast(), {}).ptx,
               contains("(\n    .param .u8 p_on,\n    .param .s8 p_bounds_low,\n    .param .u8 p_bounds_open,\n"
                        "    .param .u16 p_bounds_high,\n    .param .b16 p_scale,\n    .param .b32 p_pair,\n"
                        "    .param .u8 p_last,\n    .param .u64 y\n)"));
    const Device device = Device::open({.device = "emulator", .threads = 1});
    for (bool on : {false, true})
        for (bool open : {false, true}) {
            Buffer<float> y = device.buffer<float>(6);
            const Narrow given{on, {-100, open, 60000}, bfloat16(1.5f), {half(2.0f), half(-3.0f)}, 200};
            device.launch(narrow, grid(1, 1), given, y);
            const float flags = (open ? 1.0f : 0.0f) + (on ? 2.0f : 0.0f);
            CHECK(y.download() == std::vector<float>{-100, 60000, flags, 1.5f, -3, 200});
        }
}

}  // namespace
}  // namespace ikat::tests
