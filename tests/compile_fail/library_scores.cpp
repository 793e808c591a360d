// SPDX-License-Identifier: Apache-2.0
// A function for scores that gives an integer.
// expect: scores: the function gives an f32: cast<f32>(...)
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

stdlib::OwnScores made() {
    return stdlib::scores("distance", [](auto, auto at) { return at.query - at.key; });
}
