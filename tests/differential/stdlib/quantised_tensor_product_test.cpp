// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights with more than eight tokens, on tensor cores, against sums in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stdlib/quantised/product.hpp"
#include "stdlib/quantised/tensor_product.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/quantised_product.hpp"
#include "tests/message.hpp"

namespace ikat::test {

TEST_CASE("quantised products on tensor cores are within the bound") {
    const runtime::Device device = open_device();
    for (const Quantised format : quantised_formats()) {
        const Extents columns = columns_of(format);
        check_bound<float, float>(device, ProductWeights(device, format, 9, columns[2], 0, 0), 9, Place::packed);
        check_bound<half, float>(device,
                                 ProductWeights(device, format, 5, columns[1], 1, format == Quantised::MXFP4 ? 17 : 18),
                                 17, Place::odd);
    }
}

TEST_CASE("quantised products on tensor cores of all numbers of tokens and rows") {
    const runtime::Device device = open_device();
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q6_K, Quantised::Q5_K}) {
        const Extents columns = columns_of(format);
        for (const std::uint32_t tokens : {16u, 31u, 33u, 64u, 65u})
            check_bound<half, float>(device, ProductWeights(device, format, 5, columns[0], 0, 0), tokens,
                                     Place::aligned);
        for (const std::uint32_t rows : {1u, 127u, 129u})
            check_bound<half, float>(device, ProductWeights(device, format, rows, columns[1], 1, 0), 10, Place::packed);
    }
}

TEST_CASE("quantised products on tensor cores of all types") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_K, 7, 512, 0, 0);
    for (const Place place : {Place::packed, Place::odd}) {
        check_bound<float, half>(device, weights, 12, place);
        check_bound<float, bfloat16>(device, weights, 12, place);
        check_bound<half, half>(device, weights, 12, place);
        check_bound<bfloat16, bfloat16>(device, weights, 12, place);
        check_bound<bfloat16, float>(device, weights, 12, place);
    }
}

TEST_CASE("quantised products on tensor cores of activations in Q8_1 are those of the model") {
    const runtime::Device device = open_device();
    constexpr auto q8_1 = stdlib::Activations::q8_1;
    for (const Quantised format : quantised_formats()) {
        const Extents columns = columns_of(format);
        check_product<float, float>(device, ProductWeights(device, format, 9, columns[2], 0, 0), 9, q8_1,
                                    Place::packed);
        const std::uint32_t first = format == Quantised::MXFP4 ? 17 : 18;
        check_product<half, half>(device, ProductWeights(device, format, 5, columns[1], 1, first), 17, q8_1,
                                  Place::odd);
    }
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q6_K, Quantised::Q5_K}) {
        const Extents columns = columns_of(format);
        for (const std::uint32_t tokens : {16u, 31u, 33u, 64u, 65u})
            check_product<bfloat16, float>(device, ProductWeights(device, format, 5, columns[0], 0, 0), tokens, q8_1,
                                           Place::aligned);
        for (const std::uint32_t rows : {1u, 127u, 129u})
            check_product<half, bfloat16>(device, ProductWeights(device, format, rows, columns[1], 1, 0), 10, q8_1,
                                          Place::packed);
    }
}

TEST_CASE("few tiles are divided into parts of the columns, which are added up in order") {
    using stdlib::PartsOfColumns;
    const auto parts = [](std::uint64_t rows, std::uint64_t tokens, std::uint64_t columns) {
        const PartsOfColumns out = PartsOfColumns::of(rows, tokens, columns);
        return std::pair(out.count, out.slices);
    };
    CHECK(parts(4096, 16, 4096) == std::pair(4u, 4u));
    CHECK(parts(4096, 65, 14336) == std::pair(4u, 14u));
    CHECK(parts(32768, 16, 4096) == std::pair(1u, 16u));
    CHECK(parts(1, 9, 256 * 7) == std::pair(1u, 7u));
    CHECK(parts(1, 9, 256 * 9 + 32) == std::pair(2u, 5u));
    CHECK(parts(128, 9, 256 * 1000) == std::pair(250u, 4u));
    CHECK(parts(1, 1, 32) == std::pair(1u, 1u));
    const runtime::Device device = open_device();
    for (const Quantised format :
         {Quantised::Q4_0, Quantised::Q4_1, Quantised::Q4_K, Quantised::Q2_K, Quantised::Q6_K}) {
        const std::uint64_t columns = 256 * 9 + (stdlib::weights_of(format) == 32 ? 32 : 256);
        const ProductWeights weights(device, format, 5, columns, 0, 0);
        check_bound<float, float>(device, weights, 9, Place::packed);
        check_bound<half, bfloat16>(device, weights, 65, Place::odd);
        check_product<half, half>(device, weights, 33, stdlib::Activations::q8_1, Place::odd);
        check_product<float, float>(device, weights, 10, stdlib::Activations::q8_1, Place::packed);
    }
    const ProductWeights many(device, Quantised::Q4_0, 129, 256 * 17, 1, 0);
    check_bound<float, half>(device, many, 9, Place::aligned);
    check_product<float, float>(device, many, 9, stdlib::Activations::q8_1, Place::aligned);
}

