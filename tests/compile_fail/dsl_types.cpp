// SPDX-License-Identifier: Apache-2.0
// Device types do not mix, and host numbers adapt only without loss.
// expect: u32 and f32 do not mix: convert one with cast<u32>() or cast<f32>()
// expect: u32 and u64 do not mix: convert one with cast<u32>() or cast<u64>()
// expect: i32 and u32 do not mix: convert one with cast<i32>() or cast<u32>()
// expect: f16 and f32 do not mix: convert one with cast<f16>() or cast<f32>()
// expect: f32 and f64 do not mix: convert one with cast<f32>() or cast<f64>()
// expect: u32 and pred do not mix: convert one with cast<u32>() or cast<pred>()
// expect: i64 and pred do not mix: convert one with cast<i64>() or cast<pred>()
// expect: a floating-point number does not become a device integer
// expect: a pred takes true or false, and only a pred does
// expect: this is not a value that a device can hold
// expect: u8 and u32 do not mix: convert one with cast<u8>() or cast<u32>()
// expect: i16 and bf16 do not mix: convert one with cast<i16>() or cast<bf16>()
// expect: bf16 and bf16x2 do not mix: convert one with cast<bf16>() or cast<bf16x2>()
// expect: a device variable holds bool, integers or floats
// errors: 14
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(f32 x, f64 d, f16 h, i32 i, i64 l, u32 u, u64 w, pred p, InOut<float> y) {
    value(u * x);
    value(min(w, u));
    value(select(p, i, u));
    value(fma(x, x, h));
    x = d;
    y[0] = d;
    f32 z = d;
    if_(u, [&] { x = 1; });
    p = l;
    u = u + 1.0;
    p = 1;
    x = "text";
    u8 narrow = u;
    i16 mixed = bf16(1);
    value(bf16x2(1) * bf16(1));
    Var<const char*> text;
}
