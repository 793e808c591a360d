// SPDX-License-Identifier: Apache-2.0
// Lowers a captured kernel to SSA.
//
//     for i = %b until %e by %s            %limit = max(%e, lowest + %s) - %s
//         total = total + %x               branch %b < %e, ^body(%b, %t0), ^exit(%t0)
//                                   ==>  ^body(%i, %t):
//                                          %t1 = add %t, %x
//                                          branch %i < %limit, ^body(%i + %s, %t1), ^exit(%t1)
// A `while_` is tested before its first iteration and after each.
// One walk over the nodes turns them into instructions; Paths (paths.hpp) determines the values of variables where
// paths meet. A range with an unroll factor is lowered like any other; its back edge carries the factor.
// A `range` never wraps: i is compared with a limit, computed once, before the step is added. Needs: a kernel that
// passed ast::check. Leaves: dead parameters and repeated constants, which the passes remove.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "codegen/ir/op/forms/wgmma.hpp"
#include "codegen/ir/op/shape.hpp"
#include "codegen/lower/lower.hpp"
#include "codegen/lower/paths.hpp"
#include "codegen/support/inline_vector.hpp"

namespace ikat::lower {
namespace {

using ast::Kind;
using ast::Node;
using ir::Block;
using ir::Op;
using ir::Type;
using ir::Value;

struct OpenLoop {
    Join* next;  // continue goes here
    Join* exit;  // break goes here
};

class Lowering {
public:
    explicit Lowering(const ast::KernelTree& kernel) : kernel_(kernel), values_(kernel.nodes.size(), ir::no_value) {
        fn_.name = kernel.name;
        fn_.is_entry = !kernel.is_function;
        fn_.parameters = kernel.parameters;
        fn_.gives = kernel.gives;
        fn_.symbols = kernel.symbols;
        fn_.texts = kernel.texts;
        fn_.bounds = kernel.bounds;
        fn_.reserve(kernel.nodes.size() + kernel.nodes.size() / 4);  // some for the passes
        fn_.add_block();
    }

    ir::Function run() {
        lower_bases();
        lower(kernel_.body());
        if (paths_.reachable()) paths_.terminate(ir::Terminator::Kind::Return);
        return std::move(fn_);
    }

private:
    // ---- places and values

    /// Lowers the bases of subscripts once, in the entry: pointers and symbols. Unused ones are dead code.
    void lower_bases() {
        for (std::uint32_t i = 0; i < fn_.parameters.size(); ++i)
            pointers_.push_back(fn_.parameters[i].access == ir::Access::Value ? ir::no_value
                                                                              : build_.leaf(Op::Param, Type::U64, i));
        for (std::uint32_t i = 0; i < fn_.symbols.size(); ++i)
            symbols_.push_back(build_.leaf(Op::Symbol, Type::U32, i));
    }

    Value value(Node node) const { return values_[index(node)]; }

    using Few = InlineVector<Value, 8>;
    Few values(std::span<const Node> nodes) const {
        Few out;
        for (Node node : nodes) out.push_back(value(node));
        return out;
    }

    struct Address {
        Value value;
        ir::Space space;
    };

    /// Of what is accessed: an element, or a vector of them, whose index times its elements may be more than the
    /// index's type holds. Shared and local addresses are 32 bits.
    Address address(const ast::NodeInfo& node) {
        const bool global = node.place.base == ast::Place::Base::Parameter;
        const std::uint32_t size = ir::info(ast::element_type(node)).bytes;
        Value base = global ? pointers_[node.place.index] : symbols_[node.place.index];
        const bool peer = node.place.peer != ast::no_node;
        if (peer) base = value(node.place.peer);
        if (node.place.offset != ast::no_node) base = further(base, value(node.place.offset), size);
        return {further(base, value(node.arguments[0]), size * node.memory.count),
                global ? ir::Space::Global
                : peer ? ir::Space::Peer
                       : fn_.symbols[node.place.index].space};
    }
    Value further(Value base, Value index, std::uint32_t bytes) {
        if (!contains(ir::Int, fn_.type(index))) index = build_.convert(fn_.type(base), index);
        return build_.make({.op = Op::At,
                            .type = fn_.type(base),
                            .from = fn_.type(index),
                            .attribute = ir::pack(ir::AddressForm{.scale = bytes})},
                           std::array{base, index});
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
            if (!paths_.reachable()) return;
            build_.set_location(kernel_[node].where);
            if (kernel_[node].kind != Kind::Operation) pass_on(node, {.op = Op::WgmmaFence});
            lower(node, kernel_[node]);
        }
    }

