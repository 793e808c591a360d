// SPDX-License-Identifier: Apache-2.0
// An epilogue that gives an f16.
// expect: epilogue: the function gives an f32, or, of epilogue<i32>, an i32: cast<f32>(...)
// errors: 1
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

stdlib::Epilogue made() {
    return stdlib::epilogue("small", [](auto sum, auto) { return cast<f16>(sum); });
}
