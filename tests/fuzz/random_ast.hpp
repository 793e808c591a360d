// SPDX-License-Identifier: Apache-2.0
// Random structured kernels, as captures produce them:
//
//     kernel random(out: inout T*)
//
// Loops with break and continue, bounds read from variables, steps and unroll factors; conditions that assign; early
// returns, also from functions inside all of these; variables that are live across all of it. Each thread works in a
// slice of `out`, with computed subscripts, guarded accesses, and atomics. On request, the threads of a block interact:
// they exchange values through shared memory between barriers, add to shared sums, vote and shuffle.
#pragma once
#include <array>
#include <utility>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "tests/fuzz/choices.hpp"

namespace ikat::test {

struct RandomAstOptions {
    ir::Type type = ir::Type::U32;  // of the variables and the elements: an integer of 16, 32 or 64 bits
    bool together = false;          // the threads of a block interact, and none returns early
};

class RandomAst : Choices {
public:
    /// The types of generated kernels.
    static constexpr std::array types{ir::Type::U16, ir::Type::I16, ir::Type::U32,
                                      ir::Type::I32, ir::Type::U64, ir::Type::I64};
    static constexpr std::uint32_t words = 32;  // of a thread's slice
    static constexpr std::uint32_t block_threads = 64;

    RandomAst(std::uint32_t seed, RandomAstOptions options)
        : Choices(seed), type_(options.type), together_(options.together) {}

    ast::KernelTree operator()() {
        kernel_.name = "random";
        kernel_.parameters = {{.name = "out", .access = ir::Access::InOut, .element = type_}};
        kernel_.regions.emplace_back();
        const Region body{};
        prologue(body);
        for (int i = 0; i < 4; ++i) {
            variables_.push_back(new_variable());
            assign(body, variables_.back(), i ? constant(body, pick(20)) : convert(body, type_, Type::U32, thread_));
        }
        fill(body, 3, false);
        for (int meetings = together_ ? 4 : 0; meetings > 0; --meetings) {
            meet(body);
            fill(body, 2, false);
        }
        for (ast::Variable variable : variables_) store(body, read(body, variable));
        return std::move(kernel_);
    }

private:
    using Kind = ast::Kind;
    using Node = ast::Node;
    using Region = ast::Region;
    using Op = ir::Op;
    using Type = ir::Type;

    // ---- nodes

    Node add(Region region, ast::NodeInfo info) {
        const Node node{std::uint32_t(kernel_.nodes.size())};
        kernel_.nodes.push_back(std::move(info));
        kernel_.regions[index(region)].push_back(node);
        return node;
    }
    Region new_region() {
        kernel_.regions.emplace_back();
        return Region(kernel_.regions.size() - 1);
    }
    ast::Variable new_variable() {
        kernel_.variables.push_back({.type = type_});
        return ast::Variable(kernel_.variables.size() - 1);
    }
    ast::Variable variable() { return any_of(variables_); }

    Node constant(Region region, Type type, std::uint64_t value) {
        return add(region, {.op = Op::Const, .type = type, .operand_type = type, .attribute = value});
    }
    Node constant(Region region, std::uint64_t value) { return constant(region, type_, value); }
    Node special(Region region, ir::SpecialRegister which) {
        return add(region,
                   {.op = Op::Special, .type = Type::U32, .operand_type = Type::U32, .attribute = ir::Word(which)});
    }
    Node operation(Region region, Op op, Type type, std::initializer_list<Node> arguments, ir::Word attribute = 0) {
        return add(region, {.op = op,
                            .type = ir::at(ir::info(op).shape.result, type),
                            .operand_type = type,
                            .attribute = attribute,
                            .arguments = arguments});
    }
    Node convert(Region region, Type to, Type from, Node value) {
        if (to == from) return value;
        return add(region, {.op = Op::Convert, .type = to, .operand_type = to, .from = from, .arguments = {value}});
    }
    Node read(Region region, ast::Variable variable) {
        return add(region, {.kind = Kind::Read, .type = type_, .variable = variable});
    }
    void assign(Region region, ast::Variable variable, Node value) {
        add(region, {.kind = Kind::Assign, .variable = variable, .arguments = {value}});
    }

