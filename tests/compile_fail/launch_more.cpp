// SPDX-License-Identifier: Apache-2.0
// The types of further parameters are data: the compiler cannot compare arguments in order with them.
// expect: launch: a kernel with More parameters takes its arguments by name: arg("x", x)
// errors: 1
#include <ikat/ikat.hpp>

using namespace ikat;
const auto further = kernel("further", params("x", MoreParameters().add<u32>("n")),
                            [](Out<float> x, More more) { x[more.next<u32>()] = 1; });

void run(const Device& device, Buffer<float>& x) { device.launch(further, grid(4, 32), x, 3); }
