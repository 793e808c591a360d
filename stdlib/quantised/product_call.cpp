// SPDX-License-Identifier: Apache-2.0
#include "stdlib/quantised/product_call.hpp"

#include <algorithm>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/quantised/arranged_tokens.hpp"
#include "stdlib/quantised/packed_tensor_product.hpp"
#include "stdlib/quantised/product_kernels.hpp"
#include "stdlib/quantised/tensor_product.hpp"

namespace ikat::stdlib {

void check_product(const QuantisedCall& call, const NamedOperand& W, const NamedOperand& X, const NamedOperand& Y) {
    call.check_weights(W.view, W.name);
    call.check_real(X.name, X.view);
    call.check_real(Y.name, Y.view);
    const auto matrix = [&](const NamedOperand& of, const char* rows, const char* columns) {
        if (of.view.rank != 2)
            call.fail(fmt::format("'{}' is {}", of.name, extents_text(of.view)),
                      fmt::format("it is a matrix, {} x {}", rows, columns));
    };
    matrix(W, "rows", "columns");
    matrix(X, "tokens", "columns");
    matrix(Y, "tokens", "rows");
    const auto equal = [&](const char* what, const NamedOperand& a, std::size_t d, const NamedOperand& b,
                           std::size_t e) {
        if (a.view.extents[d] != b.view.extents[e])
            call.fail(fmt::format("'{}' is {}, and '{}' is {}: the {} differ", a.name, extents_text(a.view), b.name,
                                  extents_text(b.view), what),
                      fmt::format("{} is rows x columns, {} is tokens x columns, and {} is tokens x rows", W.name,
                                  X.name, Y.name));
    };
    equal("columns", W, 1, X, 1);
    equal("rows", W, 0, Y, 1);
    equal("tokens", X, 0, Y, 0);
    call.check_row(X.name, X.view);
    call.check_row(Y.name, Y.view);
    if (W.view.extents[1] >= 1u << 30)
        call.fail(fmt::format("'{}' has {} columns", W.name, W.view.extents[1]),
                  "there are fewer than 2^30: multiply parts of the rows, and add what they give");
}

bool is_on_tensor_cores(const Queue& queue, const TensorView& W, std::uint64_t tokens, Activations activations) {
    const std::uint32_t shared = activations == Activations::exact
                                     ? TensorProductKernel{.format = *W.format, .w_is_aligned = false}.shared_bytes()
                                     : PackedTensorKernel{.format = *W.format, .w_is_aligned = false}.shared_bytes();
    return W.extents[1] != 0 && tokens > ProductKernel::max_tokens &&
           shared <= queue.device().properties().shared_bytes_optin &&
           queue.device().compile_options().target != "sm_75";  // which has no mma.m16n8k16, nor m16n8k32 of bytes
}

std::uint32_t tokens_of_product_tile(const Queue& queue, Quantised format, std::uint64_t count) {
    const TensorProductKernel by_wgmma{.format = format, .tokens = 128, .w_is_aligned = false};
    const bool is_chosen = count > 64 && queue.device().compile_options().target == "sm_90a" &&
                           by_wgmma.shared_bytes() <= queue.device().properties().shared_bytes_optin;
    return is_chosen ? 128 : tokens_of_tile(count);
}

std::uint64_t tokens_at_once(const TensorView& rows) {
    const std::uint64_t reached = ~std::uint32_t{0} - rows.extents[1];
    return std::clamp<std::uint64_t>(reached / std::max<std::uint64_t>(rows.strides[0], 1) + 1, 1,
                                     ProductKernel::max_tokens);
}

/// Of a token's blocks of Q8_1, in words: whole quads.
static std::uint64_t pitch_of_blocks(const TensorView& X) { return (X.extents[1] / 32 * 9 + 3) / 4 * 4; }

std::uint64_t quantised_bytes(const TensorView& X) { return X.extents[0] * pitch_of_blocks(X) * 4; }

TensorView quantised_tokens(const Queue& queue, Workspace& workspace, const TensorView& X) {
    const std::uint64_t pitch = pitch_of_blocks(X);
    const auto words = workspace.take<std::uint32_t>(X.extents[0] * pitch);
    const std::array<std::uint64_t, 2> extents{X.extents[0], X.extents[1] / 32 * 9};
    const TensorView out(ir::Type::U32, words.part(), extents, {&pitch, 1}, queue.where());
    quantise_q8_1(queue, X, MutableTensorView(out));
    return out;
}

TokenGroup::TokenGroup(const TensorView& X, std::uint64_t first, std::uint32_t count)
    : x(part_from(X, first * X.strides[0])), first(first), count(count) {
    const std::uint64_t stride = count == 1 ? 0 : X.strides[0];
    is_aligned = unit_of(x, stride) == 4 && X.extents[1] % 4 == 0;
    pitch = std::uint32_t(is_aligned ? stride / 4 : stride);
}

}  // namespace ikat::stdlib
