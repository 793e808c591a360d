// SPDX-License-Identifier: Apache-2.0
// Graphs of the driver, made of nodes.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/condition_setter.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/host_calls.hpp"
#include "runtime/graph/device_graph.hpp"

namespace ikat::runtime::cuda {

/// What a node that is a launch becomes: its function, and where its parameters are in memory of the node.
struct LaunchedFunction {
    Function function = nullptr;
    std::vector<std::uint64_t> offsets{};  // of each parameter; empty: they are given as one piece
};
using FindFunction = std::function<LaunchedFunction(const GraphNode::Launch&)>;

/// What graphs of a device need of it. `find` is called as long as the graph exists; `backend` keeps what it needs.
struct GraphDevice {
    Reference<Backend> backend;
    std::shared_ptr<const Driver> driver;
    Context context;
    Reference<HostCalls> calls;
    FindFunction find;
    ConditionSetter& setter;
};

/// Throws Error if the driver is older than CUDA 12, or than what the nodes need.
Reference<DeviceGraph> make_graph(GraphDevice device, std::vector<GraphNode> nodes);

}  // namespace ikat::runtime::cuda
