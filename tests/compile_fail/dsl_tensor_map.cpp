// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Maps of tensors: boxes, swizzles, arguments.
// expect: Box: each extent is 1 to 256
// expect: Box: its innermost extent is a multiple of 16 bytes
// expect: Box<...>::Every<S...>: there is one for each dimension
// expect: Box<...>::Every<S...>: each is 1 to 8
// expect: Box<...>::Every<S...>: the last is 1, rows are copied whole
// expect: TensorMap: a row of a swizzled box has at most as many bytes as that
// expect: TensorMap: rows are swizzled within 32, 64 or 128 bytes, or with 0 not at all
// expect: TensorMap: only of half, bfloat16, float and double can the fill be NaN
// expect: a box is copied to or from a place in shared memory: s[i]
// expect: a box is copied between places with elements of the same type; s.as<T>() gives them another
// expect: launch: the kernel's parameter is a TensorMap: pass a Buffer or a view of as many dimensions
// expect: launch: the buffer's element type differs from that of the kernel's TensorMap parameter
// errors: 12
#include <ikat/async.hpp>
#include <ikat/ikat.hpp>
using namespace ikat;

TensorMap<float, Box<300, 8>>* too_tall;
TensorMap<float, Box<8, 3>>* too_narrow;
TensorMap<float, Box<8, 64>, 128>* too_wide;
TensorMap<float, Box<8, 4>, 48>* wrong_swizzle;
TensorMap<float, Box<8, 4>::Every<2>>* too_few_strides;
TensorMap<float, Box<8, 4>::Every<9, 1>>* wrong_stride;
TensorMap<float, Box<8, 8>::Every<1, 2>>* strided_rows;
TensorMap<std::uint32_t, Box<8, 4>, 0, Fill::NaN>* wrong_fill;

const auto takes = kernel("takes", params("a"), [](TensorMap<float, Box<8, 8>> a) { static_cast<void>(a); });

void misuse(Shared<Barrier, 1>& b, Shared<half, 64>& s, f32& v, TensorMap<float, Box<8, 8>>& a, runtime::Device& device, runtime::Buffer<float>& x, runtime::Buffer<half>& h) {
    too_tall->bytes;
    too_narrow->bytes;
    too_wide->bytes;
    wrong_swizzle->bytes;
    wrong_fill->bytes;
    too_few_strides->bytes;
    wrong_stride->bytes;
    strided_rows->bytes;
    tma_load(v, a[0, 0], b[0]);
    tma_load(s[0], a[0, 0], b[0]);
    device.launch(takes, runtime::Grid{{1}, {1}}, x);
    device.launch(takes, runtime::Grid{{1}, {1}}, h.view(8, 8));
}
