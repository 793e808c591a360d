// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights by stream-k: within the bound that other schedules have, of Q8_1 with the bits of a
// model that adds up the same shares, and with the same bits in every order and on any device.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stdlib/quantised/arranged_tokens.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/quantised_product.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace stream {

using namespace stdlib;

struct Shape {
    Quantised format;
    std::uint64_t rows, tokens, columns;
    std::uint32_t multiprocessors;

    std::string text() const {
        return fmt::format("format {}, {} x {}, {} tokens, {} multiprocessors", int(format), rows, columns, tokens,
                           multiprocessors);
    }
    QuantisedGemmOptions options(Activations activations = Activations::exact) const {
        return {.activations = activations, .schedule = GemmSchedule::stream_k, .multiprocessors = multiprocessors};
    }
};

/// Tails of tiles and of slices, numbers of blocks that divide nothing, more blocks than tiles, than slices, and less.
constexpr Shape shapes[] = {
    {Quantised::Q4_0, 129, 9, 96, 1},    {Quantised::Q4_1, 127, 31, 544, 2},   {Quantised::Q8_0, 257, 33, 800, 3},
    {Quantised::Q4_K, 129, 127, 768, 5}, {Quantised::Q6_K, 130, 129, 512, 7},  {Quantised::Q2_K, 255, 33, 1024, 3},
    {Quantised::Q5_K, 1, 513, 768, 2},   {Quantised::MXFP4, 129, 129, 288, 5}, {Quantised::Q5_1, 128, 65, 1056, 3},
    {Quantised::Q3_K, 383, 9, 1280, 1},  {Quantised::IQ4_NL, 385, 17, 640, 1}, {Quantised::IQ4_XS, 127, 64, 2304, 13},
    {Quantised::Q5_0, 1, 9, 32, 132},    {Quantised::Q4_0, 131, 513, 64, 4}};

std::uint64_t quotient(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

/// Where a tile's slices are divided by stream-k, counted one by one: who has which.
FirstSlices shares_of(std::uint64_t tile, std::uint64_t tiles, std::uint64_t slices, std::uint64_t at_once) {
    const std::uint64_t rest = tiles % at_once, streamed = rest == 0 ? 0 : std::min(tiles, at_once + rest);
    FirstSlices out{0};
    if (tile >= streamed) return out;
    const std::uint64_t workers = std::min(at_once, tiles * slices), all = streamed * slices;
    std::vector<std::uint64_t> owner;
    for (std::uint64_t worker = 0; worker < workers; ++worker)
        owner.insert(owner.end(), all / workers + (worker < all % workers ? 1 : 0), worker);
    for (std::uint64_t slice = 1; slice < slices; ++slice)
        if (owner[tile * slices + slice] != owner[tile * slices + slice - 1]) out.push_back(slice);
    return out;
}

/// Of activations in Q8_1, with the bits of the model.
template <class X, class Y>
void check_bits(const runtime::Device& device, const ProductWeights& weights, const Shape& of, Place place) {
    INFO(of.text());
    const Placed<X> x(device, place, {of.tokens, of.columns}, 1);
    const Placed<Y> y(device, place, {of.tokens, of.rows}, 2);
    gemm(device, weights.view(), x, y, of.options(Activations::q8_1));
    const std::vector<float> of_x = x.elements();
    const std::uint64_t of_tile = tokens_of_tile(of.tokens), down = quotient(of.rows, 128);
    const std::uint64_t tiles = down * quotient(of.tokens, of_tile);
    std::vector<float> want;
    for (std::uint64_t token = 0; token < of.tokens; ++token) {
        const auto first = of_x.begin() + std::ptrdiff_t(token * of.columns);
        const auto words = reference::quantise_q8_1({first, first + std::ptrdiff_t(of.columns)});
        for (std::uint64_t row = 0; row < of.rows; ++row) {
            const std::uint64_t tile = token / of_tile * down + row / 128;
            want.push_back(packed_tensor_product(
                of.format, weights.row(row), words,
                shares_of(tile, tiles, quotient(of.columns, 256), 2 * std::uint64_t(of.multiprocessors))));
        }
    }
    CHECK(different_elements(y.exact(), want) == 0);
    CHECK(y.changed_gaps() == 0);
}

/// The bits of a product on a device of its own.
std::vector<float> product(const Shape& of, Activations activations, const runtime::OpenOptions& open) {
    const auto device = runtime::Device::open(open);
    const ProductWeights weights(device, of.format, of.rows, of.columns, 0, 0);
    const Placed<float> x(device, Place::packed, {of.tokens, of.columns}, 1),
        y(device, Place::packed, {of.tokens, of.rows}, 2);
    gemm(device, weights.view(), x, y, of.options(activations));
    return y.exact();
}

}  // namespace stream

TEST_CASE("quantised products by stream-k are within the bound") {
    const runtime::Device device = open_device();
    std::size_t number = 0;
    for (const stream::Shape& shape : stream::shapes) {
        const bool is_odd = number++ % 2 == 1;
        const std::uint32_t first = !is_odd ? 0 : shape.format == Quantised::MXFP4 ? 17 : 18;
        const ProductWeights weights(device, shape.format, shape.rows, shape.columns, is_odd, first);
        if (is_odd)
            check_bound<half, bfloat16>(device, weights, shape.tokens, Place::odd, shape.options());
        else
            check_bound<float, float>(device, weights, shape.tokens, Place::packed, shape.options());
    }
}

TEST_CASE("quantised products by stream-k and wgmma are within the bound") {
    const auto device = runtime::Device::open({.device = "emulator", .target = "sm_90a"});
    for (const stream::Shape& shape : stream::shapes)
        if (shape.tokens > 64)
            check_bound<half, float>(device, ProductWeights(device, shape.format, shape.rows, shape.columns, 0, 0),
                                     shape.tokens, Place::packed, shape.options());
}

