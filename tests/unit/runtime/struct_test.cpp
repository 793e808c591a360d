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

}  // namespace
}  // namespace ikat::tests
