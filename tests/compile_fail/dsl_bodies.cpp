// SPDX-License-Identifier: Apache-2.0
// clang-format off
// What the body of a region must be.
// expect: the body of if_, else_if, else_ and while_ returns nothing, and a value would be lost: assign it to a variable that is declared before, or end the thread with return_()
// expect: the body of a region must not be a mutable lambda, which assigns to copies: write [&] { ... }
// expect: the body of a region is a lambda without parameters: if_(condition, [&] { ... })
// expect: the condition of while_ and else_if returns a pred: [&] { return i < n; }
// errors: 8
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(InOut<float> y, f32 v, u32 i, u32 n) {
    if_(v > 3, [&] { return f32(3); });
    if_(v > 3, [&] { y[0] = 1; }).else_([&] { return v; });
    if_(v > 3, [&] { y[0] = 1; }).else_if([&] { return v > 2; }, [&] { return v = 1; });
    while_([&] { return i < n; }, [&] { return ++i; });
    if_(v > 3, [=]() mutable { v = 1; });
    if_(v > 3, [&](u32 k) { y[k] = 1; });
    while_([&] { v = 1; }, [&] { y[0] = 1; });
    if_(v > 3, [&] { y[0] = 1; }).else_if([&] { y[1] = 1; }, [&] { y[0] = 1; });
}
