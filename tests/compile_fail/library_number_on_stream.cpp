// SPDX-License-Identifier: Apache-2.0
// A number that the host gets, asked for on a stream.
// expect: a function that returns a number waits for it: call it with a Device, or give it a buffer
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

float total(const Stream& stream, const Buffer<float>& x) { return stdlib::sum(stream, x); }
