// SPDX-License-Identifier: Apache-2.0
// Checks a captured kernel as a whole, in five walks. Here: which variables are assigned and which code is reached, by
// structured dataflow:
//
//     f32 s;                       {}
//     if_(c, [&] { s = 1; });      {s} on one path, {} on the other
//     y[i] = s;                    s is read with {}: a diagnostic
// In uniformity.cpp: which operations need threads that may have diverged. In copies.cpp: copies that nobody waits for.
// In barriers.cpp: barriers of different numbers of threads.
// In products.cpp: products of matrices in flight.
#include <optional>
#include <span>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/ast/barriers.hpp"
#include "codegen/ast/copies.hpp"
#include "codegen/ast/products.hpp"
#include "codegen/ast/uniformity.hpp"
#include "codegen/ir/op/forms/wgmma.hpp"

namespace ikat::ast {
namespace {

/// The state at a point: the variables assigned on all paths to it. Nothing if it is unreachable.
using Assigned = std::optional<std::vector<bool>>;

/// Merges the states of two paths.
void meet(Assigned& into, const Assigned& other) {
    if (!other) return;
    if (!into)
        into = other;
    else
        for (std::size_t v = 0; v < into->size(); ++v) (*into)[v] = (*into)[v] && (*other)[v];
}

class CheckWalk {
public:
    explicit CheckWalk(const KernelTree& kernel) : kernel_(kernel), reported_(kernel.variables.size()) {}

    std::vector<Diagnostic> run() {
        now_.emplace(kernel_.variables.size());
        walk(kernel_.body());
        return std::move(diagnostics_);
    }

private:
    static bool is_value(const NodeInfo& node) {
        return node.kind == Kind::Read || node.kind == Kind::Load || node.kind == Kind::Extract ||
               (node.kind == Kind::Operation && ir::effects(node.op).none());
    }

    void walk(Region region) {
        if (region != no_region) walk(kernel_[region]);
    }
    void walk(std::span<const Node> nodes) {
        for (Node id : nodes) {
            const NodeInfo& node = kernel_[id];
            if (!now_) return unreached(node);
            visit(node);
        }
    }

    void visit(const NodeInfo& node) {
        switch (node.kind) {
            case Kind::Read: return read(node, node.variable);
            case Kind::Assign: (*now_)[index(node.variable)] = true; return;
            case Kind::Load:
            case Kind::Store:
            case Kind::Atomic: return access(node);
            case Kind::If: return visit_if(node);
            case Kind::For: return visit_for(node);
            case Kind::While: return visit_while(node);
            case Kind::Break: return jump(node, "break_()");
            case Kind::Continue: return jump(node, "continue_()");
            case Kind::Return: return jump(node, "return_()");
            case Kind::Scope: return visit_scope(node);
            case Kind::Leave: meet(*leaving_, now_); return jump(node, "return_value()");
            case Kind::Operation: return operation(node);
            case Kind::Extract:
            case Kind::Address:
            case Kind::Declare: return;
        }
    }

    void read(const NodeInfo& node, Variable which) {
        const auto v = index(which);
        if ((*now_)[v] || reported_[v]) return;
        reported_[v] = true;
        const VariableInfo& variable = kernel_[which];
        diagnostics_.push_back({.where = node.where,
                                .message = "a device variable is read that may be unassigned",
                                .hint = "assign it where it is declared, or on all paths that lead here",
                                .notes = {{variable.where, "it is declared here"}}});
    }

    void operation(const NodeInfo& node) {
        if (node.op != ir::Op::Wgmma) return;
        const bool adds = ir::unpack<ir::WgmmaForm>(node.attribute).adds != ir::WgmmaForm::Sum::Overwrites;
        read_all(node, factors_of(node));
        if (adds) read_all(node, sums_of(node));
        const VariableRange sums = sums_of(node);
        for (std::uint32_t i = 0; i < sums.count; ++i) (*now_)[index(sums.first) + i] = true;
    }
    /// A finding for the first of them says enough.
    void read_all(const NodeInfo& node, VariableRange variables) {
        const std::size_t before = diagnostics_.size();
        for (std::uint32_t i = 0; i < variables.count && diagnostics_.size() == before; ++i)
            read(node, Variable(index(variables.first) + i));
    }

    void access(const NodeInfo& node) {
        if (node.place.base != Place::Base::Parameter) return;
        const ir::Parameter& parameter = kernel_.parameters[node.place.index];
        const bool reads = node.kind != Kind::Store, writes = node.kind != Kind::Load;
        const auto complain = [&](const char* what) {
            diagnostics_.push_back({.where = node.where,
                                    .message = "`" + parameter.name + "` is " + what,
                                    .hint = "declare the parameter as InOut"});
        };
        if (reads && parameter.access == ir::Access::Out) complain("Out and is read");
        if (writes && parameter.access == ir::Access::In) complain("In and is written");
    }

    void visit_if(const NodeInfo& node) {
        const Assigned before = now_;
        walk(node.regions[0]);
        const Assigned after_then = std::exchange(now_, before);
        walk(node.regions[1]);
        meet(now_, after_then);
    }

    // After a loop only what was assigned before it is certain: there may be no iteration. A break_() inside it adds
    // paths on which more is assigned.
    void visit_for(const NodeInfo& node) {
        const Assigned before = now_;
        (*now_)[index(node.variable)] = true;
        walk(node.regions[0]);
        now_ = before;
    }

    void visit_while(const NodeInfo& node) {
        walk(node.regions[0]);
        const Assigned after_condition = now_;
        walk(node.regions[1]);
        now_ = after_condition;
    }

    void visit_scope(const NodeInfo& node) {
        Assigned left;
        Assigned* const outer = std::exchange(leaving_, &left);
        // The assignment of the function's result at its end is not the user's, so it may be unreachable.
        auto nodes = kernel_[node.regions[0]];
        std::size_t statements = nodes.size();
        if (node.attribute && statements > 0)
            for (--statements; statements > 0 && is_value(kernel_[nodes[statements - 1]]);) --statements;
        walk(nodes.first(statements));
        if (now_) walk(nodes.subspan(statements));
        leaving_ = outer;
        meet(now_, left);
    }

    void jump(const NodeInfo& node, const char* name) {
        now_.reset();
        jump_ = {node.where, name};
    }

    /// Reports once after each jump.
    void unreached(const NodeInfo& node) {
        if (!jump_.where.known()) return;
        diagnostics_.push_back(
            {.where = node.where,
             .message = "code after " + std::string(jump_.name) + " is never reached",
             .hint = "jump under a condition: if_(condition, [&] { break_(); }), or return_if(condition)",
             .notes = {{jump_.where, "all threads that get here leave"}}});
        jump_ = {};
    }

    struct Jump {
        Location where{};
        const char* name = "";
    };

    const KernelTree& kernel_;
    Assigned now_;
    Assigned* leaving_ = nullptr;  // the innermost Scope: the state on all paths of its Leaves
    std::vector<bool> reported_;
    Jump jump_;
    std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> check(const KernelTree& kernel) {
    std::vector<Diagnostic> out = CheckWalk(kernel).run();
    for (Diagnostic& diagnostic : divergent_operations(kernel)) out.push_back(std::move(diagnostic));
    for (Diagnostic& diagnostic : unfinished_copies(kernel)) out.push_back(std::move(diagnostic));
    for (Diagnostic& diagnostic : unequal_barriers(kernel)) out.push_back(std::move(diagnostic));
    for (Diagnostic& diagnostic : follow_products(kernel).diagnostics) out.push_back(std::move(diagnostic));
    return out;
}

}  // namespace ikat::ast
