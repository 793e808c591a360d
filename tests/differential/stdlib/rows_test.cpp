// SPDX-License-Identifier: Apache-2.0
// Softmax and the norms against their host references, over shapes that are kept in registers, streamed in vectors and
// streamed by elements.
#include <cmath>
#include <string>

#include "stdlib/norm.hpp"
#include "stdlib/reference.hpp"
#include "stdlib/softmax.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"

namespace {

using namespace ikat;
using test::Case;
namespace reference = stdlib::reference;

constexpr double epsilon = 0x1p-24;
struct Shape {
    std::uint32_t rows, columns;
};
// The last two are longer than what registers hold.
const Shape shapes[] = {{0, 8},   {3, 0},    {1, 1},    {5, 3},    {4, 4},    {7, 31},   {9, 32},
                        {6, 128}, {3, 1000}, {2, 1023}, {130, 64}, {2, 8192}, {2, 8196}, {1, 10007}};

template <class T>
std::vector<float> floats(const std::vector<T>& x) {
    return {x.begin(), x.end()};
}

/// The error of a sum over a row of at most `columns` terms, relative to the sum of their magnitudes: each thread adds
/// its share, the tree above has 16 levels.
double of_sum(std::uint32_t columns) { return (columns / 32.0 + 16) * epsilon; }

template <class T>
void check_softmax(const char* kernel, bool logarithm) {
    const runtime::Device device = test::open_device();
    for (const auto& [rows, columns] : shapes) {
        INFO("rows, columns = " << rows << ", " << columns);
        const auto x = test::random_elements<T>(std::size_t(rows) * columns, rows + columns, -20, 20);
        const auto want =
            logarithm ? reference::log_softmax(floats(x), rows, columns) : reference::softmax(floats(x), rows, columns);
        std::vector<double> bound(want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
            // exp(x - m): the difference is off by half an ulp of up to 40, exp by one ulp.
            const double relative = of_sum(columns) + 2 * 40 * epsilon + 4 * epsilon;
            const double size = logarithm ? 1 + std::abs(want[i]) : want[i];
            bound[i] = relative * size + test::rounding<T> * std::abs(want[i]) + test::tiny<T>;
        }
        Case().in(x).template out<T>(want, bound).number(rows).number(columns).run(device, test::name_of<T>(kernel));
    }
}

/// What a norm may be off: `factor` and a mean that are, times what they are applied to.
template <class T>
std::vector<double> bounds(const std::vector<double>& want, const std::vector<float>& beta, double largest,
                           std::uint32_t columns) {
    std::vector<double> bound(want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double bias = beta.empty() ? 0 : std::abs(double(beta[i % columns]));
        bound[i] = 4 * of_sum(columns) * (std::abs(want[i]) + bias + largest) + test::rounding<T> * std::abs(want[i]) +
                   test::tiny<T>;
    }
    return bound;
}

template <class T>
void check_layernorm(bool affine) {
    const runtime::Device device = test::open_device();
    for (const auto& [rows, columns] : shapes) {
        INFO("rows, columns = " << rows << ", " << columns);
        const auto x = test::random_elements<T>(std::size_t(rows) * columns, rows + columns, -1, 3);
        const auto gamma = test::random_elements<T>(columns, 1), beta = test::random_elements<T>(columns, 2);
        const std::vector<float> no;
        const auto want = reference::layernorm(floats(x), affine ? floats(gamma) : no, affine ? floats(beta) : no, rows,
                                               columns, double(1e-3f));
        // |x - mean| <= 4; 1 / sqrt(variance + epsilon) is largest where the columns are equal, then below 32.
        const auto bound = bounds<T>(want, floats(beta), columns > 4 ? 16 : 200, columns);
        Case c;
        c.in(x);
        if (affine) c.in(gamma).in(beta);
        c.template out<T>(want, bound).number(rows).number(columns).number(1e-3f);
        c.run(device, test::name_of<T>(affine ? "layernorm" : "layernorm_plain"));
    }
}

template <class T>
void check_rmsnorm(const char* kernel) {
    const runtime::Device device = test::open_device();
    for (const auto& [rows, columns] : shapes) {
        INFO("rows, columns = " << rows << ", " << columns);
        const auto x = test::random_elements<T>(std::size_t(rows) * columns, rows + columns, -2, 2);
        const auto gamma = test::random_elements<T>(columns, 1);
        const auto want = reference::rmsnorm(floats(x), floats(gamma), rows, columns, double(1e-5f));
        Case()
            .in(x)
            .in(gamma)
            .template out<T>(want, bounds<T>(want, {}, 0, columns))
            .number(rows)
            .number(columns)
            .number(1e-5f)
            .run(device, test::name_of<T>(kernel));
    }
}

template <class T>
void check_residual() {
    const runtime::Device device = test::open_device();
    for (const auto& [rows, columns] : shapes) {
        INFO("rows, columns = " << rows << ", " << columns);
        const auto x = test::random_elements<T>(std::size_t(rows) * columns, rows + columns, -2, 2),
                   residual = test::random_elements<T>(x.size(), 9, -2, 2);
        const auto gamma = test::random_elements<T>(columns, 1);
        std::vector<float> sum(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) sum[i] = float(T(float(x[i]) + float(residual[i])));
        const auto want = reference::rmsnorm(sum, floats(gamma), rows, columns, double(1e-5f));
        Case()
            .in(x)
            .inout(residual, {sum.begin(), sum.end()}, {0})
            .in(gamma)
            .template out<T>(want, bounds<T>(want, {}, 0, columns))
            .number(rows)
            .number(columns)
            .number(1e-5f)
            .run(device, test::name_of<T>("fused_residual_rmsnorm"));
    }
}

}  // namespace

