// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Copies in flight: sizes and places.
// expect: copy_async<N>: a thread copies 4, 8 or 16 bytes
// expect: copy_async(to, from) takes places in memory: s[i], x[i], x.vec<4>(i)
// expect: copy_async(to, from): both places have elements of the same type; x.as<T>() gives them another
// expect: copy_async<N>: N bytes are whole elements
// expect: copy_async<N>: a vector has N bytes: s.vec<4>(i) of floats, 16
// expect: copy_async(to, from): what is copied to is a Shared array
// expect: Out<T> is write-only: declare the parameter as InOut<T>
// expect: copy_wait<N>: N is how many groups may be unfinished
// errors: 8
#include <ikat/async.hpp>
using namespace ikat;

void misuse(u32 i, In<float> x, Out<float> out_only, In<double> d, Shared<float, 64>& s, Shared<double, 64>& ds) {
    copy_async<2>(s[i], x[i]);
    copy_async<4>(s[i], x);
    copy_async<16>(s[i], d[i]);
    copy_async<4>(ds[i], d[i]);
    copy_async<16>(s[i], x.vec<2>(i));
    copy_async<4>(x[i], x[i]);
    copy_async<4>(s[i], out_only[i]);
    copy_wait<-1>();
}