    void lower(Node id, const ast::NodeInfo& node) {
        switch (node.kind) {
            case Kind::Operation: values_[index(id)] = operation(id, node); break;
            case Kind::Read: values_[index(id)] = paths_[node.variable]; break;
            case Kind::Load: values_[index(id)] = load(node); break;
            case Kind::Extract: values_[index(id)] = extract(node); break;
            case Kind::Address: values_[index(id)] = address(node).value; break;
            case Kind::Atomic: values_[index(id)] = atomic(node); break;
            case Kind::Declare: paths_[node.variable] = ir::no_value; break;
            case Kind::Assign: paths_[node.variable] = value(node.arguments[0]); break;
            case Kind::Store: store(node); break;
            case Kind::If: lower_if(node); break;
            case Kind::For: lower_for(node); break;
            case Kind::While: lower_while(node); break;
            case Kind::Break: paths_.jump_to(*loops_.back().exit); break;
            case Kind::Continue: paths_.jump_to(*loops_.back().next); break;
            case Kind::Return: lower_return(node); break;
            case Kind::Scope: lower_scope(node); break;
            case Kind::Leave: paths_.jump_to(*scopes_.back()); break;
        }
    }

    /// In one-dimensional blocks, which each launch checks, the other extents are 1: warp_id() is tid.x / 32.
    std::optional<ir::Word> known(const ast::NodeInfo& node) const {
        using enum ir::SpecialRegister;
        if (node.op != Op::Special || !kernel_.block.linear) return {};
        const auto which = ir::SpecialRegister(ir::Word{node.attribute});
        if (which == TidY || which == TidZ) return 0;
        if (which == NtidY || which == NtidZ) return 1;
        return {};
    }

    Value operation(Node id, const ast::NodeInfo& node) {
        if (node.op == Op::Wgmma) return product(node);
        if (node.op == Op::WgmmaFence || node.op == Op::WgmmaWait)
            return pass_on(id, {.op = node.op, .attribute = node.attribute});
        if (const auto word = known(node)) return build_.constant(node.type, *word);
        const ir::Instruction inst{
            .op = node.op, .type = node.operand_type, .from = node.from, .fp = node.fp, .attribute = node.attribute};
        const Few operands = values(node.arguments);
        if (!ir::info(node.op).shape.variadic) return build_.make(inst, operands);
        const std::span<const Type> one(&node.type, node.type == Type::Void ? 0 : 1);
        const ir::Inst made = build_.append(inst, operands, node.results.empty() ? one : std::span(node.results));
        return node.type == Type::Void ? ir::no_value : fn_.result(made);
    }

    /// Its operands are A, B, perhaps whether it adds, and what it adds to, which becomes its results.
    Value product(const ast::NodeInfo& node) {
        const ast::VariableRange sums = ast::sums_of(node), factors = ast::factors_of(node);
        Few operands;
        for (std::uint32_t i = 0; i < factors.count; ++i) operands.push_back(paths_[nth(factors, i)]);
        for (const Node argument : node.arguments) operands.push_back(value(argument));
        const auto form = ir::unpack<ir::WgmmaForm>(node.attribute);
        if (form.adds != ir::WgmmaForm::Sum::Overwrites)
            for (std::uint32_t i = 0; i < sums.count; ++i) operands.push_back(paths_[nth(sums, i)]);
        const ir::Instruction inst{.op = node.op,
                                   .type = node.operand_type,
                                   .attribute = node.attribute,
                                   .tie = ir::shape_of(node.op, node.attribute).tie};
        const std::vector<Type> types(sums.count, node.operand_type);
        const auto results = fn_.results(build_.append(inst, operands, types));
        for (std::uint32_t i = 0; i < sums.count; ++i) paths_[nth(sums, i)] = results[i];
        return ir::no_value;
    }
    static ast::Variable nth(ast::VariableRange variables, std::uint32_t i) {
        return ast::Variable(index(variables.first) + i);
    }

    /// A fence or a wait, or a fence before control flow: what it is about comes out as it goes in.
    Value pass_on(Node id, ir::Instruction inst) {
        std::vector<Value> operands;
        std::vector<Type> types;
        std::vector<ast::Variable> passed;
        for (const ast::VariableRange& variables : products_.passed(id))
            for (std::uint32_t i = 0; i < variables.count; ++i)
                if (const Value now = paths_[nth(variables, i)]; now != ir::no_value)
                    operands.push_back(now), types.push_back(fn_.type(now)), passed.push_back(nth(variables, i));
        if (operands.empty() && kernel_[id].kind != Kind::Operation) return ir::no_value;
        inst.tie = {0, 0, std::uint16_t(operands.size())};
        const ir::Inst made = build_.append(inst, operands, types);
        for (std::size_t i = 0; i < passed.size(); ++i) paths_[passed[i]] = fn_.results(made)[i];
        return ir::no_value;
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
        Few operands = values(node.arguments);
        operands[0] = where;
        build_.make(access(Op::Store, node, space), operands);
    }

