// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights with several rows of activations, against gemv() and models on the host.
#include "stdlib/quantised/product.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/exec/recorder.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/reference/quantised.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/quantised_product.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {

using stdlib::Activations;
constexpr Place aligned = Place::aligned, odd = Place::odd;

const std::vector<Quantised> formats = quantised_formats();

}  // namespace

TEST_CASE("quantised products of a few tokens") {
    const runtime::Device device = open_device();
    for (const Quantised format : formats) {
        const Extents columns = columns_of(format);
        const ProductWeights packed(device, format, 9, columns[2], 0, 0), one(device, format, 1, columns[0], 0, 0),
            placed(device, format, 8, columns[1], 1, format == Quantised::MXFP4 ? 17 : 18);
        for (const Activations activations : {Activations::exact, Activations::q8_1}) {
            check_product<float, float>(device, packed, 8, activations, Place::packed);
            check_product<float, float>(device, one, 2, activations, Place::packed);
            check_product<float, float>(device, placed, 3, activations, odd);
        }
    }
}

TEST_CASE("quantised products of all numbers of tokens and rows") {
    const runtime::Device device = open_device();
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q6_K}) {
        const Extents columns = columns_of(format);
        for (const Activations activations : {Activations::exact, Activations::q8_1}) {
            const ProductWeights weights(device, format, 5, columns[1], 1, 0);
            for (const std::uint32_t tokens : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 17u}) {
                if (tokens > 8 && activations == Activations::exact) continue;  // on tensor cores
                check_product<float, float>(device, weights, tokens, activations, Place::packed);
            }
            for (const std::uint32_t rows : {1u, 3u, 4u, 5u, 7u, 8u, 9u, 16u, 17u})
                for (const std::uint32_t tokens : {1u, 2u})
                    check_product<float, float>(device, ProductWeights(device, format, rows, columns[0], 0, 0), tokens,
                                                activations, Place::packed);
        }
    }
}

TEST_CASE("quantised products of all types and places") {
    const runtime::Device device = open_device();
    const auto check = [&]<class X, class Y>(Quantised format, Place place) {
        const ProductWeights weights(device, format, 5, columns_of(format)[1], 0, place == odd ? 2 : 0);
        for (const Activations activations : {Activations::exact, Activations::q8_1})
            for (const std::uint32_t tokens : {1u, 2u})
                check_product<X, Y>(device, weights, tokens, activations, place);
    };
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q4_K})
        for (const Place place : {Place::packed, aligned, odd}) {
            check.operator()<half, half>(format, place);
            check.operator()<half, float>(format, place);
            check.operator()<bfloat16, bfloat16>(format, place);
            check.operator()<float, half>(format, place);
            check.operator()<bfloat16, float>(format, place);
        }
}

TEST_CASE("exact quantised products are within the bound") {
    const runtime::Device device = open_device();
    for (const Quantised format : formats) {
        const std::uint64_t columns = columns_of(format)[2], tokens = 2, rows = 3;
        const ProductWeights weights(device, format, rows, columns, 0, 0);
        const Placed<float> x(device, Place::packed, {tokens, columns}, 1), y(device, Place::packed, {tokens, rows}, 2);
        stdlib::gemm(device, weights.view(), x, y);
        const std::vector<float> w = stdlib::reference::dequantise(format, weights.blocks()), of_x = x.elements();
        const double steps = (12 + std::ceil(double(columns) / 1024)) * 0x1p-24;
        for (std::size_t i = 0; i < tokens * rows; ++i) {
            double sum = 0, size = 0;
            for (std::size_t k = 0; k < columns; ++k) {
                const double product = double(w[i % rows * columns + k]) * of_x[i / rows * columns + k];
                sum += product, size += std::abs(product);
            }
            CHECK(std::abs(y.elements()[i] - sum) <= steps / (1 - steps) * size);
        }
    }
}

TEST_CASE("quantised products of weights with special scales") {
    // Of f16: zeros, subnormal numbers, the largest one; infinity and NaN. Of e8m0: the smallest and the largest.
    const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
    const runtime::Device device = open_device();
    for (const Quantised format : formats) {
        ProductWeights weights(device, format, std::size(special), columns_of(format)[1], 0, 0);
        weights.set_scales(special);
        for (const Activations activations : {Activations::exact, Activations::q8_1})
            check_product<float, float>(device, weights, 2, activations, Place::packed);
    }
}

