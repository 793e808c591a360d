// SPDX-License-Identifier: Apache-2.0
// The kernels of quantised_gemm() on tensor cores, for more than eight tokens. Weights are operands of mma as integers,
// in f16, which is exact; the sums of a unit of 32, or of 16 where a scale is of so many, are multiplied with the scale
// in f32, and added up:
//
//     arrange     X ──▶ f16, times a power of two for each token     ┐
//                   └─▶ sums of 16, for minima                       ├▶ product ──▶ Y
//     blocks of W ──▶ shared memory ──▶ integers in registers ──────┘
//
// A lane's operands of a row are elements 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of 16, q = lane % 4. In a word of a block
// are neighbours. So each 32 elements of X are stored such that lane q finds 4 q ... 4 q + 3, and 16 further, where mma
// expects its own: a sum does not ask for the order.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/quantised/units.hpp"

namespace ikat::stdlib {

/// Which of the kernels. Its parameters:
///
///     w                  bytes, from a multiple of 16 on
///     x, sums            of ArrangedTokens: tokens x padded_columns, tokens x padded_columns / 16
///     scales             of the tokens, by which results are multiplied
///     y                  f32, f16, bf16
///     rows, units        of the weights
///     w_begin            the byte of w where the first row begins, below 16
///     w_pitch, w_bytes   from a row to the next; of all
///     y_pitch            from a token to the next, in elements
struct TensorProductKernel {
    runtime::Quantised format = runtime::Quantised::Q4_0;
    std::uint32_t tokens = 64;  // of a block: 16, 32 or 64
    ir::Type y = ir::Type::F32;
    bool w_is_aligned = true;  // all rows begin at multiples of 16 bytes, and so do their slices

    static constexpr std::uint32_t rows = 128, threads = 128, stages = 4;  // of a block
    /// A slice is 256 weights.
    std::uint32_t bytes_of_slice() const { return bytes_of() * 256 / weights_of(); }
    /// Shared memory: pieces of 16 bytes that have a row's slice, an odd number, so that rows are in other banks.
    std::uint32_t pieces() const { return (bytes_of_slice() + (w_is_aligned ? 0 : 30)) / 16; }
    std::uint32_t row_bytes() const { return (pieces() | 1) * 16; }
    std::uint32_t shared_bytes() const { return 2 * (rows * row_bytes() + 16) + stages * tokens * (128 + 16); }

    /// "gemm_q4_k_f16_tokens_64_tensor_core".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const TensorProductKernel&) const = default;

private:
    std::uint32_t bytes_of() const { return runtime::find_info(format)->bytes; }
    std::uint32_t weights_of() const { return runtime::find_info(format)->weights; }
};

/// Columns up to a whole slice.
constexpr std::uint64_t padded_columns(std::uint64_t columns) { return (columns + 255) / 256 * 256; }

/// A kernel for the activations: parameters x, arranged, sums, scales, columns, x_pitch. A block for each token.
struct ArrangeKernel {
    ir::Type x = ir::Type::F32;
    static constexpr std::uint32_t threads = 256;
    /// "arrange_tokens_f32".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const ArrangeKernel&) const = default;
};

/// What the body of a kernel has, whatever the type of y is.
struct TensorProductArguments {
    using U = blocks::U;

    const In<std::uint8_t>& w;
    const In<half, 2>& x;
    const In<float, 2>& sums;
    const In<float>& scales;
    const u32 &rows, &units, &w_begin, &w_pitch, &w_bytes;
    /// y[token, row] = sum, where the condition is true.
    std::function<void(const Leaf<bool>& condition, const U& token, const U& row, const blocks::F& sum)> store;
};

/// Records the body of a kernel.
void record_tensor_product(const TensorProductKernel& is, const TensorProductArguments& of);

}  // namespace ikat::stdlib
