// SPDX-License-Identifier: Apache-2.0
// What the kernels of the library have to move at least, for traffic_test.cpp: arrays of the sizes that their recipes
// give.
//
// A kernel must read each element of an array that streams through it once and write each of its result once; an array
// that it changes counts twice. Arrays that many blocks read again (a weight per column, the vector of a GEMV, a table)
// or that are much shorter than the others (a result per row) are small: they stay in the second-level cache, so their
// sectors count once.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stdlib/catalogue/registry.hpp"

namespace ikat::test {

/// A scalar, or an array of that many elements of the parameter's type.
struct Given {
    enum class Kind : std::uint8_t { Number, Streamed, Small };
    Kind kind = Kind::Number;
    double value = 0;
};
/// In the order of the kernel's parameters.
using TrafficRow = std::vector<Given>;

/// The scalars by the names of parameters.
using Numbers = std::map<std::string, double>;

/// Arrays of some 32768 elements in rows of 1024; `instead` stands in for some of the numbers.
TrafficRow traffic_row(const stdlib::Entry& entry, const Numbers& instead = {});

}  // namespace ikat::test
