// SPDX-License-Identifier: Apache-2.0
// What becomes of elements of Y in a kernel: they are stored as they are, or an epilogue is between.
#pragma once
#include <functional>
#include <string>

#include "stdlib/epilogue/bound_epilogue.hpp"
#include "stdlib/quantised/blocks.hpp"

namespace ikat::stdlib {

/// y[token, row] = x, where the condition is true; the row is one of weights, which is a column of Y.
using StoreResult =
    std::function<void(const Leaf<bool>& condition, const blocks::U& token, const blocks::U& row, const blocks::F& x)>;

/// What it adds to a kernel's name: "", or "_" and its own.
std::string suffix_of(const EpilogueCode& code);
/// Adds the parameters that a kernel with an epilogue has after its own: first_token and first_row, which are those of
/// Y that the launch begins with, and the epilogue's. None without an epilogue.
void add_epilogue(MoreParameters& more, const EpilogueCode& code);

/// Of these parameters, the next ones: what stores by way of the epilogue; without one, `store` itself. `rows` are
/// those of the launch. If the epilogue has row sums, lanes of a warp call it together, for 32 rows in order, the first
/// of which is a multiple of 32. The code must outlive it.
StoreResult by_epilogue(const EpilogueCode& code, More& rest, const u32& rows, StoreResult store);

}  // namespace ikat::stdlib
