// SPDX-License-Identifier: Apache-2.0
// Tracks which values are the same for all threads of a block, or of a warp, and which threads are active.
//
//     u32 i = global_id().x;              i: differs between threads
//     if_(i < n, [&] {                    from here on: some threads
//         sync_block();                   diagnostic: with this line and that of the if_
//     });
//     if_(thread_id().x < 32, [&] {       whole warps, because 32 is a multiple of the warp size
//         v = v + shuffle_down(v, 1);     fine
//     });
//
// What each operation makes of its operands is said in ir/op/uniformity.hpp. The walk carries what is known of each
// variable (flow-sensitive: what it was last assigned). Where ways meet that different threads have gone, variables
// with different definitions differ. Loops run until nothing rises.
#include "codegen/ast/uniformity.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/ir/op/uniformity.hpp"

namespace ikat::ast {
namespace {

using ir::Doubt, ir::Extent, ir::Op, ir::Spread;

struct Known {
    Spread spread{};
    std::uint32_t definition = 0;  // where the variable got this value; equal ones are equal values
    bool operator==(const Known&) const = default;
};

/// Which threads are here: all of a cluster, of some blocks or warps, some threads; and which line has parted them.
struct Control {
    Extent extent = Extent::Cluster;
    Location parted{};
};
Control join(const Control& a, const Control& b) { return b.extent > a.extent ? b : a; }

using Variables = std::vector<Known>;

class UniformityWalk {
public:
    explicit UniformityWalk(const KernelTree& kernel)
        : kernel_(kernel), spreads_(kernel.nodes.size()), arrays_(kernel.symbols) {}

    std::vector<Diagnostic> run() {
        do {
            variables_.assign(kernel_.variables.size(), {});
            returned_ = left_ = {};
            diagnostics_.clear();
            walk(kernel_.body(), {});
        } while (arrays_hold_less());
        return std::move(diagnostics_);
    }

private:
    struct Loop {
        Control broken, continued;       // threads that have left, or continued with the next iteration
        std::vector<Variables> exits;    // at its break_()s
        std::vector<Variables> latches;  // at its continue_()s
    };

    // ---- values

    const Spread& spread(Node node) const { return spreads_[index(node)]; }
    Extent extent(Node node) const { return spread(node).extent; }

    std::optional<ir::Word> constant(Node node) const {
        const NodeInfo& info = kernel_[node];
        const bool is = info.kind == Kind::Operation && info.op == Op::Const;
        return is ? std::optional(info.attribute) : std::nullopt;
    }
    bool is_whole_warps(Node node) const {
        const auto bits = constant(node);
        return bits && *bits % 32 == 0;
    }

    /// The node's arguments as those of an operation.
    auto as_operation(const NodeInfo& node, std::span<const Node> of) const {
        return ir::Operation(
            node.op, node.type, node.attribute, of.size(), [this, of](std::size_t i) { return spread(of[i]); },
            [this, of](std::size_t i) { return constant(of[i]); },
            [this, of](std::size_t i) { return is_whole_warps(of[i]); }, Doubt::Agrees);
    }
    Extent common(const NodeInfo& node, std::span<const Node> of) const {
        return as_operation(node, of).common(of.size());
    }
    std::optional<ir::Word> members(const NodeInfo& node) const {
        return node.arguments.empty() ? std::nullopt : constant(node.arguments.back());
    }

    // ---- the walk

    Control here(const Control& region) const {
        Control out = join(join(region, returned_), left_);
        return loop_ ? join(join(out, loop_->broken), loop_->continued) : out;
    }

    void walk(Region region, const Control& control) {
        if (region == no_region) return;
        for (Node id : kernel_[region]) visit(id, kernel_[id], control);
    }

