// SPDX-License-Identifier: Apache-2.0
// What calls of products of quantised weights with tokens have in common.
#pragma once
#include <string_view>

#include "stdlib/quantised/call.hpp"
#include "stdlib/quantised/product.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {

/// An operand, and what messages call it.
struct NamedOperand {
    std::string_view name;
    const TensorView& view;
};

/// Throws Error unless W, X and Y are those of Y = X W'.
void check_product(const QuantisedCall& call, const NamedOperand& W, const NamedOperand& X, const NamedOperand& Y);

/// Rows of W, whose rows are these, from number `first` on.
inline WeightsOfLaunch weights_of_rows(const TensorView& W, const ArrayRows& rows, std::uint64_t first,
                                       std::uint64_t count) {
    return weights_of_launch(W, RowPairs::rows_of(rows, first, count));
}
/// Adds the numbers that kernels take of weights.
inline void add_weights(KernelArguments& to, const WeightsOfLaunch& of) { to.add_numbers(of.begin, of.pitch, of.end); }

/// Whether products are computed on tensor cores: of more than eight tokens, on most devices.
bool is_on_tensor_cores(const Queue& queue, const TensorView& W, std::uint64_t tokens, Activations activations);

/// Tokens of a tile of exact activations, for `count` tokens: as many as tokens_of_tile(), or 128 where there is wgmma.
std::uint32_t tokens_of_product_tile(const Queue& queue, Quantised format, std::uint64_t count);

/// As many tokens, of the rows of a matrix, as a kernel takes at once: up to eight, if numbers of 32 bits reach their
/// elements.
std::uint64_t tokens_at_once(const TensorView& rows);

/// The bytes of a workspace for X in Q8_1.
std::uint64_t quantised_bytes(const TensorView& X);
/// X in Q8_1, rows of words: whole quads.
TensorView quantised_tokens(const Queue& queue, Workspace& workspace, const TensorView& X);

/// A group of tokens for a launch: rows of X, or of its Q8_1.
struct TokenGroup {
    TensorView x;
    std::uint64_t first = 0;
    std::uint32_t count = 1;
    bool is_aligned = true;
    std::uint32_t pitch = 0;  // as ProductKernel takes it

    TokenGroup(const TensorView& X, std::uint64_t first, std::uint32_t count);
    /// The pitch of Y.
    std::uint32_t pitch_of(const TensorView& Y) const { return count == 1 ? 0 : std::uint32_t(Y.strides[0]); }
    /// These rows of Y.
    TensorView rows_of(const TensorView& Y) const { return part_from(Y, first * Y.strides[0]); }
};

}  // namespace ikat::stdlib
