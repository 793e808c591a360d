// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Host functions, by their full names, on device values: each is an error at its own line.
// expect: printf writes on the host: print("x = {}\n", x) writes from the device
// expect: a host function cannot take a device value: call ikat's min(), max(), fma(), copysign(), or stdlib::pow()
// expect: dsl_host_functions.cpp:25:
// expect: dsl_host_functions.cpp:26:
// expect: dsl_host_functions.cpp:27:
// expect: dsl_host_functions.cpp:28:
// expect: dsl_host_functions.cpp:29:
// expect: dsl_host_functions.cpp:30:
// expect: dsl_host_functions.cpp:31:
// expect: dsl_host_functions.cpp:32:
// expect: dsl_host_functions.cpp:33:
// expect: dsl_host_functions.cpp:34:
// expect: dsl_host_functions.cpp:35:
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(In<float> x, InOut<float> y, f32 v, u32 u) {
    y[0] = 1;
    std::printf("%f\n", v);
    std::printf("%f %u\n", x[0], u + 1);
    std::printf("%d %d %f\n", 1, 2, v);
    printf("%f %u\n", x[0], u + 1);
    y[0] = std::fmax(v, 1.0);
    y[1] = std::fmax(1.0f, x[0]);
    y[2] = std::fmin(2, v * 2);
    y[3] = std::pow(v, 2.0f);
    y[4] = std::max(v, v);
    y[5] = std::max(v, 1.0f);
    y[6] = std::min(1.0f, v * 2);
}
void is_fine() {
    std::printf("%f %d\n", std::fmax(1.0f, 2.0f) + std::pow(2.0, 3) + std::max(1.0f, 2.0f), std::min(1, 2));
}
