// SPDX-License-Identifier: Apache-2.0
// Arrays of scores() and sees() that are read by what is no index of them.
// expect: an array of scores() or sees() is read by at.sequence, at.head, at.query or at.key, or by two of these
// errors: 2
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

stdlib::OwnScores made(const Buffer<float>& biases) {
    return stdlib::scores(
        "biased", [](auto score, auto at, auto biases) { return score + biases[at.key + 1]; }, biases);
}

stdlib::OwnScores of_three(const Buffer<float>& biases) {
    return stdlib::scores(
        "three", [](auto score, auto at, auto biases) { return score + biases[at.head, at.query, at.key]; }, biases);
}