TEST_CASE("quantised products by stream-k of activations in Q8_1 are those of the model") {
    const runtime::Device device = open_device();
    std::size_t number = 0;
    for (const stream::Shape& shape : stream::shapes) {
        const bool is_odd = number++ % 2 == 0;
        const std::uint32_t first = !is_odd ? 0 : shape.format == Quantised::MXFP4 ? 17 : 18;
        const ProductWeights weights(device, shape.format, shape.rows, shape.columns, is_odd, first);
        if (is_odd)
            stream::check_bits<bfloat16, half>(device, weights, shape, Place::odd);
        else
            stream::check_bits<float, float>(device, weights, shape, Place::packed);
    }
}

TEST_CASE("quantised products by stream-k have the same bits in every order, with any number of threads") {
    using stdlib::Activations;
    const stream::Shape shape{Quantised::Q4_K, 129, 70, 768, 3}, few{Quantised::Q5_1, 129, 33, 800, 3};
    for (const stream::Shape& of : {shape, few})
        for (const Activations activations : {Activations::exact, Activations::q8_1})
            for (const char* const target : {"sm_80", "sm_90a"}) {
                INFO(of.text() << ", activations " << int(activations) << ", " << target);
                const auto with = [&](std::uint32_t threads, const char* seed) {
                    return stream::product(of, activations,
                                           {.device = "emulator",
                                            .target = target,
                                            .threads = threads,
                                            .schedule = seed,
                                            .check = "races"});
                };
                const std::vector<float> first = with(1, "1");
                std::uint32_t threads = 2;
                for (const char* const seed : {"2", "3", "4", "5"}) CHECK(with(threads++, seed) == first);
            }
}

TEST_CASE("quantised products by stream-k divide tiles for the multiprocessors of the device, if no others are given") {
    const auto bits = [](std::uint32_t threads, std::uint32_t multiprocessors) {
        return stream::product({Quantised::Q4_0, 129, 9, 2048, multiprocessors}, stdlib::Activations::q8_1,
                               {.device = "emulator", .target = "sm_80", .threads = threads});
    };
    CHECK(bits(3, 0) == bits(1, 3));
    CHECK(bits(3, 0) != bits(3, 2));
}

TEST_CASE("stream-k divides the tiles of quantised products that do not keep all blocks busy") {
    const auto of = [](std::uint64_t tiles, std::uint64_t slices, std::uint64_t at_once) {
        const auto [out_slices, workers, streamed] = stdlib::StreamOfTiles::of(tiles, slices, at_once);
        CHECK(out_slices == slices);
        return std::array{workers, streamed};
    };
    CHECK(of(5, 4, 8) == std::array<std::uint64_t, 2>{8, 5});
    CHECK(of(1, 4, 8) == std::array<std::uint64_t, 2>{4, 1});
    CHECK(of(8, 4, 8) == std::array<std::uint64_t, 2>{8, 0});
    CHECK(of(9, 4, 8) == std::array<std::uint64_t, 2>{8, 9});
    CHECK(of(19, 4, 8) == std::array<std::uint64_t, 2>{8, 11});
    CHECK(of(3, std::uint64_t{1} << 31, 2) == std::array<std::uint64_t, 2>{2, 0});  // beyond 32 bits
}

TEST_CASE("quantised products by stream-k need the workspace that they say") {
    const runtime::Device device = open_device({.target = "sm_80"});
    const stream::Shape shape{Quantised::Q4_1, 5, 17, 2048, 3};
    const ProductWeights weights(device, shape.format, shape.rows, shape.columns, 0, 0);
    const Placed<float> x(device, Place::odd, {17, 2048}, 1), y(device, Place::odd, {17, 5}, 2);
    stdlib::QuantisedGemmOptions options = shape.options();
    // Of six blocks two tiles each, of 32 x 128; X as f16, its sums, and scales.
    const std::uint64_t bytes = 2 * 6 * 32 * 128 * 4 + 17 * 2048 * 2 + 17 * 8 * 16 * 2 + 80;
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
}

TEST_CASE("schedules of quantised products that there are not") {
    using stdlib::GemmSchedule;
    const runtime::Device device = open_device({.target = "sm_80"});
    const auto message = [&](std::uint64_t tokens, const stdlib::QuantisedGemmOptions& options,
                             std::uint64_t columns = 64) {
        const ProductWeights weights(device, Quantised::Q8_0, 3, columns, 0, 0);
        const Placed<float> x(device, Place::packed, {tokens, columns}, 1), y(device, Place::packed, {tokens, 3}, 2);
        return tests::message_of([&] { stdlib::gemm(device, weights.view(), x, y, options); });
    };
    constexpr GemmSchedule stream_k = GemmSchedule::stream_k;
    for (const GemmSchedule schedule :
         {GemmSchedule::block_per_tile, GemmSchedule::persistent, GemmSchedule::split_k, GemmSchedule::ping_pong})
        CHECK(message(9, {.schedule = schedule})
                  .contains("gemm: a schedule that products of quantised weights do not have"));
    CHECK(message(9, {.schedule = GemmSchedule(7)}).contains("schedule"));
    CHECK(
        message(9, {.multiprocessors = 3}).contains("3 multiprocessors, and a schedule that does not depend on them"));
    CHECK(message(9, {.schedule = stream_k, .multiprocessors = 16385}).contains("16385 multiprocessors"));
    CHECK(message(8, {.schedule = stream_k})
              .contains("GemmSchedule::stream_k, and 8 tokens are multiplied without tensor cores"));
    CHECK(message(9, {.schedule = stream_k}).empty());
    CHECK(message(0, {.schedule = stream_k}).empty());
}

}  // namespace ikat::test
