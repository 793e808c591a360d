// SPDX-License-Identifier: Apache-2.0
// Lowers a captured kernel to SSA.
//
//     for i = %b until %e by %s            %limit = max(%e, lowest + %s) - %s
//         total = total + %x               branch %b < %e, ^body(%b, %t0), ^exit(%t0)
//                                   ==>  ^body(%i, %t):
//                                          %t1 = add %t, %x
//                                          branch %i < %limit, ^body(%i + %s, %t1), ^exit(%t1)
//
// Control flow is structured, so no dominance frontiers are needed: the walk carries the current value of each
// variable. Where paths meet (after an if, at a loop's latch and exit) every incoming edge has left a snapshot, and a
// variable whose values differ becomes a block parameter. A loop's head takes the variables that its body assigns. A
// variable without a value on some incoming edge has none after it: ast::check has made sure that nobody reads it.
//
// A `range` never wraps: whether another round follows is asked of i before the step is added, against a limit computed
// once. Needs: a kernel that passed ast::check. Leaves: dead parameters and repeated constants, which the passes
// remove.
#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/ir/builder.hpp"
#include "codegen/lower/lower.hpp"

namespace ikat::lower {
namespace {

using ast::Kind;
using ast::Node;
using ir::Block;
using ir::Op;
using ir::Type;
using ir::Value;

using Values = std::vector<Value>;  // by ast::Variable; no_value = none on this path

/// A block under construction where paths meet.
struct Join {
    struct Edge {
        Block from;
        std::size_t target;  // which of the terminator's
        Values variables;
    };
    Block block;
    std::vector<Edge> edges{};
};

struct Loop {
    Join* next;  // continue goes here
    Join* exit;  // break goes here
};

class Lowering {
public:
    explicit Lowering(const ast::Kernel& kernel) : kernel_(kernel), values_(kernel.nodes.size(), ir::no_value) {
        fn_.name = kernel.name;
        fn_.parameters = kernel.parameters;
        fn_.symbols = kernel.symbols;
        fn_.texts = kernel.texts;
        fn_.bounds = kernel.bounds;
        variables_.assign(kernel.variables.size(), ir::no_value);
        fn_.add_block();
    }

    ir::Function run() {
        lower_bases();
        lower(kernel_.body());
        if (reachable_) terminate(ir::Terminator::Kind::Return);
        return std::move(fn_);
    }

private:
    // ---- places and values

    /// What subscripts start from, once, in the entry: pointers and symbols. Unused ones are dead code.
    void lower_bases() {
        for (std::uint32_t i = 0; i < fn_.parameters.size(); ++i)
            pointers_.push_back(fn_.parameters[i].access == ir::Access::Value ? ir::no_value
                                                                              : build_.leaf(Op::Param, Type::U64, i));
        for (std::uint32_t i = 0; i < fn_.symbols.size(); ++i)
            symbols_.push_back(build_.leaf(Op::Symbol, Type::U32, i));
    }

    Value value(Node node) const { return values_[index(node)]; }

    std::vector<Value> values(std::span<const Node> nodes) const {
        std::vector<Value> out;
        for (Node node : nodes) out.push_back(value(node));
        return out;
    }

    struct Address {
        Value value;
        ir::Space space;
    };

    /// base + index * size, in the width of the address space. Shared and local addresses are 32 bits.
    Address address(const ast::NodeInfo& node) {
        const bool global = node.place.base == ast::Place::Base::Parameter;
        const Type type = global ? Type::U64 : Type::U32;
        const Type element = global ? fn_.parameters[node.place.index].element : fn_.symbols[node.place.index].element;
        const Value base = global ? pointers_[node.place.index] : symbols_[node.place.index];
        Value offset = value(node.arguments[0]);
        if (fn_.type(offset) != type) offset = build_.convert(type, offset);
        const Value size = build_.constant(type, ir::info(element).bytes);
        return {build_.make(Op::Add, type, {base, build_.make(Op::Mul, type, {offset, size})}),
                global ? ir::Space::Global : fn_.symbols[node.place.index].space};
    }

    ir::Instruction access(Op op, const ast::NodeInfo& node, ir::Space space) const {
        ir::Instruction inst{.op = op, .type = node.type, .memory = node.memory};
        inst.memory.space = space;
        if (node.guard != ast::no_node) inst.guard = value(node.guard);
        return inst;
    }

    // ---- nodes