TEST_CASE("softmax of any shape") {
    for (const char* kernel : {"softmax_warp", "softmax_block", "softmax_online"}) {
        IKAT_EACH_TYPE(check_softmax, kernel, false);
    }
}
TEST_CASE("log_softmax of any shape") { IKAT_EACH_TYPE(check_softmax, "log_softmax", true); }
TEST_CASE("layernorm of any shape") {
    for (const bool affine : {true, false}) { IKAT_EACH_TYPE(check_layernorm, affine); }
}
TEST_CASE("rmsnorm of any shape") {
    for (const char* kernel : {"rmsnorm", "rmsnorm_per_head"}) { IKAT_EACH_TYPE(check_rmsnorm, kernel); }
}
TEST_CASE("fused_residual_rmsnorm of any shape") { IKAT_EACH_TYPE(check_residual); }

TEST_CASE("softmax of masked rows") {
    const runtime::Device device = test::open_device();
    const float inf = HUGE_VALF;
    // One element that is not masked; large ones; none.
    const std::vector<float> x{-inf, 3, -inf, -inf, 1000, 1000, -inf, -1000, -inf, -inf, -inf, -inf};
    for (const char* kernel : {"softmax_warp", "softmax_block", "softmax_online"})
        Case()
            .in(x)
            .out<float>({0, 1, 0, 0, 0.5, 0.5, 0, 0, NAN, NAN, NAN, NAN}, {0})
            .number(3u)
            .number(4u)
            .run(device, kernel);
}

TEST_CASE("softmax and norms on buffers") {
    const runtime::Device device = test::open_device();
    const auto x = device.upload(std::vector<float>{1, 1, 3, 3}, "x"),
               ones = device.upload(std::vector<float>{1, 1}, "w");
    auto y = device.buffer<float>(4, "y"), residual = device.upload(std::vector<float>{0, 0, -2, 0}, "r");
    stdlib::softmax(device, x, y, 2, 2);
    CHECK(y.download() == std::vector<float>{0.5, 0.5, 0.5, 0.5});
    stdlib::rmsnorm(device, x, ones, y, 2, 2, 0.0f);
    CHECK(y.download() == std::vector<float>{1, 1, 1, 1});
    stdlib::layernorm(device, x, ones, ones, y, 1, 2, 1.0f);
    CHECK(y.download() == std::vector<float>{1, 1, 1, 1});
    stdlib::fused_residual_rmsnorm(device, x, residual, ones, y, 2, 2, 0.0f);
    CHECK(residual.download() == std::vector<float>{1, 1, 1, 3});
    CHECK_THROWS_WITH(stdlib::softmax(device, x, y, 2, 3), Catch::Contains("'x' has 4 elements, 6 are needed"));
}
