// SPDX-License-Identifier: Apache-2.0
// Gradients of activations: against their formulas for every f16 and bf16 and a sample of all f32, and the formulas
// against differences of the activations themselves.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "stdlib/backward/activations.hpp"
#include "stdlib/spec/expected.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace {
namespace activations_backward {

using namespace ikat;
using stdlib::Backward, stdlib::Backward1;

constexpr double inf = std::numeric_limits<double>::infinity();

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// A row of the table: the activation, and its slope where it was given x; those of y take what the activation gives.
struct Case {
    const char* name;
    std::function<void(const runtime::Queue&, const runtime::TensorView&, const runtime::TensorView&,
                       const runtime::MutableTensorView&)>
        run;
    std::function<double(double)> activation, slope;
    bool takes_y = false;
};
Case of(Backward what, const char* name, std::function<double(double)> activation, std::function<double(double)> slope,
        bool takes_y = false) {
    return {name,
            [what](const auto& queue, const auto& dy, const auto& x, const auto& dx) {
                stdlib::elementwise(queue, what, dy, x, dx);
            },
            std::move(activation), std::move(slope), takes_y};
}
Case of(Backward1 what, const char* name, float p, std::function<double(double)> activation,
        std::function<double(double)> slope) {
    return {name,
            [what, p](const auto& queue, const auto& dy, const auto& x, const auto& dx) {
                stdlib::elementwise(queue, what, dy, x, dx, p);
            },
            std::move(activation), std::move(slope)};
}

std::vector<Case> cases() {
    using namespace stdlib::reference;
    const double k = std::sqrt(2 / 3.14159265358979323846);
    return {
        of(
            Backward::relu_backward, "relu", [](double x) { return x > 0 ? x : 0; },
            [](double x) { return x <= 0 ? 0.0 : 1.0; }),
        of(
            Backward::sigmoid_backward, "sigmoid", sigmoid, [](double y) { return y * (1 - y); }, true),
        of(
            Backward::tanh_backward, "tanh", [](double x) { return std::tanh(x); }, [](double y) { return 1 - y * y; },
            true),
        of(
            Backward::silu_backward, "silu", [](double x) { return x * sigmoid(x); }, silu_slope),
        of(
            Backward::gelu_backward, "gelu", [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2)); }, gelu_slope),
        of(
            Backward::gelu_tanh_backward, "gelu_tanh",
            [k](double x) { return x / 2 * (1 + std::tanh(k * (x + 0.044715 * x * x * x))); }, gelu_tanh_slope),
        of(
            Backward1::leaky_relu_backward, "leaky_relu", 0.25f, [](double x) { return x > 0 ? x : x / 4; },
            [](double x) { return x > 0 ? 1 : 0.25; }),
        of(
            Backward1::elu_backward, "elu", 1.5f, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); },
            [](double x) { return x > 0 ? 1 : 1.5 * std::exp(x); }),
    };
}

/// Every value of a type of 16 bits; of f32, each 65521st.
template <class T>
std::vector<T> values() {
    std::vector<T> out;
    using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
    for (std::uint64_t bits = 0; bits <= std::numeric_limits<Bits>::max(); bits += sizeof(T) == 2 ? 1 : 65521) {
        out.push_back(std::bit_cast<T>(Bits(bits)));
    }
    for (const double each : {0.0, -0.0, inf, -inf, 1.0, -1.0, 88.8, -103.9, -104.1, 15.01, -15.01, 12.01, -12.01})
        out.push_back(T(float(each)));
    return out;
}

template <class T>
void check_values() {
    const runtime::Device device = test::open_device();
    const std::vector<T> host = values<T>();
    const auto x = device.upload(host, "x"), dy = device.upload(std::vector<T>(host.size(), T(3.0f)), "dy");
    auto dx = device.buffer<T>(host.size(), "dx");
    const double unit = sizeof(T) == 4 ? 0x1p-24 : std::is_same_v<T, half> ? 0x1p-11 : 0x1p-8;
    const double least = std::is_same_v<T, half> ? 0x1p-25 : 0x1p-150;  // half of the smallest number
    for (const Case& each : cases()) {
        INFO(each.name);
        each.run(device, dy, x, dx);
        const std::vector<T> got = dx.download();
        std::size_t wrong = 0, first = 0;
        for (std::size_t i = 0; i < host.size(); ++i) {
            const double at = double(float(host[i])), its = double(float(got[i]));
            const double want = 3 * each.slope(at);
            // relu and leaky_relu treat a NaN as a number on one side.
            const bool any = std::isnan(at) || !(std::abs(want) <= std::numeric_limits<float>::max());
            const double bound =
                unit * std::abs(want) + least + 0x1p-20 * (each.takes_y ? std::abs(at) : 1) + 0x1p-22 * std::abs(want);
            const bool is_good =
                any ? std::isnan(its) || std::isinf(its) || std::isnan(at) || std::abs(want) > 1e38
                    : std::abs(its - want) <= bound || (sizeof(T) == 2 && std::isinf(its) && std::abs(want) >= 65504);
            if (!is_good && wrong++ == 0) first = i;
        }
        INFO("the first at x = " << float(host[first]) << ": " << float(got[first]) << ", not "
                                 << 3 * each.slope(double(float(host[first]))));
        CHECK(wrong == 0);
    }
}

TEST_CASE("gradients of activations, for every f16 and bf16 and a sample of f32") {
    check_values<float>();
    check_values<half>();
    check_values<bfloat16>();
}

TEST_CASE("gradients of activations: infinite arguments have the limits") {
    const runtime::Device device = test::open_device();
    const auto x = device.upload(std::vector<float>{float(inf), float(-inf)}, "x"),
               dy = device.upload(std::vector<float>{2, 2}, "dy");
    auto dx = device.buffer<float>(2, "dx");
    for (const Backward what :
         {Backward::relu_backward, Backward::silu_backward, Backward::gelu_backward, Backward::gelu_tanh_backward}) {
        stdlib::elementwise(device, what, dy, x, dx);
        CHECK(dx.download() == std::vector<float>{2, 0});
    }
    stdlib::elementwise(device, Backward1::elu_backward, dy, x, dx, 1.0f);
    CHECK(dx.download() == std::vector<float>{2, 0});
}

TEST_CASE("the formulas of the gradients are the slopes of the activations") {
    for (const Case& each : cases())
        for (double x = -9.9; x < 10; x += 0.37) {
            INFO(each.name << " at " << x);
            const double h = 1e-5;
            const double difference = (each.activation(x + h) - each.activation(x - h)) / (2 * h);
            CHECK(std::abs(each.slope(each.takes_y ? each.activation(x) : x) - difference) < 1e-8);
        }
}

TEST_CASE("gradients of activations: the same bits on any number of host threads, in any order") {
    const std::size_t n = 5003;
    std::vector<float> host(n), first;
    for (std::size_t i = 0; i < n; ++i) host[i] = float(std::sin(double(i))) * 6;
    for (const unsigned threads : {1u, 2u})
        for (const char* seed : {"0", "1", "2", "3"}) {
            const runtime::Device device = test::open_device({.threads = threads, .schedule = seed});
            const auto x = device.upload(host, "x");
            auto dx = device.buffer<float>(n, "dx");
            stdlib::elementwise(device, Backward::gelu_backward, x, x, dx);
            const std::vector<float> got = dx.download();
            if (first.empty()) first = got;
            CHECK(std::memcmp(got.data(), first.data(), n * sizeof(float)) == 0);
        }
}

}  // namespace activations_backward
}  // namespace