    void lower(ast::Region region) {
        for (Node node : kernel_[region]) {
            if (!reachable_) return;
            build_.set_location(kernel_[node].where);
            lower(node, kernel_[node]);
        }
    }

    void lower(Node id, const ast::NodeInfo& node) {
        switch (node.kind) {
            case Kind::Operation: values_[index(id)] = operation(node); break;
            case Kind::Read: values_[index(id)] = variables_[index(node.variable)]; break;
            case Kind::Load: values_[index(id)] = load(node); break;
            case Kind::Extract: values_[index(id)] = extract(node); break;
            case Kind::Atomic: values_[index(id)] = atomic(node); break;
            case Kind::Declare: variables_[index(node.variable)] = ir::no_value; break;
            case Kind::Assign: variables_[index(node.variable)] = value(node.arguments[0]); break;
            case Kind::Store: store(node); break;
            case Kind::If: lower_if(node); break;
            case Kind::For: lower_for(node); break;
            case Kind::While: lower_while(node); break;
            case Kind::Break: jump_to(*loops_.back().exit); break;
            case Kind::Continue: jump_to(*loops_.back().next); break;
            case Kind::Return: terminate(ir::Terminator::Kind::Return); break;
        }
    }

    Value operation(const ast::NodeInfo& node) {
        const ir::Instruction inst{
            .op = node.op, .type = node.operand_type, .from = node.from, .fp = node.fp, .attribute = node.attribute};
        const std::vector<Value> operands = values(node.arguments);
        if (!ir::info(node.op).shape.variadic) return build_.make(inst, operands);
        const ir::Inst made = build_.append(inst, operands, std::span(&node.type, node.type == Type::Void ? 0 : 1));
        return node.type == Type::Void ? ir::no_value : fn_.result(made);
    }

    Value load(const ast::NodeInfo& node) {
        const auto [where, space] = address(node);
        ir::Instruction inst = access(Op::Load, node, space);
        std::vector<Value> operands{where};
        for (Node other : node.other) operands.push_back(value(other));
        if (node.guard != ast::no_node) inst.tie = {.result = 0, .operand = 1, .count = inst.memory.count};
        return build_.make(inst, operands);
    }

    Value extract(const ast::NodeInfo& node) const {
        const ir::Inst source = fn_[value(node.arguments[0])].instruction;
        return fn_.results(source)[node.attribute];
    }

    void store(const ast::NodeInfo& node) {
        const auto [where, space] = address(node);
        std::vector<Value> operands = values(node.arguments);
        operands[0] = where;
        build_.make(access(Op::Store, node, space), operands);
    }

    Value atomic(const ast::NodeInfo& node) {
        const auto [where, space] = address(node);
        std::vector<Value> operands = values(node.arguments);
        operands[0] = where;
        return build_.make(access(node.op, node, space), operands);
    }

    // ---- where paths part and meet

    void terminate(ir::Terminator::Kind kind) {
        build_.terminate(kind);
        reachable_ = false;
    }

    /// Target `target` of the current block's terminator leads to `join`, with the variables as they are now.
    void leads_to(Join& join, std::size_t target) { join.edges.push_back({build_.block(), target, variables_}); }

    void jump_to(Join& join) {
        build_.jump(join.block);
        leads_to(join, 0);
        reachable_ = false;
    }

    Join new_join() { return {fn_.add_block()}; }

    /// Goes on in a block with one predecessor, whose variables are those at hand.
    void enter(Block block) {
        build_.set_block(block);
        reachable_ = true;
    }

    /// Goes on where the edges of a join meet.
    void enter(const Join& join) {
        reachable_ = !join.edges.empty();
        build_.set_block(join.block);
        if (!reachable_) {
            build_.terminate(ir::Terminator::Kind::Return);  // nothing leads here; unreachable code is cleaned up
            return;
        }
        variables_ = join.edges.front().variables;
        for (std::size_t v = 0; v < variables_.size(); ++v) merge(join, v);
    }

