// SPDX-License-Identifier: Apache-2.0
// The elementary functions against the host's, in a wider type: f32 against double, f64 against long double. Errors are
// counted in units in the last place of the exact result.
//
// The tests here take a sample over all bit patterns. test_math "[.exhaustive]" goes through all 2^32 arguments of some
// functions, for minutes, and prints the largest error.
#include "stdlib/math.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "dsl/kernel.hpp"
#include "dsl/simt.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace {

using namespace ikat;

template <class T>
using Unary = Kernel<In<T>, Out<T>, u32>;

/// y[i] = f(x[i]).
template <class T>
Unary<T> make(const char* name, Leaf<T> (*f)(const Leaf<T>&)) {
    return kernel(name, params("x", "y", "n"), [=](In<T> x, Out<T> y, u32 n) {
        for (auto i : grid_stride(n)) y[i] = f(value(x[i]));
    });
}

/// One function at one type: how the device computes it, the host, and how far apart they may be.
template <class T, class Wide>
struct Row {
    const char* name;
    Leaf<T> (*device)(const Leaf<T>&);
    Wide (*host)(Wide);
    double ulp;
    /// The error that is allowed in any case.
    double (*absolute)(double x) = [](double) { return 0.0; };
};

template <class T>
using WideOf = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// One unit in the last place of a T of x's size.
template <class T, class Wide>
Wide unit(Wide x) {
    if (std::isinf(x)) return 1;
    int exponent = 0;
    std::frexp(x, &exponent);
    using Limits = std::numeric_limits<T>;
    return std::ldexp(Wide(1), std::max(exponent, Limits::min_exponent) - Limits::digits);
}

/// The error in ulp; infinite if one is NaN and the other not, 0 if both overflow.
template <class T, class Wide>
Wide error_of(T got, Wide want, Wide allowed = 0) {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : HUGE_VAL;
    if (Wide(got) == want || T(want) == got) return 0;
    if (std::isinf(got) && std::isfinite(want)) got = std::copysign(std::numeric_limits<T>::max(), got);
    if (std::isinf(got) || std::isinf(want)) return HUGE_VAL;
    const Wide difference = std::abs(Wide(got) - want);
    return difference <= allowed ? 0 : difference / unit<T>(want);
}

template <class T>
struct Worst {
    WideOf<T> error = 0;
    T x = 0, got = 0;
};

template <class T>
Worst<T> worst_of(const Row<T, WideOf<T>>& row, const runtime::Device& device, const Unary<T>& made,
                  const std::vector<T>& x) {
    auto y = device.upload(std::vector<T>(x.size(), T(-77)), "y");
    device.launch(made, runtime::grid(std::min<std::size_t>(x.size(), 65536), 256), device.upload(x, "x"), y,
                  std::uint32_t(x.size()));
    const std::vector<T> got = y.download();
    Worst<T> worst;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto error = error_of<T>(got[i], row.host(x[i]), WideOf<T>(row.absolute(double(x[i]))));
        if (error > worst.error || (i == 0 && error == 0)) worst = {error, x[i], got[i]};
    }
    return worst;
}

/// Arguments of all sizes, every bit pattern as likely as any other, and more of the ordinary ones.
template <class T>
std::vector<T> sample(std::size_t count) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    using Limits = std::numeric_limits<T>;
    std::vector<T> out{0,
                       T(-0.0),
                       1,
                       -1,
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN(),
                       Limits::min(),
                       -Limits::min(),
                       Limits::denorm_min(),
                       Limits::max(),
                       Limits::lowest()};
    const Bits step = ~Bits(0) / Bits(count) | 1;
    for (std::size_t i = 0; i < count; ++i) {
        const Bits bits = Bits(i) * step;
        T x;
        std::memcpy(&x, &bits, sizeof x);
        out.push_back(x);
    }
    std::mt19937_64 random(7);
    for (const double range : {1.0, 10.0, 100.0, 1000.0}) {
        std::uniform_real_distribution<T> uniform(T(-range), T(range));
        for (std::size_t i = 0; i < count / 4; ++i) out.push_back(uniform(random));
    }
    return out;
}

#define IKAT_DEVICE(type, expression) [](const Leaf<type>& x) -> Leaf<type> { return value(expression); }
#define IKAT_HOST(type, expression) [](type x) -> type { return expression; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_tanh(double x) { return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }

using Single = Row<float, double>;
const Single single_rows[] = {
    {"exp", IKAT_DEVICE(float, stdlib::exp(x)), IKAT_HOST(double, std::exp(x)), 1},
    {"exp2", IKAT_DEVICE(float, stdlib::exp2(x)), IKAT_HOST(double, std::exp2(x)), 1},
    {"expm1", IKAT_DEVICE(float, stdlib::expm1(x)), IKAT_HOST(double, std::expm1(x)), 1.5},
    {"log", IKAT_DEVICE(float, stdlib::log(x)), IKAT_HOST(double, std::log(x)), 1},
    {"log2", IKAT_DEVICE(float, stdlib::log2(x)), IKAT_HOST(double, std::log2(x)), 1},
    {"sin", IKAT_DEVICE(float, stdlib::sin(x)), IKAT_HOST(double, std::sin(x)), 1},
    {"cos", IKAT_DEVICE(float, stdlib::cos(x)), IKAT_HOST(double, std::cos(x)), 1},
    {"tan", IKAT_DEVICE(float, stdlib::tan(x)), IKAT_HOST(double, std::tan(x)), 2},
    {"tanh", IKAT_DEVICE(float, stdlib::tanh(x)), IKAT_HOST(double, std::tanh(x)), 2},
    {"erf", IKAT_DEVICE(float, stdlib::erf(x)), IKAT_HOST(double, std::erf(x)), 1.5},
    {"sigmoid", IKAT_DEVICE(float, stdlib::sigmoid(x)), IKAT_HOST(double, sigmoid(x)), 2.5},
    {"gelu", IKAT_DEVICE(float, stdlib::gelu(x)),
     IKAT_HOST(double, std::isinf(x) && x < 0 ? NAN : x / 2 * (1 + std::erf(x * M_SQRT1_2))), 2,
     [](double x) { return x < 0 ? -x * 0x1p-23 : 0.0; }},
    {"gelu_tanh", IKAT_DEVICE(float, stdlib::gelu_tanh(x)),
     IKAT_HOST(double, std::isinf(x) && x < 0 ? NAN : gelu_tanh(x)), 3,
     [](double x) { return x < 0 ? -x * 0x1p-22 : 0.0; }},
    // pow on lines through its plane; and on points of it below.
    {"pow_x_0_3", IKAT_DEVICE(float, stdlib::pow(x, 0.3f)), IKAT_HOST(double, std::pow(x, double(0.3f))), 2},
    {"pow_x_33", IKAT_DEVICE(float, stdlib::pow(x, 33.0f)), IKAT_HOST(double, std::pow(x, 33.0)), 2},
    {"pow_1_1_x", IKAT_DEVICE(float, stdlib::pow(1.1f, x)), IKAT_HOST(double, std::pow(double(1.1f), x)), 2},
    {"pow_x_x", IKAT_DEVICE(float, stdlib::pow(x, x)), IKAT_HOST(double, std::pow(x, x)), 2},
};

/// The fast forms: no ulp, but an error that depends on the argument.
const Single fast_rows[] = {
    {"approx_exp", IKAT_DEVICE(float, approx::exp(x)), IKAT_HOST(double, std::exp(x)), 0,
     [](double x) { return std::exp(x) * (0x1p-21 + std::abs(x) * 0x1p-23) + 0x1p-126; }},
    {"approx_log", IKAT_DEVICE(float, approx::log(x)), IKAT_HOST(double, std::log(x)), 4,
     [](double x) { return x > 0 && x < 0x1p-126 ? HUGE_VAL : 0x1p-22; }},
    {"approx_pow", IKAT_DEVICE(float, approx::pow(x, 3.5f)), IKAT_HOST(double, x < 0 ? NAN : std::pow(x, 3.5)), 0,
     [](double x) { return std::pow(x, 3.5) * 0x1p-21 * (1 + std::abs(3.5 * std::log2(x))) + 0x1p-126; }},
    {"approx_sigmoid", IKAT_DEVICE(float, approx::sigmoid(x)), IKAT_HOST(double, sigmoid(x)), 0,
     [](double x) { return sigmoid(x) * (std::abs(x) < 80 ? 0x1p-20 + std::abs(x) * 0x1p-23 : 1) + 0x1p-126; }},
    {"approx_gelu_tanh", IKAT_DEVICE(float, approx::gelu_tanh(x)),
     IKAT_HOST(double, std::isinf(x) && x < 0 ? NAN : gelu_tanh(x)), 0, [](double x) { return std::abs(x) * 0x1p-20; }},
};

