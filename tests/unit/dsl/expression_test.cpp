// SPDX-License-Identifier: Apache-2.0
// Properties of expressions that no single printed kernel shows.
#include <algorithm>
#include <ikat/dsl.hpp>
#include <string>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "tests/catch.hpp"
#include "tests/unit/dsl/nodes.hpp"

namespace ikat {
namespace {

std::size_t count(const ast::KernelTree& kernel, ir::Op op) {
    return std::size_t(std::ranges::count_if(test::nodes_in_order(kernel), [&](const ast::NodeInfo& node) {
        return node.kind == ast::Kind::Operation && node.op == op;
    }));
}
std::size_t count(const ast::KernelTree& kernel, ast::Kind kind) {
    return std::size_t(std::ranges::count(test::nodes_in_order(kernel), kind, &ast::NodeInfo::kind));
}

template <int levels>
auto square(const auto& v) {
    if constexpr (levels == 0)
        return v;
    else
        return square<levels - 1>(v * v);
}

TEST_CASE("a shared tree is committed once, however large it would be when expanded") {
    const auto nine = kernel("nine", [](InOut<float> y) { y[1] = square<9>(y[0]); });
    CHECK(count(nine.ast(), ir::Op::Mul) == 9);
    const auto sixty = kernel("sixty", [](InOut<float> y) { y[1] = square<60>(y[0]); });
    CHECK(count(sixty.ast(), ir::Op::Mul) == 60);
}

TEST_CASE("an expression's type is that of its value, and stays small however large its tree is") {
    static_assert(std::is_same_v<decltype(std::declval<f32&>() * 2 + std::declval<f32&>()), Expr<float>>);
    static_assert(std::is_same_v<decltype(std::declval<f32&>() < 2), Expr<bool>>);
    static_assert(std::is_same_v<decltype(square<9>(std::declval<Leaf<float>>())), Expr<float>>);
    static_assert(sizeof(decltype(square<9>(std::declval<Leaf<float>>()))) <= 16);
}

TEST_CASE("unused expressions are dropped") {
    const auto k = kernel("k", params("x", "y"), [](In<float> x, InOut<float> y) {
        auto load = x[0];
        auto product = x[1] * x[2];
        auto vector = x.vec<4>(3);
        y[0] = vector[0];
        y[1] += 1;
        (void)(load + product);
    });
    CHECK(count(k.ast(), ast::Kind::Load) == 2);  // of the vector, and of y[1]
    CHECK(count(k.ast(), ast::Kind::Extract) == 1);
}

TEST_CASE("a load that is kept in a name happens where it was written") {
    const auto k = kernel("k", params("y"), [](InOut<float> y) {
        auto kept = y[0];
        y[0] = 1;
        sync_block();
        y[1] = kept;
    });
    const ast::KernelTree& kernel = k.ast();
    const auto nodes = kernel[kernel.body()];
    const auto kind_at = [&](ast::Kind kind) {
        return std::ranges::find(nodes, kind, [&](ast::Node node) { return kernel[node].kind; }) - nodes.begin();
    };
    CHECK(kind_at(ast::Kind::Load) < kind_at(ast::Kind::Store));
}

/// The helper's parameters are named inside it; still, the order of reads is that of the expression.
template <Value A, Value B>
auto difference(A a, B b) {
    return a - b;
}
TEST_CASE("arguments of generic helpers are recorded in the order of the expression") {
    const auto helper = kernel("k", params("x", "y"), [](In<float> x, Out<float> y) {
        y[0] = difference(x[1], x[2]) * difference(x[3] * 2, x[4]);
    });
    const auto plain =
        kernel("k", params("x", "y"), [](In<float> x, Out<float> y) { y[0] = (x[1] - x[2]) * (x[3] * 2 - x[4]); });
    CHECK(ast::print(helper.ast()) == ast::print(plain.ast()));
}

TEST_CASE("host numbers adapt exactly or not at all") {
    const auto diagnostics = [](auto body) {
        try {
            kernel("k", params("f", "h", "i", "w"), body).check();
            return std::size_t(0);
        } catch (const Error& error) { return error.diagnostics().size(); }
    };
    CHECK(diagnostics([](Out<float> f, Out<half> h, Out<std::int32_t> i, Out<std::uint64_t> w) {
              f[0] = 1 << 24, f[1] = -(1 << 30), f[2] = 3.0e-60, f[3] = __builtin_inf();
              h[0] = 65504, h[1] = 1.0 / 3, h[2] = -2049 + 1;
              i[0] = 2147483647u, i[1] = -2147483647 - 1, i[2] = 255u;
              w[0] = ~0ull, w[1] = 0;
          }) == 0);
    CHECK(diagnostics([](Out<float> f, Out<half> h, Out<std::int32_t> i, Out<std::uint64_t> w) {
              f[0] = (1 << 24) + 1, f[1] = 1e39;
              h[0] = 65536, h[1] = 2049, h[2] = 70000.0;
              i[0] = 2147483648u, i[1] = -2147483649;
              w[0] = -1, w[1] = -9223372036854775807;
          }) == 9);
}

TEST_CASE("a function returns the variable that it declared") {
    const auto declares = [](InOut<float> x) {
        const auto made = [&] {
            f32 inner = x[0];
            inner += 1;
            return inner;
        };
        f32 a = made();
        x[1] = a;
    };
    CHECK(count(kernel("k", declares).ast(), ast::Kind::Declare) == 1);
}

}  // namespace
}  // namespace ikat