TEST_CASE("quantised products of activations that are not finite") {
    const runtime::Device device = open_device();
    constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    const ProductWeights weights(device, Quantised::Q8_0, 2, 64, 0, 0);
    std::vector<float> numbers = random_elements<float>(4 * 64, 1);
    numbers[5] = nan, numbers[64 + 40] = infinity, numbers[128 + 3] = -infinity;
    auto x = device.upload(numbers, "x"), y = device.buffer<float>(8, "y");
    stdlib::gemm(device, weights.view(), x.view(4, 64), y.view(4, 2));
    const std::vector<float> exact = y.download();
    CHECK((std::isnan(exact[0]) && std::isnan(exact[1])));
    for (std::size_t i = 2; i < 6; ++i) CHECK(std::isinf(exact[i]));
    CHECK((std::isfinite(exact[6]) && std::isfinite(exact[7])));

    const stdlib::QuantisedGemmOptions q8_1{.activations = Activations::q8_1};
    stdlib::gemm(device, weights.view(), x.view(4, 64), y.view(4, 2), q8_1);
    const std::vector<float> rounded = y.download();
    for (std::size_t i = 2; i < 6; ++i) CHECK(std::isnan(rounded[i]));
    numbers[5] = 0;  // which a NaN counts as
    x.upload(numbers);
    stdlib::gemm(device, weights.view(), x.view(4, 64), y.view(4, 2), q8_1);
    for (const std::size_t i : {0u, 1u, 6u, 7u}) CHECK(y.download()[i] == rounded[i]);
}

TEST_CASE("quantised products of nothing") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_0, 3, 64, 0, 0);
    const auto x = device.upload(std::vector<float>(128, 1), "x");
    auto y = device.upload(std::vector<float>(6, -1), "y");
    for (const Activations activations : {Activations::exact, Activations::q8_1}) {
        const stdlib::QuantisedGemmOptions options{.activations = activations};
        stdlib::gemm(device, weights.view(), x.view(0, 64), y.view(0, 3), options);
        stdlib::gemm(device, stdlib::quantised_view(weights.buffer(), Quantised::Q4_0, {0, 64}), x.view(2, 64),
                     y.view(2, 0), options);
        CHECK(y.download() == std::vector<float>(6, -1));
        stdlib::gemm(device, stdlib::quantised_view(weights.buffer(), Quantised::Q4_0, {3, 0}), x.view(2, 0),
                     y.view(2, 3), options);
        CHECK(y.download() == std::vector<float>(6, 0));
        y.upload(std::vector<float>(6, -1));
    }
}

TEST_CASE("quantised products in all orders of warps") {
    const runtime::Device device = open_device({.threads = 1, .check = "races", .schedules = 4});
    for (const Quantised format : {Quantised::Q4_K, Quantised::Q5_0, Quantised::MXFP4})
        for (const Activations activations : {Activations::exact, Activations::q8_1}) {
            const ProductWeights weights(device, format, 9, columns_of(format)[2], 0, 2);
            check_product<float, float>(device, weights, 3, activations, odd);
            check_product<half, half>(device, weights, 1, activations, Place::packed);
        }
}

TEST_CASE("a quantised product needs the workspace that it says") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_0, 5, 96, 0, 0);
    const Placed<float> x(device, odd, {17, 96}, 1), y(device, odd, {17, 5}, 2);
    stdlib::QuantisedGemmOptions options{.activations = Activations::q8_1};
    const std::uint64_t bytes = stdlib::gemm_workspace(device, weights.view(), x, y, options);
    CHECK(bytes == 17 * 28 * 4);
    auto workspace = device.buffer<std::uint8_t>(bytes, "workspace");
    stdlib::gemm(device, weights.view(), x, y, options);
    const auto want = y.elements();
    options.workspace = workspace;
    stdlib::gemm(device, weights.view(), x, y, options);
    CHECK(y.elements() == want);
    // A stream, and a recorder, take their own, too.
    const runtime::Stream stream = device.stream();
    stdlib::gemm(stream, weights.view(), x, y, {.activations = Activations::q8_1});
    stream.synchronize();
    CHECK(y.elements() == want);
    options.workspace = workspace.slice(0, bytes - 1);
    CHECK(tests::message_of([&] {
              stdlib::gemm(device, weights.view(), x, y, options);
          }).contains("'workspace' has 1903 elements, 1904 are needed"));
}

