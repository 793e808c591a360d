// SPDX-License-Identifier: Apache-2.0
// Follows which values are the same for all threads of a block, or of a warp, and which threads are where.
//
//     u32 i = global_id().x;              i: differs between threads
//     if_(i < n, [&] {                    from here on: some threads
//         sync_block();                   diagnostic: with this line and that of the if_
//     });
//     if_(thread_id().x < 32, [&] {       whole warps, because 32 is a multiple of the warp
//         v = v + shuffle_down(v, 1);     fine
//     });
//
// The walk carries the level of each variable (flow-sensitive: a variable has the level of what it was last assigned).
// Where ways meet that different threads have gone, variables with different definitions differ. Loops run until
// nothing rises. Blocks are taken to be multiples of 32 threads wide.
#include "codegen/ast/uniformity.hpp"

#include <algorithm>
#include <utility>

namespace ikat::ast {
namespace {

using ir::Op;

enum class Level : std::uint8_t { Block, Warp, Thread };  // within which a value may differ: not at all, warps, threads

struct Shape {
    Level level = Level::Block;
    bool linear = false;           // thread_id().x plus something that is the same throughout a warp
    bool combined = false;         // made of other lanes' values, as a reduction is: taken to be uniform
    std::uint32_t definition = 0;  // of a variable: where it got this value; equal ones are equal values
    bool operator==(const Shape&) const = default;
};

/// Which threads are here: all, some warps, some threads; and which line has parted them.
struct Control {
    Level level = Level::Block;
    Location parted{};
};
Control join(const Control& a, const Control& b) { return b.level > a.level ? b : a; }

using Variables = std::vector<Shape>;

class UniformityWalk {
public:
    explicit UniformityWalk(const Kernel& kernel) : kernel_(kernel), shapes_(kernel.nodes.size()) {
        variables_.resize(kernel.variables.size());
    }

    std::vector<Diagnostic> run() {
        walk(kernel_.body(), {});
        return std::move(diagnostics_);
    }

private:
    struct Loop {
        Control broken, continued;       // threads that have left, or have gone on to the next round
        std::vector<Variables> exits;    // at its break_()s
        std::vector<Variables> latches;  // at its continue_()s
    };

    // ---- values

    const Shape& shape(Node node) const { return shapes_[index(node)]; }

    const NodeInfo* constant(Node node) const {
        const NodeInfo& info = kernel_[node];
        return info.kind == Kind::Operation && info.op == Op::Const ? &info : nullptr;
    }
    bool is_constant(Node node, auto&& test) const {
        const NodeInfo* info = constant(node);
        return info && test(info->attribute);
    }
    static bool whole_warps(ir::Word n) { return n % 32 == 0; }

    bool any_combined(std::span<const Node> nodes) const {
        return std::ranges::any_of(nodes, [&](Node node) { return shape(node).combined; });
    }

    Level highest(std::span<const Node> nodes) const {
        Level out = Level::Block;
        for (Node node : nodes) out = std::max(out, shape(node).level);
        return any_combined(nodes) ? Level::Block : out;
    }

    /// Whether adding this to a linear value leaves it linear.
    bool is_offset(Node node) const {
        return shape(node).level != Level::Thread && (!constant(node) || is_constant(node, whole_warps));
    }

    bool is_linear(const NodeInfo& node) const {
        const auto& a = node.arguments;
        const auto linear = [&](std::size_t i) { return shape(a[i]).linear; };
        switch (node.op) {
            case Op::Special:
                return ir::SpecialRegister(node.attribute) == ir::SpecialRegister::TidX ||
                       ir::SpecialRegister(node.attribute) == ir::SpecialRegister::LaneId;
            case Op::Add: return (linear(0) && is_offset(a[1])) || (linear(1) && is_offset(a[0]));
            case Op::Sub: return linear(0) && is_offset(a[1]);
            case Op::Fma: return linear(2) && highest(std::span(a).first(2)) != Level::Thread;
            case Op::Convert: return linear(0) && ir::contains(ir::Int, node.type);
            default: return false;
        }
    }