    void prologue(Region body) {
        thread_ = special(body, ir::SpecialRegister::TidX);
        const Node threads = constant(body, Type::U32, block_threads);
        const Node first = operation(body, Op::Mul, Type::U32, {special(body, ir::SpecialRegister::CtaidX), threads});
        const Node number = operation(body, Op::Add, Type::U32, {first, thread_});
        const Node slice = operation(body, Op::Mul, Type::U32, {number, constant(body, Type::U32, words)});
        slice_ = convert(body, Type::U64, Type::U32, slice);
        middle_ = operation(body, Op::Add, Type::U64, {slice_, constant(body, Type::U64, words / 2)});
        if (!together_) return;
        kernel_.block = {.whole_warps = true, .linear = true, .threads = block_threads};
        for (const auto& [name, count] : {std::pair{"exchange", block_threads}, {"sums", sums}})
            kernel_.symbols.push_back({.name = name,
                                       .space = ir::Space::Shared,
                                       .element = type_,
                                       .count = count,
                                       .alignment = ir::info(type_).bytes});
        ast::NodeInfo few{
            .kind = Kind::If,
            .arguments = {operation(body, Op::Lt, Type::U32, {thread_, constant(body, Type::U32, sums)})}};
        few.regions[0] = new_region();
        const Node zero = constant(few.regions[0], 0);
        add(few.regions[0], {.kind = Kind::Store, .type = type_, .place = symbol(1), .arguments = {thread_, zero}});
        add(body, few);
        barrier(body);
    }

    // ---- memory

    struct Element {
        ast::Place place;
        Node index;
    };
    /// An element of the slice, indexed by a constant or a variable. Signed indices count from the middle, in both
    /// directions.
    Element element(Region region) {
        if (one_in(3)) return {{.offset = slice_}, constant(region, Type::U32, pick(words))};
        const Node low = operation(region, Op::And, type_, {read(region, variable()), constant(region, words - 1)});
        if (!ir::is_signed(type_)) return {{.offset = slice_}, low};
        const Node both_ways = operation(region, Op::Sub, type_, {low, constant(region, words / 2)});
        return {{.offset = middle_}, convert(region, Type::U64, type_, both_ways)};
    }
    static ast::Place symbol(std::uint32_t which) { return {.base = ast::Place::Base::Symbol, .index = which}; }

    Node load(Region region) {
        const Element from = element(region);
        ast::NodeInfo node{.kind = Kind::Load, .type = type_, .place = from.place, .arguments = {from.index}};
        if (one_in(4)) {
            node.guard = condition(region);
            node.other = {read(region, variable())};
        }
        return add(region, node);
    }
    void store(Region region, Node value) {
        const Element to = element(region);
        ast::NodeInfo node{.kind = Kind::Store, .type = type_, .place = to.place, .arguments = {to.index, value}};
        if (one_in(4)) node.guard = condition(region);
        add(region, node);
    }
    void atomic(Region region) {
        constexpr std::array ops{Op::AtomicAdd, Op::AtomicMin, Op::AtomicMax, Op::AtomicExchange, Op::AtomicCas};
        const Op op = any_of(ops);
        const Element of = element(region);
        ast::NodeInfo node{.kind = Kind::Atomic,
                           .op = op,
                           .type = type_,
                           .memory = {.order = ir::Order::Relaxed, .scope = ir::Scope::Gpu},
                           .place = of.place,
                           .arguments = {of.index, read(region, variable())}};
        if (op == Op::AtomicCas) node.arguments.push_back(value(region));
        const Node old = add(region, node);
        if (pick(2)) assign(region, variable(), old);
    }

    // ---- what all threads of a block do together

    void barrier(Region body) { add(body, {.op = Op::Barrier}); }
    Node members(Region body) { return constant(body, Type::U32, 0xffffffff); }

