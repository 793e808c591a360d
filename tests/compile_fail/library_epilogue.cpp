// SPDX-License-Identifier: Apache-2.0
// An epilogue of f32 sums that gives an integer.
// expect: epilogue: the function gives an f32, or, of epilogue<i32>, an i32: cast<f32>(...)
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

stdlib::Epilogue made() {
    return stdlib::epilogue("column", [](auto, auto at) { return at.column; });
}