    /// Whether an operation on a linear value gives the same for all threads of a warp.
    bool is_whole_warps(const NodeInfo& node) const {
        if (node.arguments.size() != 2 || !shape(node.arguments[0]).linear) return false;
        const Node right = node.arguments[1];
        switch (node.op) {
            case Op::Div:
            case Op::Lt:
            case Op::Ge: return is_constant(right, whole_warps);
            case Op::Le:
            case Op::Gt: return is_constant(right, [](ir::Word n) { return n % 32 == 31; });
            case Op::Shr: return is_constant(right, [](ir::Word n) { return n >= 5; });
            case Op::And: return is_constant(right, [](ir::Word n) { return n % 32 == 0; });
            default: return false;
        }
    }

    static Level level_of(ir::SpecialRegister which) {
        switch (which) {
            case ir::SpecialRegister::TidY:
            case ir::SpecialRegister::TidZ:
            case ir::SpecialRegister::WarpId: return Level::Warp;
            default: return ir::differs_in_warp(which) ? Level::Thread : Level::Block;
        }
    }

    /// Whether a convergent operation gives each lane something of its own.
    static bool differs_by_lane(const NodeInfo& node) {
        const auto mode = ir::ShuffleMode(node.attribute);
        const bool moves = node.op == Op::Shuffle && (mode == ir::ShuffleMode::Up || mode == ir::ShuffleMode::Down);
        return moves || node.op == Op::MatchAny || node.op == Op::Elect || node.op == Op::ActiveMask ||
               !ir::is_collective(node.op);
    }

    Shape operation(const NodeInfo& node) const {
        const Level arguments = highest(node.arguments);
        if (ir::info(node.op).attribute == ir::Attribute::Special)
            return {level_of(ir::SpecialRegister(node.attribute)), is_linear(node)};
        // A reduction ends with the same value everywhere. Only moving values up or down never does that.
        if (ir::effects(node.op).convergent)
            return differs_by_lane(node) ? Shape{Level::Thread} : Shape{.level = Level::Block, .combined = true};
        if (is_whole_warps(node)) return {Level::Warp};
        return {arguments, is_linear(node), any_combined(node.arguments)};
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
        Shape& own = shapes_[index(id)];
        switch (node.kind) {
            case Kind::Operation:
                if (ir::effects(node.op).convergent) expect_together(node, here(control));
                own = operation(node);
                break;
            case Kind::Read: own = variables_[index(node.variable)]; break;
            case Kind::Load: own = load(node); break;
            case Kind::Extract: own = {shape(node.arguments[0]).level}; break;
            case Kind::Atomic: own = {Level::Thread}; break;
            case Kind::Declare: variables_[index(node.variable)] = {}; break;
            case Kind::Assign: {
                Shape& variable = variables_[index(node.variable)];
                variable = shape(node.arguments[0]);
                variable.definition = index(id) + 1;
                break;
            }
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

    Shape load(const NodeInfo& node) const {
        Level level = std::max(highest(node.arguments), highest(node.other));
        for (Node other : {node.guard, node.place.offset})
            if (other != no_node) level = std::max(level, shape(other).level);
        return {level};
    }

    /// Ways meet that threads have taken differently at `level`; `id` is where.
    static void meet(Variables& into, const Variables& other, Level level, Node id) {
        for (std::size_t v = 0; v < into.size(); ++v) {
            Shape& a = into[v];
            const Shape& b = other[v];
            if (a.definition == b.definition && a.level == b.level) continue;
            const bool alike = level != Level::Thread;
            a = {std::max({a.level, b.level, level}), a.linear && b.linear && alike, a.combined && b.combined && alike,
                 index(id) + 1};
        }
    }

    static Control inside(const Control& control, Level condition, const NodeInfo& node) {
        return join(control, {condition, node.where});
    }

    void visit_if(Node id, const NodeInfo& node, const Control& control) {
        const Level condition = shape(node.arguments[0]).level;
        const Control arms = inside(control, condition, node);
        const Variables before = variables_;
        walk(node.regions[0], arms);
        const Variables after_then = std::exchange(variables_, before);
        walk(node.regions[1], arms);
        meet(variables_, after_then, condition, id);
    }

    /// Behind it those that have left it and those that have come to its end are together again.
    void visit_scope(Node id, const NodeInfo& node, const Control& control) {
        std::vector<Variables> leaves;
        std::vector<Variables>* const outer = std::exchange(leaves_, &leaves);
        const Control left_before = left_;
        walk(node.regions[0], control);
        for (const Variables& at : leaves) meet(variables_, at, left_.level, id);
        left_ = left_before;
        leaves_ = outer;
    }

    /// Rounds until nothing rises; what the last of them finds is reported. `round` walks the loop once and gives its
    /// control.
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
            for (const Variables& latch : loop.latches) meet(variables_, latch, loop.continued.level, id);
            Variables next = head;
            meet(next, variables_, Level::Block, id);
            again = next != head || broken.level != loop.broken.level || returned.level != returned_.level ||
                    left.level != left_.level;
            variables_ = std::move(next);
        }
        const Level level = join(control, loop.broken).level;
        for (const Variables& exit : loop.exits) meet(variables_, exit, level, id);
        Variables after = before;
        meet(after, variables_, level, id);
        variables_ = std::move(after);
        loop_ = outer;
    }

