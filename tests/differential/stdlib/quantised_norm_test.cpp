// SPDX-License-Identifier: Apache-2.0
// rmsnorm_gemv() against a model of the norm and gemm(), bit for bit, and against sums in double.
#include <array>
#include <cmath>
#include <limits>

#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/quantised_fused.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {

using stdlib::rmsnorm_gemv;

/// The mean of the squares of x scale, in the order of the kernel: a thread of 128 has every 128th four.
float mean_of_squares(std::span<const float> x, float scale) {
    std::array<float, 128> threads{};
    for (std::size_t i = 0; i < x.size(); ++i) {
        float& sum = threads[i / 4 % 128];
        sum = std::fma(x[i] * scale, x[i] * scale, sum);
    }
    for (std::size_t distance = 16; distance > 0; distance /= 2)
        for (std::size_t i = 0; i < 128; ++i)
            if (i % 32 < distance) threads[i] += threads[i + distance];
    return ((threads[0] + threads[32]) + (threads[64] + threads[96])) / float(x.size());
}

/// A token, normed.
std::vector<float> normed(std::span<const float> x, std::span<const float> gamma, float epsilon) {
    const float plain = mean_of_squares(x, 1);
    const bool is_plain = plain <= std::numeric_limits<float>::max();
    const float scale = is_plain ? 1 : 0x1p-100f, mean = is_plain ? plain : mean_of_squares(x, 0x1p-100f);
    const float factor = 1 / std::sqrt(mean + epsilon * scale * scale);
    std::vector<float> out;
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back(x[i] * scale * factor * gamma[i]);
    return out;
}

/// What rmsnorm_gemv() gives, before it is rounded.
std::vector<float> wanted(const runtime::Device& device, const ProductWeights& weights, const std::vector<float>& x,
                          std::span<const float> gamma, float epsilon) {
    std::vector<float> out;
    const std::uint64_t columns = weights.columns();
    for (std::size_t first = 0; first < x.size(); first += columns) {
        const auto token = device.upload(normed(std::span(x).subspan(first, columns), gamma, epsilon), "normed");
        for (const float y : product_of(device, weights, token.view(1, columns), stdlib::Activations::exact))
            out.push_back(y);
    }
    return out;
}

template <class X, class G, class Y>
void check_norm(const runtime::Device& device, const ProductWeights& weights, std::uint64_t tokens, Place place,
                float epsilon = 1e-5f) {
    INFO("format " << int(weights.format()) << ", " << weights.rows() << " x " << weights.columns() << ", " << tokens
                   << " tokens, place " << int(place));
    const Placed<X> x(device, place, {tokens, weights.columns()}, 1);
    const Placed<G> gamma(device, place, {weights.columns()}, 2);
    const Placed<Y> y(device, place, {tokens, weights.rows()}, 3);
    rmsnorm_gemv(device, weights.view(), x, gamma, y, epsilon);
    CHECK(different_elements(y.exact(), wanted(device, weights, x.elements(), gamma.elements(), epsilon)) == 0);
    CHECK(y.changed_gaps() == 0);
}

/// Compares with the bound of fused.hpp.
void check_norm_bound(const ProductWeights& weights, const std::vector<float>& x, const std::vector<float>& gamma,
                      float epsilon, const std::vector<float>& y) {
    const std::size_t columns = weights.columns(), rows = weights.rows();
    const std::vector<float> w = stdlib::reference::dequantise(weights.format(), weights.blocks());
    const double e = (22 + 5 * std::ceil(double(columns) / 1024)) * 0x1p-24;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::span<const float> token = std::span(x).subspan(i / rows * columns, columns);
        double squares = 0, sum = 0, size = 0;
        for (const float each : token) squares += double(each) * each;
        const double root = std::sqrt(squares / double(columns) + double(epsilon));
        for (std::size_t k = 0; k < columns; ++k) {
            const double product = double(w[i % rows * columns + k]) * (token[k] / root * gamma[k]);
            sum += product, size += std::abs(product);
        }
        INFO("token " << i / rows << ", row " << i % rows);
        CHECK(std::abs(y[i] - sum) <= e / (1 - e) * size);
    }
}

}  // namespace

TEST_CASE("rmsnorm_gemv of all formats") {
    const runtime::Device device = open_device();
    for (const Quantised format : quantised_formats()) {
        const Extents columns = columns_of(format);
        const std::uint32_t first = format == Quantised::MXFP4 ? 17 : 18;
        check_norm<float, float, float>(device, ProductWeights(device, format, 9, columns[2], 0, 0), 2, packed);
        check_norm<half, float, half>(device, ProductWeights(device, format, 5, columns[1], 1, first), 1, odd);
        check_norm<float, bfloat16, float>(device, ProductWeights(device, format, 3, columns[0], 0, 0), 8, aligned);
    }
}

