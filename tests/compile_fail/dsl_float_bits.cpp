// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Functions on the bits of floats and clamping functions say which types they are for.
// expect: copysign() is for f32 and f64
// expect: is_nan() is for f32 and f64
// expect: approx::sin() is for f32
// expect: saturate_cast<T>() is from integers to integers: cast<T>() of a float saturates by itself
// expect: saturate() is for f16 and f32
// errors: 5
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(f32 x, f64 d, f16 h) {
    copysign(h, h);
    is_nan(h);
    approx::sin(d);
    saturate_cast<i8>(x);
    saturate(d);
}
