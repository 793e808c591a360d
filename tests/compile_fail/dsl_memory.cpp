// SPDX-License-Identifier: Apache-2.0
// clang-format off
// What a subscript allows, and what an index is.
// expect: In<T> and Constant<T> are read-only: declare the parameter as InOut<T> or Out<T> to store
// expect: Out<T> is write-only: declare the parameter as InOut<T>
// expect: this name refers to a value that was read from memory: declare it as f32, u32, i32 ... to change it, or write x[i] = ... to store
// expect: an index is a u32 or a u64: convert it with cast<u32>()
// expect: an index is an integer
// expect: vec<N>: N is 2, 4, 8 or 16
// expect: vec<N>: one access is at most 128 bits wide
// expect: an extent is at least 1
// expect: memory holds integers and floats, named by their host types: In<float>, not In<f32>
// expect: an atomic reads and writes: declare the parameter as InOut<T>
// expect: this atomic is not for elements of this type
// expect: an array has one to four extents
// expect: constant memory has 65536 bytes: pass large tables as In<T>
// errors: 18
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(In<float> x, Out<float> o, InOut<float> y, InOut<double> d, InOut<half> h, u32 i, i32 k) {
    x[i] = 1;
    x.store_if(i < 3, i, 1);
    x.vec<2>(i) = {y[0], y[1]};
    f32 a = o[i];
    o[i] += 1;
    a = o.load_if(i < 3, i, 0);
    a = o.vec<2>(i)[0];
    auto named = y[i];
    named = 2;
    named += 2;
    a = y[k];
    a = y[1.5];
    y.vec<3>(i);
    d.vec<4>(i);
    Shared<float, 0> none;
    Shared<f32, 4> values;
    Local<float, 2, 2, 2, 2, 2> deep;
    atomic_add(x[i], 1);
    atomic_or(h[i], 1);
    Constant<float, 4> table{1, 2, 3, 4};
    table[i] = 2;
    Constant<double, 8193> large{1};
}
