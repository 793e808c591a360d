// SPDX-License-Identifier: Apache-2.0
// Softmax and the norms of special values, over shapes that are kept in registers, streamed in vectors and streamed by
// elements; their functions on buffers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "stdlib/catalogue/registry.hpp"
#include "stdlib/norm/norm.hpp"
#include "stdlib/reference/reference.hpp"
#include "stdlib/softmax/softmax.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"

namespace {

using namespace ikat;
using test::Case;
namespace reference = stdlib::reference;

using test::epsilon, test::floats;
struct Shape {
    std::uint32_t rows, columns;
};
// The last two do not fit into registers.
const Shape shapes[] = {{0, 8},   {3, 0},    {1, 1},    {5, 3},    {4, 4},    {7, 31},   {9, 32},
                        {6, 128}, {3, 1000}, {2, 1023}, {130, 64}, {2, 8192}, {2, 8196}, {1, 10007}};

/// The error of a sum over a row of at most `columns` terms, relative to the sum of their magnitudes: each thread adds
/// its share, the reduction tree has 16 levels.
double of_sum(std::uint32_t columns) { return (columns / 32.0 + 16) * epsilon; }

/// The allowed error of a norm: the errors of `factor` and of the mean, times what they are applied to.
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

/// Elements whose squares, and whose sums, overflow f32.
template <class T>
void check_large_norms() {
    const runtime::Device device = test::open_device();
    for (const auto& [rows, columns] : {Shape{3, 7}, {2, 64}, {2, 1000}, {1, 10007}})
        for (const float largest : {0x1.8p64f, 0x1p127f}) {
            INFO("rows, columns, largest = " << rows << ", " << columns << ", " << largest);
            const auto x = test::random_elements<T>(std::size_t(rows) * columns, columns, 0.25f * largest, largest);
            const auto gamma = test::random_elements<T>(columns, 1);
            const std::vector<T> zeros(x.size(), T(0.0f));
            const auto run = [&](Case& given, const char* kernel) {
                given.number(rows).number(columns).number(1e-5f).run(device, test::name_of<T>(kernel));
            };
            const auto rms = reference::rmsnorm(floats(x), floats(gamma), rows, columns, double(1e-5f));
            const auto rms_bounds = bounds<T>(rms, {}, 0, columns);
            for (const char* kernel : {"rmsnorm", "rmsnorm_per_head", "rmsnorm_shared"})
                run(Case().in(x).in(gamma).template out<T>(rms, rms_bounds), kernel);
            const auto sum = floats(x);
            for (const char* kernel :
                 {"fused_residual_rmsnorm", "fused_residual_rmsnorm_warp", "fused_residual_rmsnorm_shared"})
                run(Case().in(x).inout(zeros, {sum.begin(), sum.end()}, {0}).in(gamma).template out<T>(rms, rms_bounds),
                    kernel);
            const auto layer = reference::layernorm(floats(x), {}, {}, rows, columns, double(1e-5f));
            for (const char* kernel : {"layernorm_plain", "layernorm_plain_warp", "layernorm_plain_shared"})
                run(Case().in(x).template out<T>(layer, bounds<T>(layer, {}, 16, columns)), kernel);
        }
}

/// The result of a kernel without other parameters on rows.
template <class T>
std::vector<T> of_rows(const runtime::Device& device, const std::string& kernel, const std::vector<T>& x,
                       std::uint32_t rows, std::uint32_t columns) {
    const stdlib::Entry* entry = stdlib::find(kernel);
    REQUIRE(entry != nullptr);
    const auto from = device.upload(x);
    const auto to = device.buffer<T>(x.size());
    const runtime::Argument arguments[] = {{.type = ir::type_of<T>, .part = from.memory().whole()},
                                           {.type = ir::type_of<T>, .part = to.memory().whole()},
                                           {.type = ir::Type::U32, .bits = rows},
                                           {.type = ir::Type::U32, .bits = columns}};
    const std::span<const runtime::Argument> list(arguments);
    device.launch(entry->handle(), entry->grid(list, 0), list);
    return to.download();
}

/// softmax(x + c) = softmax(x), bit for bit, if x + c is exact; with c = -1000, exp of every element of a row would
/// round to 0.
template <class T>
void check_shifted(const char* kernel) {
    const runtime::Device device = test::open_device();
    const float step = std::is_same_v<T, bfloat16> ? 8.0f : std::is_same_v<T, half> ? 1.0f : 0.0625f;
    const float shift = std::is_same_v<T, bfloat16> ? 1024.0f : 1000.0f;
    for (const auto& [rows, columns] : shapes) {
        INFO(kernel << ", rows, columns = " << rows << ", " << columns);
        std::vector<T> x, above, below;
        for (const float v : test::random_elements<float>(std::size_t(rows) * columns, columns, -3, 3)) {
            const float exact = std::round(v) * step;
            x.push_back(T(exact)), above.push_back(T(exact + shift)), below.push_back(T(exact - shift));
            REQUIRE(float(above.back()) == exact + shift);
            REQUIRE(float(below.back()) == exact - shift);
        }
        const std::string name = test::name_of<T>(kernel);
        const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
            return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
        };
        const auto want = of_rows(device, name, x, rows, columns);
        CHECK(same(of_rows(device, name, above, rows, columns), want));
        CHECK(same(of_rows(device, name, below, rows, columns), want));
    }
}

}  // namespace

