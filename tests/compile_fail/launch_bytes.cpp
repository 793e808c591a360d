// SPDX-License-Identifier: Apache-2.0
// Raw bytes: objects of another size or not trivially copyable, and numbers that do not fit their alignment.
// expect: launch: the kernel's parameter is Bytes: pass a trivially copyable object of the same size
// expect: read<T>(): the parameter's alignment is less than that of its numbers
// expect: a parameter's alignment is a power of two up to 128
// errors: 4
#include <ikat/ikat.hpp>

#include <array>
#include <string>

using namespace ikat;
const auto use = kernel("use", params("map", "y"), [](Bytes<32, 4> map, Out<double> y) { y[0] = map.read<double>(8); });

void run(const Device& device, Buffer<double>& y) {
    device.launch(use, grid(1, 1), std::array<char, 31>{}, y);
    device.launch(use, grid(1, 1), std::string(), y);
}
using Odd = Bytes<8, 3>;
constexpr auto odd = Odd::size;