TEST_CASE("quantised products on tensor cores of activations of any size") {
    const runtime::Device device = open_device();
    const std::uint64_t tokens = 9, columns = 64;
    const ProductWeights weights(device, Quantised::Q8_0, 2, columns, 0, 0);
    const std::vector<float> w = stdlib::reference::dequantise(Quantised::Q8_0, weights.blocks());
    const std::vector<float> plain = random_elements<float>(tokens * columns, 1);
    // A token each: 0, sizes beyond f16, subnormal, NaN and infinity; the others are as they would be without.
    const float sizes[] = {0, 1e30f, 1e-30f, 1e-44f, 65536, 1, 1, 1, 1};
    std::vector<float> numbers = plain;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= sizes[i / columns];
    numbers[5 * columns + 3] = std::numeric_limits<float>::quiet_NaN();
    numbers[6 * columns + 40] = std::numeric_limits<float>::infinity();
    auto x = device.upload(numbers, "x"), y = device.buffer<float>(tokens * 2, "y");
    stdlib::gemm(device, weights.view(), x.view(tokens, columns), y.view(tokens, 2));
    const std::vector<float> got = y.download();
    for (std::size_t token = 0; token < tokens; ++token)
        for (std::size_t row = 0; row < 2; ++row) {
            INFO("token " << token << ", row " << row);
            if (token == 5 || token == 6) {
                CHECK(!std::isfinite(got[token * 2 + row]));
                continue;
            }
            double sum = 0, size = 0, of_weights = 0;
            for (std::size_t k = 0; k < columns; ++k) {
                const double product = double(w[row * columns + k]) * numbers[token * columns + k];
                sum += product, size += std::abs(product), of_weights += std::abs(w[row * columns + k]);
            }
            CHECK(std::abs(got[token * 2 + row] - sum) <= size * 0x1p-10 + of_weights * 0x1p-150 + 0x1p-149);
        }
}

TEST_CASE("quantised products on tensor cores of weights with special scales") {
    const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
    const runtime::Device device = open_device();
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q4_1, Quantised::Q4_K, Quantised::MXFP4}) {
        const std::uint64_t columns = columns_of(format)[1], rows = std::size(special);
        ProductWeights weights(device, format, rows, columns, 0, 0);
        weights.set_scales(special);
        const Placed<half> x(device, Place::packed, {9, columns}, 1);
        const Placed<float> y(device, Place::packed, {9, rows}, 2);
        stdlib::gemm(device, weights.view(), x, y);
        const std::vector<float> w = stdlib::reference::dequantise(format, weights.blocks());
        const auto got = y.elements();
        const auto of_x = x.elements();
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t token = 0; token < 9; ++token) {
                double size = 0;
                for (std::size_t k = 0; k < columns; ++k)
                    size += std::abs(double(w[row * columns + k]) * double(of_x[token * columns + k]));
                INFO("format " << int(format) << ", row " << row << ", token " << token);
                if (!(size >= 0x1p127 && std::isfinite(size)))  // else the sum may be too large for f32
                    CHECK(std::isfinite(got[token * rows + row]) == std::isfinite(size));
            }
    }
}

TEST_CASE("quantised products of many tokens without tensor cores are those of a few") {
    const auto device = runtime::Device::open({.device = "emulator", .target = "sm_75"});
    const ProductWeights weights(device, Quantised::Q5_1, 5, 96, 0, 0);
    check_product<float, float>(device, weights, 11, stdlib::Activations::exact, Place::packed);
}

TEST_CASE("quantised products on tensor cores need the workspace that they say") {
    const runtime::Device device = open_device();
    const auto check = [&](std::uint64_t columns, stdlib::Activations activations, std::uint64_t bytes) {
        INFO(columns << " columns, activations " << int(activations));
        const ProductWeights weights(device, Quantised::Q4_1, 5, columns, 0, 0);
        const Placed<float> x(device, Place::odd, {17, columns}, 1), y(device, Place::odd, {17, 5}, 2);
        stdlib::QuantisedGemmOptions options{.activations = activations};
        CHECK(stdlib::gemm_workspace(device, weights.view(), x, y, options) == bytes);
        stdlib::gemm(device, weights.view(), x, y, options);
        const auto want = y.elements();
        auto workspace = device.buffer<std::uint8_t>(bytes, "workspace");
        options.workspace = workspace;
        const runtime::Stream stream = device.stream();
        stdlib::gemm(stream, weights.view(), x, y, options);
        stream.synchronize();
        CHECK(y.elements() == want);
        options.workspace = workspace.slice(0, bytes - 1);
        CHECK(tests::message_of([&] {
                  stdlib::gemm(device, weights.view(), x, y, options);
              }).contains(fmt::format("'workspace' has {} elements, {} are needed", bytes - 1, bytes)));
    };
    // f16, two of them for each sum of 32, and a scale for each token; sums of two parts, a multiple of 16 bytes.
    check(96, stdlib::Activations::exact, 17 * 256 * 2 + 17 * 16 * 2 + 80);
    check(96, stdlib::Activations::q8_1, 17 * 28 * 4);
    check(2048, stdlib::Activations::exact, 17 * 2048 * 2 + 17 * 8 * 16 * 2 + 80 + 688);
    check(2048, stdlib::Activations::q8_1, 17 * 64 * 9 * 4 + 688);
}

}  // namespace ikat::test
