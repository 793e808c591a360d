// SPDX-License-Identifier: Apache-2.0
// The values of a type at which arithmetic tends to go wrong.
#pragma once
#include <vector>

#include "codegen/ir/op/evaluate.hpp"

namespace ikat::test {

/// Integers: 0, 1, -1, the extremes, powers of two, alternating bits. Floats: zeros, one and its neighbours, the
/// largest and smallest of each kind, infinities, NaNs, halves that round to even.
std::vector<ir::Word> edge_values(ir::Type type);

/// Amounts to shift by: 0, inside, at and beyond the width.
std::vector<ir::Word> shift_amounts();

}  // namespace ikat::test