    void merge(const Join& join, std::size_t variable) {
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

    // ---- if

    void lower_if(const ast::NodeInfo& node) {
        const bool has_else = node.regions[1] != ast::no_region;
        const Block then = fn_.add_block();
        const Block otherwise = has_else ? fn_.add_block() : no_id<Block>;
        Join after = new_join();
        build_.branch(value(node.arguments[0]), then, has_else ? otherwise : after.block);
        if (!has_else) leads_to(after, 1);
        const Values before = variables_;
        lower_arm(then, node.regions[0], after);
        variables_ = before;
        if (has_else) lower_arm(otherwise, node.regions[1], after);
        enter(after);
    }

    void lower_arm(Block block, ast::Region region, Join& after) {
        enter(block);
        lower(region);
        if (reachable_) jump_to(after);
    }

    // ---- loops

    /// The variables that the regions assign and that have a value now: the loop carries them.
    std::vector<std::size_t> carried(std::initializer_list<ast::Region> regions) const {
        std::vector<bool> assigned(variables_.size());
        for (ast::Region region : regions) mark_assigned(region, assigned);
        std::vector<std::size_t> out;
        for (std::size_t v = 0; v < assigned.size(); ++v)
            if (assigned[v] && variables_[v] != ir::no_value) out.push_back(v);
        return out;
    }

    void mark_assigned(ast::Region region, std::vector<bool>& assigned) const {
        if (region == ast::no_region) return;
        for (Node id : kernel_[region]) {
            const ast::NodeInfo& node = kernel_[id];
            if (node.kind == Kind::Assign || node.kind == Kind::For) assigned[index(node.variable)] = true;
            for (ast::Region inner : node.regions) mark_assigned(inner, assigned);
        }
    }

    /// The current values of the carried variables, as arguments of a jump to the loop's head.
    Values arguments(const std::vector<std::size_t>& carried) const {
        Values out;
        for (std::size_t v : carried) out.push_back(variables_[v]);
        return out;
    }

    /// A loop's head: from here on the carried variables are its parameters.
    Block enter_head(const std::vector<std::size_t>& carried) {
        const Block head = fn_.add_block();
        for (std::size_t v : carried) variables_[v] = fn_.add_parameter(head, kernel_.variables[v].type);
        enter(head);
        return head;
    }

    void lower_while(const ast::NodeInfo& node) {
        const auto carries = carried({node.regions[0], node.regions[1]});
        const Block before = build_.block();
        const Values initial = arguments(carries);
        const Block head = enter_head(carries);
        fn_[before].terminator = {
            .kind = ir::Terminator::Kind::Jump, .targets = {{head, initial}}, .where = node.where};
        Join latch = new_join(), exit = new_join();
        const Block body = fn_.add_block();
        lower(node.regions[0]);
        build_.branch(value(node.arguments[0]), body, exit.block);
        leads_to(exit, 1);
        loops_.push_back({&latch, &exit});
        lower_arm(body, node.regions[1], latch);
        loops_.pop_back();
        enter(latch);
        if (reachable_) build_.jump(head, arguments(carries));
        enter(exit);
    }

    /// The numbers of a range, evaluated once before it.
    struct Range {
        Type type;
        Value begin, end, step;
        std::optional<ir::Word> constant_step;
    };

    /// The value below which i must be for `rounds` more rounds to follow: end - rounds * step, but never below the
    /// type's lowest value.
    Value limit(const Range& range, ir::Word rounds) {
        if (rounds == 0) return range.end;
        const Value distance =
            rounds == 1 ? range.step : build_.constant(range.type, rounds * range.constant_step.value());
        Value least = distance;
        if (ir::is_signed(range.type)) {
            const ir::Word lowest = ir::Word{1} << (ir::bits(range.type) - 1);
            least = build_.make(Op::Add, range.type, {build_.constant(range.type, lowest), distance});
        }
        const Value reachable = build_.make(Op::Max, range.type, {range.end, least});
        return build_.make(Op::Sub, range.type, {reachable, distance});
    }

    void lower_for(const ast::NodeInfo& node) {
        const Value step = value(node.arguments[2]);
        const Range range{kernel_[node.variable].type, value(node.arguments[0]), value(node.arguments[1]), step,
                          ir::constant(fn_, step)};
        const auto carries = carried({node.regions[0]});
        const auto factor = unroll_factor(node, range);
        const Value next = limit(range, 1);
        Join exit = new_join();
        variables_[index(node.variable)] = ir::no_value;  // none on the way past the loop
        if (factor > 1) {
            lower_groups(node, range, factor, carries, exit);
        } else {
            const Block first = branch_past(range.begin, range.end, exit);
            enter(first);
            variables_[index(node.variable)] = range.begin;
        }
        if (reachable_) lower_trips(node, range, {.rounds = 1, .next = next}, carries, exit, exit);
        enter(exit);
    }

    /// Groups of `factor` rounds while that many are left; goes on before the remaining rounds, if there are any.
    void lower_groups(const ast::NodeInfo& node, const Range& range, ir::Word factor,
                      const std::vector<std::size_t>& carries, Join& exit) {
        const Value first_group = limit(range, factor - 1), next_group = limit(range, 2 * factor - 1);
        const Value rest_after_group = limit(range, factor);
        const auto i = index(node.variable);
        Join no_group = new_join(), grouped = new_join(), rest = new_join();

        const Block group = branch_past(range.begin, first_group, no_group);
        enter(group);
        variables_[i] = range.begin;
        lower_trips(node, range, {.rounds = factor, .next = next_group}, carries, grouped, exit);

        enter(grouped);
        if (reachable_) {
            const Value head_i = std::exchange(variables_[i], ir::no_value);
            enter(branch_past(head_i, rest_after_group, exit));
            variables_[i] = advance(range, head_i, factor);
            jump_to(rest);
        }
        enter(no_group);
        enter(branch_past(range.begin, range.end, exit));
        variables_[i] = range.begin;
        jump_to(rest);
        enter(rest);
    }

    /// Branches to the returned block where i < limit, else past it.
    Block branch_past(Value i, Value limit, Join& past) {
        const Block inside = fn_.add_block();
        build_.branch(build_.make(Op::Lt, fn_.type(i), {i, limit}), inside, past.block);
        leads_to(past, 1);
        return inside;
    }

    /// How many rounds one trip makes: the hint, where the step is a constant for which the limits can be computed.
    static ir::Word unroll_factor(const ast::NodeInfo& node, const Range& range) {
        const ir::Word factor = std::max<ir::Word>(node.attribute, 1);
        const ir::Word highest = (ir::Word{1} << (ir::bits(range.type) - 1)) - 1;
        return range.constant_step && *range.constant_step <= highest / (2 * factor) ? factor : 1;
    }

    Value advance(const Range& range, Value i, ir::Word rounds) {
        if (rounds == 0) return i;
        const Value distance =
            rounds == 1 ? range.step : build_.constant(range.type, rounds * range.constant_step.value());
        return build_.make(Op::Add, range.type, {i, distance});
    }

    struct Trip {
        ir::Word rounds;  // of one trip through the head
        Value next;       // another trip follows while i at the head is below this
    };

    /// A loop whose first trip is certain, from the loop variable's value on. At `done` that variable is the last
    /// head's.
    void lower_trips(const ast::NodeInfo& node, const Range& range, const Trip& trip,
                     const std::vector<std::size_t>& carries, Join& done, Join& exit) {
        const auto variable = index(node.variable);
        Values initial = arguments(carries);
        initial.push_back(variables_[variable]);
        const Block before = build_.block();
        const Block head = enter_head(carries);
        const Value i = fn_.add_parameter(head, range.type);
        fn_[before].terminator = {
            .kind = ir::Terminator::Kind::Jump, .targets = {{head, std::move(initial)}}, .where = node.where};

        for (ir::Word round = 0; round < trip.rounds && reachable_; ++round) {
            variables_[variable] = advance(range, i, round);
            Join latch = new_join();
            loops_.push_back({&latch, &exit});
            lower(node.regions[0]);
            loops_.pop_back();
            if (reachable_) jump_to(latch);
            enter(latch);
        }
        if (!reachable_) return;
        build_.set_location(node.where);
        Values again = arguments(carries);
        again.push_back(advance(range, i, trip.rounds));
        build_.branch(build_.make(Op::Lt, range.type, {i, trip.next}), head, done.block);
        fn_[build_.block()].terminator.targets[0].arguments = std::move(again);
        variables_[variable] = i;
        leads_to(done, 1);
        reachable_ = false;
    }

    const ast::Kernel& kernel_;
    ir::Function fn_;
    ir::Builder build_{fn_, ir::Block(0)};
    bool reachable_ = true;
    std::vector<Value> values_;              // by ast::Node
    Values variables_;                       // now
    std::vector<Value> pointers_, symbols_;  // by parameter, by symbol
    std::vector<Loop> loops_;                // innermost last
};

}  // namespace

ir::Function ast_to_ssa(const ast::Kernel& kernel) { return Lowering(kernel).run(); }

}  // namespace ikat::lower
