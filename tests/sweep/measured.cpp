// SPDX-License-Identifier: Apache-2.0
// Each row is a line that sweep_math printed.
#include "tests/sweep/measured.hpp"

#include <algorithm>

namespace ikat::test {
namespace {

// clang-format off
constexpr Measured rows[] = {
    {"exp", 0.9837, -0x1.4cc436p+2, 0x0p+0, 0.3639, 0x73674d6f5cf4864d, 0x3cb8bebacf75cfe0},
    {"exp2", 0.8677, -0x1.f9e7a8p+6, 0x0p+0, 0.2043, 0x3cbe17da8727d4ce, 0x4ce5e9b33c49db78},
    {"expm1", 1.4391, 0x1.100814p+4, 0x0p+0, 0.2766, 0x52ca810582a0bc07, 0x85355d168b5647c1},
    {"log", 0.9097, 0x1.556f9p-1, 0x0p+0, 0.0536, 0x2ea20891b1acbeae, 0xdf5d87abac85b3b0},
    {"log2", 0.8538, 0x1.5a30ecp+0, 0x0p+0, 0.0461, 0x5032dd7b20af5944, 0x99a13ef517af2ecb},
    {"sin", 0.8751, 0x1.f88128p+61, 0x0p+0, 1.7735, 0x277648246eb082d0, 0x0ea16c93cc4691f0},
    {"cos", 0.8811, 0x1.b1c092p+38, 0x0p+0, 1.7780, 0xba30f085d3e931da, 0xa39c8bbf8bf87666},
    {"tan", 1.6184, 0x1.b0cd78p+79, 0x0p+0, 3.7361, 0x7a6b9b6eec44ae6e, 0xd699fdea566e4f82},
    {"tanh", 1.4747, 0x1.3449cep-1, 0x0p+0, 0.1347, 0xa8fdea76c2d50594, 0xbad234012c7e6c46},
    {"erf", 1.1266, 0x1.0ec718p+0, 0x0p+0, 0.7049, 0x80bf8d7430535152, 0xadf340fa94f922e2},
    {"sigmoid", 0.9733, -0x1.1bf908p+6, 0x0p+0, 1.3243, 0xb4c2e2445d49fe3c, 0xdf5d2adcf64238f9},
    {"silu", 1.0590, -0x1.4b348ep+2, 0x0p+0, 0.4420, 0x0153a1fc66fba17b, 0x79b47ce188185756},
    {"gelu", 1.5501, -0x1.ff9896p-9, 0x0p+0, 2.5622, 0x2fb8c988343a0902, 0x04f456994a0fa398},
    {"gelu_tanh", 1.0988, -0x1.5f7d3cp+1, 0x0p+0, 0.4149, 0x85ba249ec4fe182f, 0xa52c4599c628e9ba},
    {"approx::exp", 0.5697, 0x1.63120ap+5, 0x0p+0, 2.1811, 0, 0},
    {"approx::log", 0.2191, 0x1.df75bp-129, 0x0p+0, 12.5298, 0, 0},
    {"approx::sigmoid", 0.5298, -0x1.630e9p+5, 0x0p+0, 4.6433, 0, 0},
    {"approx::gelu_tanh", 0.1582, 0x1.344c98p+0, 0x0p+0, 4.9755, 0, 0},
    {"pow", 0.9706, 0x1.bb84b8p+84, -0x1.b5c5d6p-1, 2.9825, 0xb842749d4f526e86, 0xbf7115a453c94c59},
    {"approx::pow", 0.1659, 0x1.a07f9ep-65, 0x1.0497fcp-1, 56.7889, 0, 0},
    {"f64:exp", 0.9795, -0x1.1ec9c762e924ap+9, 0x0p+0, 4.3509, 0xb8f35fac2aa6ac30, 0x4c31334601326e4a},
    {"f64:log", 0.7734, 0x1.5cc2b41cc833p+0, 0x0p+0, 0.2897, 0x7578c9a3e158e7a7, 0xc8e0bedadca4cfc2},
    {"f64:sqrt", 0.5000, 0x1.fffffffffffffp+1023, 0x0p+0, 0.0121, 0x82aa0b9b61da8b24, 0x496efc94100cf28c},
    {"f64:sin", 0.8618, 0x1.f2d10ed7ca8bfp+989, 0x0p+0, 2.5874, 0x50532183f6957b77, 0x95d0331c47b3a209},
    {"f64:cos", 0.8770, 0x1.e94cf4ba82b84p+8, 0x0p+0, 2.7581, 0xe8a7dc3eae637edc, 0xe6290f2ef6360961},
    {"f64:tanh", 1.4531, 0x1.1ae865bbd4b6ap-1, 0x0p+0, 1.9411, 0xbbdbbffd7ad0259d, 0xada43f5e6e662ee2},
    {"f64:erf", 1.1362, -0x1.0feb1763746cp+0, 0x0p+0, 3.1947, 0x8dec5a7c651b078f, 0x2f2394be5098b202},
};
// clang-format on

}  // namespace

const Measured& measured(std::string_view name) {
    static constexpr Measured none;
    const auto found = std::ranges::find(rows, name, &Measured::name);
    return found == std::end(rows) ? none : *found;
}

}  // namespace ikat::test
