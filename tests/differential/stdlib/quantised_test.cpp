// SPDX-License-Identifier: Apache-2.0
// Quantised weights compared with the host's decoder: dequantised bit for bit, multiplied within the bound of the sum.
#include "stdlib/quantised/quantised.hpp"

#include <bit>
#include <cmath>
#include <string>

#include "stdlib/reference/reference.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"
#include "tests/differential/stdlib/ggml.hpp"

namespace {

using namespace ikat;
using stdlib::Quantised;
using test::Case;

struct Format {
    Quantised format;
    const char* name;
    std::vector<std::size_t> scales;  // the offsets of its f16
};
const Format formats[] = {{Quantised::Q4_0, "q4_0", {0}},
                          {Quantised::Q8_0, "q8_0", {0}},
                          {Quantised::Q4_K, "q4_k", {0, 2}},
                          {Quantised::Q5_K, "q5_k", {0, 2}},
                          {Quantised::Q6_K, "q6_k", {208}}};

/// Random bytes with scales of a sensible size; those of the first blocks are edge values of f16.
std::vector<std::uint8_t> random_blocks(const Format& format, std::size_t count, std::uint32_t seed, bool edges) {
    std::mt19937 random(seed);
    const std::size_t size = stdlib::bytes_of(format.format);
    std::vector<std::uint8_t> out(count * size);
    for (std::uint8_t& byte : out) byte = std::uint8_t(random());
    const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff};
    for (std::size_t block = 0; block < count; ++block)
        for (const std::size_t offset : format.scales) {
            std::uint16_t bits = half(double(random() % 2001) / 1e5 - 0.01).bits;
            if (edges && block < std::size(special)) bits = special[block];
            out[block * size + offset] = std::uint8_t(bits);
            out[block * size + offset + 1] = std::uint8_t(bits >> 8);
        }
    return out;
}

/// Rows, and blocks per row.
const std::uint32_t shapes[][2] = {{0, 1}, {3, 0}, {1, 1}, {2, 3}, {5, 1}, {9, 4}, {64, 2}, {33, 7}, {3, 65}, {2, 133}};

/// f(format, rows, columns, w) for matrices of all of these.
void each_matrix(auto&& f) {
    for (const Format& format : formats)
        for (const auto& [rows, blocks] : shapes) {
            INFO(format.name << ", " << rows << " rows of " << blocks << " blocks");
            f(format, rows, blocks * stdlib::weights_of(format.format),
              random_blocks(format, std::size_t(rows) * blocks, rows + blocks, false));
        }
}

/// Compares a kernel on activations (`given`, which represent the numbers x) with the sum of weight times x. The terms
/// are at most |weight| + `cancelled`; there are `steps` roundings in addition to those of the sum.
template <class X>
void check_product(const runtime::Device& device, const Format& format, const std::string& kernel, std::uint32_t rows,
                   const std::vector<std::uint8_t>& w, const std::vector<X>& given, std::vector<float> x,
                   float cancelled, std::uint32_t steps) {
    const auto columns = std::uint32_t(x.size());
    auto weights = test::decode(format.format, w);
    const auto want = stdlib::reference::gemm(weights, x, rows, 1, columns);
    for (float& v : weights) v = std::abs(v) + cancelled;
    for (float& v : x) v = std::abs(v);
    auto bound = stdlib::reference::gemm(weights, x, rows, 1, columns);
    for (double& b : bound) b *= (columns / 32 + steps) * 0x1p-24;
    Case().in(w).in(given).template out<float>(want, bound).number(rows).number(columns).run(device, kernel);
}

}  // namespace

TEST_CASE("quantised weights decode to the bits of GGML") {
    const runtime::Device device = test::open_device();
    for (const Format& format : formats)
        for (const std::uint32_t n : {0u, 1u, 2u, 3u, 7u, 16u, 33u, 200u}) {
            INFO(format.name << ", " << n << " blocks");
            const auto w = random_blocks(format, n, n + 1, true);
            const auto want = test::decode(format.format, w);
            Case()
                .in(w)
                .out<float>({want.begin(), want.end()}, {0})
                .number(n)
                .run(device, std::string("dequantise_") + format.name);
            if (n == 0) continue;
            auto y = device.buffer<float>(want.size(), "y");
            stdlib::dequantise(device, format.format, device.upload(w, "w"), y);
            const auto got = y.download();
            std::size_t different = 0;
            for (std::size_t i = 0; i < want.size(); ++i)
                different += std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(want[i]);
            CHECK(different == 0);
        }
}

TEST_CASE("quantised matrix times vector of any shape") {
    const runtime::Device device = test::open_device();
    each_matrix([&](const Format& format, std::uint32_t rows, std::uint32_t columns, const auto& w) {
        const auto x = test::random_elements<float>(columns, 2);
        check_product(device, format, std::string("gemv_") + format.name, rows, w, x, x, 0, 8);
    });
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
        const auto got = q.download(), want = test::quantise_q8_1(x);
        std::size_t different = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
            different += (i % 9 ? got[i] : got[i] & 0xffff) != want[i];
            if (i % 9) continue;
            double sum = 0, scale = 0;
            for (std::size_t k = i / 9 * 32; k < i / 9 * 32 + 32; ++k) sum += x[k], scale += std::abs(x[k]);
            const float s = half::from_bits(std::uint16_t(got[i] >> 16));
            CHECK(std::abs(s - sum) <= std::abs(sum) * 0x1p-11 + scale * 8 * 0x1p-24 + 0x1p-25);
        }
        CHECK(different == 0);
    }
}

TEST_CASE("quantised matrix times quantised vector of any shape") {
    const runtime::Device device = test::open_device();
    each_matrix([&](const Format& format, std::uint32_t rows, std::uint32_t columns, const auto& w) {
        const auto q = test::quantise_q8_1(test::random_elements<float>(columns, 3));
        // scale q - minimum cancels: both are at most 64 times a weight's unit.
        check_product(device, format, std::string("gemv_") + format.name + "_q8_1", rows, w, q, test::decode_q8_1(q), 2,
                      16);
    });
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
