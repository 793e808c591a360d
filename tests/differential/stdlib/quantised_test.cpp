// SPDX-License-Identifier: Apache-2.0
// Quantised weights with special scales, bit for bit; activations with special values; the functions on buffers.
#include "stdlib/quantised/quantised.hpp"

#include <bit>
#include <cmath>

#include "stdlib/reference/quantised.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"
#include "tests/differential/stdlib/samples.hpp"

namespace {

using namespace ikat;
using stdlib::Quantised;

constexpr Quantised formats[] = {Quantised::Q4_0, Quantised::Q8_0, Quantised::Q4_K, Quantised::Q5_K, Quantised::Q6_K};

}  // namespace

TEST_CASE("quantised weights decode to the bits of GGML") {
    const runtime::Device device = test::open_device();
    for (const Quantised format : formats)
        for (const std::uint32_t n : {1u, 2u, 3u, 7u, 16u, 33u, 200u}) {
            INFO("format " << int(format) << ", " << n << " blocks");
            const auto w = test::random_blocks(format, n, n + 1, true);
            const auto want = stdlib::reference::dequantise(format, w);
            auto y = device.buffer<float>(want.size(), "y");
            stdlib::dequantise(device, format, device.upload(w, "w"), y);
            const auto got = y.download();
            std::size_t different = 0;
            for (std::size_t i = 0; i < want.size(); ++i)
                different += std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(want[i]);
            CHECK(different == 0);
        }
}

TEST_CASE("activations become the words of Q8_1") {
    const runtime::Device device = test::open_device();
    for (const std::uint32_t n : {0u, 1u, 2u, 3u, 4u, 5u, 31u, 100u}) {
        INFO(n << " blocks");
        auto x = test::random_elements<float>(std::size_t(n) * 32, n, -3, 3);
        for (std::size_t i = 0; i < x.size() && i < 32; ++i) x[i] = 0;                        // a block of zeros
        for (std::size_t i = 32; i < x.size() && i < 64; ++i) x[i] = (float(i) - 32) * 0.5f;  // halves
        if (x.size() > 64) x[63] = 127, x[64] *= 1e-6f;
        auto q = device.upload(std::vector<std::uint32_t>(std::size_t(n) * 9, ~0u), "q");
        stdlib::quantise_q8_1(device, device.upload(x, "x"), q);
        const auto got = q.download(), want = stdlib::reference::quantise_q8_1(x);
        std::size_t different = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
            different += got[i] != want[i];
            if (i % 9) continue;
            double sum = 0, scale = 0;
            for (std::size_t k = i / 9 * 32; k < i / 9 * 32 + 32; ++k) sum += x[k], scale += std::abs(x[k]);
            const float s = half::from_bits(std::uint16_t(got[i] >> 16));
            CHECK(std::abs(s - sum) <= std::abs(sum) * 0x1p-11 + scale * 8 * 0x1p-24 + 0x1p-25);
        }
        CHECK(different == 0);
    }
}

TEST_CASE("quantised products on buffers") {
    const runtime::Device device = test::open_device();
    // One block of Q8_0 with d = 0.5 and weights 0.5 i.
    std::vector<std::uint8_t> block(34);
    block[1] = 0x38;
    for (std::uint8_t i = 0; i < 32; ++i) block[2u + i] = i;
    const auto w = device.upload(block, "w");
    auto y = device.buffer<float>(1, "y");
    stdlib::gemv(device, Quantised::Q8_0, w, device.upload(std::vector<float>(32, 1.0f), "x"), y, 1, 32);
    CHECK(y.download()[0] == 0.5f * 31 * 32 / 2);
    auto q = device.buffer<std::uint32_t>(9, "q");
    stdlib::quantise_q8_1(device, device.upload(std::vector<float>(32, 127.0f), "x"), q);
    stdlib::gemv(device, Quantised::Q8_0, w, q, y, 1, 32);
    CHECK(y.download()[0] == 127 * 0.5f * 31 * 32 / 2);
    CHECK_THROWS_WITH(stdlib::quantise_q8_1(device, y, q), Catch::Contains("'x' has 1 elements"));
    CHECK_THROWS_WITH(stdlib::gemv(device, Quantised::Q4_K, w, y, y, 1, 32),
                      Catch::Contains("'columns' is 32, but rows are blocks of 256 weights"));
    CHECK_THROWS_WITH(stdlib::gemv(device, Quantised::Q4_K, w, y, y, 0, 1u << 30),
                      Catch::Contains("but x has fewer than 2^32 bytes"));
    CHECK_THROWS_WITH(stdlib::dequantise(device, Quantised::Q8_0, w, y),
                      Catch::Contains("'y' has 1 elements, 32 are needed"));
}
