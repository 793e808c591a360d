// SPDX-License-Identifier: Apache-2.0
// Graphs: work that is recorded once and launched many times.
#pragma once
#include "ikat/ikat.hpp"

#include "dsl/kernel/condition.hpp"
#include "runtime/graph/conditions.hpp"
#include "runtime/graph/graph.hpp"

namespace ikat {

using runtime::Graph;
using runtime::graph_condition;
using runtime::graph_if;
using runtime::graph_while;
using runtime::GraphCondition;
using runtime::GraphExec;
using runtime::GraphParameters;

}  // namespace ikat
