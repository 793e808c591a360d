// SPDX-License-Identifier: Apache-2.0
// Each gradient is a product of the forward operands in other orders. One that is stored by columns is made as its
// transpose by rows, so that the result is always by rows:
//
//     dA by rows      dC B'        dB by rows      A' dC
//     dA by columns   B dC'        dB by columns   dC' A
#include "stdlib/backward/gemm_backward.hpp"

#include <fmt/format.h>

#include "stdlib/gemm/gemm.hpp"
#include "stdlib/spec/named_functions.hpp"

namespace ikat::stdlib {
namespace {

using enum MatrixOrder;

constexpr MatrixOrder transposed(MatrixOrder order) { return order == Rows ? Columns : Rows; }

/// Of left times right, each with the order in which it is a factor.
struct GradientProduct {
    const TensorView &left, &right;
    MatrixOrder left_order, right_order;
};
GradientProduct product_a(const TensorView& dC, const TensorView& B, const GemmBackwardOptions& options) {
    if (options.a == Rows) return {dC, B, Rows, transposed(options.b)};
    return {B, dC, options.b, Columns};
}
GradientProduct product_b(const TensorView& A, const TensorView& dC, const GemmBackwardOptions& options) {
    if (options.b == Rows) return {A, dC, transposed(options.a), Rows};
    return {dC, A, Columns, options.a};
}

/// A call, for its messages.
struct GradientCall {
    std::string_view function;
    const Queue& queue;
    const GemmBackwardOptions& options;

    [[noreturn]] void fail(std::string message, std::string hint) const {
        throw Error(Diagnostic{
            .where = queue.where(), .message = fmt::format("{}: {}", function, message), .hint = std::move(hint)});
    }
    void check() const {
        const SizeCheck check{function, queue.where()};
        check.enumerator("a", std::size_t(options.a), 2), check.enumerator("b", std::size_t(options.b), 2);
        check.enumerator("floats", std::size_t(options.floats), 2);
    }
    /// A matrix of the forward product, whose extents are named for it.
    void check_shape(std::string_view name, const TensorView& x, const TensorView& dC, std::string_view shape,
                     MatrixOrder order, std::size_t of_dC) const {
        if (x.rank < 2 || x.rank > 3 || dC.rank < 2 || dC.rank > 3)
            fail(fmt::format("'{}' has {} dimensions, 'dC' {}", name, x.rank, dC.rank),
                 "they are views (rows, columns), or (matrices, rows, columns)");
        const bool is_first = (of_dC == 0) == (order == Rows);
        const std::uint64_t its = x.extents[x.rank - (is_first ? 2 : 1)], wanted = dC.extents[dC.rank - 2 + of_dC];
        if (its != wanted)
            fail(fmt::format("'{}' is {} x {}, and 'dC' is {} x {}", name, x.extents[x.rank - 2], x.extents[x.rank - 1],
                             dC.extents[dC.rank - 2], dC.extents[dC.rank - 1]),
                 fmt::format("dC is m x n, {} is {}; stored by columns, the other way round", name, shape));
    }

    /// That both have the same k and as many matrices as dC; A's k is that of its columns.
    void check_k(std::string_view name_of_a, const TensorView& a, std::string_view name_of_b, const TensorView& b,
                 const TensorView& dC) const {
        const std::uint64_t k_of_a = a.extents[a.rank - (options.a == Rows ? 1 : 2)],
                            k_of_b = b.extents[b.rank - (options.b == Rows ? 2 : 1)];
        if (k_of_a != k_of_b)
            fail(fmt::format("'{}' has k = {}, '{}' has {}", name_of_a, k_of_a, name_of_b, k_of_b),
                 "A and its gradient are m x k, B and its gradient k x n");
        const auto matrices = [](const TensorView& x) { return x.rank == 3 ? x.extents[0] : 1; };
        if (matrices(a) != matrices(dC) || matrices(b) != matrices(dC))
            fail(fmt::format("'{}' has {} matrices, '{}' {}, and 'dC' {}", name_of_a, matrices(a), name_of_b,
                             matrices(b), matrices(dC)),
                 "all have as many");
    }

