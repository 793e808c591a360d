// SPDX-License-Identifier: Apache-2.0
// A graph as a picture for Graphviz, in the form of NVIDIA's: nodes by number, children in boxes.
#include <fmt/format.h>

#include <fstream>

#include "tools/cuda_driver/graphs/graph.hpp"

namespace ikat::cuda_driver {
namespace {

enum Flags : unsigned {
    Verbose = 1,
    KernelParams = 1 << 2,
    CopyParams = 1 << 3,
    FillParams = 1 << 4,
    Handles = 1 << 10,
    MemoryParams = 3 << 11,
    ConditionalParams = 1 << 15,
};

std::string label_of(const NodeWork& work, unsigned flags) {
    const auto has = [&](unsigned which) { return (flags & (which | Verbose)) != 0; };
    struct Say {
        std::string operator()(const KernelNode& node) const {
            const emulator::Launch launch = node.launch.launch();
            if (!details) return node.launch.entry;
            return fmt::format("{}\\n{{grid {} | block {} | shared {}}}", node.launch.entry,
                               fmt::join(launch.grid, "x"), fmt::join(launch.block, "x"), launch.dynamic_shared_bytes);
        }
        std::string operator()(const CopyNode& node) const {
            const CUDA_MEMCPY3D& its = node.params;
            return details ? fmt::format("MEMCPY\\n{}x{}x{} bytes", its.WidthInBytes, its.Height, its.Depth) : "MEMCPY";
        }
        std::string operator()(const FillNode& node) const {
            const CUDA_MEMSET_NODE_PARAMS& its = node.params;
            if (!details) return "MEMSET";
            return fmt::format("MEMSET\\n{:#x} in {}x{} elements of {} bytes", its.value, its.width, its.height,
                               its.elementSize);
        }
        std::string operator()(const HostNode&) const { return "HOST"; }
        std::string operator()(const ChildNode&) const { return "GRAPH"; }
        std::string operator()(const EmptyNode&) const { return "EMPTY"; }
        std::string operator()(const WaitNode&) const { return "EVENT_WAIT"; }
        std::string operator()(const RecordNode&) const { return "EVENT_RECORD"; }
        std::string operator()(const AllocNode& node) const {
            return details ? fmt::format("MEM_ALLOC\\n{} bytes at {:#x}", node.memory->bytes, node.memory->address)
                           : "MEM_ALLOC";
        }
        std::string operator()(const FreeNode& node) const {
            return details ? fmt::format("MEM_FREE\\n{:#x}", node.address) : "MEM_FREE";
        }
        std::string operator()(const ConditionalNode& node) const {
            static constexpr const char* types[] = {"IF", "WHILE", "SWITCH"};
            if (!details) return "CONDITIONAL";
            return fmt::format("CONDITIONAL\\n{} of {}, {:#x}", types[node.type], node.bodies.size(),
                               node.condition->handle);
        }
        bool details;
    };
    const unsigned wanted[] = {KernelParams, CopyParams,   FillParams,       0, 0, 0, 0, 0,
                               MemoryParams, MemoryParams, ConditionalParams};
    static_assert(std::size(wanted) == std::variant_size_v<NodeWork>);
    return std::visit(Say{has(wanted[work.index()])}, work);
}

/// The nodes of a graph, and its children, with numbers from `next` on.
void draw(std::ostream& out, const Graph& graph, unsigned flags, unsigned& next) {
    const unsigned number = next++;
    std::map<const GraphNode*, unsigned> numbers;
    out << fmt::format("subgraph cluster_{} {{\nlabel=\"graph_{}\"\n", number, number);
    for (const auto& node : graph.nodes) {
        const unsigned its = numbers[node.get()] = unsigned(numbers.size());
        std::string label = fmt::format("{}\\n{}", its, label_of(node->work, flags));
        if (flags & (Handles | Verbose)) label += fmt::format("\\n{:#x}", node->handle);
        out << fmt::format("\"graph_{}_node_{}\" [shape=\"record\" label=\"{}\"];\n", number, its, label);
        for (const Graph* const each : graphs_in(node->work)) draw(out, *each, flags, next);
    }
    for (const auto& node : graph.nodes)
        for (const GraphNode::Edge& edge : node->after)
            out << fmt::format("\"graph_{0}_node_{1}\" -> \"graph_{0}_node_{2}\"{3};\n", number, numbers.at(edge.from),
                               numbers.at(node.get()),
                               edge.data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ? " [style=\"dashed\"]" : "");
    out << "}\n";
}

}  // namespace

API(cuGraphDebugDotPrint, CUgraph graph, const char* path, unsigned flags) {
    return initialised("cuGraphDebugDotPrint", [&](Driver&) {
        require(path);
        const Graph& its = graph_at(graph);
        std::ofstream out(path);
        unsigned next = 1;
        out << "digraph dot {\n";
        draw(out, its, flags, next);
        out << "}\n";
        if (!out.flush()) refuse(CUDA_ERROR_OPERATING_SYSTEM, fmt::format("'{}' cannot be written", path));
    });
}

}  // namespace ikat::cuda_driver
