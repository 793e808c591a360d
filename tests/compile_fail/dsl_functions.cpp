// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Each function says which types it is for.
// expect: min() is for i32, u32, i64, u64, f16, f32 and f64
// expect: fma() is for i32, u32, i64, u64, f16, f32 and f64
// expect: abs() is for i32, i64, f16, f32 and f64
// expect: rcp() is for f32 and f64
// expect: approx::rsqrt() is for f32 and f64
// expect: approx::div() is for f32
// expect: cast<T>() converts to f32, u32, i32 ...
// expect: mul_hi() is for i32, u32, i64 and u64
// expect: sqrt() is for f32 and f64
// expect: approx::exp2() is for f32
// expect: bit_cast<T>() is between i32, u32 and f32, or between i64, u64 and f64
// errors: 11
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
    bit_cast<f32>(d);
}
