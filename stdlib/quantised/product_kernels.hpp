// SPDX-License-Identifier: Apache-2.0
// The kernels of quantised_gemm() for up to eight tokens.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/quantised/block_product.hpp"
#include "stdlib/quantised/results.hpp"
#include "stdlib/tile/rows.hpp"

namespace ikat::stdlib {

/// Which of the kernels. Its parameters:
///
///     w                  bytes, from a multiple of 16 on
///     x                  f32, f16, bf16; or words of Q8_1
///     y                  f32, f16, bf16
///     rows, columns      of the weights
///     w_begin            the byte of w where the first row begins, below 16
///     w_pitch, w_bytes   from a row to the next; of all
///     x_pitch            from a token to the next, in fours of elements if x_is_aligned, else in elements
///     y_pitch            ... in elements
///     ...                of the epilogue, see add_epilogue()
struct ProductKernel {
    runtime::Quantised format = runtime::Quantised::Q4_0;
    std::uint32_t tokens = 1;  // 1 ... 8
    /// U32: Q8_1.
    ir::Type x = ir::Type::F32, y = ir::Type::F32;
    bool w_is_aligned = true;  // w_begin is 0
    bool x_is_aligned = true;  // rows begin at multiples of four elements, and are whole fours
    EpilogueCode epilogue{};   // without row sums

    static constexpr std::uint32_t max_tokens = 8;
    bool is_packed() const { return x == ir::Type::U32; }
    /// How many rows of weights a warp has.
    std::uint32_t rows_of_warp() const { return tokens == 1 && !is_packed() ? 1 : 2; }
    std::uint32_t rows_of_block() const { return WarpGroup::rows_of_block * rows_of_warp(); }

    /// How many blocks a multiprocessor shall have room for: with fewer registers, ptxas spills some.
    std::uint32_t min_blocks() const;

    /// "gemm_q4_k_f16_f32_tokens_8", and the epilogue's name.
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const ProductKernel&) const = default;
};

/// What the body of a kernel has, whatever the types of x and y are.
struct ProductArguments {
    using U = blocks::U;

    WeightRows w;
    Tokens x;
    StoreResult store;
};

/// Records the product of the rows that warps of a block have, each from its first_row() on.
void record_rows(const ProductArguments& of, std::uint32_t rows_of_warp, const ProductMemory& memory,
                 const std::function<blocks::U()>& first_row);
/// Records the body of a kernel.
void record_product(const ProductKernel& is, const ProductArguments& of);

}  // namespace ikat::stdlib