    void meet(Region body) {
        switch (pick(3)) {
            case 0: return exchange(body);
            case 1: {
                const Node voted = operation(body, Op::Ballot, Type::U32, {condition(body), members(body)});
                return assign(body, variable(), convert(body, type_, Type::U32, voted));
            }
            case 2: {
                const Node given = convert(body, Type::U32, type_, read(body, variable()));
                const Node got = operation(
                    body, Op::Shuffle, Type::U32,
                    {given, constant(body, Type::U32, pick(32)), constant(body, Type::U32, 31), members(body)},
                    ir::Word(ir::ShuffleMode::Xor));
                return assign(body, variable(), convert(body, type_, Type::U32, got));
            }
        }
    }
    /// Each thread passes a value to another and adds one to a sum; after the barrier it reads the value passed to it,
    /// and the sum.
    void exchange(Region body) {
        add(body,
            {.kind = Kind::Store, .type = type_, .place = symbol(0), .arguments = {thread_, read(body, variable())}});
        const Node which = constant(body, Type::U32, pick(sums));
        add(body, {.kind = Kind::Atomic,
                   .op = Op::AtomicAdd,
                   .type = type_,
                   .memory = {.order = ir::Order::Relaxed, .scope = ir::Scope::Cta},
                   .place = symbol(1),
                   .arguments = {which, read(body, variable())}});
        barrier(body);
        const Node partner =
            operation(body, Op::Xor, Type::U32, {thread_, constant(body, Type::U32, pick(block_threads))});
        const Node given = add(body, {.kind = Kind::Load, .type = type_, .place = symbol(0), .arguments = {partner}});
        const Node sum = add(body, {.kind = Kind::Load, .type = type_, .place = symbol(1), .arguments = {which}});
        barrier(body);
        assign(body, variable(), operation(body, Op::Sub, type_, {given, sum}));
    }

    // ---- values and statements

    Node value(Region region) {
        constexpr std::array ops{Op::Add, Op::Sub, Op::Mul, Op::And, Op::Xor, Op::Min, Op::Max};
        const Node a = pick(2) ? read(region, variable()) : constant(region, pick(9));
        const Node b = read(region, variable());
        switch (pick(6)) {
            case 0: return shifted(region, a, b);
            case 1: return narrowed(region, operation(region, Op::Add, type_, {a, b}));
            default: return operation(region, any_of(ops), type_, {a, b});
        }
    }
    /// A shift by amounts up to the width and beyond.
    Node shifted(Region region, Node a, Node b) {
        const Node amount = convert(region, Type::U32, type_,
                                    operation(region, Op::And, type_, {b, constant(region, pick(2) ? 31 : 127)}));
        return operation(region, pick(2) ? Op::Shl : Op::Shr, type_, {a, amount});
    }
    /// Converts to another width, signed or unsigned, and back.
    Node narrowed(Region region, Node a) {
        constexpr std::array types{Type::U8,  Type::I8,  Type::U16, Type::I16,
                                   Type::U32, Type::I32, Type::U64, Type::I64};
        const Type through = any_of(types);
        return convert(region, type_, through, convert(region, through, type_, a));
    }
    Node condition(Region region) {
        const Node low = operation(region, Op::And, type_, {read(region, variable()), constant(region, 7)});
        return operation(region, pick(2) ? Op::Lt : Op::Eq, type_, {low, constant(region, pick(8))});
    }

