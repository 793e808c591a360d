// SPDX-License-Identifier: Apache-2.0
// An array of scores() that is read by something else than a head or a sequence.
// expect: an array of scores() or sees() is read by x[at.head] or x[at.sequence]
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

stdlib::OwnScores made(const Buffer<float>& biases) {
    return stdlib::scores(
        "biased", [](auto score, auto at, auto biases) { return score + biases[at.key]; }, biases);
}
