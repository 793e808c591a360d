// SPDX-License-Identifier: Apache-2.0
// Reductions in double, and how far off kernels may be that compute in f32.
#pragma once
#include <span>

#include "stdlib/reduction/axes.hpp"
#include "stdlib/reference/optimise.hpp"

namespace ikat::stdlib::reference {

/// The result of these elements, in the order of their indices.
Bounded reduced(Reduction what, std::span<const double> elements, bool unbiased = false);

}  // namespace ikat::stdlib::reference
