// SPDX-License-Identifier: Apache-2.0
// Epilogues of products of quantised weights: what a function makes of the sums that the same product has without one,
// bit for bit.
#include <fmt/format.h>

#include "dsl/values/math.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/quantised_product.hpp"
#include "tests/message.hpp"
#include "tests/targets.hpp"

namespace ikat::test {
namespace {

using namespace stdlib;

/// A product, in a place, and the arrays of an epilogue that reads in every way.
struct Problem {
    const runtime::Device& device;
    const ProductWeights& weights;
    std::uint64_t tokens;
    Activations activations;
    Place place;
    std::uint32_t multiprocessors = 0;  // not 0: by stream-k

    QuantisedGemmOptions options() const {
        return {.activations = activations,
                .schedule = multiprocessors == 0 ? GemmSchedule::chosen : GemmSchedule::stream_k,
                .multiprocessors = multiprocessors};
    }
    std::string text() const {
        return fmt::format("format {}, {} x {}, {} tokens, activations {}, place {}", int(weights.format()),
                           weights.rows(), weights.columns(), tokens, int(activations), int(place));
    }
    template <class X>
    Placed<X> x() const {
        return {device, place, {tokens, weights.columns()}, 1};
    }
    template <class Y>
    Placed<Y> matrix(std::uint32_t seed) const {
        return {device, place, {tokens, weights.rows()}, seed};
    }
    /// The product in f32, without an epilogue.
    template <class X>
    std::vector<float> sums() const {
        const Placed<X> of = x<X>();
        const Placed<float> y(device, Place::packed, {tokens, weights.rows()}, 2);
        gemm(device, weights.view(), of, y, options());
        return y.elements();
    }
};

/// (sum + bias of the column) gate scale of the row, and the place times a number: sums and products in this order.
template <class X, class Y>
void check_layer(const Problem& of) {
    INFO(of.text());
    const auto rows = of.weights.rows();
    const Placed<X> x = of.x<X>();
    const Placed<Y> y = of.matrix<Y>(2);
    const Placed<half> gate = of.matrix<half>(3);
    const std::vector<float> bias = random_elements<float>(rows, 4), scale = random_elements<float>(of.tokens, 5);
    const auto of_bias = of.device.upload(bias, "bias"), of_scale = of.device.upload(scale, "scale");
    const auto layer = [](auto sum, auto at, auto bias, auto gate, auto scale, auto number) {
        return (sum + bias[at.column]) * gate[at] * scale[at.row] + number * cast<f32>(u32(at.row * 1000u + at.column));
    };
    gemm(of.device, of.weights.view(), x, y, epilogue("layer", layer, of_bias, gate.view(), of_scale, 0.5f),
         of.options());
    const std::vector<float> sums = of.sums<X>(), of_gate = gate.elements();
    std::vector<float> want;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::size_t token = i / rows, row = i % rows;
        const float scaled = (sums[i] + bias[row]) * of_gate[i] * scale[token];
        want.push_back(scaled + 0.5f * float(token * 1000 + row));
    }
    CHECK(different_elements(y.exact(), want) == 0);
    CHECK(y.changed_gaps() == 0);
}

/// The sum of 32 numbers as lanes of a warp add them.
float sum_of_lanes(std::array<float, 32> x) {
    for (std::size_t distance = 1; distance < 32; distance *= 2) {
        const std::array<float, 32> before = x;
        for (std::size_t i = 0; i < 32; ++i) x[i] = before[i] + before[i ^ distance];
    }
    return x[0];
}

/// Twice the sums, and the sums of their squares.
template <class Y>
void check_squares(const Problem& of) {
    INFO(of.text());
    const std::uint64_t rows = of.weights.rows(), groups = row_sum_columns(rows);
    const Placed<float> x = of.x<float>(), squares(of.device, of.place, {of.tokens, groups}, 6);
    const Placed<Y> y = of.matrix<Y>(2);
    const auto doubled = [](auto sum, auto at, auto squares) {
        squares[at.row] += sum * sum;
        return sum * 2.0f;
    };
    gemm(of.device, of.weights.view(), x, y, epilogue("doubled", doubled, row_sums(squares.view())), of.options());
    const std::vector<float> sums = of.sums<float>();
    std::vector<float> want, of_squares;
    for (const float sum : sums) want.push_back(sum * 2);
    for (std::size_t i = 0; i < of.tokens * groups; ++i) {
        std::array<float, 32> lanes{};
        const std::size_t first = i % groups * 32;
        for (std::size_t j = 0; j < std::min<std::size_t>(32, rows - first); ++j) {
            const float sum = sums[i / groups * rows + first + j];
            lanes[j] = sum * sum;
        }
        of_squares.push_back(sum_of_lanes(lanes));
    }
    CHECK(different_elements(y.exact(), want) == 0);
    CHECK(different_elements(squares.exact(), of_squares) == 0);
    CHECK(y.changed_gaps() + squares.changed_gaps() == 0);
}

}  // namespace

TEST_CASE("quantised products with an epilogue") {
    const runtime::Device device = open_device();
    tests::Sample cases(3);
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q4_K, Quantised::Q6_K}) {
        const std::uint64_t weights = weights_of(format);
        // 2304 columns are two parts on tensor cores, 768 are one.
        const ProductWeights few(device, format, 5, 3 * weights, 1, 0), parts(device, format, 9, 2304, 0, 0),
            tiles(device, format, 133, 768, 0, 0);
        for (const Activations activations : {Activations::exact, Activations::q8_1}) {
            for (const std::uint64_t tokens : {1u, 2u, 8u})
                check_layer<float, float>({device, few, tokens, activations, Place::odd});
            if (!cases.next()) continue;
            check_layer<half, half>({device, few, 3, activations, Place::packed});
            check_layer<half, bfloat16>({device, parts, 9, activations, Place::odd});
            check_layer<float, float>({device, tiles, 17, activations, Place::packed});
            check_layer<bfloat16, half>({device, tiles, 65, activations, Place::odd});
        }
    }
}