TEST_CASE("rmsnorm_gemv of all numbers of tokens, rows and columns, types and places") {
    const runtime::Device device = open_device();
    for (const std::uint32_t tokens : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 33u})
        check_norm<float, float, float>(device, ProductWeights(device, Quantised::Q8_0, 5, 544, 1, 2), tokens, packed);
    for (const std::uint32_t rows : {1u, 3u, 4u, 5u, 7u, 8u, 9u, 17u})
        for (const std::uint32_t tokens : {1u, 2u})
            check_norm<float, float, float>(device, ProductWeights(device, Quantised::Q4_0, rows, 64, 0, 0), tokens,
                                            odd);
    for (const std::uint64_t columns : {32u, 480u, 512u, 1024u, 2080u})
        check_norm<float, float, float>(device, ProductWeights(device, Quantised::Q4_0, 2, columns, 0, 0), 2, packed);
    const ProductWeights weights(device, Quantised::Q4_K, 5, 768, 0, 2);
    for (const Place place : {packed, aligned, odd})
        for (const std::uint32_t tokens : {1u, 2u}) {
            check_norm<half, half, half>(device, weights, tokens, place);
            check_norm<bfloat16, bfloat16, bfloat16>(device, weights, tokens, place);
            check_norm<half, float, float>(device, weights, tokens, place, 0.25f);
            check_norm<float, half, bfloat16>(device, weights, tokens, place, 0);
        }
}

TEST_CASE("rmsnorm_gemv is within the bound") {
    const runtime::Device device = open_device();
    for (const Quantised format : quantised_formats()) {
        const std::uint64_t columns = columns_of(format)[2];
        const ProductWeights weights(device, format, 3, columns, 0, 0);
        const std::vector<float> gamma = random_elements<float>(columns, 5);
        for (const float size : {1.0f, 1e-3f, 1e-30f, 1e25f}) {
            std::vector<float> numbers = random_elements<float>(2 * columns, 4);
            for (float& each : numbers) each *= size;
            const auto x = device.upload(numbers, "x"), of_gamma = device.upload(gamma, "gamma");
            auto y = device.buffer<float>(6, "y");
            rmsnorm_gemv(device, weights.view(), x.view(2, columns), of_gamma, y.view(2, 3), 1e-5f);
            INFO("format " << int(format) << ", size " << size);
            check_norm_bound(weights, numbers, gamma, 1e-5f, y.download());
        }
    }
}

TEST_CASE("rmsnorm_gemv of special scales and activations") {
    const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00};
    const runtime::Device device = open_device();
    for (const Quantised format : {Quantised::Q4_0, Quantised::Q4_K, Quantised::Q2_K, Quantised::MXFP4}) {
        ProductWeights weights(device, format, std::size(special), columns_of(format)[1], 0, 0);
        weights.set_scales(special);
        check_norm<float, float, float>(device, weights, 2, packed);
    }
    // A token each: zeros, subnormal numbers, numbers whose squares overflow, NaN, infinity; as they would be alone.
    const std::uint64_t columns = 64, tokens = 7;
    const ProductWeights weights(device, Quantised::Q8_0, 2, columns, 0, 0);
    const float sizes[] = {0, 1e-44f, 3e38f, 1e20f, 1, 1, 1};
    std::vector<float> numbers = random_elements<float>(tokens * columns, 1);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= sizes[i / columns];
    numbers[4 * columns + 3] = std::numeric_limits<float>::quiet_NaN();
    numbers[5 * columns + 9] = -std::numeric_limits<float>::infinity();
    const std::vector<float> gamma = random_elements<float>(columns, 2);
    Placed<float> x(device, odd, {tokens, columns}, 1);
    x.set(numbers);
    auto y = device.buffer<float>(tokens * 2, "y");
    const auto of_gamma = device.upload(gamma, "gamma");
    for (const float epsilon : {1e-5f, 0.0f}) {
        rmsnorm_gemv(device, weights.view(), x, of_gamma, y.view(tokens, 2), epsilon);
        const auto got = y.download();
        CHECK(different_elements(got, wanted(device, weights, numbers, gamma, epsilon)) == 0);
        CHECK((std::isfinite(got[4]) && std::isfinite(got[6]) && std::isfinite(got[12])));
        CHECK((std::isnan(got[8]) && std::isnan(got[10])));
        CHECK(std::isnan(got[0]) == (epsilon == 0));
    }
}

