// SPDX-License-Identifier: Apache-2.0
// A function of sight that gives a number.
// expect: sees: the function gives a pred: comparisons, joined by & and |
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

using namespace ikat;

stdlib::OwnSight made() {
    return stdlib::sees("behind", [](auto at) { return at.query - at.key; });
}