TEST_CASE("norms of rows whose squares and sums overflow") {
    check_large_norms<float>(), check_large_norms<bfloat16>();
}
TEST_CASE("layernorm of equal elements whose sum overflows is 0") {
    const runtime::Device device = test::open_device();
    for (const std::uint32_t columns : {1u, 2u, 3u, 7u, 1000u, 9000u})
        for (const float x : {1.8e38f, 3e38f, -3e38f, std::numeric_limits<float>::max()}) {
            INFO("columns " << columns << ", x = " << x);
            const auto from = device.upload(std::vector<float>(columns, x));
            const auto result = [&](const auto& layernorm, std::uint32_t threads) {
                auto to = device.buffer<float>(columns);
                device.launch(layernorm, {{{1}, {threads}}}, from, to, 1u, columns, 1.0f);
                return to.download();
            };
            CHECK(result(stdlib::layernorm_plain<float>(), 256) == std::vector<float>(columns));
            CHECK(result(stdlib::layernorm_plain_warp<float>(), 128) == std::vector<float>(columns));
        }
}
TEST_CASE("softmax of x + c is that of x") {
    for (const char* kernel : {"softmax_warp", "softmax_block", "softmax_wide", "softmax_shared", "softmax_online",
                               "log_softmax", "log_softmax_warp", "log_softmax_wide", "log_softmax_shared"}) {
        IKAT_EACH_TYPE(check_shifted, kernel);
    }
}

TEST_CASE("softmax of masked rows") {
    const runtime::Device device = test::open_device();
    const float inf = HUGE_VALF;
    // One element that is not masked; large ones; none.
    const std::vector<float> x{-inf, 3, -inf, -inf, 1000, 1000, -inf, -1000, -inf, -inf, -inf, -inf};
    for (const char* kernel : {"softmax_warp", "softmax_block", "softmax_wide", "softmax_shared", "softmax_online"})
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
    stdlib::softmax(device, x.view(2, 2), y.view(2, 2));
    CHECK(y.download() == std::vector<float>{0.5, 0.5, 0.5, 0.5});
    stdlib::rmsnorm(device, x.view(2, 2), ones, y.view(2, 2), 0.0f);
    CHECK(y.download() == std::vector<float>{1, 1, 1, 1});
    stdlib::layernorm(device, x.slice(0, 2), ones, ones, y.slice(0, 2), 1.0f);
    CHECK(y.download() == std::vector<float>{1, 1, 1, 1});
    stdlib::fused_residual_rmsnorm(device, x.view(2, 2), residual.view(2, 2), ones, y.view(2, 2), 0.0f);
    CHECK(residual.download() == std::vector<float>{1, 1, 1, 3});
    CHECK_THROWS_WITH(stdlib::softmax(device, x.view(2, 2), y), Catch::Contains("softmax: 'x' is 2 x 2, and 'y' is 4"));
}

TEST_CASE("softmax and norms: kernels that are launched directly refuse buffers that are too short") {
    const runtime::Device device = test::open_device();
    const auto x = device.upload(std::vector<float>(24), "x"), gamma = device.upload(std::vector<float>(7), "gamma");
    auto y = device.buffer<float>(24, "y");
    const runtime::Grid grid{{3}, {256}};
    CHECK_THROWS_WITH(device.launch(stdlib::layernorm<float>(), grid, x, x.slice(0, 8), gamma, y, 3, 8, 0.0f),
                      Catch::Contains("buffer 'beta' has 7 elements, fewer than columns = 8"));
    CHECK_THROWS_WITH(device.launch(stdlib::rmsnorm<float>(), grid, x, gamma, y, 3, 8, 0.0f),
                      Catch::Contains("buffer 'gamma' has 7 elements, fewer than columns = 8"));
    CHECK_THROWS_WITH(device.launch(stdlib::softmax_block<float>(), grid, x, y, 4, 8),
                      Catch::Contains("buffer 'x' has 24 elements, fewer than rows * columns = 32") &&
                          Catch::Contains("buffer 'y' has 24 elements, fewer than rows * columns = 32"));
}