TEST_CASE("epilogues of quantised products by stream-k") {
    const runtime::Device device = open_device();
    // Three multiprocessors: tiles are whole, and divided among two blocks or more.
    const ProductWeights weights(device, Quantised::Q4_K, 257, 768, 0, 0);
    for (const Activations activations : {Activations::exact, Activations::q8_1}) {
        check_layer<half, half>({device, weights, 133, activations, Place::odd, 3});
        check_squares<float>({device, weights, 67, activations, Place::packed, 3});
    }
}

TEST_CASE("epilogues of quantised products of tokens in groups") {
    const auto device = runtime::Device::open({.device = "emulator", .target = "sm_75"});  // eight by eight
    const ProductWeights weights(device, Quantised::Q5_1, 33, 96, 0, 0);
    check_layer<float, float>({device, weights, 11, Activations::exact, Place::packed});
    check_squares<float>({device, weights, 11, Activations::q8_1, Place::odd});
}

TEST_CASE("epilogues of quantised products by wgmma") {
    const auto device = runtime::Device::open({.device = "emulator", .target = "sm_90a"});
    const ProductWeights tiles(device, Quantised::Q4_K, 130, 768, 0, 0);
    check_layer<half, half>({device, tiles, 65, Activations::exact, Place::odd});
}

TEST_CASE("row sums of quantised products") {
    const runtime::Device device = open_device();
    for (const Quantised format : {Quantised::Q8_0, Quantised::Q5_K}) {
        const ProductWeights parts(device, format, 33, 2304, 0, 0), tiles(device, format, 133, 768, 0, 0);
        for (const Activations activations : {Activations::exact, Activations::q8_1}) {
            for (const std::uint64_t tokens : {1u, 2u, 9u}) {
                check_squares<float>({device, parts, tokens, activations, Place::odd});
                check_squares<half>({device, tiles, tokens, activations, Place::packed});
            }
            check_squares<float>({device, tiles, 66, activations, Place::odd});
        }
    }
}

TEST_CASE("epilogues of quantised products in all orders of warps") {
    const runtime::Device device = open_device({.threads = 1, .check = "races", .schedules = 4});
    const ProductWeights weights(device, Quantised::Q4_K, 33, 2304, 0, 0);
    for (const std::uint64_t tokens : {2u, 9u}) {
        check_layer<float, float>({device, weights, tokens, Activations::exact, Place::odd});
        check_squares<float>({device, weights, tokens, Activations::q8_1, Place::packed});
    }
}

TEST_CASE("epilogues of quantised products where there are no columns") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_0, 3, 0, 0, 0);
    for (const Activations activations : {Activations::exact, Activations::q8_1})
        for (const std::uint64_t tokens : {0u, 2u, 9u}) {
            if (tokens != 0) check_squares<float>({device, weights, tokens, activations, Place::packed});
            check_layer<float, float>({device, weights, tokens, activations, Place::packed});
        }
}

TEST_CASE("epilogues of quantised products that do not fit") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_0, 4, 64, 0, 0);
    auto x = device.buffer<float>(128, "x"), y = device.buffer<float>(8, "y"), bias = device.buffer<float>(3, "bias");
    const auto says = [&](const Epilogue& given, const char* text) {
        CHECK(tests::message_of([&] {
                  gemm(device, weights.view(), x.view(2, 64), y.view(2, 4), given);
              }).contains(text));
    };
    const auto biased = [](auto sum, auto at, auto bias) { return sum + bias[at.column]; };
    says(epilogue("biased", biased, bias),
         "gemm: argument 1 of the epilogue has 1 dimension and 3 elements, and C has 4 columns\n"
         "  hint: it is a Buffer, or a slice of one, with an element for each");
    says(epilogue("biased", biased, y),
         "gemm: 'Y' (written) and 'argument 1 of the epilogue' (read) are the same memory");
    says(epilogue(
             "squared",
             [](auto sum, auto at, auto squares) {
                 squares[at.row] += sum;
                 return sum;
             },
             row_sums(bias.view(1, 3))),
         "gemm: argument 1 of the epilogue is 1 x 1 x 3 row sums, not 1 x 2 x 1");
    says(epilogue<i32>("integers", [](auto sum, auto) { return sum; }),
         "gemm: an epilogue of i32 sums\n  hint: sums of quantised weights are f32: epilogue(...) without <i32>");
}

TEST_CASE("an epilogue of a quantised product needs the workspace that it says") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_0, 40, 64, 0, 0);
    const auto x = device.upload(random_elements<float>(128, 1), "x");
    auto y = device.buffer<float>(80, "y"), squares = device.buffer<float>(4, "squares");
    const QuantisedGemmOptions options{.epilogue = epilogue(
                                           "squared",
                                           [](auto sum, auto at, auto squares) {
                                               squares[at.row] += sum * sum;
                                               return sum;
                                           },
                                           row_sums(squares.view(2, 2)))};
    CHECK(gemm_workspace(device, weights.view(), x.view(2, 64), y.view(2, 40), options) == 2 * 40 * 4);
    auto workspace = device.buffer<std::uint8_t>(319, "workspace");
    QuantisedGemmOptions too_small = options;
    too_small.workspace = workspace;
    CHECK(tests::message_of([&] {
              gemm(device, weights.view(), x.view(2, 64), y.view(2, 40), too_small);
          }).contains("gemm: 'workspace' has 319 elements, 320 are needed"));
}

}  // namespace ikat::test
