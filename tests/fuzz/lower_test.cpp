// SPDX-License-Identifier: Apache-2.0
// Random structured kernels, run as an AST and, lowered, as IR: both must leave the same memory. Loops have break and
// continue, bounds read from variables, steps and unroll factors, conditions that assign; variables are live across all
// of it. IKAT_FUZZ_COUNT and IKAT_FUZZ_SEED say how many, and from which seed on.
#include <array>
#include <random>

#include "codegen/ast/ast.hpp"
#include "codegen/ir/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/lower/lower.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/interpreter/interpreter.hpp"

namespace {

using namespace ikat;
using ast::Kind;
using ast::Node;
using ast::Region;
using ir::Op;
using ir::Type;

constexpr std::uint32_t words = 32;      // of the output buffer
constexpr std::uint64_t base = 1 << 20;  // its address

// ---- a random kernel

class Generator {
public:
    Generator(std::uint32_t seed, Type type) : random_(seed), type_(type) {}

    ast::Kernel operator()() {
        kernel_.name = "random";
        kernel_.parameters = {{.name = "out", .access = ir::Access::InOut, .element = type_}};
        kernel_.regions.emplace_back();
        for (int i = 0; i < 4; ++i) {
            variables_.push_back(new_variable());
            assign(Region(0), variables_.back(), constant(Region(0), pick(20)));
        }
        fill(Region(0), 3, false);
        for (ast::Variable variable : variables_) store(Region(0), read(Region(0), variable));
        return std::move(kernel_);
    }

private:
    std::uint32_t pick(std::uint32_t below) {
        return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random_);
    }

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

    Node constant(Region region, std::uint32_t value) {
        return add(region, {.op = Op::Const, .type = type_, .operand_type = type_, .attribute = value});
    }
    Node read(Region region, ast::Variable variable) {
        return add(region, {.kind = Kind::Read, .type = type_, .variable = variable});
    }
    Node binary(Region region, Op op, Node a, Node b, Type result) {
        return add(region, {.op = op, .type = result, .operand_type = type_, .arguments = {a, b}});
    }
    void assign(Region region, ast::Variable variable, Node value) {
        add(region, {.kind = Kind::Assign, .variable = variable, .arguments = {value}});
    }
    void store(Region region, Node value) {
        const Node place =
            add(region, {.op = Op::Const, .type = Type::U32, .operand_type = Type::U32, .attribute = pick(words)});
        add(region, {.kind = Kind::Store, .type = type_, .arguments = {place, value}});
    }

    Node value(Region region) {
        constexpr std::array ops{Op::Add, Op::Sub, Op::Mul, Op::Xor, Op::Min, Op::Max};
        const Node a = pick(2) ? read(region, variable()) : constant(region, pick(9));
        const Node b = read(region, variable());
        return binary(region, ops[pick(ops.size())], a, b, type_);
    }
    Node condition(Region region) {
        return binary(region, pick(2) ? Op::Lt : Op::Eq,
                      binary(region, Op::And, read(region, variable()), constant(region, 7), type_),
                      constant(region, pick(8)), Type::Pred);
    }
    ast::Variable variable() { return variables_[pick(std::uint32_t(variables_.size()))]; }

    void fill(Region region, int depth, bool in_loop) {
        for (std::uint32_t n = 1 + pick(4); n > 0; --n) statement(region, depth, in_loop);
    }
    void statement(Region region, int depth, bool in_loop) {
        switch (pick(depth > 0 ? 6 : 3)) {
            case 0:
            case 1: assign(region, variable(), value(region)); break;
            case 2: store(region, value(region)); break;
            case 3: leave_or_branch(region, depth, in_loop); break;
            case 4: range_loop(region, depth); break;
            case 5: counted_while(region, depth); break;
        }
    }
    void leave_or_branch(Region region, int depth, bool in_loop) {
        ast::NodeInfo node{.kind = Kind::If, .arguments = {condition(region)}};
        node.regions[0] = new_region();
        fill(node.regions[0], depth - 1, in_loop);
        if (in_loop && pick(2))
            add(node.regions[0], {.kind = pick(2) ? Kind::Break : Kind::Continue});
        else if (pick(12) == 0)
            add(node.regions[0], {.kind = Kind::Return});
        if (pick(2)) {
            node.regions[1] = new_region();
            fill(node.regions[1], depth - 1, in_loop);
        }
        add(region, node);
    }
    void range_loop(Region region, int depth) {
        const Node begin = constant(region, pick(4));
        const Node end = pick(3) ? binary(region, Op::And, read(region, variable()), constant(region, 15), type_)
                                 : constant(region, edge_of_type());
        const Node step = constant(region, end_is_edge_ ? edge_step() : 1 + pick(3));
        ast::NodeInfo node{
            .kind = Kind::For, .attribute = pick(5), .variable = new_variable(), .arguments = {begin, end, step}};
        node.regions[0] = new_region();
        assign(node.regions[0], variable(),
               binary(node.regions[0], Op::Add, read(node.regions[0], node.variable), read(node.regions[0], variable()),
                      type_));
        fill(node.regions[0], depth - 1, true);
        add(region, node);
        end_is_edge_ = false;
    }
    /// The highest value of the type, so that i + step wraps.
    std::uint32_t edge_of_type() {
        end_is_edge_ = true;
        return ir::is_signed(type_) ? 0x7fffffffu : 0xffffffffu;
    }
    std::uint32_t edge_step() { return 0x10000000u + pick(0x10000000u); }

