// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Device functions take and return numbers.
// expect: a device function is called with as many arguments as it has parameters
// expect: a device function returns a number
// expect: a device function's parameters are numbers, by value
// expect: u32 and f32 do not mix: convert one with cast<u32>() or cast<f32>()
// errors: 4
#include <ikat/dsl.hpp>
using namespace ikat;

const auto twice = device_fn("twice", [](f32 x) { return x * 2; });
const auto test = device_fn("test", [](f32 x) { return x > 2; });
const auto first = device_fn("first", [](pred p, u32 x) { return select(p, x, 1); });

void misuse(f32 x, u32 u) {
    twice(x, x);
    twice(u);
}