TEST_CASE("quantised products that do not fit") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_0, 4, 64, 0, 0);
    const TensorView W = weights.view();
    auto x = device.buffer<float>(192, "x"), y = device.buffer<float>(64, "y");
    const auto integers = device.buffer<std::int32_t>(192, "integers");
    const auto says = [&](auto&& call, const char* text) {
        INFO(text);
        CHECK(tests::message_of(call).contains(text));
    };
    const stdlib::QuantisedGemmOptions options{};
    says([&] { stdlib::gemm(device, x.view(4, 16), x.view(2, 64), y.view(2, 4), options); },
         "gemm: W has elements of f32\n  hint: it has quantised weights");
    says([&] { stdlib::gemm(device, W, integers.view(2, 64), y.view(2, 4)); },
         "gemm: 'X' has elements of i32\n  hint: they are f32, f16 or bf16");
    says([&] { stdlib::gemm(device, W, W, y.view(4, 4)); }, "gemm: 'X' has elements of q4_0");
    says([&] { stdlib::gemm(device, W, x, y.view(2, 4)); },
         "gemm: 'X' is 192\n  hint: it is a matrix, tokens x columns");
    says([&] { stdlib::gemm(device, W, x.view(2, 32), y.view(2, 4)); },
         "gemm: 'W' is 4 x 64, and 'X' is 2 x 32: the columns differ\n"
         "  hint: W is rows x columns, X is tokens x columns, and Y is tokens x rows");
    says([&] { stdlib::gemm(device, W, x.view(2, 64), y.view(4, 2)); },
         "gemm: 'W' is 4 x 64, and 'Y' is 4 x 2: the rows differ");
    says([&] { stdlib::gemm(device, W, x.view(3, 64), y.view(2, 4)); },
         "gemm: 'X' is 3 x 64, and 'Y' is 2 x 4: the tokens differ");
    const TensorView columns_of_x = TensorView(x.view(64, 2)).permuted({1, 0});
    says([&] { stdlib::gemm(device, W, columns_of_x, y.view(2, 4)); },
         "gemm: the elements of a row of 'X' are 2 apart");
    says([&] { stdlib::gemm(device, W, x.view(2, 64), x.view(2, 4)); },
         "gemm: 'X' (read) and 'Y' (written) are the same memory");
    says([&] { stdlib::gemm(device, W, x.view(2, 64), y.view(2, 4), {.activations = Activations(7)}); },
         "gemm: 'activations' is 7, which is not an enumerator");
    says([&] { stdlib::gemm(device, W, x.view(2, 64), y.view(2, 4), stdlib::GemmBlock::small); },
         "gemm: 'A' has elements of q4_0");
    says(
        [&] {
            stdlib::gemm(device, stdlib::quantised_view(weights.buffer(), Quantised::Q4_0, {0, 1u << 30}),
                         x.view(0, 1u << 30), y.view(0, 0));
        },
        "gemm: 'W' has 1073741824 columns\n  hint: there are fewer than 2^30");
}

TEST_CASE("quantised products by name") {
    const runtime::Device device = open_device();
    const stdlib::NamedFunction* const function = stdlib::find_function("gemm_q4_k");
    REQUIRE(function);
    for (const auto& [name, other] :
         {std::pair{"q4k_gemm_fused", "gemm_q4_k"}, {"q5k_gemm", "gemm_q5_k"}, {"q6k_gemm", "gemm_q6_k"}})
        CHECK(stdlib::find_function(name) == stdlib::find_function(other));
    const ProductWeights weights(device, Quantised::Q4_K, 4, 512, 0, 0);
    const Placed<half> x(device, Place::packed, {2, 512}, 1), y(device, Place::packed, {2, 4}, 2),
        want(device, Place::packed, {2, 4}, 3);
    for (const char* const activations : {"exact", "q8_1"}) {
        stdlib::FunctionSettings settings;
        settings.set("activations", activations);
        const std::vector<MutableTensorView> arrays{MutableTensorView(weights.view()), x, y};
        function->run(device, arrays, settings);
        stdlib::gemm(device, weights.view(), x, want, {.activations = Activations(*activations == 'q')});
        CHECK(y.elements() == want.elements());
    }
}

}  // namespace ikat::test