    void counted_while(Region region, int depth) {
        const ast::Variable counter = new_variable();
        assign(region, counter, constant(region, 0));
        ast::NodeInfo node{.kind = Kind::While};
        node.regions = {new_region(), new_region()};
        // The condition may count by itself, assign other variables, and compute what the body goes on with.
        const Region head = node.regions[0], body = node.regions[1];
        const bool counts_in_condition = pick(2);
        const auto count = [&](Region region) {
            assign(region, counter, binary(region, Op::Add, read(region, counter), constant(region, 1), type_));
        };
        if (counts_in_condition) count(head);
        if (pick(3) == 0) assign(head, variable(), value(head));
        const Node computed = pick(3) == 0 ? value(head) : Node{};
        node.arguments = {binary(head, Op::Lt, read(head, counter), constant(head, pick(6)), Type::Pred)};
        if (!counts_in_condition) count(body);
        if (computed != Node{}) assign(body, variable(), computed);
        fill(body, depth - 1, true);
        add(region, node);
    }

    std::mt19937 random_;
    Type type_;
    ast::Kernel kernel_;
    std::vector<ast::Variable> variables_;
    bool end_is_edge_ = false;
};

// ---- the kernel's meaning, straight from the AST

class Meaning {
public:
    Meaning(const ast::Kernel& kernel, Type type)
        : kernel_(kernel), type_(type), values_(kernel.nodes.size()), variables_(kernel.variables.size()) {}

    std::array<std::uint32_t, words> operator()() {
        run(kernel_.body());
        return memory_;
    }

private:
    enum class Way { On, Break, Continue, Return };

    Way run(Region region) {
        for (Node node : kernel_[region])
            if (const Way way = run(node, kernel_[node]); way != Way::On) return way;
        return Way::On;
    }

    ir::Word argument(const ast::NodeInfo& node, int i) const { return values_[index(node.arguments[i])]; }

    Way run(Node id, const ast::NodeInfo& node) {
        switch (node.kind) {
            case Kind::Operation:
                values_[index(id)] = node.op == Op::Const
                                         ? node.attribute
                                         : ir::evaluate(node.op, node.operand_type, Type::Void, {},
                                                        std::array{argument(node, 0), argument(node, 1)});
                return Way::On;
            case Kind::Read: values_[index(id)] = variables_[index(node.variable)]; return Way::On;
            case Kind::Assign: variables_[index(node.variable)] = argument(node, 0); return Way::On;
            case Kind::Store: memory_[argument(node, 0)] = std::uint32_t(argument(node, 1)); return Way::On;
            case Kind::Break: return Way::Break;
            case Kind::Continue: return Way::Continue;
            case Kind::Return: return Way::Return;
            case Kind::If:
                if (argument(node, 0)) return run(node.regions[0]);
                return node.regions[1] == ast::no_region ? Way::On : run(node.regions[1]);
            case Kind::For: return run_range(node);
            default: return run_while(node);
        }
    }

    std::int64_t number(ir::Word word) const { return ir::is_signed(type_) ? std::int32_t(word) : std::int64_t(word); }

    Way run_range(const ast::NodeInfo& node) {
        const std::int64_t end = number(argument(node, 1)), step = number(argument(node, 2));
        for (std::int64_t i = number(argument(node, 0)); i < end; i += step) {
            variables_[index(node.variable)] = std::uint32_t(i);
            const Way way = run(node.regions[0]);
            if (way == Way::Return) return way;
            if (way == Way::Break) break;
        }
        return Way::On;
    }

    Way run_while(const ast::NodeInfo& node) {
        for (;;) {
            run(node.regions[0]);
            if (!argument(node, 0)) return Way::On;
            const Way way = run(node.regions[1]);
            if (way == Way::Return) return way;
            if (way == Way::Break) return Way::On;
        }
    }

    const ast::Kernel& kernel_;
    Type type_;
    std::vector<ir::Word> values_, variables_;
    std::array<std::uint32_t, words> memory_{};
};

std::array<std::uint32_t, words> run_lowered(const ir::Function& fn) {
    test::Thread thread{.scalars = {base}};
    REQUIRE(test::interpret(fn, thread) == test::End::Returned);
    std::array<std::uint32_t, words> memory{};
    for (const auto& [address, byte] : thread.memory)
        memory[(address - base) / 4] |= std::uint32_t(byte) << (8 * (address % 4));
    return memory;
}

}  // namespace

TEST_CASE("a lowered kernel does what its AST says") {
    for (Type type : {Type::U32, Type::I32})
        for (std::uint32_t seed = test::first_seed(1), end = seed + test::seed_count(1500); seed < end; ++seed) {
            const ast::Kernel kernel = Generator(seed, type)();
            const ir::Function fn = lower::ast_to_ssa(kernel);
            INFO("seed " << seed);
            REQUIRE(ir::report(fn) == "");
            const bool same = run_lowered(fn) == Meaning(kernel, type)();
            if (!same) FAIL(ir::print(fn));
        }
}
