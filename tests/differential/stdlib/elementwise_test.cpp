// SPDX-License-Identifier: Apache-2.0
// The element-wise kernels of the registry against the host expressions of their table, in double.
#include "stdlib/elementwise/elementwise.hpp"

#include <bit>
#include <cmath>
#include <string>

#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"

namespace {

using namespace ikat;
using test::Case;

const std::size_t lengths[] = {0, 1, 3, 4, 5, 31, 1023, 1024, 4099};

/// Arguments of all sizes that occur, infinity, NaN.
template <class T>
std::vector<T> numbers(std::size_t count, std::uint32_t seed) {
    auto out = test::random_elements<T>(count, seed, -8, 8);
    for (std::size_t i = 0; i + 3 < count; i += 11) out[i] = T(float(out[i]) * 1e-3f);
    if (count > 1000) out[7] = T(HUGE_VALF), out[70] = T(NAN);
    return out;
}

/// What is allowed: some ulp of f32 while computing, and the rounding to T.
template <class T>
double bound_of(double want) {
    if (!std::isfinite(want)) return 0;
    return std::abs(want) * (8 * 0x1p-24 + test::rounding<T>)+test::tiny<T>;
}

struct Row {
    const char* name;
    std::size_t inputs, parameters;
    double (*host)(double x, double b, double p, double q);
};

#define IKAT_HOST(expression)                              \
    [](double x, double b, double p, double q) -> double { \
        (void)x, (void)b, (void)p, (void)q;                \
        const double a = x;                                \
        (void)a;                                           \
        return expression;                                 \
    }
#define IKAT_UNARY(id, text, device, host) {#id, 1, 0, IKAT_HOST(host)},
#define IKAT_UNARY_1(id, p1, text, device, host) {#id, 1, 1, IKAT_HOST(host)},
#define IKAT_UNARY_2(id, p1, p2, text, device, host) {#id, 1, 2, IKAT_HOST(host)},
#define IKAT_BINARY(id, a1, b1, text, device, host) {#id, 2, 0, IKAT_HOST(host)},
const Row rows[] = {
#include "stdlib/elementwise/elementwise.def"
};

template <class T>
void check(const Row& row) {
    const runtime::Device device = test::open_device();
    const float parameters[] = {-0.75f, 1.5f};
    for (const std::size_t n : lengths) {
        INFO("n = " << n);
        const auto x = numbers<T>(n, 1), b = numbers<T>(n, 2);
        std::vector<double> want(n), bound(n);
        for (std::size_t i = 0; i < n; ++i) {
            want[i] = row.host(float(x[i]), float(b[i]), parameters[0], parameters[1]);
            bound[i] = bound_of<T>(want[i]);
        }
        Case c;
        c.in(x);
        if (row.inputs == 2) c.in(b);
        c.out<T>(want, bound);
        for (std::size_t p = 0; p < row.parameters; ++p) c.number(parameters[p]);
        c.number(std::uint32_t(n)).run(device, test::name_of<T>(row.name));
    }
}

/// A kernel of one argument for all 65536 of them. -infinity is left out: on the host, x times 0 is a NaN there.
template <class T>
void check_every_argument(const Row& row) {
    std::vector<T> x(1 << 16);
    std::vector<double> want, bound;
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = std::bit_cast<T>(std::uint16_t(i));
        if (float(x[i]) == -HUGE_VALF) x[i] = T(0.0f);
        want.push_back(row.host(float(x[i]), 0, 0, 0));
        bound.push_back(bound_of<T>(want[i]));
    }
    Case()
        .in(x)
        .template out<T>(want, bound)
        .number(std::uint32_t(x.size()))
        .run(test::open_device(), test::name_of<T>(row.name));
}

template <class From, class To>
void check_cast(const char* name) {
    const runtime::Device device = test::open_device();
    for (const std::size_t n : lengths) {
        INFO("n = " << n);
        const auto x = numbers<From>(n, 3);
        std::vector<double> want(n);
        for (std::size_t i = 0; i < n; ++i) want[i] = float(To(float(x[i])));
        Case().in(x).template out<To>(want, {0}).number(std::uint32_t(n)).run(device, name);
    }
}

template <class T>
void check_residual_add() {
    const runtime::Device device = test::open_device();
    for (const std::size_t n : lengths) {
        INFO("n = " << n);
        const auto x = numbers<T>(n, 4), y = numbers<T>(n, 5);
        std::vector<double> want(n);
        for (std::size_t i = 0; i < n; ++i) want[i] = float(T(float(x[i]) + float(y[i])));
        Case().in(x).inout(y, want, {0}).number(std::uint32_t(n)).run(device, test::name_of<T>("residual_add"));
    }
}

