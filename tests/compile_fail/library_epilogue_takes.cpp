// SPDX-License-Identifier: Apache-2.0
// Functions of epilogues that do not take what they are given.
// expect: epilogue: the function takes (sum, at), and then one value for each argument
// errors: 2
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

stdlib::Epilogue without_place() {
    return stdlib::epilogue("sum", [](auto sum) { return sum; });
}

stdlib::Epilogue without_array() {
    return stdlib::epilogue("bias", [](auto sum, auto, auto bias) { return sum + bias; });
}
