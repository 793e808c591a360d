// SPDX-License-Identifier: Apache-2.0
// The device's quantisers: the bytes of the host's, wherever rows are; numbers that are not finite.
#include <algorithm>
#include <cmath>
#include <limits>

#include "stdlib/reference/quantised.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/differential/stdlib/quantiser_blocks.hpp"
#include "tests/message.hpp"

namespace ikat::test {

TEST_CASE("a device's quantised blocks are the host's") {
    const runtime::Device device = open_device();
    for (const Quantised format : quantised_by_devices)
        for (const std::size_t blocks : {0u, 1u, 7u, 8u, 9u, 33u, 500u}) {
            INFO("format " << int(format) << ", " << blocks << " blocks");
            const std::vector<float> numbers = numbers_of_blocks(blocks, 1);
            CHECK(different_bytes<float>(device, format, numbers) == 0);
            CHECK(different_bytes<half>(device, format, numbers) == 0);
            CHECK(different_bytes<bfloat16>(device, format, numbers) == 0);
        }
}

TEST_CASE("exponents of MXFP4 on a device are those of a logarithm in f32") {
    // All steps below all powers of two: GGML's logarithm is rounded up to an integer from 44 steps below 2^128 on.
    const runtime::Device device = open_device();
    std::vector<float> numbers;
    for (std::uint32_t exponent = 0; exponent < 255; ++exponent)
        for (std::uint32_t steps = 0; steps < 48; ++steps) {
            numbers.insert(numbers.end(), 31, 0.0f);
            numbers.push_back(std::bit_cast<float>((exponent << 23 | 0x7fffffu) - steps));
        }
    CHECK(different_bytes<float>(device, Quantised::MXFP4, numbers) == 0);
    // Less than one step, and more.
    const auto exponent_of = [](float x) {
        return stdlib::stored::quantise(Quantised::MXFP4, std::vector<float>(32, x))[0];
    };
    CHECK(exponent_of(0x1.fffffep0f) == 125);
    CHECK(exponent_of(0x1.fffffep3f) == 129);
}

TEST_CASE("a device quantises rows at pitches") {
    const runtime::Device device = open_device({.threads = 1, .check = "races", .schedules = 2});
    for (const Quantised format : quantised_by_devices)
        for (const Place place : {Place::packed, Place::aligned, Place::odd})
            for (const std::uint32_t columns : {32u, 96u, 288u, 544u}) {
                INFO("format " << int(format) << ", place " << int(place) << ", " << columns << " columns");
                const std::uint32_t rows = 5, bytes = stdlib::bytes_of(format), row = columns / 32 * bytes;
                const Placed<float> x(device, place, {rows, columns}, 1);
                const auto want = stdlib::stored::quantise(format, x.elements(), columns);
                const std::uint32_t first = place == Place::packed ? 0 : format == Quantised::MXFP4 ? 3 : 6;
                const std::uint32_t pitch = row + (place == Place::packed ? 0 : bytes);
                auto w = device.upload(std::vector<std::uint8_t>(first + rows * pitch + 5, 0xa5), "W");
                const std::uint64_t extents[] = {rows, columns}, weights = pitch / bytes * 32;
                stdlib::quantise(
                    device, x,
                    MutableTensorView(TensorView(format, w.memory().whole().from(first), extents, {&weights, 1})));
                std::vector<std::uint8_t> all(first + rows * pitch + 5, 0xa5);
                for (std::uint32_t i = 0; i < rows; ++i)
                    std::copy_n(want.begin() + i * row, row, all.begin() + first + i * pitch);
                CHECK(w.download() == all);
            }
}

TEST_CASE("a device's blocks of numbers that are not finite decode to NaN or infinity") {
    const runtime::Device device = open_device();
    for (const Quantised format : quantised_by_devices)
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity()}) {
            std::vector<float> numbers(96, 0.5f);
            numbers[40] = bad;
            auto w = device.buffer<std::uint8_t>(3 * stdlib::bytes_of(format), "W");
            stdlib::quantise(device, device.upload(numbers, "x"),
                             MutableTensorView(stdlib::quantised_view(w, format, {96})));
            const std::vector<float> got = stdlib::reference::dequantise(format, w.download());
            for (std::size_t i = 0; i < 96; ++i)
                if (i / 32 != 1)
                    CHECK(std::abs(got[i] - 0.5f) < 0.01f);
                else if (format == Quantised::MXFP4)
                    CHECK(got[i] == std::numeric_limits<float>::infinity());
                else
                    CHECK(std::isnan(got[i]));
        }
}

TEST_CASE("what a device does not quantise") {
    const runtime::Device device = open_device();
    const auto x = device.upload(std::vector<float>(512, 1), "x");
    auto w = device.buffer<std::uint8_t>(1000, "w");
    const auto view = [&](Quantised format, std::uint64_t rows, std::uint64_t columns) {
        return MutableTensorView(stdlib::quantised_view(w, format, {rows, columns}));
    };
    CHECK(tests::message_of([&] { stdlib::quantise(device, x.view(2, 256), view(Quantised::Q4_K, 2, 256)); })
              .contains("quantise: W has blocks of q4_k\n  hint: a device makes blocks of q8_0, q4_0 and mxfp4: "
                        "stored::quantise() makes those of all formats"));
    CHECK(tests::message_of([&] {
              stdlib::quantise(device, w, view(Quantised::Q8_0, 1, 32));
          }).contains("quantise: 'x' has elements of u8\n  hint: they are f32, f16 or bf16"));
    CHECK(tests::message_of([&] { stdlib::quantise(device, x, w); }).contains("quantise: W has elements of u8"));
    CHECK(tests::message_of([&] {
              stdlib::quantise(device, x.view(4, 32), view(Quantised::Q8_0, 5, 32));
          }).contains("quantise: 'x' has 128 elements, 160 are needed"));
    CHECK(
        tests::message_of([&] {
            stdlib::quantise(device, x.view(4, 32).pitched(40), view(Quantised::Q8_0, 2, 64));
        }).contains("quantise: 'x' is 4 x 32, with gaps\n  hint: W is 2 x 64: with gaps between its rows, x has that"));
}

TEST_CASE("a device's quantisers by name") {
    const runtime::Device device = open_device();
    const std::vector<float> numbers = numbers_of_blocks(6, 3);
    for (const Quantised format : quantised_by_devices) {
        const std::string name = "quantise_" + std::string(runtime::find_info(format)->name);
        const stdlib::NamedFunction* const function = stdlib::find_function(name);
        REQUIRE(function);
        CHECK(function->name == name);
        auto x = device.upload(numbers, "x");
        auto w = device.buffer<std::uint8_t>(6 * stdlib::bytes_of(format), "W");
        const std::vector<MutableTensorView> arrays{x.view(2, 96),
                                                    MutableTensorView(stdlib::quantised_view(w, format, {2, 96}))};
        function->run(device, arrays, {});
        CHECK(w.download() == stdlib::stored::quantise(format, numbers, 96));
    }
}

}  // namespace ikat::test
