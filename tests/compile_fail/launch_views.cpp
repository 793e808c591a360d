// SPDX-License-Identifier: Apache-2.0
// Launches with arguments of a different rank than the parameters', and const buffers that are written.
// expect: launch: the kernel's parameter has rank 2: pass buffer.view(rows, columns)
// expect: launch: the kernel's parameter has rank 1: pass a Buffer or a slice of one
// expect: launch: the kernel's parameter has rank 3: pass buffer.view(planes, rows, columns)
// expect: launch: the kernel writes this buffer (Out, InOut), but it is const
// expect: launch: the buffer's element type differs from that of the kernel's In, Out or InOut parameter
// expect: launch: the kernel's parameter is In, Out or InOut: pass a Buffer
// expect: launch: the kernel's parameter has rank 4 or 5: pass buffer.view(...) with an extent for each dimension
// errors: 8
#include <ikat/ikat.hpp>

using namespace ikat;
const auto scale = kernel("scale", params("A", "y"), [](In<float, 2> A, Out<float> y) { y[0] = A[0, 0]; });
const auto stack = kernel("stack", params("T"), [](Out<float, 3> T) { T[0, 0, 0] = 1; });
const auto heads = kernel("heads", params("T"), [](Out<float, 4> T) { T[0, 0, 0, 0] = 1; });

void run(const Device& device, const Buffer<float>& x, Buffer<float>& y, const Buffer<double>& wide) {
    device.launch(scale, grid(4, 32), x, y);
    device.launch(scale, grid(4, 32), x.view(2, 2), y.view(2, 2));
    device.launch(stack, grid(4, 32), y.view(2, 2));
    device.launch(scale, grid(4, 32), x.view(2, 2), x.slice(0, 1));
    device.launch(stack, grid(4, 32), x.view(2, 2, 2));
    device.launch(scale, grid(4, 32), wide.view(2, 2), y);
    device.launch(scale, grid(4, 32), 2, y);
    device.launch(heads, grid(4, 32), y.view(2, 2, 2));
}
