// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Expressions of several lanes where one value is needed, on the host, and as names that are assigned.
// expect: these are several values where one is needed: v[k] is one of them, Regs<f32, N> has N variables
// expect: a device condition is not known on the host
// expect: && on device values would record both sides
// expect: a host variable cannot take a device value
// expect: this name refers to values, not variables: declare it as Regs<f32, N> to change it
// expect: this name refers to values that were read from memory: declare it as Regs<f32, N> to change it, or write x.vec<N>(i) = ... to store
// expect: Out<T> is write-only: declare the parameter as InOut<T>
// expect: In<T> and Constant<T> are read-only: declare the parameter as InOut<T> or Out<T> to store
// errors: 12
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(In<float> x, Out<float> o, InOut<float> y, u32 i) {
    Regs<f32, 4> r(0);
    f32 one = r * 2;
    one += r;
    if_(r < 1, [&] { y[0] = 1; });
    if (r < 1) return;
    auto both = r > 0 && r < 1;
    float host = 0;
    host += r * 2;
    auto t = r * 2;
    t = r;
    t += 1;
    auto named = y.vec<4>(i);
    named = r;
    named *= 2;
    r = o.vec<4>(i) * 2;
    x.vec<4>(i) = r;
    (void)both;
}
