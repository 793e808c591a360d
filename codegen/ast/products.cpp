// SPDX-License-Identifier: Apache-2.0
// A walk with the state of each product's variables. What may be on some way counts: a product that is waited for on
// all ways but one may be in flight. Loops run until nothing changes.
#include "codegen/ast/products.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "codegen/ir/op/forms/wgmma.hpp"

namespace ikat::ast {

using ir::Op, ir::WgmmaForm;

VariableRange sums_of(const NodeInfo& product) {
    return {product.variable, ir::unpack<WgmmaForm>(product.attribute).registers_of_sum()};
}
VariableRange factors_of(const NodeInfo& product) {
    const auto form = ir::unpack<WgmmaForm>(product.attribute);
    return {product.factor, form.has(WgmmaForm::ARegisters) ? form.operands_of_a() : 0};
}

namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};
constexpr std::uint32_t many = 255;  // commits

bool is(const NodeInfo& node, Op op) { return node.kind == Kind::Operation && node.op == op; }

/// What may be with the variables of a group at a point.
struct Use {
    bool fenced = false;        // on all ways, since they were last touched
    Node touched = no_node;     // there
    Node product = no_node;     // that may be in flight
    std::uint32_t commits = 0;  // after it, at least
    bool operator==(const Use&) const = default;
};
/// Of all groups; nothing where no way leads.
using State = std::optional<std::vector<Use>>;

void meet(State& into, const State& other) {
    if (!other) return;
    if (!into) {
        into = other;
        return;
    }
    for (std::size_t g = 0; g < into->size(); ++g) {
        Use& a = (*into)[g];
        const Use& b = (*other)[g];
        if (!b.fenced && (a.fenced || a.touched == no_node)) a.touched = b.touched;
        a.fenced &= b.fenced;
        if (b.product != no_node && (a.product == no_node || b.commits < a.commits))
            a.product = b.product, a.commits = b.commits;
    }
}

class ProductWalk {
public:
    explicit ProductWalk(const KernelTree& kernel)
        : kernel_(kernel), group_(kernel.variables.size(), none), reported_(kernel.nodes.size()) {
        for (const NodeInfo& node : kernel.nodes)
            if (is(node, Op::Wgmma)) add_group(sums_of(node)), add_group(factors_of(node));
    }

    Products run() {
        if (groups_.empty()) return {};
        out_.passed_on.resize(kernel_.nodes.size());
        begun_.assign(kernel_.regions.size(), std::vector<bool>(groups_.size()));
        find_begun(kernel_.body());
        now_.emplace(groups_.size());
        walk(kernel_.body());
        end(kernel_.where);
        return std::move(out_);
    }

private:
    struct Loop {
        State broken{}, continued{};
    };

    void add_group(VariableRange variables) {
        if (variables.count == 0 || group_[index(variables.first)] != none) return;
        for (std::uint32_t i = 0; i < variables.count; ++i)
            group_[index(variables.first) + i] = std::uint32_t(groups_.size());
        groups_.push_back(variables);
    }
    Use& use(Variable variable) { return (*now_)[group_[index(variable)]]; }
    bool belongs(Variable variable) const { return group_[index(variable)] != none; }

    // ---- the walk

    void walk(Region region) {
        if (region == no_region) return;
        for (const Node id : kernel_[region]) {
            if (!now_) return;
            visit(id, kernel_[id]);
        }
        if (now_ && region != kernel_.body()) leave_scope(region);
    }

    void visit(Node id, const NodeInfo& node) {
        for (const Region region : node.regions)
            if (region != no_region) pass_on(id, [&](std::size_t g) { return begun_[index(region)][g]; });
        switch (node.kind) {
            case Kind::Read:
            case Kind::Assign: return touch(id, node);
            case Kind::Declare:
                if (belongs(node.variable)) use(node.variable) = {.touched = id};
                return;
            case Kind::Operation: return operation(id, node);
            case Kind::If: return visit_if(node);
            case Kind::For:
            case Kind::While: return visit_loop(node);
            case Kind::Scope: return visit_scope(node);
            case Kind::Break: meet(loop_->broken, now_); return now_.reset();
            case Kind::Continue: meet(loop_->continued, now_); return now_.reset();
            case Kind::Return: end(node.where); return now_.reset();
            case Kind::Leave: meet(*leaving_, now_); return now_.reset();
            default: return;
        }
    }

    void visit_if(const NodeInfo& node) {
        const State before = now_;
        walk(node.regions[0]);
        const State after_then = std::exchange(now_, before);
        walk(node.regions[1]);
        meet(now_, after_then);
    }

    void visit_scope(const NodeInfo& node) {
        State left;
        State* const outer = std::exchange(leaving_, &left);
        walk(node.regions[0]);
        leaving_ = outer;
        meet(now_, left);
    }

    void visit_loop(const NodeInfo& node) {
        Loop loop;
        Loop* const outer = std::exchange(loop_, &loop);
        State head = now_, left;
        for (State before; before != head;) {
            before = now_ = head;
            if (node.kind == Kind::While) walk(node.regions[0]);
            left = now_;
            walk(node.regions[node.kind == Kind::While ? 1 : 0]);
            meet(now_, loop.continued);
            meet(head, now_);
        }
        now_ = node.kind == Kind::While ? left : head;
        meet(now_, loop.broken);
        loop_ = outer;
    }

    // ---- products