    /// dC and the other factor, and the gradient.
    void check_types(const TensorView& x, const TensorView& y, const TensorView& to) const {
        using enum ir::Type;
        for (const TensorView* each : {&x, &y, &to})
            if (each->format || (each->type != F32 && each->type != F16 && each->type != BF16))
                fail(fmt::format("an array has elements of {}", each->type_name()), "they are of f32, f16 or bf16");
        if (x.type != y.type)
            fail(fmt::format("the factors have elements of {} and of {}", x.type_name(), y.type_name()),
                 "they have the same type; cast() makes another one");
        if (to.type != x.type && to.type != F32)
            fail(fmt::format("the gradient has elements of {}, the factors of {}", to.type_name(), x.type_name()),
                 "it has their type, or is f32");
    }

    bool is_by_fma(const GradientProduct& of) const {
        return of.left.type == ir::Type::F32 && !of.left.format && options.floats == FloatProduct::fma;
    }
    GemmOptions on_tensor_cores(const GradientProduct& of) const {
        return {.alpha = options.alpha,
                .beta = options.accumulate ? 1.0f : 0.0f,
                .a = of.left_order,
                .b = of.right_order,
                .schedule = options.schedule,
                .parts = options.parts,
                .workspace = options.workspace};
    }
    void run(const GradientProduct& of, const MutableTensorView& to) const {
        if (is_by_fma(of))
            return gemm_f32(queue, of.left, of.right, to,
                            {.alpha = options.alpha,
                             .beta = options.accumulate ? 1.0f : 0.0f,
                             .a = of.left_order,
                             .b = of.right_order});
        gemm_tensor_core(queue, of.left, of.right, to, on_tensor_cores(of));
    }
    std::uint64_t workspace(const GradientProduct& of, const MutableTensorView& to) const {
        return is_by_fma(of) ? 0 : gemm_workspace(queue, of.left, of.right, to, on_tensor_cores(of));
    }
};

GradientCall call_a(const Queue& queue, const TensorView& dC, const TensorView& B, const TensorView& dA,
                    const GemmBackwardOptions& options) {
    const GradientCall call{"gemm_backward_a", queue, options};
    call.check();
    call.check_types(dC, B, dA);
    call.check_shape("B", B, dC, "k x n", options.b, 1);
    call.check_shape("dA", dA, dC, "m x k", options.a, 0);
    call.check_k("dA", dA, "B", B, dC);
    return call;
}
GradientCall call_b(const Queue& queue, const TensorView& A, const TensorView& dC, const TensorView& dB,
                    const GemmBackwardOptions& options) {
    const GradientCall call{"gemm_backward_b", queue, options};
    call.check();
    call.check_types(A, dC, dB);
    call.check_shape("A", A, dC, "m x k", options.a, 0);
    call.check_shape("dB", dB, dC, "k x n", options.b, 1);
    call.check_k("A", A, "dB", dB, dC);
    return call;
}

}  // namespace

void gemm_backward_a(const Queue& queue, const TensorView& dC, const TensorView& B, const MutableTensorView& dA,
                     const GemmBackwardOptions& options) {
    call_a(queue, dC, B, dA, options).run(product_a(dC, B, options), dA);
}
void gemm_backward_b(const Queue& queue, const TensorView& A, const TensorView& dC, const MutableTensorView& dB,
                     const GemmBackwardOptions& options) {
    call_b(queue, A, dC, dB, options).run(product_b(A, dC, options), dB);
}
std::uint64_t gemm_backward_a_workspace(const Queue& queue, const TensorView& dC, const TensorView& B,
                                        const MutableTensorView& dA, const GemmBackwardOptions& options) {
    return call_a(queue, dC, B, dA, options).workspace(product_a(dC, B, options), dA);
}
std::uint64_t gemm_backward_b_workspace(const Queue& queue, const TensorView& A, const TensorView& dC,
                                        const MutableTensorView& dB, const GemmBackwardOptions& options) {
    return call_b(queue, A, dC, dB, options).workspace(product_b(A, dC, options), dB);
}

// ---- by names

namespace {

constexpr NamedFunction::Size sizes[] = {{"m", 4096}, {"n", 4096}, {"k", 4096}, {"planes", 0}};
constexpr NamedFunction::Setting settings[] = {
    {"alpha", "what the product was multiplied by, 1 if it is not set"},
    {"accumulate", "1: the gradient is added to the array's, which is replaced if it is not set"},
    {"floats", "how f32 is multiplied: fma, or tf32, on tensor cores; fma if it is not set"},
};
constexpr std::string_view document =
    "Of the product C = alpha A B, where A is m x k and B is k x n. _tn, _nt and _tt are for an A, a B and both that\n"
    "are stored by columns, as k x m and n x k; their gradients are stored as they are. dC and the other factor are\n"
    "of f32, f16 or bf16, the gradient of the same type or f32. Any sizes; with `planes` there are several products.";
constexpr auto family_a =
    family_of("gemm_backward_a[_nt|_tn|_tt]", "dA = alpha dC B', the gradient of A", document, settings, sizes);
constexpr auto family_b =
    family_of("gemm_backward_b[_nt|_tn|_tt]", "dB = alpha A' dC, the gradient of B", document, settings, sizes);

NamedFunction function_of(bool of_a, MatrixOrder a, MatrixOrder b) {
    const NamedFunction::Family& family = of_a ? family_a : family_b;
    const char orders[] = {'_', a == Rows ? 'n' : 't', b == Rows ? 'n' : 't', 0};
    NamedFunction out{.name = fmt::format("{}{}", family.prefix, a == Rows && b == Rows ? "" : orders),
                      .family = &family};
    out.formula = of_a ? "dA = alpha dC B'" : "dB = alpha A' dC";
    const char* const options = a == Rows && b == Rows ? ""
                                : a == Rows            ? ", {.b = MatrixOrder::Columns}"
                                : b == Rows            ? ", {.a = MatrixOrder::Columns}"
                                                       : ", {.a = MatrixOrder::Columns, .b = MatrixOrder::Columns}";
    out.call = fmt::format("{}(queue, {}{})", family.prefix, of_a ? "dC, B, dA" : "A, dC, dB", options);
    const OperandShape shape_a = a == Rows ? OperandShape("[planes] m k") : OperandShape("[planes] k m"),
                       shape_b = b == Rows ? OperandShape("[planes] k n") : OperandShape("[planes] n k");
    const auto dC = input("dC", "[planes] m n");
    if (of_a)
        out.arrays = {dC, input("B", shape_b), output("dA", shape_a)};
    else
        out.arrays = {input("A", shape_a), dC, output("dB", shape_b)};
    out.arrays[2].is_of_any_type = true, out.arrays[2].read_if = "accumulate";
    out.run = [of_a, a, b](const Queue& queue, NamedArrays arrays, const FunctionSettings& given) {
        constexpr std::string_view products[] = {"fma", "tf32"};
        const GemmBackwardOptions with{.a = a,
                                       .b = b,
                                       .alpha = given.number("alpha").value_or(1),
                                       .accumulate = given.number("accumulate").value_or(0) != 0,
                                       .floats = FloatProduct(given.one_of("floats", products))};
        (of_a ? gemm_backward_a : gemm_backward_b)(queue, arrays[0], arrays[1], arrays[2], with);
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> gemm_backward_functions() {
    std::vector<NamedFunction> out;
    for (const bool of_a : {true, false})
        for (const MatrixOrder a : {Rows, Columns})
            for (const MatrixOrder b : {Rows, Columns}) out.push_back(function_of(of_a, a, b));
    return out;
}

}  // namespace ikat::stdlib
