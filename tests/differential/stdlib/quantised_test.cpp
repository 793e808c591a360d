// SPDX-License-Identifier: Apache-2.0
// Quantised weights with special scales, bit for bit; activations with special values; the functions on buffers.
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/gemm/gemv.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/quantised/stored.hpp"
#include "stdlib/reference/quantised.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"
#include "tests/differential/stdlib/samples.hpp"
#include "tests/message.hpp"

namespace {

using namespace ikat;
using stdlib::Quantised;

const std::vector<Quantised> formats = test::quantised_formats();

}  // namespace

TEST_CASE("quantised weights decode to the bits of GGML") {
    const runtime::Device device = test::open_device();
    for (const Quantised format : formats)
        for (const std::uint32_t n : {1u, 2u, 3u, 7u, 16u, 33u, 200u}) {
            INFO("format " << int(format) << ", " << n << " blocks");
            const auto w = test::random_blocks(format, n, n + 1, true);
            const auto want = stdlib::reference::dequantise(format, w);
            auto y = device.buffer<float>(want.size(), "y");
            const auto on_device = device.upload(w, "w");
            stdlib::dequantise(device, stdlib::quantised_view(on_device, format, {n * stdlib::weights_of(format)}), y);
            const auto got = y.download();
            std::size_t different = 0;
            for (std::size_t i = 0; i < want.size(); ++i)
                different += std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(want[i]);
            CHECK(different == 0);
        }
}

namespace {

/// What a weight of a block is, before it is rounded.
struct Stored {
    int q, scale = 1, minimum = 0;
};

/// A block of which each weight is set twice: to the opposite first, so that no bit of it may stay. Its d is 0.25, its
/// dmin 0.5.
template <class Block>
std::vector<Stored> fill(Block& block, int lowest, int offset, int highest, std::uint32_t seed) {
    const auto numbers = test::random_elements<float>(256 + 32, seed, 0, 1);
    std::vector<Stored> out;
    block.d = half(0.25f);
    for (std::uint32_t i = 0; i < stdlib::weights_of(Block::format); ++i) {
        const int q = lowest + int(numbers[i] * float(highest - lowest + 1));
        block.set(i, highest + lowest - q);
        block.set(i, q);
        out.push_back({q - offset});
    }
    const auto six_bits = [&](std::size_t i) { return int(numbers[256 + i] * 64); };
    if constexpr (requires { block.dmin; }) {
        block.dmin = half(0.5f);
        for (std::uint32_t part = 0; part < 8; ++part) {
            block.scales.set(part, {63 - six_bits(part), 63 - six_bits(part + 8)});
            block.scales.set(part, {six_bits(part), six_bits(part + 8)});
        }
        for (std::size_t i = 0; i < 256; ++i) out[i].scale = six_bits(i / 32), out[i].minimum = six_bits(i / 32 + 8);
    } else if constexpr (requires { block.scales; }) {
        for (std::size_t i = 0; i < 16; ++i) block.scales[i] = std::int8_t(six_bits(i) - 32);
        for (std::size_t i = 0; i < 256; ++i) out[i].scale = block.scales[i / 16];
    }
    return out;
}

template <class Block>
void check_stored(int lowest, int offset, int highest) {
    INFO(runtime::find_info(Block::format)->name);
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        std::vector<Block> blocks(3);
        std::vector<Stored> want;
        for (Block& block : blocks)
            for (const Stored& weight : fill(block, lowest, offset, highest, seed * 10 + std::uint32_t(want.size())))
                want.push_back(weight);
        const auto got = stdlib::reference::quantised_weights(Block::format, stdlib::stored::bytes_of(blocks));
        REQUIRE(got.size() == want.size());
        std::size_t different = 0;  // the numbers are small: nothing is rounded
        for (std::size_t i = 0; i < want.size(); ++i)
            different += got[i].product != 0.25f * float(want[i].scale * want[i].q) ||
                         got[i].minimum != 0.5f * float(want[i].minimum);
        CHECK(different == 0);
    }
}

}  // namespace

TEST_CASE("blocks that the host fills are those that are decoded") {
    using namespace stdlib::stored;
    check_stored<Q4_0>(0, 8, 15);
    check_stored<Q8_0>(-128, 0, 127);
    check_stored<Q4_K>(0, 0, 15);
    check_stored<Q5_K>(0, 0, 31);
    check_stored<Q6_K>(0, 32, 63);
    const auto says = [](auto&& call, const char* text) { CHECK(tests::message_of(call) == text); };
    says([] { Q4_0{}.set(32, 0); }, "error: weight 32 of a quantised block\n  hint: it is from 0 to 31");
    says([] { Q4_0{}.set(0, 16); }, "error: q 16 of a quantised block\n  hint: it is from 0 to 15");
    says([] { Q8_0{}.set(0, -129); }, "error: q -129 of a quantised block\n  hint: it is from -128 to 127");
    says([] { Q5_K{}.set(256, 0); }, "error: weight 256 of a quantised block\n  hint: it is from 0 to 255");
    says([] { Q6_K{}.set(0, 64); }, "error: q 64 of a quantised block\n  hint: it is from 0 to 63");
    says([] { Q4_K{}.scales.set(8, {}); }, "error: part 8 of a quantised block\n  hint: it is from 0 to 7");
    says([] { Q4_K{}.scales.set(0, {64, 0}); }, "error: scale 64 of a quantised block\n  hint: it is from 0 to 63");
    says([] { Q4_K{}.scales.set(0, {0, -1}); }, "error: minimum -1 of a quantised block\n  hint: it is from 0 to 63");
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
    const auto W = stdlib::quantised_view(w, Quantised::Q8_0, {1, 32});
    stdlib::gemv(device, W, device.upload(std::vector<float>(32, 1.0f), "x"), y);
    CHECK(y.download()[0] == 0.5f * 31 * 32 / 2);
    auto q = device.buffer<std::uint32_t>(9, "q");
    stdlib::quantise_q8_1(device, device.upload(std::vector<float>(32, 127.0f), "x"), q);
    stdlib::gemv(device, W, q, y);
    CHECK(y.download()[0] == 127 * 0.5f * 31 * 32 / 2);
    CHECK_THROWS_WITH(stdlib::quantise_q8_1(device, y, q), Catch::Contains("'x' has 1 elements"));
    CHECK_THROWS_WITH(stdlib::gemv(device, stdlib::quantised_view(w, Quantised::Q4_K, {0, 1u << 30}), y, y),
                      Catch::Contains("but x has fewer than 2^32 bytes"));
    CHECK_THROWS_WITH(stdlib::dequantise(device, W, y), Catch::Contains("'y' has 1 elements, 32 are needed"));
}