    void operation(Node id, const NodeInfo& node) {
        if (node.op == Op::Wgmma) return product(id, node);
        if (node.op == Op::WgmmaFence) return fence(id);
        if (node.op == Op::WgmmaWait) return wait(id, std::uint32_t(node.attribute));
        if (node.op == Op::WgmmaCommit)
            for (Use& each : *now_) each.commits = std::min(each.commits + 1, many);
    }

    void product(Node id, const NodeInfo& node) {
        for (const VariableRange& variables : {sums_of(node), factors_of(node)}) {
            if (variables.count == 0) continue;
            Use& each = use(variables.first);
            if (!each.fenced) report_fence(id, node, each);
            each.product = id, each.commits = 0;
        }
    }

    /// What has been touched of the groups for which it holds.
    void pass_on(Node id, auto&& holds) {
        for (std::size_t g = 0; g < groups_.size(); ++g)
            if (!(*now_)[g].fenced && holds(g)) add_to(out_.passed_on[index(id)], groups_[g]);
    }
    void add_to(std::vector<VariableRange>& passed, const VariableRange& group) {
        const bool is_there =
            std::ranges::any_of(passed, [&](const VariableRange& other) { return other.first == group.first; });
        if (!is_there) passed.push_back(group);
    }
    void find_begun(Region region) {
        std::vector<bool>& begun = begun_[index(region)];
        for (const Node id : kernel_[region]) {
            const NodeInfo& node = kernel_[id];
            if (is(node, Op::Wgmma)) begun[group_[index(node.variable)]] = true;
            for (const Region inner : node.regions) {
                if (inner == no_region) continue;
                find_begun(inner);
                for (std::size_t g = 0; g < groups_.size(); ++g)
                    if (begun_[index(inner)][g]) begun[g] = true;
            }
        }
    }

    void fence(Node id) {
        pass_on(id, [](std::size_t) { return true; });
        for (Use& each : *now_) each.fenced = true;
    }

    void wait(Node id, std::uint32_t groups) {
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            Use& each = (*now_)[g];
            if (each.product == no_node) continue;
            add_to(out_.passed_on[index(id)], groups_[g]);
            if (each.commits > groups) each.product = no_node;
        }
    }

    void touch(Node id, const NodeInfo& node) {
        if (!belongs(node.variable)) return;
        Use& each = use(node.variable);
        if (each.product != no_node) report_touch(id, node, each);
        each.fenced = false, each.touched = id;
    }

    /// The variables that the region has declared are gone.
    void leave_scope(Region region) {
        for (const Node id : kernel_[region]) {
            const NodeInfo& node = kernel_[id];
            if (node.kind != Kind::Declare || !belongs(node.variable)) continue;
            Use& each = use(node.variable);
            if (each.product != no_node) report_end(each, kernel_[node.variable].where, "it is declared here");
            each = {};
        }
    }
    void end(const Location& where) {
        for (const Use& each : *now_)
            if (each.product != no_node) report_end(each, where, "the kernel ends here");
    }

    // ---- findings, each once

    bool is_new(Node node) {
        const bool before = reported_[index(node)];
        reported_[index(node)] = true;
        return !before;
    }

    static std::string how_to_wait(const Use& each) {
        if (each.commits == 0) return "make it part of a group and wait for that: wgmma_commit(), then wgmma_wait<0>()";
        return "wait first: wgmma_wait<" + std::to_string(each.commits - 1) + ">() covers it";
    }

    void report_touch(Node id, const NodeInfo& node, const Use& each) {
        const Node product = each.product;
        if (!is_new(product)) return;
        const bool is_sum = group_[index(kernel_[product].variable)] == group_[index(node.variable)];
        out_.diagnostics.push_back({.where = node.where,
                                    .message = std::string(is_sum ? "an accumulator" : "a fragment") + " is " +
                                               (kernel_[id].kind == Kind::Read ? "read" : "assigned") +
                                               " while a product with it may be in flight",
                                    .hint = how_to_wait(each),
                                    .notes = {{kernel_[product].where, "the product begins here"}}});
    }

    void report_fence(Node id, const NodeInfo& node, const Use& each) {
        if (!is_new(id)) return;
        out_.diagnostics.push_back(
            {.where = node.where,
             .message = "wgmma() without a fence between it and other uses of its registers",
             .hint = "call wgmma_fence() before the first product, and again after each other use of its fragments",
             .notes = {{kernel_[each.touched].where, "one is used here"}}});
    }

    void report_end(const Use& each, const Location& where, const char* what) {
        if (!is_new(each.product)) return;
        out_.diagnostics.push_back({.where = kernel_[each.product].where,
                                    .message = "a product may still be in flight when its fragments are gone",
                                    .hint = how_to_wait(each),
                                    .notes = {{where, what}}});
    }

    const KernelTree& kernel_;
    std::vector<std::uint32_t> group_;  // by variable
    std::vector<VariableRange> groups_;
    std::vector<std::vector<bool>> begun_;  // by region and group: whether a product in it adds to the group
    State now_;
    Loop* loop_ = nullptr;        // the innermost
    State* leaving_ = nullptr;    // the innermost Scope: what leads to its Leaves
    std::vector<bool> reported_;  // by node
    Products out_;
};

}  // namespace

std::vector<VariableRange> Products::assigned_by(Node id, const NodeInfo& node) const {
    if (is(node, Op::Wgmma)) return {sums_of(node)};
    const auto variables = passed(id);
    return {variables.begin(), variables.end()};
}

Products follow_products(const KernelTree& kernel) {
    const bool any = std::ranges::any_of(kernel.nodes, [](const NodeInfo& node) { return is(node, Op::Wgmma); });
    return any ? ProductWalk(kernel).run() : Products{};
}

}  // namespace ikat::ast
