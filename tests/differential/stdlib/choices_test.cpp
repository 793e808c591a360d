// SPDX-License-Identifier: Apache-2.0
// What a function is told to choose by an enumerator: the same function by each of its names, and an error for numbers
// that no enumerator has.
#include <cmath>

#include "stdlib/attention/attention.hpp"
#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/layout/layout.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/message.hpp"

using namespace ikat;

TEST_CASE("an activation has the same bits by itself, with a bias and after a product") {
    const runtime::Device device = test::open_device();
    const std::vector<float> values{NAN, -INFINITY, INFINITY, -3, -0.5f, 0, 0.25f, 5};
    const auto n = std::uint32_t(values.size());
    const auto x = device.upload(values, "x"), zeros = device.upload(std::vector<float>(n), "zeros"),
               one = device.upload(std::vector<float>{1}, "one");
    auto y = device.buffer<float>(n, "y");
    const auto bits = [&] {
        std::vector<std::uint32_t> out;
        for (const float v : y.download()) out.push_back(std::isnan(v) ? 0x7fffffff : std::bit_cast<std::uint32_t>(v));
        return out;
    };
    const auto check = [&](stdlib::Unary unary, stdlib::Activation activation) {
        stdlib::elementwise(device, unary, x, y);
        const auto wanted = bits();
        CHECK(wanted[0] == 0x7fffffff);
        stdlib::bias_activation(device, activation, x, zeros, y);
        CHECK(bits() == wanted);
        stdlib::gemm_tensor_core(device, x.view(n, 1), one.view(1, 1), y.view(n, 1), {.activation = activation});
        CHECK(bits() == wanted);
    };
    check(stdlib::Unary::relu, stdlib::Activation::relu);
    check(stdlib::Unary::gelu, stdlib::Activation::gelu);
    check(stdlib::Unary::gelu_tanh, stdlib::Activation::gelu_tanh);
    check(stdlib::Unary::silu, stdlib::Activation::silu);
}

TEST_CASE("a number that is no enumerator is an error") {
    const runtime::Device device = test::open_device();
    auto x = device.buffer<float>(512, "x"), y = device.buffer<float>(512, "y");
    auto halves = device.buffer<half>(4096, "halves");
    const auto words = device.buffer<std::uint32_t>(512, "words");
    const auto check = [](const std::string& wanted, auto&& call) {
        CHECK_THAT(tests::message_of(call), Catch::Contains(wanted + "' is 77, which is not an enumerator"));
    };
    check("elementwise: 'what", [&] { stdlib::elementwise(device, stdlib::Unary(77), x, y); });
    check("elementwise: 'what", [&] { stdlib::elementwise(device, stdlib::Unary1(77), x, y, 1.0f); });
    check("elementwise: 'what", [&] { stdlib::elementwise(device, stdlib::Unary2(77), x, y, 1.0f, 1.0f); });
    check("elementwise: 'what", [&] { stdlib::elementwise(device, stdlib::Binary(77), x, x, y); });
    check("elementwise_kernel: 'what", [&] { stdlib::elementwise_kernel<float>(stdlib::Unary(77)); });
    const auto activation = stdlib::Activation(77);
    check("bias_activation: 'activation", [&] { stdlib::bias_activation(device, activation, x, x, y); });
    check("bias_activation_kernel: 'activation", [&] { stdlib::bias_activation_kernel<float>(activation); });
    check("rope: 'form", [&] { stdlib::rope(device, stdlib::Rope(77), x.view(512, 1, 1), words, 1, 1.0f); });
    check("rope_kernel: 'form", [&] { stdlib::rope_kernel<float>(stdlib::Rope(77)); });
    const auto format = stdlib::Quantised(77);
    check("Quantised: 'format", [&] { stdlib::bytes_of(format); });
    check("gemm: 'block",
          [&] { stdlib::gemm(device, x.view(4, 4), x.view(4, 4), y.view(4, 4), stdlib::GemmBlock(77)); });
    const auto gemm = [&](const char* what, const stdlib::GemmOptions& options) {
        check(std::string("gemm_tensor_core: '") + what,
              [&] { stdlib::gemm_tensor_core(device, x.view(4, 4), x.view(4, 4), y.view(4, 4), options); });
    };
    gemm("a", {.a = stdlib::MatrixOrder(77)});
    gemm("b", {.b = stdlib::MatrixOrder(77)});
    gemm("activation", {.activation = activation});
    gemm("path", {.path = stdlib::GemmPath(77)});
    gemm("tile", {.tile = stdlib::TileSize(77)});
    gemm("schedule", {.schedule = stdlib::GemmSchedule(77)});
    gemm("raster", {.raster = stdlib::Raster(77)});
    const auto Q = std::as_const(halves).view(1, 64);
    check("flash_attention: 'path", [&] {
        stdlib::flash_attention(device, Q, Q, Q, halves.slice(2048, 64).view(1, 64),
                                {.path = stdlib::AttentionPath(77)});
    });
}
