// SPDX-License-Identifier: Apache-2.0
// Mistakes that a library in the language finds: in the kernel that uses it, when that is captured, and in launches.
//
//     complain("a tile of 100 columns", "it has a multiple of 8", where);
//     expect_aligned(x, {.multiple = 16, .what = "a copy of 16 bytes", .hint = "begin at a multiple of 4 floats"});
// A launch that breaks an expectation is an error with both locations. Unlike by a contract, nothing is optimised by
// it.
#pragma once
#include "dsl/record/complaint.hpp"
#include "dsl/values/value.hpp"

namespace ikat {

/// An error of the kernel that is captured: reported with the others at its end.
using trace::complain;
/// What is to be a multiple, and why.
using trace::Expected;

/// An error of a launch, if the number is a parameter, an extent or a pitch, and not such a multiple; of a pitch, only
/// if there is more than one row.
template <class T>
void expect_multiple(const Leaf<T>& number, const Expected& expected, const Where& where = Where::current()) {
    trace::expect_multiple(number.recorded(), expected, where);
}
/// The same of where an array begins, in bytes: an In, a view, a slice.
template <class A>
void expect_aligned(const A& array, const Expected& expected, const Where& where = Where::current()) {
    trace::expect_aligned(array.array(), expected, where);
}

}  // namespace ikat
