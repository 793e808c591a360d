// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Device values have no value on the host: C++'s own control flow and variables cannot take them.
// expect: a device condition is not known on the host: write if_(condition, [&] { ... }) for if, while_ for while, select(condition, a, b) for ?:
// expect: a host variable cannot take a device value: declare it as f32, u32, i32 ...
// expect: a device value has no value on the host: declare the variable as f32, u32, i32 ... instead of float, unsigned, int
// expect: this condition is known on the host: write if, which chooses what is recorded
// expect: the condition of while_ is a lambda, because it is computed in each iteration
// expect: the condition of else_if is a lambda, so that it is computed only if it is needed
// expect: Regs are registers, which have no addresses: index them by host integers in an unrolled host loop, or use Local<T, N>
// expect: a range counts in integers
// expect: grid_stride counts in u32 or u64
// errors: 11
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(In<float> x, f32 y, u32 i, u32 n) {
    if (i < n) y = 1;
    float s = 0;
    s += x[i];
    float t = x[i] * 2;
    if_(n == 0 ? true : false, [&] { y = 1; });
    if_(true, [&] { y = 1; });
    while_(i < n, [&] { y = 1; });
    if_(i < n, [&] { y = 1; }).else_if(i < n, [&] { y = 2; });
    Regs<f32, 4> r;
    y = r[i];
    for (auto k : range(y)) y = 2;
    for (auto k : grid_stride(cast<i32>(n))) y = 2;
}
