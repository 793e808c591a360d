// SPDX-License-Identifier: Apache-2.0
// The kernels of quantised_gemm() on tensor cores with activations in Q8_1, for more than eight tokens: products of
// bytes, whose sums are exact. For each unit of 32 weights in order, or half of one where a scale is for 16,
//
//     total = fma(scale of W * d of X, sum of integers, total)
//     total = fma(-minimum of W, d of X * sum of X's integers, total)        of the unit, if there is one
//
// with each product rounded to f32: the same bits on every device.
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"
#include "runtime/tensor_view.hpp"
#include "stdlib/quantised/results.hpp"

namespace ikat::stdlib {

/// Which of the kernels. Its parameters:
///
///     w                  bytes, from a multiple of 16 on
///     up                 the same, if it is_gated
///     x                  words of Q8_1, from a multiple of 16 bytes on, all of which are in `x_words`
///     y                  f32, f16, bf16
///     rows, tokens, units
///     w_begin            the byte of w where the first row begins, below 16
///     w_pitch, w_bytes   from a row to the next; of all
///     x_pitch, x_words   from a token to the next, a multiple of 4; of all
///     shares             as of TensorProductKernel, after y
///     slices_of_part or streamed, y_pitch    likewise
///     up_...             begin, pitch and bytes, if it is_gated
///     ...                of the epilogue, see add_epilogue()
struct PackedTensorKernel {
    runtime::Quantised format = runtime::Quantised::Q4_0;
    std::uint32_t tokens = 64;  // of a block: 16, 32 or 64
    ir::Type y = ir::Type::F32;
    bool w_is_aligned = true;  // all rows begin at multiples of 16 bytes
    bool is_gated = false;     // as TensorProductKernel
    EpilogueCode epilogue{};   // without row sums; not in parts, nor gated
    bool is_streamed = false;  // stream-k: any number of blocks; not gated

    static constexpr std::uint32_t threads() { return 128; }
    /// Of y, of a block.
    std::uint32_t rows_of_y() const;
    /// "gemm_q4_k_q8_1_f16_tokens_64_tensor_core", "gate_up_swiglu_q4_k_q8_1_f16_tokens_64_tensor_core", with "_stream"
    /// if it is_streamed; and the epilogue's name.
    std::string name() const;
    std::uint32_t shared_bytes() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const PackedTensorKernel&) const = default;
};

}  // namespace ikat::stdlib