using Double = Row<double, long double>;
const Double double_rows[] = {
    {"exp_f64", IKAT_DEVICE(double, stdlib::exp(x)), IKAT_HOST(long double, std::exp(x)), 1},
    {"log_f64", IKAT_DEVICE(double, stdlib::log(x)), IKAT_HOST(long double, std::log(x)), 1},
    {"sqrt_f64", IKAT_DEVICE(double, sqrt(x)), IKAT_HOST(long double, std::sqrt(x)), 0.5},
    {"sin_f64", IKAT_DEVICE(double, stdlib::sin(x)), IKAT_HOST(long double, std::sin(x)), 1},
    {"cos_f64", IKAT_DEVICE(double, stdlib::cos(x)), IKAT_HOST(long double, std::cos(x)), 1},
    {"tanh_f64", IKAT_DEVICE(double, stdlib::tanh(x)), IKAT_HOST(long double, std::tanh(x)), 2},
    {"erf_f64", IKAT_DEVICE(double, stdlib::erf(x)), IKAT_HOST(long double, std::erf(x)), 1.5},
};

template <class T>
void check(const auto& rows, std::size_t count) {
    const runtime::Device device = test::open_device();
    const std::vector<T> x = sample<T>(count);
    for (const auto& row : rows) {
        const Worst<T> worst = worst_of<T>(row, device, make<T>(row.name, row.device), x);
        INFO(row.name << "(" << worst.x << ") = " << worst.got << " is off by " << double(worst.error) << " ulp");
        CHECK(worst.error <= row.ulp);
        if (std::getenv("IKAT_SHOW_ERRORS"))
            std::printf("%-10s %.3f ulp at %a\n", row.name, double(worst.error), double(worst.x));
    }
}

}  // namespace

TEST_CASE("elementary functions of f32 are within their bounds") { check<float>(single_rows, 200'000); }
TEST_CASE("fast forms are within their bounds") { check<float>(fast_rows, 100'000); }
TEST_CASE("elementary functions of f64 are within their bounds") { check<double>(double_rows, 50'000); }

TEST_CASE("pow has the special values of C's") {
    const runtime::Device device = test::open_device();
    const auto made =
        kernel("pow_pairs", params("x", "y", "z", "n"), [](In<float> x, In<float> y, Out<float> z, u32 n) {
            for (auto i : grid_stride(n)) z[i] = stdlib::pow(x[i], y[i]);
        });
    constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> edges{
        0.0f, -0.0f, 1,   -1,     2,       -2,    3,      -3,      0.5f,        -0.5f,           1.5f,   -2.5f,
        inf,  -inf,  nan, 1e-40f, -1e-40f, 1e30f, -1e30f, 0x1p24f, 0x1p24f + 2, -0x1.fffffep23f, 0.999f, 1.001f};
    std::vector<float> x, y;
    for (const float a : edges)
        for (const float b : edges) x.push_back(a), y.push_back(b);
    auto z = device.buffer<float>(x.size(), "z");
    device.launch(made, runtime::grid(x.size(), 256), device.upload(x, "x"), device.upload(y, "y"), z,
                  std::uint32_t(x.size()));
    const auto got = z.download();
    for (std::size_t i = 0; i < x.size(); ++i) {
        INFO("pow(" << x[i] << ", " << y[i] << ") = " << got[i]);
        const double want = std::pow(double(x[i]), double(y[i]));
        CHECK(error_of<float>(got[i], want) <= 2);
        if (!std::isnan(want)) CHECK(std::signbit(got[i]) == std::signbit(want));
    }
}

TEST_CASE("every argument of exp, log and sin", "[.exhaustive]") {
    const runtime::Device device = test::open_device();
    for (const Single& row : single_rows) {
        if (std::string_view(row.name) != "exp" && std::string_view(row.name) != "log" &&
            std::string_view(row.name) != "sin")
            continue;
        const auto made = make<float>(row.name, row.device);
        Worst<float> worst;
        std::vector<float> x(1 << 24);
        for (std::uint32_t block = 0; block < 256; ++block) {
            for (std::uint32_t i = 0; i < x.size(); ++i) {
                const std::uint32_t bits = block << 24 | i;
                std::memcpy(&x[i], &bits, sizeof bits);
            }
            const auto of_block = worst_of<float>(row, device, made, x);
            if (of_block.error > worst.error) worst = of_block;
        }
        std::printf("%s: at most %.4f ulp, at %a\n", row.name, double(worst.error), double(worst.x));
        CHECK(worst.error <= row.ulp);
    }
}
