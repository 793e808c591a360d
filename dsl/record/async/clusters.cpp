// SPDX-License-Identifier: Apache-2.0
// Clusters of blocks, and the registers of warpgroups: what the kernel as a whole says about them.
#include "dsl/record/async/clusters.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/ir/op/forms/mbarrier.hpp"
#include "dsl/record/recorder.hpp"

namespace ikat::trace {

Array peer(const Array& array, Recorded rank, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(array.capture)) return array;
    if (!recorder.is_shared(array)) {
        recorder.complain("peer() of memory that is not shared",
                          "the blocks of a cluster reach each other's Shared<T, N> "
                          "and dynamic_shared<T>() arrays",
                          recorder.here());
        return array;
    }
    Array out = array;
    out.peer = true;
    const Recorded own = operation(
        {.op = ir::Op::Symbol, .type = ir::Type::U32, .operand_type = ir::Type::U32, .attribute = array.index}, {});
    const Recorded operands[] = {own, rank};
    out.base = settled(committed(
        operation({.op = ir::Op::Peer, .type = ir::Type::U32, .operand_type = ir::Type::U32}, {operands, 2})));
    return out;
}

namespace {

void check_cluster(Recorder& recorder, const Location& where) {
    const ir::LaunchBounds& bounds = recorder.kernel.bounds;
    constexpr std::uint64_t max_blocks = 8;  // on any device that has clusters
    std::uint64_t blocks = 1;
    for (const std::uint32_t extent : bounds.cluster) blocks *= std::min<std::uint64_t>(extent, max_blocks + 1);
    const auto& [x, y, z] = bounds.cluster;
    if (blocks == 0 || blocks > max_blocks)
        recorder.complain(
            "cluster() of " + std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z) + " blocks",
            "a cluster has 1 to 8 blocks", where);
    if (bounds.cluster_blocks() != 1) return;
    const auto& nodes = recorder.kernel.nodes;
    const auto peer =
        std::ranges::find_if(nodes, [](const ast::NodeInfo& node) { return node.place.peer != ast::no_node; });
    if (peer != nodes.end())
        recorder.complain("peer() in a kernel without clusters",
                          "say how many blocks a cluster has: "
                          "kernel(...).cluster(2)",
                          peer->where);
}

/// Where the number of registers at the beginning is unknown, ptxas ignores changes of it.
void check_registers(Recorder& recorder) {
    const ir::LaunchBounds& bounds = recorder.kernel.bounds;
    if (bounds.max_registers || (bounds.max_threads && bounds.min_blocks)) return;
    const auto& nodes = recorder.kernel.nodes;
    const auto sets = std::ranges::find(nodes, ir::Op::SetRegisters, &ast::NodeInfo::op);
    if (sets != nodes.end())
        recorder.complain(
            "registers_grow() or registers_shrink() in a kernel whose threads begin with an unknown number "
            "of registers",
            "say how many blocks of how many threads share them, kernel(...).launch_bounds(384, 1), or "
            "max_registers()",
            sets->where);
}

/// What other blocks of the cluster do: who waits at a barrier at which they arrive sees what they have written, and
/// atomics of both are atomic to each other.
void reach_cluster(Recorder& recorder) {
    using ir::MbarrierForm;
    ast::KernelTree& kernel = recorder.kernel;
    std::vector<bool> reached(kernel.symbols.size());
    for (const ast::NodeInfo& node : kernel.nodes)
        if (node.place.peer != ast::no_node) reached[node.place.index] = true;
    for (ast::NodeInfo& node : kernel.nodes) {
        const bool atomic = node.memory.scope == ir::Scope::Cta && node.place.base == ast::Place::Base::Symbol;
        if (atomic && reached[node.place.index]) node.memory.scope = ir::Scope::Cluster;
        if (node.kind != ast::Kind::Operation || node.op != ir::Op::Mbarrier) continue;
        auto form = ir::unpack<MbarrierForm>(node.attribute);
        if (!form.tests() || !reached[kernel[node.arguments[0]].place.index]) continue;
        form.reach = MbarrierForm::Reach::Cluster;
        node.attribute = ir::pack(form);
    }
}

}  // namespace

void finish_clusters(Recorder& recorder, const Location& where) {
    check_cluster(recorder, where);
    check_registers(recorder);
    reach_cluster(recorder);
}

}  // namespace ikat::trace