    Value atomic(const ast::NodeInfo& node) {
        const auto [where, space] = address(node);
        Few operands = values(node.arguments);
        operands[0] = where;
        ir::Instruction inst = access(node.op, node, space);
        inst.attribute = node.attribute;
        return build_.make(inst, operands);
    }

    void lower_return(const ast::NodeInfo& node) {
        paths_.terminate(ir::Terminator::Kind::Return);
        if (!node.arguments.empty()) fn_[build_.block()].terminator.given = value(node.arguments[0]);
    }

    // ---- if

    void lower_if(const ast::NodeInfo& node) {
        const bool has_else = node.regions[1] != ast::no_region;
        const Block then = fn_.add_block();
        const Block otherwise = has_else ? fn_.add_block() : no_id<Block>;
        Join after = paths_.new_join();
        build_.branch(value(node.arguments[0]), then, has_else ? otherwise : after.block);
        if (!has_else) paths_.leads_to(after, 1);
        const Values before = paths_.variables();
        lower_arm(then, node.regions[0], after);
        paths_.set_variables(before);
        if (has_else) lower_arm(otherwise, node.regions[1], after);
        paths_.enter(after);
    }

    void lower_arm(Block block, ast::Region region, Join& after) {
        paths_.enter(block);
        lower(region);
        if (paths_.reachable()) paths_.jump_to(after);
    }

    // ---- functions that are inlined

    void lower_scope(const ast::NodeInfo& node) {
        Join after = paths_.new_join();
        scopes_.push_back(&after);
        lower(node.regions[0]);
        scopes_.pop_back();
        if (paths_.reachable()) paths_.jump_to(after);
        paths_.enter(after);
    }

    // ---- loops

    /// By node: whether a region other than its own uses its value.
    static std::vector<bool> find_used_elsewhere(const ast::KernelTree& kernel) {
        std::vector<std::size_t> home(kernel.nodes.size());
        for (std::size_t region = 0; region < kernel.regions.size(); ++region)
            for (Node node : kernel.regions[region]) home[index(node)] = region;
        std::vector<bool> out(kernel.nodes.size());
        for (std::size_t region = 0; region < kernel.regions.size(); ++region)
            for (Node user : kernel.regions[region]) {
                const auto use = [&](Node node) {
                    if (node != ast::no_node && home[index(node)] != region) out[index(node)] = true;
                };
                const ast::NodeInfo& node = kernel[user];
                if (node.kind != Kind::While) std::ranges::for_each(node.arguments, use);  // its own condition
                std::ranges::for_each(node.other, use);
                use(node.guard), use(node.place.offset), use(node.place.peer);
            }
        return out;
    }

    /// Whether a condition may be computed in two places: short, without control flow, not visible to other threads,
    /// and with no value that the body uses.
    bool may_repeat(ast::Region condition) {
        constexpr std::size_t longest = 24;  // nodes
        if (used_elsewhere_.empty()) used_elsewhere_ = find_used_elsewhere(kernel_);
        return kernel_[condition].size() <= longest && std::ranges::all_of(kernel_[condition], [&](Node id) {
                   const ast::NodeInfo& node = kernel_[id];
                   if (used_elsewhere_[index(id)]) return false;
                   switch (node.kind) {
                       case Kind::Operation: return ir::effects(node.op).none();
                       case Kind::Load: return ir::is_weak(node.memory);
                       case Kind::Read:
                       case Kind::Extract:
                       case Kind::Address:
                       case Kind::Declare:
                       case Kind::Assign: return true;
                       default: return false;
                   }
               });
    }

    /// The test comes before the first iteration and again after each, so that an iteration is one block with one
    /// branch, the form of loops that ptxas handles best. A condition that may not be repeated is tested at the head,
    /// to which each iteration jumps back.
    void lower_while(const ast::NodeInfo& node) {
        const bool repeats = may_repeat(node.regions[0]);
        Join latch = paths_.new_join(), exit = paths_.new_join();
        if (repeats) test(node, fn_.add_block(), exit);
        const auto carries = paths_.carried({node.regions[0], node.regions[1]});
        const Block before = build_.block();
        const Values initial = paths_.arguments(carries);
        const Block head = paths_.enter_head(carries);
        fn_[before].terminator = {
            .kind = ir::Terminator::Kind::Jump, .targets = {{head, initial}}, .where = node.where};
        if (!repeats) test(node, fn_.add_block(), exit);
        loops_.push_back({&latch, &exit});
        lower_arm(build_.block(), node.regions[1], latch);
        loops_.pop_back();
        paths_.enter(latch);
        if (paths_.reachable() && repeats) test(node, fn_.add_block(), exit);
        if (paths_.reachable()) build_.jump(head, paths_.arguments(carries));
        paths_.enter(exit);
    }