    void visit(Node id, const NodeInfo& node, const Control& control) {
        Spread& own = spreads_[index(id)];
        switch (node.kind) {
            case Kind::Operation:
                if (ir::effects(node.op).convergent) expect_together(node, here(control));
                own = as_operation(node, node.arguments).result(members(node), Extent::Cluster);
                break;
            case Kind::Read: own = variables_[index(node.variable)].spread; break;
            case Kind::Load: own = load(node); break;
            case Kind::Extract: own = {extent(node.arguments[0])}; break;
            case Kind::Address:
            case Kind::Atomic: own = {Extent::Thread}; break;
            case Kind::Declare: variables_[index(node.variable)] = {}; break;
            case Kind::Assign: variables_[index(node.variable)] = {spread(node.arguments[0]), index(id) + 1}; break;
            case Kind::Store: break;
            case Kind::If: visit_if(id, node, control); break;
            case Kind::For: visit_for(id, node, control); break;
            case Kind::While: visit_while(id, node, control); break;
            case Kind::Break:
                loop_->broken = join(loop_->broken, here(control));
                loop_->exits.push_back(variables_);
                break;
            case Kind::Continue:
                loop_->continued = join(loop_->continued, here(control));
                loop_->latches.push_back(variables_);
                break;
            case Kind::Return: returned_ = join(returned_, here(control)); break;
            case Kind::Scope: visit_scope(id, node, control); break;
            case Kind::Leave:
                left_ = join(left_, here(control));
                leaves_->push_back(variables_);
                break;
        }
    }

    Spread load(const NodeInfo& node) {
        Extent agree = std::max(common(node, node.arguments), common(node, node.other));
        for (Node other : {node.guard, node.place.offset, node.place.peer})
            if (other != no_node) agree = std::max(agree, extent(other));
        if (is_own_array(node.place)) return arrays_.load(node.place.index, agree);
        return ir::loaded(node.memory, false, agree, Extent::Cluster, Doubt::Agrees);
    }

    bool is_own_array(const Place& place) const {
        return place.base == Place::Base::Symbol && kernel_.symbols[place.index].space == ir::Space::Local;
    }
    /// Whether to walk again.
    bool arrays_hold_less() {
        for (const NodeInfo& node : kernel_.nodes)
            if (node.kind == Kind::Store && is_own_array(node.place))
                for (Node value : std::span(node.arguments).subspan(1)) arrays_.store(node.place.index, spread(value));
        for (const NodeInfo& node : kernel_.nodes)
            if (node.kind == Kind::Address && is_own_array(node.place)) arrays_.store(node.place.index, {});
        return arrays_.settle();
    }

    /// Ways meet that `parted` threads; `id` is where.
    static void meet(Variables& into, const Variables& other, Extent parted, Node id) {
        for (std::size_t v = 0; v < into.size(); ++v) {
            Known& a = into[v];
            const Known& b = other[v];
            if (a.definition == b.definition && a.spread.extent == b.spread.extent) continue;
            a = {either(a.spread, b.spread, parted), index(id) + 1};
        }
    }

    static Control inside(const Control& control, Extent condition, const NodeInfo& node) {
        return join(control, {condition, node.where});
    }

    void visit_if(Node id, const NodeInfo& node, const Control& control) {
        const Extent condition = extent(node.arguments[0]);
        const Control arms = inside(control, condition, node);
        const Variables before = variables_;
        walk(node.regions[0], arms);
        const Variables after_then = std::exchange(variables_, before);
        walk(node.regions[1], arms);
        meet(variables_, after_then, condition, id);
    }

    /// After it, threads that have left it and those that have reached its end have reconverged.
    void visit_scope(Node id, const NodeInfo& node, const Control& control) {
        std::vector<Variables> leaves;
        std::vector<Variables>* const outer = std::exchange(leaves_, &leaves);
        const Control left_before = left_;
        walk(node.regions[0], control);
        for (const Variables& at : leaves) meet(variables_, at, left_.extent, id);
        left_ = left_before;
        leaves_ = outer;
    }

    /// Repeats until no level rises; the findings of the last round are reported. `round` walks the loop once and
    /// returns its control.
    void rounds(Node id, auto&& round) {
        Loop loop{};
        Loop* const outer = std::exchange(loop_, &loop);
        const std::size_t reported = diagnostics_.size();
        const Variables before = variables_;
        Control control;
        for (bool again = true; again;) {
            const Variables head = variables_;
            const Control broken = loop.broken, returned = returned_, left = left_;
            loop.exits.clear(), loop.latches.clear();
            loop.continued = {};
            diagnostics_.resize(reported);
            control = round();
            for (const Variables& latch : loop.latches) meet(variables_, latch, loop.continued.extent, id);
            Variables next = head;
            meet(next, variables_, Extent::Cluster, id);
            again = next != head || broken.extent != loop.broken.extent || returned.extent != returned_.extent ||
                    left.extent != left_.extent;
            variables_ = std::move(next);
        }
        const Extent parted = join(control, loop.broken).extent;
        for (const Variables& exit : loop.exits) meet(variables_, exit, parted, id);
        Variables after = before;
        meet(after, variables_, parted, id);
        variables_ = std::move(after);
        loop_ = outer;
    }

