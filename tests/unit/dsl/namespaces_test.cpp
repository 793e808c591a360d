// SPDX-License-Identifier: Apache-2.0
// A program that uses the names of the language and of the library together.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include "tests/catch.hpp"

using namespace ikat;
using namespace ikat::stdlib;

namespace {

template <Operand V>
f32 twice(const V& v) {
    return 2.0f * v;
}

const auto sigmoids = kernel("sigmoids", params("x", "y", "n"), [](In<half> x, Out<float> y, u32 n) {
    for (auto i : grid_stride(n)) y[i] = max(sigmoid(twice(cast<f32>(x[i]))), 0.75f);
});

}  // namespace

TEST_CASE("names of the language and of the library do not hide each other") {
    const Device device = Device::open({.device = "emulator"});
    const std::vector<float> host{0, 100};
    const Buffer<float> x = device.upload(host, "x");
    Buffer<half> halves = device.buffer<half>(2, "halves");
    Buffer<float> y = device.buffer<float>(2, "y");
    cast(device, x, halves);
    device.launch(sigmoids, Grid{{1}, {32}}, halves, y, 2u);
    CHECK(y.download() == std::vector<float>{0.75f, 1});
    CHECK(max(device, x) == 100);
    const FunctionOperand operand(x);
    CHECK(operand.type() == ir::Type::F32);
}