    /// Computes the condition; if it holds the path continues in the block `holds`, else at the exit.
    void test(const ast::NodeInfo& node, Block holds, Join& exit) {
        build_.set_location(node.where);
        lower(node.regions[0]);
        build_.branch(value(node.arguments[0]), holds, exit.block);
        paths_.leads_to(exit, 1);
        paths_.enter(holds);
    }

    /// The numbers of a range, evaluated once before it.
    struct Range {
        Type type;
        Value begin, end, step;
    };

    /// The value below which i must be for another iteration: end - step, but never below the type's lowest value.
    Value limit(const Range& range) {
        Value minimum = range.step;
        if (ir::is_signed(range.type)) {
            const ir::Word lowest = ir::Word{1} << (ir::bits(range.type) - 1);
            minimum = build_.make(Op::Add, range.type, {build_.constant(range.type, lowest), range.step});
        }
        const Value reachable = build_.make(Op::Max, range.type, {range.end, minimum});
        return build_.make(Op::Sub, range.type, {reachable, range.step});
    }

    /// A loop whose first iteration is certain, guarded by a branch past it. What only the loop needs, such as its
    /// limit, is computed after that branch.
    void lower_for(const ast::NodeInfo& node) {
        const Range range{kernel_[node.variable].type, value(node.arguments[0]), value(node.arguments[1]),
                          value(node.arguments[2])};
        const auto carries = paths_.carried({node.regions[0]});
        Join exit = paths_.new_join();
        paths_[node.variable] = ir::no_value;  // none on the path past the loop
        paths_.enter(branch_past(range.begin, range.end, exit));
        const Value last_head = limit(range);  // below it another iteration follows
        Values initial = paths_.arguments(carries);
        initial.push_back(range.begin);
        const Block before = build_.block();
        const Block head = paths_.enter_head(carries);
        const Value i = fn_.add_parameter(head, range.type);
        fn_[before].terminator = {
            .kind = ir::Terminator::Kind::Jump, .targets = {{head, std::move(initial)}}, .where = node.where};

        paths_[node.variable] = i;
        Join latch = paths_.new_join();
        loops_.push_back({&latch, &exit});
        lower_arm(build_.block(), node.regions[0], latch);
        loops_.pop_back();
        paths_.enter(latch);
        if (paths_.reachable()) lower_step(node, range, {head, paths_.arguments(carries)}, i, last_head, exit);
        paths_.enter(exit);
    }

    /// Branches to the returned block if i < limit, else past it.
    Block branch_past(Value i, Value limit, Join& past) {
        const Block inside = fn_.add_block();
        build_.branch(build_.make(Op::Lt, fn_.type(i), {i, limit}), inside, past.block);
        paths_.leads_to(past, 1);
        return inside;
    }

    /// The end of an iteration: continues with the next one through `again`, or at the loop's exit.
    void lower_step(const ast::NodeInfo& node, const Range& range, ir::Jump again, Value i, Value last_head,
                    Join& exit) {
        build_.set_location(node.where);
        // The test comes first: then i is dead after the step is added, and both can share a register.
        const Value more = build_.make(Op::Lt, range.type, {i, last_head});
        again.arguments.push_back(build_.make(Op::Add, range.type, {i, range.step}));
        build_.branch(more, again.to, exit.block);
        ir::Terminator& terminator = fn_[build_.block()].terminator;
        terminator.targets[0] = std::move(again);
        terminator.unroll = std::uint32_t(node.attribute);
        paths_[node.variable] = i;
        paths_.leads_to(exit, 1);
        paths_.end();
    }

    const ast::KernelTree& kernel_;
    const ast::Products products_ = ast::follow_products(kernel_);
    ir::Function fn_;
    ir::Builder build_{fn_, ir::Block(0)};
    Paths paths_{kernel_, products_, fn_, build_};
    std::vector<Value> values_;              // by ast::Node
    std::vector<Value> pointers_, symbols_;  // by parameter, by symbol
    std::vector<OpenLoop> loops_;            // innermost last
    std::vector<Join*> scopes_;              // innermost last: the targets of Leave
    std::vector<bool> used_elsewhere_;       // by ast::Node, computed on demand
};

}  // namespace

ir::Function ast_to_ssa(const ast::KernelTree& kernel) { return Lowering(kernel).run(); }

ir::Module lower_module(const ast::KernelTree& kernel) {
    ir::Module out;
    for (const ast::KernelTree& function : kernel.functions) out.functions.push_back(ast_to_ssa(function));
    out.functions.push_back(ast_to_ssa(kernel));
    return out;
}

}  // namespace ikat::lower
