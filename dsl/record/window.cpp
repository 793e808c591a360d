// SPDX-License-Identifier: Apache-2.0
// The window: nodes that wait for the next statement, and how they are ordered.
//
//     x[i] + y[i]      g++ evaluates right to left     in the window         arranged
//                                                      read i, load y        read i, load x
//                                                      read i, load x        read i, load y
// The nodes that a tree needs are put from left to right into the positions that they occupy in the window; the other
// nodes stay. Then constraints are restored: a node comes after what it uses, operations of several lanes keep their
// order, and loads stay on their side of an atomic.
#include <algorithm>
#include <iterator>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::Node;

namespace {

bool is_effect(const ast::NodeInfo& node) {
    return node.kind == Kind::Atomic || (node.kind == Kind::Operation && !ir::effects(node.op).none());
}

}  // namespace

Node Recorder::append(ast::NodeInfo node) {
    if (replaying_ && repeats(node)) return Node(now_.nodes++);
    if (kernel.nodes.size() >= most_nodes)
        throw Error(Diagnostic{.where = here_,
                               .message = "the kernel is recorded without end: it already has two million operations",
                               .hint = std::string(endless_hint)});
    const auto id = Node(kernel.nodes.size());
    window_effects_ += is_effect(node);
    unlocated_nodes_ |= !node.where.known();
    kernel.nodes.push_back(std::move(node));
    homes_.push_back(region());
    positions_.push_back(std::uint32_t(window_.size()));
    window_.push_back(id);
    return id;
}

std::vector<Node> Recorder::append(ast::NodeInfo node, std::span<const ir::Type> types) {
    node.type = types[0];
    if (types.size() > 1) node.results.assign(types.begin(), types.end());
    std::vector<Node> results{append(std::move(node))};
    for (std::size_t i = 1; i < types.size(); ++i)
        results.push_back(append(
            {.kind = Kind::Extract, .type = types[i], .attribute = i, .arguments = {results[0]}, .where = here_}));
    return results;
}

ast::Variable Recorder::add_variable(ast::VariableInfo variable) {
    if (replaying_) {
        const bool repeated =
            now_.variables < kernel.variables.size() && kernel.variables[now_.variables].type == variable.type;
        if (repeated) return ast::Variable(now_.variables++);
        diverge(here_);
    }
    kernel.variables.push_back(std::move(variable));
    return ast::Variable(kernel.variables.size() - 1);
}

Variable Recorder::define(ir::Type type, std::string name, Node value) {
    const ast::Variable variable = add_variable({.type = type, .name = std::move(name), .where = here_});
    statement({.kind = Kind::Declare, .variable = variable, .where = here_});
    if (value != ast::no_node)
        statement({.kind = Kind::Assign, .variable = variable, .arguments = {value}, .where = here_});
    return {index(variable), capture_};
}

/// Calls f with the nodes that must precede a node in any order.
template <class F>
void Recorder::each_earlier(Node node, F&& f) const {
    const ast::NodeInfo& info = kernel[node];
    for (Node argument : info.arguments) f(argument);
    for (Node other : info.other) f(other);
    if (info.guard != ast::no_node) f(info.guard);
    if (info.place.offset != ast::no_node) f(info.place.offset);
    if (info.place.peer != ast::no_node) f(info.place.peer);
}

Node Recorder::statement(ast::NodeInfo node) {
    const Node id = append(std::move(node));
    locate();
    flush();
    return id;
}

void Recorder::flush() {
    auto& nodes = kernel.regions[index(region())];
    nodes.insert(nodes.end(), window_.begin(), window_.end());
    for (Node node : window_) positions_[index(node)] = settled_position;
    window_.clear();
    window_effects_ = 0;
}

void Recorder::collect(const std::uint32_t* roots, std::size_t count) {
    const auto at_least = [](std::vector<std::uint32_t>& marks, std::size_t size) {
        if (marks.size() < size) marks.resize(2 * size);
    };
    at_least(tree_marks_, trees_.size());
    at_least(node_marks_, kernel.nodes.size());
    ++walk_;
    order_.clear();
    for (std::size_t i = 0; i < count; ++i) collect_tree(roots[i]);
}

void Recorder::arrange(const std::uint32_t* roots, std::size_t count) {
    if (window_.size() < 2) return;
    collect(roots, count);
    const auto position = [&](Node node) { return positions_[index(node)]; };
    if (std::ranges::is_sorted(order_, {}, position)) return;

    places_.clear();
    for (Node node : order_) places_.push_back(position(node));
    std::ranges::sort(places_);
    before_ = window_;
    for (std::size_t i = 0; i < order_.size(); ++i) window_[places_[i]] = order_[i];
    legalise(before_);
}

void Recorder::arrange_first(const std::uint32_t* roots, std::size_t count) {
    if (window_.size() < 2) return;
    collect(roots, count);
    if (std::equal(order_.begin(), order_.end(), window_.begin())) return;
    before_ = window_;
    const auto is_other = [&](Node node) { return node_marks_[index(node)] != walk_; };
    window_ = order_;
    std::ranges::copy_if(before_, std::back_inserter(window_), is_other);
    legalise(before_);
}

void Recorder::collect_tree(std::uint32_t tree) {
    if (tree_marks_[tree] == walk_) return;
    tree_marks_[tree] = walk_;
    const Tree& at = trees_[tree];
    if (at.node != ast::no_node && is_open(region_of(at.node))) return collect_node(at.node);
    for (std::uint32_t i = 0; i < at.count; ++i) collect_tree(at.arguments[i]);
}

void Recorder::collect_node(Node node) {
    if (!is_pending(node) || node_marks_[index(node)] == walk_) return;
    node_marks_[index(node)] = walk_;
    each_earlier(node, [&](Node earlier) { collect_node(earlier); });
    order_.push_back(node);
}

/// Turns the wished order in the window into the nearest legal one; `before` is the order of recording, which is legal.
void Recorder::legalise(std::span<const Node> before) {
    std::swap(wished_, window_);
    window_.clear();
    ++walk_;
    for (Node node : wished_) place(node, before);
    for (std::size_t i = 0; i < window_.size(); ++i) positions_[index(window_[i])] = std::uint32_t(i);
}

void Recorder::place(Node node, std::span<const Node> before) {
    if (!is_pending(node) || node_marks_[index(node)] == walk_) return;
    node_marks_[index(node)] = walk_;
    const ast::NodeInfo& at = kernel[node];
    each_earlier(node, [&](Node earlier) { place(earlier, before); });
    if (window_effects_ > 0 && (is_effect(at) || at.kind == Kind::Load)) {
        for (Node earlier : before) {
            if (earlier == node) break;
            const ast::NodeInfo& other = kernel[earlier];
            const bool both_effects = is_effect(at) && is_effect(other);
            const bool load_and_atomic = (at.kind == Kind::Load && other.kind == Kind::Atomic) ||
                                         (at.kind == Kind::Atomic && other.kind == Kind::Load);
            if (both_effects || load_and_atomic) place(earlier, before);
        }
    }
    window_.push_back(node);
}

}  // namespace ikat::trace
