// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Barriers in shared memory, and copies that arrive there.
// expect: an array of barriers has one or two extents
// expect: a copy is from a place in memory to another: s[i], x[i]
// expect: a copy is between places with elements of the same type; x.as<T>() gives them another
// expect: In<T> is read-only: declare the parameter as InOut<T> or Out<T>
// expect: Out<T> is write-only: declare the parameter as InOut<T>
// expect: elements are added of u32, i32, u64, f16, bf16, f32 and f64, and compared of u32, i32, u64, i64, f16 and bf16
// expect: bulk_prefetch(x[i], bytes) takes a place in memory
// expect: bulk_wait<N>: N is how many groups may be unfinished
// errors: 8
#include <ikat/async.hpp>
using namespace ikat;

Shared<Barrier, 1, 2, 3>* wrong_rank;

void misuse(Shared<Barrier, 1>& b, Shared<float, 64>& s, In<float>& x, Out<float>& y, In<half>& h, f32& v) {
    wrong_rank->operator[](0);
    bulk_load(v, x[0], 64, b[0]);
    bulk_load(s[0], h[0], 64, b[0]);
    bulk_store(x[0], s[0], 64);
    bulk_load(s[0], y[0], 64, b[0]);
    bulk_max(y[0], s[0], 64);
    bulk_prefetch(v, 64);
    bulk_wait<-1>();
}
