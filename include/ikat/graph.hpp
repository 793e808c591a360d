// SPDX-License-Identifier: Apache-2.0
// Graphs: work that is recorded once and launched many times.
#pragma once
#include "ikat/ikat.hpp"
#include "runtime/graph/graph.hpp"

namespace ikat {

using runtime::Graph;
using runtime::GraphExec;
using runtime::GraphParameters;

}  // namespace ikat
