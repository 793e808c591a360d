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
    if (kernel.nodes.size() >= max_nodes)
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
    const std::uint32_t first = places_.front();
    wished_.assign(window_.begin() + first, window_.begin() + places_.back() + 1);
    for (std::size_t i = 0; i < order_.size(); ++i) wished_[places_[i] - first] = order_[i];
    legalise(first);
}

void Recorder::arrange_first(const std::uint32_t* roots, std::size_t count) {
    if (window_.size() < 2) return;
    collect(roots, count);
    const auto first = std::ranges::mismatch(order_, window_).in1;
    if (first == order_.end()) return;
    std::size_t end = 0;  // of the nodes that the trees need
    for (Node node : order_) end = std::max<std::size_t>(end, positions_[index(node)] + 1);
    const auto before = first - order_.begin();  // nodes that stay where they are
    const auto is_other = [&](Node node) { return node_marks_[index(node)] != walk_; };
    wished_.assign(first, order_.end());
    std::ranges::copy_if(std::span(window_).first(end).subspan(std::size_t(before)), std::back_inserter(wished_),
                         is_other);
    legalise(std::size_t(before));
}

void Recorder::collect_tree(std::uint32_t tree) {
    if (is_leaf(tree)) {
        if (is_usable(node_of_leaf(tree))) collect_node(node_of_leaf(tree));
        return;
    }
    if (tree_marks_[tree] == walk_) return;
    tree_marks_[tree] = walk_;
    const Tree& at = trees_[tree];
    if (is_usable(at.node)) return collect_node(at.node);
    for (std::uint32_t i = 0; i < at.count; ++i) collect_tree(at.arguments[i]);
}

void Recorder::collect_node(Node node) {
    if (!is_pending(node) || node_marks_[index(node)] == walk_) return;
    node_marks_[index(node)] = walk_;
    each_earlier(node, [&](Node earlier) {
        if (is_pending(earlier)) collect_node(earlier);
    });
    order_.push_back(node);
}

/// Puts the nodes of wished_ into the window from `first` on, in the nearest legal order; what is there now is a legal
/// order of the same nodes.
void Recorder::legalise(std::size_t first) {
    const auto begin = window_.begin() + std::ptrdiff_t(first), end = begin + std::ptrdiff_t(wished_.size());
    before_.assign(begin, end);
    ++walk_;
    placed_ = first;
    for (Node node : wished_) place(node, first);
    for (auto at = begin; at != end; ++at) positions_[index(*at)] = std::uint32_t(at - window_.begin());
}

void Recorder::place(Node node, std::size_t first) {
    if (node_marks_[index(node)] == walk_) return;
    node_marks_[index(node)] = walk_;
    const ast::NodeInfo& at = kernel[node];
    each_earlier(node, [&](Node earlier) {
        if (is_pending(earlier) && positions_[index(earlier)] >= first) place(earlier, first);
    });
    if (window_effects_ > 0 && (is_effect(at) || at.kind == Kind::Load)) {
        for (Node earlier : before_) {
            if (earlier == node) break;
            const ast::NodeInfo& other = kernel[earlier];
            const bool both_effects = is_effect(at) && is_effect(other);
            const bool load_and_atomic = (at.kind == Kind::Load && other.kind == Kind::Atomic) ||
                                         (at.kind == Kind::Atomic && other.kind == Kind::Load);
            if (both_effects || load_and_atomic) place(earlier, first);
        }
    }
    window_[placed_++] = node;
}

}  // namespace ikat::trace