    Extent trips(const NodeInfo& node) const {
        const auto& a = node.arguments;
        const bool whole = spread(a[0]).linear && is_whole_warps(a[1]) && as_operation(node, a).is_offset(2);
        return whole ? Extent::Warp : common(node, a);
    }

    void visit_for(Node id, const NodeInfo& node, const Control& control) {
        const auto& a = node.arguments;
        const Control body = inside(control, trips(node), node);
        rounds(id, [&] {
            const bool linear = spread(a[0]).linear && as_operation(node, a).is_offset(2);
            variables_[index(node.variable)] = {{std::max(extent(a[0]), extent(a[2])), linear}, index(id) + 1};
            walk(node.regions[0], body);
            return Control{trips(node), node.where};
        });
    }

    void visit_while(Node id, const NodeInfo& node, const Control& control) {
        const Node condition = node.arguments[0];
        rounds(id, [&] {
            // From the second iteration on, only the threads for which the condition held evaluate it again.
            walk(node.regions[0], inside(control, extent(condition), node));
            walk(node.regions[1], inside(control, extent(condition), node));
            return Control{extent(condition), node.where};
        });
    }

    // ---- operations that must be reached together

    void expect_together(const NodeInfo& node, const Control& control) {
        const Extent needed = ir::needed_by(node.op, node.attribute, members(node), kernel_.bounds.max_threads);
        if (control.extent <= needed) return;
        const bool barrier = node.op == Op::Barrier;
        if (barrier && !ir::unpack<ir::BarrierForm>(node.attribute).gathers_block())
            return report_named_barrier(node, control);
        Diagnostic out{
            .where = node.where, .message = {}, .hint = {}, .notes = {{control.parted, "the threads diverge here"}}};
        if (node.op == Op::ClusterBarrier) {
            const bool whole = needed == Extent::Cluster;
            out.message = "a barrier of the cluster in divergent code: some threads of " +
                          std::string(whole ? "the cluster" : "a warp") + " may not reach it";
            out.hint = whole ? "move it out of the divergent region, or branch on something that is the same in all of "
                               "its blocks"
                             : "whole warps arrive and wait: branch on something that is the same for all threads of "
                               "a warp";
        } else if (needed == Extent::Warpgroup) {
            out.message = "an operation of all warps of a warpgroup (" + std::string(ir::name(node.op)) +
                          ") in divergent code: some of them may not reach it";
            out.hint = "branch on something that is the same in the four warps, such as warpgroup_id()";
        } else if (barrier) {
            out.message = "sync_block() in divergent code: some threads of the block may not reach it";
            out.hint = "move it out of the divergent region, or branch on something that is the same for all threads";
        } else {
            out.message = "an operation of all 32 lanes (" + std::string(ir::name(node.op)) +
                          ") in divergent code: some lanes may not reach it";
            out.hint = "move it out of the divergent region";
            if (ir::info(node.op).meets != ir::Meeting::Warp)
                out.hint += ", or pass the participating lanes: the ballot() of the condition, taken before";
        }
        diagnostics_.push_back(std::move(out));
    }

    /// Warps may diverge before a barrier for some of them; the threads of a warp may not.
    void report_named_barrier(const NodeInfo& node, const Control& control) {
        diagnostics_.push_back({.where = node.where,
                                .message = "a barrier in divergent code: some threads of a warp may not reach it",
                                .hint = "whole warps wait at a barrier: branch on something that is the same for all "
                                        "threads of a warp",
                                .notes = {{control.parted, "the threads diverge here"}}});
    }

    const KernelTree& kernel_;
    std::vector<Spread> spreads_;               // by node
    ir::OwnArrays arrays_;                      // by symbol
    Variables variables_;                       // where the walk is
    Control returned_, left_;                   // threads that have returned, or have left the innermost Scope
    std::vector<Variables>* leaves_ = nullptr;  // at that Scope's Leaves
    Loop* loop_ = nullptr;
    std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> divergent_operations(const KernelTree& kernel) {
    const bool any = std::ranges::any_of(kernel.nodes, [](const NodeInfo& node) {
        return node.kind == Kind::Operation && ir::effects(node.op).convergent;
    });
    return any ? UniformityWalk(kernel).run() : std::vector<Diagnostic>{};
}

}  // namespace ikat::ast