    Level trips(const NodeInfo& node) const {
        const auto& a = node.arguments;
        const bool whole = shape(a[0]).linear && is_constant(a[1], whole_warps) && is_offset(a[2]);
        return whole ? Level::Warp : highest(a);
    }

    void visit_for(Node id, const NodeInfo& node, const Control& control) {
        const auto& a = node.arguments;
        const Control body = inside(control, trips(node), node);
        rounds(id, [&] {
            const bool linear = shape(a[0]).linear && is_offset(a[2]);
            variables_[index(node.variable)] = {
                .level = std::max(shape(a[0]).level, shape(a[2]).level), .linear = linear, .definition = index(id) + 1};
            walk(node.regions[0], body);
            return Control{trips(node), node.where};
        });
    }

    void visit_while(Node id, const NodeInfo& node, const Control& control) {
        const Node condition = node.arguments[0];
        rounds(id, [&] {
            // From the second round on, only those threads come to the condition for which it held.
            walk(node.regions[0], inside(control, shape(condition).level, node));
            walk(node.regions[1], inside(control, shape(condition).level, node));
            return Control{shape(condition).level, node.where};
        });
    }

    // ---- what has to be reached together

    void expect_together(const NodeInfo& node, const Control& control) {
        if (node.op == Op::ActiveMask || !ir::is_collective(node.op)) return;
        const bool barrier = is_barrier(node, true);
        const bool one_warp = kernel_.bounds.max_threads > 0 && kernel_.bounds.max_threads <= 32;
        if (control.level < (barrier && !one_warp ? Level::Warp : Level::Thread)) return;
        if (is_barrier(node, false)) return report_named_barrier(node, control);
        if (!barrier && !is_constant(node.arguments.back(), [](ir::Word lanes) { return lanes == 0xffffffff; })) return;
        Diagnostic out{
            .where = node.where, .message = {}, .hint = {}, .notes = {{control.parted, "the threads part here"}}};
        if (barrier) {
            out.message = "sync_block() where not all threads of the block may come";
            out.hint = "move it out of the divergent region, or branch on something that is the same for all threads";
        } else {
            out.message =
                "an operation of all 32 lanes (" + std::string(ir::name(node.op)) + ") where not all of them may come";
            out.hint =
                "move it out of the divergent region, or give it the lanes that take part: the ballot() of the "
                "condition, taken before";
        }
        diagnostics_.push_back(std::move(out));
    }

    static bool is_barrier(const NodeInfo& node, bool of_block) {
        return node.op == Op::Barrier && ir::unpack<ir::BarrierForm>(node.attribute).gathers_block() == of_block;
    }

    /// Warps may part before a barrier of some of them; the threads of a warp may not.
    void report_named_barrier(const NodeInfo& node, const Control& control) {
        diagnostics_.push_back({.where = node.where,
                                .message = "a barrier where not all threads of a warp may come",
                                .hint = "whole warps wait at a barrier: branch on something that is the same for all "
                                        "threads of a warp",
                                .notes = {{control.parted, "the threads part here"}}});
    }

    const Kernel& kernel_;
    std::vector<Shape> shapes_;  // by node
    Variables variables_;
    Control returned_, left_;                   // threads that have ended, or have left the innermost Scope
    std::vector<Variables>* leaves_ = nullptr;  // at that Scope's Leaves
    Loop* loop_ = nullptr;
    std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> divergent_operations(const Kernel& kernel) {
    const bool any = std::ranges::any_of(kernel.nodes, [](const NodeInfo& node) {
        return node.kind == Kind::Operation && ir::effects(node.op).convergent;
    });
    return any ? UniformityWalk(kernel).run() : std::vector<Diagnostic>{};
}

}  // namespace ikat::ast
