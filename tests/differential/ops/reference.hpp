// SPDX-License-Identifier: Apache-2.0
// What an instruction must give. Conversions of f32 and f64 are the host's, in its rounding modes. Of the rest, where
// the folder may compute it, that is ir::evaluate; where not, a second way: the host's rounding modes for .rz .rm .rp,
// evaluate between clamping and flushing for .sat and .ftz.
#pragma once
#include <optional>
#include <span>

#include "tests/differential/ops/op_kernel.hpp"

namespace ikat::test {

/// The expected result and how far from it the device may be.
struct Expected {
    ir::Word bits = 0;
    double ulps = 0;       // of an approximate operation
    double absolute = 0;   // … or that far by itself
    bool flushes = false;  // … and a zero for a subnormal number
};

/// Nothing where PTX leaves the result open (an integer divided by zero).
std::optional<Expected> expected(const OpCase& test, std::span<const ir::Word> arguments);

/// Whether a device's answer agrees. Any NaN is as good as another unless `exact_nan`.
bool agrees(ir::Type type, const Expected& expected, ir::Word actual, bool exact_nan);

}  // namespace ikat::test
