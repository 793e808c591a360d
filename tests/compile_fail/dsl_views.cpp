// SPDX-License-Identifier: Apache-2.0
// clang-format off
// What a view allows.
// expect: a parameter has rank 1 to 5: In<float>, In<float, 2>, In<float, 3>
// expect: In<T> and Constant<T> are read-only: declare the parameter as InOut<T> or Out<T> to store
// expect: Out<T> is write-only: declare the parameter as InOut<T>
// expect: an index is a u32 or a u64: convert it with cast<u32>()
// expect: a view takes at most as many indices as its rank: A[i, j], A[p, i, j]
// expect: this array has rank 1: declare the parameter as In<float, 2>, or compute the index
// expect: vec<N>: N is 2, 4, 8 or 16
// expect: memory holds integers and floats, named by their host types: In<float>, not In<f32>
// errors: 10
#include <ikat/dsl.hpp>
using namespace ikat;

void misuse(In<float, 2> A, Out<float, 2> B, InOut<half, 3> T, In<float> x, u32 i, i32 k) {
    A[i, 1] = 1;
    A[i][1] = 1;
    A.store_if(i < 3, i, 1, 1);
    f32 a = B[i, 1];
    a = B.row(i)[1];
    a = B.load_if(i < 3, i, 1, 0);
    a = A[i, k];
    a = A[1, 2, 3];
    a = x[1, 2];
    T.vec<3>(0, 1, 2);
}
void deep(In<float, 6>& x) { x.pitch(); }
void device_elements(In<f32, 2>& x) { x.pitch(); }
