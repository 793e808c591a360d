// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Typical mistakes of C++ and CUDA C++ programmers: one message each, at their own line.
// expect: a const variable, or a copy made by [=], cannot be assigned: capture by reference, [&], and take parameters that change by value
// expect: this name refers to a value, not a variable: declare it as f32, u32, i32 ... to change it
// expect: a device array is not a pointer: x[i] is an element, x.slice(n) the array from element n on
// expect: a device value has no value on the host: declare the variable as f32, u32, i32 ... instead of float, unsigned, int; convert with cast<f32>(); call ikat's functions, such as sqrt() and stdlib::exp(), not the host's
// expect: printf writes on the host: print("x = {}\n", x) writes from the device
// expect: dsl_mistakes.cpp:20:
// expect: dsl_mistakes.cpp:21:
// expect: dsl_mistakes.cpp:24:
// expect: dsl_mistakes.cpp:30:
// expect: dsl_mistakes.cpp:32:
#include <cmath>
#include <cstdio>
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(In<float> x, InOut<float> y, f32 v, u32 u, InOut<float, 2> A) {
    if_(v > 3, [=] { v = 1; });
    auto named = x[u] * 2; named = x[u];
    auto other = v + 1; other += 2;
    for (auto k : range(u)) ++k;
    ++x;
    auto moved = x + 8;
    *y;
    A -= 1;
    y[0] = std::sqrt(x[0]);
    y[0] = exp(x[0]);
    y[0] = (float)u;
    std::size_t host = u;
    printf("%u\n", u);
    const f32& fixed = v; fixed += 1;
}
