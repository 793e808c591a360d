// SPDX-License-Identifier: Apache-2.0
// The expected result of an instruction. Conversions of f32 and f64 are done by the host, in its rounding modes. The
// rest is ir::evaluate where the folder may compute it, and otherwise a second implementation: the host's rounding
// modes for .rz .rm .rp, and evaluate with clamping and flushing for .sat and .ftz.
#pragma once
#include <optional>
#include <span>

#include "tests/differential/ops/op_kernel.hpp"

namespace ikat::test {

/// The expected result and how far from it the device may be.
struct Expected {
    ir::Word bits = 0;
    double ulps = 0;       // allowed error of an approximate operation
    double absolute = 0;   // … or this absolute error
    bool flushes = false;  // … or a zero instead of a subnormal number
};

/// Nothing if PTX leaves the result undefined (an integer divided by zero).
std::optional<Expected> expected(const OpCase& test, std::span<const ir::Word> arguments);

/// Whether a device's result agrees. Unless `exact_nan`, all NaNs are equal.
bool agrees(ir::Type type, const Expected& expected, ir::Word actual, bool exact_nan);

}  // namespace ikat::test
