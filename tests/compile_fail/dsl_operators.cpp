// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Each operator says which types it is for.
// expect: operator / is for integers, f32 and f64: divide f16 and bf16 in f32
// expect: operator % is for integers
// expect: operator ^ is for integers and pred
// expect: operator & is for integers and pred
// expect: operator + is for integers, f16, bf16, f32, f64, f16x2 and bf16x2
// expect: operator == compares numbers; for two preds use a ^ b
// expect: operator << is for integers
// expect: a shift amount is a u32: convert it with cast<u32>()
// expect: unary - is for signed integers, f16, bf16, f32, f64, f16x2 and bf16x2
// expect: operator ~ is for integers; a pred is negated by !
// expect: operator ! is for pred: compare a number with 0
// expect: && on device values would record both sides: nest if_, or use & if neither side has side effects
// expect: || on device values would record both sides: nest if_, or use | if neither side has side effects
// errors: 13
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(f32 x, f16 h, i32 i, u32 u, pred p) {
    h / 2;
    x % 2;
    x ^ x;
    x & 1;
    p + p;
    p == p;
    x << 1;
    u << i;
    -u;
    ~p;
    !u;
    x < 1 && x > 0;
    x < 1 || p;
}
