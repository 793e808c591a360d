// SPDX-License-Identifier: Apache-2.0
#include "tests/sweep/functions.hpp"

#include <cmath>

#include "stdlib/math/math.hpp"

namespace ikat::test {
namespace {

#define IKAT_F32(device, host) \
    [](const Leaf<float>& x) -> Leaf<float> { return value(device); }, [](double x) -> double { return host; }
#define IKAT_F64(device, host)                                           \
    [](const Leaf<double>& x) -> Leaf<double> { return value(device); }, \
        [](long double x) -> long double { return host; }

/// std::exp, which is slow if the result overflows or underflows.
double exp(double x) { return x > 700 ? HUGE_VAL : x < -700 ? 0 : std::exp(x); }
double exp2(double x) { return x > 1000 ? HUGE_VAL : x < -1000 ? 0 : std::exp2(x); }
double sigmoid(double x) { return 1 / (1 + exp(-x)); }
double silu(double x) { return x < -700 ? -0.0 : x / (1 + exp(-x)); }
double gelu(double x) { return x < -40 ? -0.0 : 0.5 * x * std::erfc(-x * M_SQRT1_2); }
double gelu_tanh(double x) {
    return x < -40 ? -0.0 : x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}

using enum Symmetry;

const Function<float> f32_table[] = {
    {"exp", IKAT_F32(stdlib::exp(x), exp(x)), 1},
    {"exp2", IKAT_F32(stdlib::exp2(x), exp2(x)), 1},
    {"expm1", IKAT_F32(stdlib::expm1(x), std::expm1(x)), 1.5},
    {"log", IKAT_F32(stdlib::log(x), std::log(x)), 1},
    {"log2", IKAT_F32(stdlib::log2(x), std::log2(x)), 1},
    {"sin", IKAT_F32(stdlib::sin(x), std::sin(x)), 1, Odd},
    {"cos", IKAT_F32(stdlib::cos(x), std::cos(x)), 1, Even},
    {"tan", IKAT_F32(stdlib::tan(x), std::tan(x)), 2, Odd},
    {"tanh", IKAT_F32(stdlib::tanh(x), std::tanh(x)), 1.5, Odd},
    {"erf", IKAT_F32(stdlib::erf(x), std::erf(x)), 1.5, Odd},
    {"sigmoid", IKAT_F32(stdlib::sigmoid(x), sigmoid(x)), 1},
    {"silu", IKAT_F32(stdlib::silu(x), silu(x)), 1.5},
    {"gelu", IKAT_F32(stdlib::gelu(x), gelu(x)), 2},
    {"gelu_tanh", IKAT_F32(stdlib::gelu_tanh(x), gelu_tanh(x)), 1.5},

    // The fast versions, around PTX's approximations. The units include the error that the ISA allows those; the
    // emulator rounds them to nearest.
    {"approx::exp", IKAT_F32(approx::exp(x), exp(x)), 1, None,
     [](double x, double want) { return want * (0x1p-21 + std::abs(x) * 0x1p-23) + 0x1p-126; },
     "(2^-21 + 2^-23 \\|x\\|) e^x"},
    {"approx::log", IKAT_F32(approx::log(x), std::log(x)), 1, None,
     [](double, double want) { return 0x1p-22 + std::abs(want) * 0x1p-21; }, "2^-22 + 2^-21 \\|log x\\|"},
    {"approx::sigmoid", IKAT_F32(approx::sigmoid(x), sigmoid(x)), 1, None,
     [](double x, double want) { return want * (std::abs(x) < 80 ? 0x1p-20 + std::abs(x) * 0x1p-23 : 1) + 0x1p-126; },
     "for \\|x\\| < 80: (2^-20 + 2^-23 \\|x\\|) sigmoid(x)"},
    {"approx::gelu_tanh", IKAT_F32(approx::gelu_tanh(x), std::isinf(x) && x < 0 ? NAN : gelu_tanh(x)), 1, None,
     [](double x, double) { return std::abs(x) * 0x1p-20; }, "2^-20 \\|x\\|"},
};

const Function<double> f64_table[] = {
    {"f64:exp", IKAT_F64(stdlib::exp(x), std::exp(x)), 1},   {"f64:log", IKAT_F64(stdlib::log(x), std::log(x)), 1},
    {"f64:sqrt", IKAT_F64(sqrt(x), std::sqrt(x)), 0.5},      {"f64:sin", IKAT_F64(stdlib::sin(x), std::sin(x)), 1},
    {"f64:cos", IKAT_F64(stdlib::cos(x), std::cos(x)), 1},   {"f64:tanh", IKAT_F64(stdlib::tanh(x), std::tanh(x)), 2},
    {"f64:erf", IKAT_F64(stdlib::erf(x), std::erf(x)), 1.5},
};

const Power power_table[] = {
    {"pow", [](const Leaf<float>& x, const Leaf<float>& y) -> Leaf<float> { return stdlib::pow(x, y); }, 1.5},
    {"approx::pow", [](const Leaf<float>& x, const Leaf<float>& y) -> Leaf<float> { return value(approx::pow(x, y)); },
     1,
     [](double x, double y, double want) {
         const double relative = 0x1p-21 * (1 + std::abs(y) * (1 + std::abs(std::log2(x))));
         return x > 0 && relative < 1 ? want * relative + 0x1p-126 : HUGE_VAL;
     },
     "for x > 0, of x^y, where it is below 1: 2^-21 (1 + \\|y\\| (1 + \\|log2 x\\|))"},
};

}  // namespace

std::span<const Function<float>> f32_functions() { return f32_table; }
std::span<const Function<double>> f64_functions() { return f64_table; }
std::span<const Power> power_functions() { return power_table; }

}  // namespace ikat::test