TEST_CASE("rmsnorm_gemv of single rows and of nothing") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_0, 3, 64, 0, 0);
    const auto x = device.upload(random_elements<float>(128, 1), "x"),
               gamma = device.upload(random_elements<float>(64, 2), "gamma");
    auto y = device.buffer<float>(3, "y"), Y = device.buffer<float>(6, "Y");
    rmsnorm_gemv(device, weights.view(), x.view(2, 64), gamma, Y.view(2, 3), 1e-5f);
    for (const std::uint64_t token : {0u, 1u}) {
        rmsnorm_gemv(device, weights.view(), x.slice(token * 64, 64), gamma, y, 1e-5f);
        const auto all = Y.download();
        CHECK(y.download() ==
              std::vector(all.begin() + std::ptrdiff_t(token * 3), all.begin() + std::ptrdiff_t(token * 3 + 3)));
    }
    Y.upload(std::vector<float>(6, -1));
    rmsnorm_gemv(device, weights.view(), x.view(0, 64), gamma, Y.view(0, 3), 1e-5f);
    rmsnorm_gemv(device, stdlib::quantised_view(weights.buffer(), Quantised::Q4_0, {0, 64}), x.view(2, 64), gamma,
                 Y.view(2, 0), 1e-5f);
    CHECK(Y.download() == std::vector<float>(6, -1));
    rmsnorm_gemv(device, stdlib::quantised_view(weights.buffer(), Quantised::Q4_0, {3, 0}), x.view(2, 0),
                 gamma.slice(0, 0), Y.view(2, 3), 1e-5f);
    CHECK(Y.download() == std::vector<float>(6, 0));
}

TEST_CASE("rmsnorm_gemv in all orders of warps") {
    const runtime::Device device = open_device({.threads = 1, .check = "races", .schedules = 4});
    for (const Quantised format : {Quantised::Q4_K, Quantised::Q5_0}) {
        const ProductWeights weights(device, format, 9, columns_of(format)[2], 0, 2);
        check_norm<float, float, float>(device, weights, 3, odd);
        check_norm<half, float, half>(device, weights, 1, packed);
    }
}

TEST_CASE("rmsnorm_gemv of operands that do not fit") {
    const runtime::Device device = open_device();
    const ProductWeights weights(device, Quantised::Q4_0, 4, 64, 0, 0);
    auto x = device.buffer<float>(192, "x"), y = device.buffer<float>(64, "y"), gamma = device.buffer<float>(64, "g");
    const auto says = [&](const TensorView& of_x, const TensorView& of_gamma, const MutableTensorView& of_y,
                          const char* text) {
        INFO(text);
        CHECK(tests::message_of([&] {
                  rmsnorm_gemv(device, weights.view(), of_x, of_gamma, of_y, 1e-5f);
              }).contains(text));
    };
    says(x.view(2, 64), x.slice(0, 32), y.view(2, 4),
         "rmsnorm_gemv: 'gamma' is 32, and 'x' is 2 x 64\n  hint: gamma has an element for each column");
    says(x.view(2, 64), gamma.view(1, 64), y.view(2, 4), "rmsnorm_gemv: 'gamma' is 1 x 64, and 'x' is 2 x 64");
    says(x.view(2, 64), device.buffer<std::int32_t>(64, "i"), y.view(2, 4),
         "rmsnorm_gemv: 'gamma' has elements of i32\n  hint: they are f32, f16 or bf16");
    says(x.view(2, 64), gamma, y.view(2, 5), "rmsnorm_gemv: 'W' is 4 x 64, and 'y' is 2 x 5: the rows differ");
    says(x.view(2, 64), gamma, gamma.view(2, 4), "rmsnorm_gemv: 'gamma' (read) and 'y' (written) are the same memory");
}

TEST_CASE("rmsnorm_gemv by name is one launch") {
    const runtime::Device device = open_device();
    const stdlib::NamedFunction* const function = stdlib::find_function("rmsnorm_gemv_q4_k");
    REQUIRE(function);
    const ProductWeights weights(device, Quantised::Q4_K, 4, 512, 0, 0);
    const Placed<half> x(device, packed, {2, 512}, 1), gamma(device, packed, {512}, 2), y(device, packed, {2, 4}, 3),
        want(device, packed, {2, 4}, 4);
    stdlib::FunctionSettings settings;
    settings.set("epsilon", "0.5");
    const std::vector<MutableTensorView> arrays{MutableTensorView(weights.view()), x, gamma, y};
    function->run(device, arrays, settings);
    rmsnorm_gemv(device, weights.view(), x, gamma, want, 0.5f);
    CHECK(y.elements() == want.elements());
    CHECK(launched(device, [&](const stdlib::Queue& queue) { function->run(queue, arrays, settings); }) ==
          std::vector<std::string>{"rmsnorm_gemv_q4_k_f16_f16_f16_tokens_2"});
}

}  // namespace ikat::test
