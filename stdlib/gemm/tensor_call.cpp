// SPDX-License-Identifier: Apache-2.0
// What a call of gemm_tensor_core() may be.
#include "stdlib/gemm/tensor_call.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "runtime/launch/roles.hpp"

namespace ikat::stdlib {

GemmCall::GemmCall(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                   const GemmOptions& options)
    : queue_(queue),
      where_(queue.where()),
      A_(matrices_of("A", A)),
      B_(matrices_of("B", B)),
      C_(matrices_of("C", C)),
      options_(options) {
    if (options.residual) residual_ = matrices_of("the residual", *options.residual);

    kernel_.type = A_.type;
    kernel_.c_is_f32 = kernel_.can_give_f32() && C_.type == ir::Type::F32;
    check_enumerators();
    check_types();
    check_sizes();
    if (options.epilogue) check_epilogue();
    check_memory();
    if (options.epilogue) arguments_.assign(options.epilogue->arguments.begin(), options.epilogue->arguments.end());
    if (options.bias) arguments_.push_back({.type = options.bias->type, .array = options.bias});
    if (residual_) arguments_.push_back({.type = residual_->type, .array = residual_});
    choose();
}

TensorView GemmCall::matrices_of(std::string_view what, const TensorView& given) const {
    return stdlib::matrices_of(place(), what, given,
                               "they follow each other; a matrix that is stored by columns is given as it is stored, "
                               "with MatrixOrder::Columns");
}

void GemmCall::check_enumerators() const {
    const SizeCheck check{function, where_};
    check.enumerator("a", std::size_t(options_.a), 2), check.enumerator("b", std::size_t(options_.b), 2);
    check.enumerator("activation", std::size_t(options_.activation), activation_count);
    check.enumerator("path", std::size_t(options_.path), 3);
    check.enumerator("tile", std::size_t(options_.tile), 4);
    check.enumerator("schedule", std::size_t(options_.schedule), 6);
    check.enumerator("raster", std::size_t(options_.raster), 2);
}

static std::string_view name_of(ir::Type type) { return ir::info(type).name; }

void GemmCall::check_types() const {
    using enum ir::Type;
    const auto check_life = [&](const runtime::BufferPart& part) {
        if (!part.is_there()) fail(runtime::freed, runtime::freed_hint);
    };
    for (const TensorView* matrix : {&A_, &B_, &C_}) check_life(matrix->part);
    if (options_.residual) check_life(options_.residual->part);
    if (options_.bias && options_.bias->rank != 1)
        fail(fmt::format("the bias has {} dimensions", options_.bias->rank), "it is a Buffer, or a slice of one");
    if (options_.bias) check_life(options_.bias->part);
    if (A_.type != F16 && A_.type != BF16 && A_.type != F32 && A_.type != I8)
        fail(fmt::format("A has elements of {}", A_.type_name()),
             "tensor cores multiply f16, bf16, f32 (as tf32) and i8");
    if (B_.type != A_.type)
        fail(fmt::format("A has elements of {}, B of {}", A_.type_name(), B_.type_name()), "they have the same type");
    if (C_.type != element())
        fail(fmt::format("C has elements of {}", name_of(C_.type)),
             fmt::format("of A and B in {} it has {}{}", name_of(A_.type), name_of(element()),
                         kernel_.can_give_f32() ? " or f32" : ""));
    const auto same_as_c = [&](std::string_view what, ir::Type type) {
        if (type != element())
            fail(fmt::format("{} has elements of {}, C of {}", what, name_of(type), name_of(element())),
                 "they have the same type");
    };
    if (options_.bias) same_as_c("the bias", options_.bias->type);
    if (options_.residual) same_as_c("the residual", options_.residual->type);
    if (element() != I32) return;
    if (options_.activation != Activation::none && options_.activation != Activation::relu)
        fail("an activation of integers", "the result is i32: none or relu");
    for (const float factor : {options_.alpha, options_.beta})
        if (factor != std::floor(factor) || std::abs(factor) > 0x1p31f)
            fail(fmt::format("a factor of {} for integers", factor), "alpha and beta are integers where C is i32");
}

void GemmCall::check_memory() const {
    std::vector<OperandRole> all{{"A", A_.part}, {"B", B_.part}, {"C", C_.part, Role::Written}};
    if (options_.bias) all.push_back({"bias", options_.bias->part});
    if (options_.residual) all.push_back({"residual", options_.residual->part});
    std::optional<EpilogueRoles> of_epilogue;
    if (options_.epilogue) {
        of_epilogue.emplace(*options_.epilogue);
        all.insert(all.end(), of_epilogue->roles().begin(), of_epilogue->roles().end());
    }
    all.push_back({"workspace", options_.workspace.part(), Role::Written});
    check_roles(function, where_, all);
}

void GemmCall::check_sizes() const {
    const auto check = [&](std::string_view what, const TensorView& x, std::uint64_t rows, std::uint64_t columns) {
        const auto shape = [](std::uint64_t planes, std::uint64_t r, std::uint64_t c) {
            return planes == 1 ? fmt::format("{} x {}", r, c) : fmt::format("{} times {} x {}", planes, r, c);
        };
        if (x.shape<3>() != std::array{matrices(), rows, columns})
            fail(fmt::format("{} is {}, not {}", what, shape(x.extents[0], x.extents[1], x.extents[2]),
                             shape(matrices(), rows, columns)),
                 fmt::format(
                     "C is {}, and k is {}: A is m x k, B is k x n, C is m x n; stored by columns, A is k x m and "
                     "B is n x k",
                     shape(matrices(), m(), n()), k()));
    };
    const bool a = options_.a == MatrixOrder::Rows, b = options_.b == MatrixOrder::Rows;
    check("A", A_, a ? m() : k(), a ? k() : m());
    check("B", B_, b ? k() : n(), b ? n() : k());
    if (residual_) check("the residual", *residual_, m(), n());
    if (!options_.bias) return;
    const std::uint64_t elements = options_.bias->part.bytes / ir::info(C_.type).bytes;
    if (elements < n())
        fail(fmt::format("the bias has {} elements, C has {} columns", elements, n()), "it has one for each column");
}

void GemmCall::check_epilogue() {
    if (options_.activation != Activation::none || options_.bias || options_.residual)
        fail("an epilogue, and an activation, a bias or a residual", "the epilogue's function does all of it");
    kernel_.epilogue = EpilogueCode(*options_.epilogue);
    if (kernel_.epilogue.sum() == ir::Type::I32 && element() != ir::Type::I32)
        fail(fmt::format("an epilogue of i32 sums, and A has elements of {}", A_.type_name()),
             "only products of i8 have such sums: epilogue(...) without <i32> is of f32");
    stdlib::check_epilogue(place(), *options_.epilogue, kernel_.epilogue, {matrices(), m(), n()});
}

}  // namespace ikat::stdlib
