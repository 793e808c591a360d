// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Each function says which types it is for.
// expect: min() is for integers, f16, bf16, f32, f64, f16x2 and bf16x2
// expect: fma() is for integers, f16, bf16, f32, f64, f16x2 and bf16x2
// expect: abs() is for signed integers, f16, bf16, f32, f64, f16x2 and bf16x2
// expect: rcp() is for f32 and f64
// expect: approx::rsqrt() is for f32 and f64
// expect: approx::div() is for f32
// expect: cast<T>() converts to f32, u32, i32 ...
// expect: mul_hi() is for integers of 16, 32 and 64 bits
// expect: sqrt() is for f32 and f64
// expect: approx::exp2() is for f16, bf16, f32, f16x2 and bf16x2
// expect: bit_cast<T>() keeps the width: f32 and u32, f16 and u16, f64 and u64, f16x2 and u32
// expect: cast<T>() is between numbers; 8-bit floats convert to and from f32 and f16, packed ones to and from f16x2
// expect: pack() takes two f16, bf16 or 8-bit floats; pack<f16x2>(a, b) converts two f32
// expect: pack<T>() makes an f16x2, bf16x2, e4m3x2 or e5m2x2
// expect: print() is for numbers and pred: convert 8-bit floats, print the lanes of packed values
// expect: lanes_less() is for f16x2 and bf16x2
// errors: 16
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(f32 x, f64 d, f16 h, i32 i, u32 u, pred p) {
    min(p, p);
    fma(p, p, p);
    abs(u);
    rcp(i);
    approx::rsqrt(h);
    approx::div(d, 2);
    cast<char*>(x);
    mul_hi(x, x);
    sqrt(h);
    approx::exp2(d);
    lanes_less(x, 1);
    bit_cast<f32>(d);
    cast<e4m3>(d);
    pack(x, x);
    pack<f32>(x, x);
    print("{}", pack(h, h));
}
