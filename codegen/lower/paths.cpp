// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower/paths.hpp"

#include <algorithm>

namespace ikat::lower {

using ir::Block;
using ir::Value;

void Paths::terminate(ir::Terminator::Kind kind) {
    build_.terminate(kind);
    reachable_ = false;
}

void Paths::leads_to(Join& join, std::size_t target) { join.edges.push_back({build_.block(), target, variables_}); }

void Paths::jump_to(Join& join) {
    build_.jump(join.block);
    leads_to(join, 0);
    reachable_ = false;
}

void Paths::enter(Block block) {
    build_.set_block(block);
    reachable_ = true;
}

void Paths::enter(const Join& join) {
    reachable_ = !join.edges.empty();
    build_.set_block(join.block);
    if (!reachable_) {
        // Unreachable; it is removed later.
        build_.terminate(fn_.gives == ir::Type::Void ? ir::Terminator::Kind::Return : ir::Terminator::Kind::Trap);
        return;
    }
    variables_ = join.edges.front().variables;
    for (std::size_t v = 0; v < variables_.size(); ++v) merge(join, v);
}

void Paths::merge(const Join& join, std::size_t variable) {
    const auto incoming = [&](const Join::Edge& edge) { return edge.variables[variable]; };
    const Value first = incoming(join.edges.front());
    if (std::ranges::all_of(join.edges, [&](const Join::Edge& edge) { return incoming(edge) == first; })) return;
    const bool somewhere_none =
        std::ranges::any_of(join.edges, [&](const Join::Edge& edge) { return incoming(edge) == ir::no_value; });
    variables_[variable] =
        somewhere_none ? ir::no_value : fn_.add_parameter(join.block, kernel_.variables[variable].type);
    if (somewhere_none) return;
    for (const Join::Edge& edge : join.edges)
        fn_[edge.from].terminator.targets[edge.target].arguments.push_back(incoming(edge));
}

Paths::Carried Paths::carried(std::initializer_list<ast::Region> regions) const {
    std::vector<bool> assigned(variables_.size());
    for (ast::Region region : regions) mark_assigned(region, assigned);
    Carried out;
    for (std::size_t v = 0; v < assigned.size(); ++v)
        if (assigned[v] && variables_[v] != ir::no_value) out.push_back(v);
    return out;
}

void Paths::mark_assigned(ast::Region region, std::vector<bool>& assigned) const {
    if (region == ast::no_region) return;
    for (ast::Node id : kernel_[region]) {
        const ast::NodeInfo& node = kernel_[id];
        if (node.kind == ast::Kind::Assign || node.kind == ast::Kind::For) assigned[index(node.variable)] = true;
        for (const ast::VariableRange& variables : products_.assigned_by(id, node))
            std::fill_n(assigned.begin() + std::ptrdiff_t(index(variables.first)), variables.count, true);
        for (ast::Region inner : node.regions) mark_assigned(inner, assigned);
    }
}

Values Paths::arguments(const Carried& carried) const {
    Values out;
    for (std::size_t v : carried) out.push_back(variables_[v]);
    return out;
}

Block Paths::enter_head(const Carried& carried) {
    const Block head = fn_.add_block();
    for (std::size_t v : carried) variables_[v] = fn_.add_parameter(head, kernel_.variables[v].type);
    enter(head);
    return head;
}

}  // namespace ikat::lower