double none(double x) { return x; }
const Row& row_of(std::string_view name) {
    for (const Row& row : rows)
        if (row.name == name) return row;
    static const Row identity{"none", 1, 0, [](double x, double, double, double) { return none(x); }};
    return identity;
}

template <class T>
void check_bias() {
    const runtime::Device device = test::open_device();
    const std::uint32_t shapes[][2] = {{0, 4}, {4, 0}, {1, 1}, {3, 4}, {4, 3}, {1, 1000}, {33, 65}, {70, 64}, {257, 2}};
    for (const char* name : {"none", "relu", "gelu", "gelu_tanh", "silu"})
        for (const auto& [rows_count, columns] : shapes) {
            INFO("rows, columns = " << rows_count << ", " << columns);
            const auto x = test::random_elements<T>(std::size_t(rows_count) * columns, 6, -4, 4),
                       bias = test::random_elements<T>(columns, 7, -4, 4);
            std::vector<double> want(x.size()), bound(x.size());
            for (std::size_t i = 0; i < x.size(); ++i) {
                const double sum = float(float(x[i]) + float(bias[i % columns]));
                want[i] = row_of(name).host(sum, 0, 0, 0);
                bound[i] = bound_of<T>(want[i]);
            }
            Case()
                .in(x)
                .in(bias)
                .template out<T>(want, bound)
                .number(rows_count)
                .number(columns)
                .run(device, test::name_of<T>(std::string("bias_activation_") + name));
        }
}

}  // namespace

TEST_CASE("every element-wise kernel") {
    for (const Row& row : rows) IKAT_EACH_TYPE(check, row);
}
TEST_CASE("functions of one f16 or bf16, for every argument") {
    for (const Row& row : rows)
        if (row.inputs == 1 && row.parameters == 0)
            check_every_argument<half>(row), check_every_argument<bfloat16>(row);
}
TEST_CASE("casts round once") {
    check_cast<float, half>("cast_f32_f16");
    check_cast<half, float>("cast_f16_f32");
    check_cast<float, bfloat16>("cast_f32_bf16");
    check_cast<bfloat16, float>("cast_bf16_f32");
}
TEST_CASE("residual_add rounds once") { IKAT_EACH_TYPE(check_residual_add); }
TEST_CASE("bias_activation") { IKAT_EACH_TYPE(check_bias); }

TEST_CASE("element-wise kernels on buffers") {
    const runtime::Device device = test::open_device();
    const std::vector<float> a{-2, -1, 0, 1, 2}, b{1, 2, 3, 4, 5};
    const auto x = device.upload(a, "x"), z = device.upload(b, "z");
    auto y = device.buffer<float>(5, "y");
    stdlib::elementwise(device, stdlib::Unary::relu, x, y);
    CHECK(y.download() == std::vector<float>{0, 0, 0, 1, 2});
    stdlib::elementwise(device, stdlib::Unary1::scale, x, y, 3.0f);
    CHECK(y.download() == std::vector<float>{-6, -3, 0, 3, 6});
    stdlib::elementwise(device, stdlib::Unary2::clip, x, y, -1.5f, 0.5f);
    CHECK(y.download() == std::vector<float>{-1.5f, -1, 0, 0.5f, 0.5f});
    stdlib::elementwise(device, stdlib::Binary::mul, x, z, y);
    CHECK(y.download() == std::vector<float>{-2, -2, 0, 4, 10});
    stdlib::residual_add(device, z, y);
    CHECK(y.download() == std::vector<float>{-1, 0, 3, 8, 15});
    stdlib::bias_activation(device, stdlib::Activation::relu, x, z, y, 1, 5);
    CHECK(y.download() == std::vector<float>{0, 1, 3, 5, 7});
    auto halves = device.buffer<half>(5, "halves");
    stdlib::cast(device, y, halves);
    CHECK(float(halves.download()[4]) == 7);
    auto small = device.buffer<float>(4, "small");
    CHECK_THROWS_WITH(stdlib::elementwise(device, stdlib::Binary::add, x, z, small),
                      Catch::Contains("'a' has 5 elements and 'y' has 4"));
    CHECK_THROWS_WITH(stdlib::bias_activation(device, stdlib::Activation::none, x, z, small, 1, 5),
                      Catch::Contains("'y' has 4 elements, 5 are needed"));
}
