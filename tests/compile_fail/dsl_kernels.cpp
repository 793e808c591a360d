// SPDX-License-Identifier: Apache-2.0
// clang-format off
// What a kernel may be.
// expect: a kernel's body is a lambda with all parameter types written out: [](f32 a, In<float> x), not [](auto a, auto x)
// expect: a kernel returns nothing: store its results through Out or InOut
// expect: a kernel's parameters are f32, u32 ... (any variable but pred), In<T>, Out<T> and InOut<T>
// expect: params(...) names as many parameters as the kernel's lambda has
// expect: an alignment is a power of two up to 256
// expect: a divisor is at least 1
// expect: a kernel takes its parameters by value: u32 n, not u32& n
// errors: 8
#include <ikat/dsl.hpp>
using namespace ikat;

const auto generic = kernel("generic", [](auto x, auto i) { x[i] = 0; });
const auto returns = kernel("returns", [](In<float> x) -> f32 { return x[0]; });
const auto takes_host_types = kernel("takes_host_types", [](float* x, int n) { x[n] = 0; });
const auto takes_pred = kernel("takes_pred", [](pred p, InOut<float> x) { x[0] = select(p, 1.0f, 2.0f); });
const auto by_reference = kernel("by_reference", [](InOut<float> x, u32& n) { x[n] = 0; });
const auto names = kernel("names", params("x"), [](InOut<float> x, u32 i) { x[i] = 0; });
const auto contracts = kernel("contracts", [](InOut<float> x, u32 i) { x[i] = 0; }).require(aligned<12>(0), multiple_of<0>(1));