TEST_CASE("quantised weights as a view: format, rows and columns go with it") {
    const runtime::Device device = test::open_device();
    for (const Quantised format : formats) {
        INFO("format " << int(format));
        const std::uint32_t columns = 2 * stdlib::weights_of(format), rows = 6;
        const auto blocks = test::random_blocks(format, 2 * rows, 7, false);
        const auto w = device.upload(blocks, "w");
        const auto W = stdlib::quantised_view(w, format, {rows, columns});
        CHECK(W.type_name() == runtime::find_info(format)->name);
        const auto numbers = test::random_elements<float>(columns, 1, -1, 1);
        const auto x = device.upload(numbers, "x");
        auto y = device.buffer<float>(rows, "y");
        const auto weights = stdlib::reference::dequantise(format, blocks);
        auto decoded = device.upload(weights, "decoded"), same = device.buffer<float>(rows, "same");
        stdlib::gemv(device, W, x, y);
        stdlib::gemv(device, decoded.view(rows, columns), x, same);
        for (std::uint32_t row = 0; row < rows; ++row) {
            double size = 0;
            for (std::uint32_t i = 0; i < columns; ++i) size += std::abs(weights[row * columns + i] * numbers[i]);
            CHECK(std::abs(y.download()[row] - same.download()[row]) <= size * columns * 0x1p-23);
        }

        auto q = device.buffer<std::uint32_t>(columns / 32 * 9, "q");
        stdlib::quantise_q8_1(device, x, q);
        stdlib::gemv(device, W, q, y);
        const auto of_blocks = y.download();

        auto all = device.buffer<float>(rows * columns, "all");
        stdlib::dequantise(device, W, all);
        const auto want = stdlib::reference::dequantise(format, blocks), got = all.download();
        CHECK(std::ranges::equal(got, want, {}, std::bit_cast<std::uint32_t, float>,
                                 std::bit_cast<std::uint32_t, float>));
        // The last rows alone: a part begins at a multiple of 16 bytes.
        const auto last = w.slice(8 * stdlib::bytes_of(format), 4 * stdlib::bytes_of(format));
        stdlib::gemv(device, stdlib::quantised_view(last, format, {2, columns}), q, y);
        const auto part = y.download();
        CHECK(std::equal(part.begin(), part.begin() + 2, of_blocks.begin() + 4));
        // A copy takes the blocks as they are.
        auto copy = device.buffer<std::uint8_t>(blocks.size(), "copy");
        runtime::Queue(device).copy(runtime::MutableTensorView(stdlib::quantised_view(copy, format, {rows, columns})),
                                    W);
        CHECK(copy.download() == blocks);
    }
}

TEST_CASE("views of quantised weights that there cannot be, and that a function does not take") {
    const runtime::Device device = test::open_device();
    const auto w = device.buffer<std::uint8_t>(2 * 144, "w");
    auto x = device.buffer<float>(256, "x"), y = device.buffer<float>(2, "y");
    CHECK_THROWS_WITH(stdlib::quantised_view(w, Quantised::Q4_K, {2, 128}),
                      Catch::Contains("a row of 128 weights is not whole blocks of q4_k"));
    CHECK_THROWS_WITH(stdlib::quantised_view(w, Quantised::Q4_K, {3, 256}), Catch::Contains("432"));
    CHECK_THROWS_WITH(stdlib::quantised_view(w, Quantised(77), {1, 256}), Catch::Contains("there is no format 77"));
    const auto W = stdlib::quantised_view(w, Quantised::Q4_K, {2, 256});
    CHECK_THROWS_WITH(stdlib::dequantise(device, x.view(1, 256), y),
                      Catch::Contains("dequantise: W has elements of f32") && Catch::Contains("quantised_view"));
    CHECK_THROWS_WITH(stdlib::gemv(device, W, y, y), Catch::Contains("'x' has 2 elements, 256 are needed"));
    CHECK_THROWS_WITH(stdlib::gemm_tensor_core(device, W, x.view(256, 1), y.view(2, 1)),
                      Catch::Contains("A has elements of q4_k"));
    CHECK_THROWS_WITH(
        runtime::Queue(device).copy(runtime::MutableTensorView(stdlib::quantised_view(w, Quantised::Q5_K, {1, 256})),
                                    stdlib::quantised_view(w, Quantised::Q4_K, {1, 256})),
        Catch::Contains("different types"));
}
