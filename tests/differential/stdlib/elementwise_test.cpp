// SPDX-License-Identifier: Apache-2.0
// The element-wise functions on buffers.
#include "stdlib/elementwise/elementwise.hpp"

#include "tests/catch.hpp"
#include "tests/device.hpp"

using namespace ikat;

TEST_CASE("element-wise kernels on buffers") {
    const runtime::Device device = test::open_device();
    const std::vector<float> a{-2, -1, 0, 1, 2}, b{1, 2, 3, 4, 5};
    const auto x = device.upload(a, "x"), z = device.upload(b, "z");
    auto y = device.buffer<float>(5, "y");
    stdlib::elementwise(device, stdlib::Unary::relu, x, y);
    CHECK(y.download() == std::vector<float>{0, 0, 0, 1, 2});
    stdlib::elementwise(device, stdlib::Unary1::scale, x, y, 3.0f);
    CHECK(y.download() == std::vector<float>{-6, -3, 0, 3, 6});
    stdlib::elementwise(device, stdlib::Unary2::clip, x, y, -1.5f, 0.5f);
    CHECK(y.download() == std::vector<float>{-1.5f, -1, 0, 0.5f, 0.5f});
    stdlib::elementwise(device, stdlib::Binary::mul, x, z, y);
    CHECK(y.download() == std::vector<float>{-2, -2, 0, 4, 10});
    stdlib::residual_add(device, z, y);
    CHECK(y.download() == std::vector<float>{-1, 0, 3, 8, 15});
    stdlib::bias_activation(device, stdlib::Activation::relu, x, z, y);
    CHECK(y.download() == std::vector<float>{0, 1, 3, 5, 7});
    auto halves = device.buffer<half>(5, "halves");
    stdlib::cast(device, y, halves);
    CHECK(float(halves.download()[4]) == 7);
    auto small = device.buffer<float>(4, "small");
    CHECK_THROWS_WITH(stdlib::elementwise(device, stdlib::Binary::add, x, z, small),
                      Catch::Contains("elementwise: 'a' is 5, and 'y' is 4"));
    CHECK_THROWS_WITH(stdlib::bias_activation(device, stdlib::Activation::none, x, z, small),
                      Catch::Contains("bias_activation: 'y' is 4: its columns is 4, and that of 'x' is 5"));
}
