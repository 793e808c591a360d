// SPDX-License-Identifier: Apache-2.0
// Every statement and every subscript has its line.
#include <algorithm>
#include <ikat/dsl.hpp>
#include <string>

#include "codegen/ast/ast.hpp"
#include "tests/catch.hpp"
#include "tests/unit/dsl/nodes.hpp"

namespace ikat {
namespace {

/// The lines of the nodes of one kind, in the order of the kernel, counted from the kernel's own.
std::string lines(const auto& k, ast::Kind kind) {
    const ast::KernelTree& kernel = k.ast();
    std::string out;
    for (const ast::NodeInfo& node : test::nodes_in_order(kernel))
        if (node.kind == kind) out += std::to_string(node.where.line - kernel.where.line) + ' ';
    return out;
}

TEST_CASE("statements") {
    const auto k = kernel("k", [](InOut<float> x) {
        f32 a = 1;
        f32 b = a;
        f32 c;
        c = b;
        c = 2;
        c += 3;
        x[1] = c;
        x[2] = a;
        ++a;
        x[3] = a;
    });
    CHECK(lines(k, ast::Kind::Declare) == "1 2 3 ");
    CHECK(lines(k, ast::Kind::Assign) == "1 2 4 5 6 8 ");  // ++a cannot know its own
    CHECK(lines(k, ast::Kind::Store) == "7 8 10 ");
    CHECK(lines(k, ast::Kind::Read) == "2 4 6 7 8 8 10 ");
}

TEST_CASE("subscripts") {
    const auto k = kernel("k", [](InOut<float> x, u32 i) {
        auto a = x[i];
        auto b = x[i + 1];
        auto v = x.vec<2>(i);

        x[0] = a + b + v[1];
        x[1] += 1;
    });
    CHECK(lines(k, ast::Kind::Load) == "1 2 3 6 ");
    CHECK(lines(k, ast::Kind::Store) == "5 6 ");
}

TEST_CASE("control flow") {
    // clang-format off
    const auto k = kernel("k", [](InOut<float> x, u32 n) {
        if_(n > 3, [&] {
            x[0] = 1;
        }).else_if([&] { return n > 2; }, [&] {
            x[0] = 2;
        });
        for (auto i : range(n)) {
            if_(i > 4, [&] { break_(); });
            if_(i > 3, [&] { continue_(); });
            x[i] = 3;
        }
        while_([&] { return n > 3; }, [&] { n -= 1; });
        return_if(n > 4);
        x[2] = 1;
    });
    // clang-format on
    CHECK(lines(k, ast::Kind::For) == "6 ");
    CHECK(lines(k, ast::Kind::Break) == "7 ");
    CHECK(lines(k, ast::Kind::Continue) == "8 ");
    CHECK(lines(k, ast::Kind::While) == "11 ");
    CHECK(lines(k, ast::Kind::Return) == "12 ");
    CHECK(lines(k, ast::Kind::Store) == "2 4 9 13 ");
}

TEST_CASE("other threads") {
    const auto k = kernel("k", [](InOut<std::uint32_t> x) {
        sync_block();
        u32 v = shuffle_down(x[0], 1);
        v = ballot(v > 3);
        atomic_add(x[1], v);
        print("{}\n", v);
        check(v > 3, "v");
    });
    std::string found;
    const ast::KernelTree& kernel = k.ast();
    for (const ast::NodeInfo& node : test::nodes_in_order(kernel))
        if (node.kind == ast::Kind::Atomic || (node.kind == ast::Kind::Operation && !ir::effects(node.op).none()))
            found += std::to_string(node.where.line - kernel.where.line) + ' ';
    CHECK(found == "1 2 3 4 5 6 ");
}

}  // namespace
}  // namespace ikat
