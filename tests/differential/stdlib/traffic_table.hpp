// SPDX-License-Identifier: Apache-2.0
// What the kernels of the library have to move at least, for traffic_test.cpp.
//
// A kernel must read each element of an array that streams through it once and write each of its result once; an array
// that it changes counts twice. Arrays that many blocks read again (a weight per column, the vector of a GEMV, a table)
// or that are much shorter than the others (a result per row) are small: they stay in the second-level cache, and what
// counts of them is what was touched, once.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ikat::test {

/// A scalar, or an array of so many elements of the parameter's type.
struct Given {
    enum class Kind : std::uint8_t { Number, Streamed, Small };
    Kind kind = Kind::Number;
    double value = 0;
};
constexpr Given streamed(double elements) { return {Given::Kind::Streamed, elements}; }
constexpr Given small(double elements) { return {Given::Kind::Small, elements}; }
constexpr Given number(double value) { return {Given::Kind::Number, value}; }

struct TrafficRow {
    std::string_view kernel;       // without the suffix _f16 or _bf16
    std::vector<Given> arguments;  // in the order of the kernel's parameters
    std::string_view minimum;      // E bytes of an element, s elements, b bytes of a quantised weight
    double times = 1;              // the minimum: more for a form that passes over memory more often
};

/// A row for each kernel that the bound holds for.
std::span<const TrafficRow> traffic_rows();
/// The same kernels on rows that are too long to be kept.
std::span<const TrafficRow> multi_pass_rows();
/// The same kernels on rows that begin anywhere in a sector and are no whole vectors.
std::span<const TrafficRow> uneven_rows();

/// Kernels without a row, and why.
struct TrafficException {
    std::string_view kernel, reason;
};
std::span<const TrafficException> traffic_exceptions();

}  // namespace ikat::test