    void fill(Region region, int depth, bool in_loop) {
        for (std::uint32_t n = 1 + pick(4); n > 0; --n) statement(region, depth, in_loop);
    }
    void statement(Region region, int depth, bool in_loop) {
        switch (pick(depth > 0 ? 9 : 5)) {
            case 0:
            case 1: return assign(region, variable(), value(region));
            case 2: return store(region, value(region));
            case 3: return assign(region, variable(), load(region));
            case 4: return atomic(region);
            case 5: return leave_or_branch(region, depth, in_loop);
            case 6: return range_loop(region, depth);
            case 7: return counted_while(region, depth);
            case 8: return scope(region, depth);
        }
    }
    void leave_or_branch(Region region, int depth, bool in_loop) {
        ast::NodeInfo node{.kind = Kind::If, .arguments = {condition(region)}};
        node.regions[0] = new_region();
        fill(node.regions[0], depth - 1, in_loop);
        if (in_loop && pick(2))
            add(node.regions[0], {.kind = pick(2) ? Kind::Break : Kind::Continue});
        else if (scopes_ > 0 && pick(2))
            add(node.regions[0], {.kind = Kind::Leave});
        else if (!together_ && one_in(12))
            add(node.regions[0], {.kind = Kind::Return});
        if (pick(2)) {
            node.regions[1] = new_region();
            fill(node.regions[1], depth - 1, in_loop);
        }
        add(region, node);
    }
    /// An inlined function; its loops do not count as the caller's.
    void scope(Region region, int depth) {
        ast::NodeInfo node{.kind = Kind::Scope};
        node.regions[0] = new_region();
        ++scopes_;
        fill(node.regions[0], depth - 1, false);
        --scopes_;
        add(region, node);
    }
    void range_loop(Region region, int depth) {
        // Up to the value of a variable, from zero or from the type's lowest number; or up to its highest number, with
        // steps that would go past it.
        const ir::Word highest = ~ir::Word{0} >> (64 - ir::bits(type_) + (ir::is_signed(type_) ? 1 : 0));
        const ir::Word far = (ir::Word{0x10000000u + pick(0x10000000u)} << 32) >> (64 - ir::bits(type_));
        const bool to_highest = one_in(3), from_lowest = ir::is_signed(type_) && one_in(3);
        const ir::Word lowest = from_lowest && !to_highest ? highest + 1 : 0;
        const Node begin = constant(region, lowest + pick(4));
        Node end = constant(region, highest);
        if (!to_highest) {
            end = operation(region, Op::And, type_, {read(region, variable()), constant(region, 15)});
            end = operation(region, Op::Add, type_, {end, constant(region, lowest)});
        }
        const ir::Word step = to_highest ? far : 1 + pick(3);
        ast::NodeInfo node{.kind = Kind::For,
                           .attribute = pick(5),
                           .variable = new_variable(),
                           .arguments = {begin, end, constant(region, step)}};
        const Region body = node.regions[0] = new_region();
        assign(body, variable(), operation(body, Op::Add, type_, {read(body, node.variable), read(body, variable())}));
        fill(body, depth - 1, true);
        add(region, node);
    }
    void counted_while(Region region, int depth) {
        const ast::Variable counter = new_variable();
        assign(region, counter, constant(region, 0));
        ast::NodeInfo node{.kind = Kind::While};
        node.regions = {new_region(), new_region()};
        // The condition may count, assign other variables, and compute values that the body uses.
        const Region head = node.regions[0], body = node.regions[1];
        const bool counts_in_condition = pick(2);
        const auto count = [&](Region region) {
            assign(region, counter, operation(region, Op::Add, type_, {read(region, counter), constant(region, 1)}));
        };
        if (counts_in_condition) count(head);
        if (one_in(3)) assign(head, variable(), value(head));
        const Node computed = one_in(3) ? value(head) : Node{};
        node.arguments = {operation(head, Op::Lt, type_, {read(head, counter), constant(head, pick(6))})};
        if (!counts_in_condition) count(body);
        if (computed != Node{}) assign(body, variable(), computed);
        fill(body, depth - 1, true);
        add(region, node);
    }

    static constexpr std::uint32_t sums = 8;

    Type type_;
    bool together_;
    ast::KernelTree kernel_;
    std::vector<ast::Variable> variables_;
    int scopes_ = 0;                      // open ones
    Node thread_{}, slice_{}, middle_{};  // tid.x; the slice's first element and its middle, u64
};

}  // namespace ikat::test
