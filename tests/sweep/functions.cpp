// SPDX-License-Identifier: Apache-2.0
#include "tests/sweep/functions.hpp"

#include <cmath>

#include "stdlib/math.hpp"

namespace ikat::test {
namespace {

#define IKAT_F32(device, host) \
    [](const Leaf<float>& x) -> Leaf<float> { return value(device); }, [](double x) -> double { return host; }
#define IKAT_F64(device, host)                                           \
    [](const Leaf<double>& x) -> Leaf<double> { return value(device); }, \
        [](long double x) -> long double { return host; }

/// std::exp, which takes its time to find out that a result is too large or too small.
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
    {"exp", IKAT_F32(stdlib::exp(x), exp(x)), 1, {0.9876, 0x1.da3336p+5f, 0.4007, 0x73b0b00ff674e426}},
    {"exp2", IKAT_F32(stdlib::exp2(x), exp2(x)), 1, {0.8677, -0x1.f9e7a8p+6f, 0.2043, 0x3cbe17da8727d4ce}},
    {"expm1", IKAT_F32(stdlib::expm1(x), std::expm1(x)), 1.5, {1.4391, 0x1.100814p+4f, 0.2771, 0x52cb28a3468b3480}},
    {"log", IKAT_F32(stdlib::log(x), std::log(x)), 1, {}},
    {"log2", IKAT_F32(stdlib::log2(x), std::log2(x)), 1, {}},
    {"sin", IKAT_F32(stdlib::sin(x), std::sin(x)), 1, {0.8751, 0x1.f88128p+61f, 1.7735, 0x277648246eb082d0}, Odd},
    {"cos", IKAT_F32(stdlib::cos(x), std::cos(x)), 1, {0.8811, 0x1.b1c092p+38f, 1.7780, 0xba30f085d3e931da}, Even},
    {"tan", IKAT_F32(stdlib::tan(x), std::tan(x)), 2, {}, Odd},
    {"tanh", IKAT_F32(stdlib::tanh(x), std::tanh(x)), 1.5, {1.3487, 0x1.35f7p-1f, 0.1336, 0xa901420c3ed73978}, Odd},
    {"erf", IKAT_F32(stdlib::erf(x), std::erf(x)), 1.5, {1.1534, 0x1.0f04b4p+0f, 0.7058, 0x80befcbdddcc6ff0}, Odd},
    {"sigmoid", IKAT_F32(stdlib::sigmoid(x), sigmoid(x)), 1, {}},
    {"silu", IKAT_F32(stdlib::silu(x), silu(x)), 1.5, {}},
    {"gelu", IKAT_F32(stdlib::gelu(x), gelu(x)), 2, {1.5501, -0x1.ff9896p-9f, 2.5622, 0x2fb8c988343a0902}},
    {"gelu_tanh", IKAT_F32(stdlib::gelu_tanh(x), gelu_tanh(x)), 1.5, {}},

    // The fast forms, around PTX's approximations. The units have room for what the ISA allows those; the emulator
    // computes them to nearest.
    {"approx::exp",
     IKAT_F32(approx::exp(x), exp(x)),
     1,
     {},
     None,
     [](double x, double want) { return want * (0x1p-21 + std::abs(x) * 0x1p-23) + 0x1p-126; },
     "(2^-21 + 2^-23 \\|x\\|) e^x"},
    {"approx::log",
     IKAT_F32(approx::log(x), std::log(x)),
     1,
     {},
     None,
     [](double, double want) { return 0x1p-22 + std::abs(want) * 0x1p-21; },
     "2^-22 + 2^-21 \\|log x\\|"},
    {"approx::sigmoid",
     IKAT_F32(approx::sigmoid(x), sigmoid(x)),
     1,
     {},
     None,
     [](double x, double want) { return want * (std::abs(x) < 80 ? 0x1p-20 + std::abs(x) * 0x1p-23 : 1) + 0x1p-126; },
     "for \\|x\\| < 80: (2^-20 + 2^-23 \\|x\\|) sigmoid(x)"},
    {"approx::gelu_tanh",
     IKAT_F32(approx::gelu_tanh(x), std::isinf(x) && x < 0 ? NAN : gelu_tanh(x)),
     1,
     {},
     None,
     [](double x, double) { return std::abs(x) * 0x1p-20; },
     "2^-20 \\|x\\|"},
};

const Function<double> f64_table[] = {
    {"exp", IKAT_F64(stdlib::exp(x), std::exp(x)), 1, {0.9795, -0x1.1ec9c762e924ap+9, 4.3509, 0xb8f35fac2aa6ac30}},
    {"log", IKAT_F64(stdlib::log(x), std::log(x)), 1, {0.7734, 0x1.5cc2b41cc833p+0, 0.2897, 0x7578c9a3e158e7a7}},
    {"sqrt", IKAT_F64(sqrt(x), std::sqrt(x)), 0.5, {0.5000, 0x1.fffffffffffffp+1023, 0.0121, 0x82aa0b9b61da8b24}},
    {"sin", IKAT_F64(stdlib::sin(x), std::sin(x)), 1, {0.8618, 0x1.f2d10ed7ca8bfp+989, 2.5874, 0x50532183f6957b77}},
    {"cos", IKAT_F64(stdlib::cos(x), std::cos(x)), 1, {0.8770, 0x1.e94cf4ba82b84p+8, 2.7581, 0xe8a7dc3eae637edc}},
    {"tanh", IKAT_F64(stdlib::tanh(x), std::tanh(x)), 2, {1.4531, 0x1.1ae865bbd4b6ap-1, 1.9411, 0xbbdbbffd7ad0259d}},
    {"erf", IKAT_F64(stdlib::erf(x), std::erf(x)), 1.5, {1.1362, -0x1.0feb1763746cp+0, 3.1947, 0x8dec5a7c651b078f}},
};

const Power power_table[] = {
    {"pow",
     [](const Leaf<float>& x, const Leaf<float>& y) -> Leaf<float> { return stdlib::pow(x, y); },
     1.5,
     {0.9706, 0x1.bb84b8p+84f, 2.9825, 0xb842749d4f526e86},
     -0x1.b5c5d6p-1f},
    {"approx::pow",
     [](const Leaf<float>& x, const Leaf<float>& y) -> Leaf<float> { return value(approx::pow(x, y)); },
     1,
     {},
     0,
     [](double x, double y, double want) {
         const double steps = std::abs(y) * (1 + std::abs(std::log2(x)));
         return x > 0 ? want * 0x1p-21 * (1 + steps) + 0x1p-126 : HUGE_VAL;
     },
     "for x > 0: 2^-21 (1 + \\|y\\| (1 + \\|log2 x\\|)) x^y"},
};

}  // namespace

std::span<const Function<float>> f32_functions() { return f32_table; }
std::span<const Function<double>> f64_functions() { return f64_table; }
std::span<const Power> power_functions() { return power_table; }

}  // namespace ikat::test
