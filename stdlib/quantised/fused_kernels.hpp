// SPDX-License-Identifier: Apache-2.0
// The kernels of fused.hpp, for up to eight tokens. Their parameters are those of ProductKernel, in another order.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "dsl/record/capture.hpp"
#include "stdlib/quantised/product_kernels.hpp"

namespace ikat::stdlib {

/// Y = silu(X Wg') (X Wu'): a warp has the same row of both, and stores it once. Parameters:
///
///     gate, up           the weights of Wg and of Wu
///     x, y, rows, columns, x_pitch, y_pitch
///     gate_begin, gate_pitch, gate_bytes, up_begin, up_pitch, up_bytes
struct SwigluKernel {
    std::array<runtime::Quantised, 2> formats{};  // of Wg and of Wu
    std::uint32_t tokens = 1;                     // 1 ... 8
    /// U32: Q8_1.
    ir::Type x = ir::Type::F32, y = ir::Type::F32;
    std::array<bool, 2> w_are_aligned{true, true};
    bool x_is_aligned = true;

    static constexpr std::uint32_t rows_of_block = WarpGroup::rows_of_block;

    /// "gate_up_swiglu_q4_k_q6_k_f16_f32_tokens_8".
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const SwigluKernel&) const = default;
};

/// Y = W (rmsnorm(x) gamma): each block finds the norms of all tokens by itself, in the same order, and then multiplies
/// x on the way to shared memory. Parameters:
///
///     w, x, gamma, y, rows, columns, w_begin, w_pitch, w_bytes, x_pitch, y_pitch, epsilon
struct NormProductKernel {
    runtime::Quantised format = runtime::Quantised::Q4_0;
    std::uint32_t tokens = 1;  // 1 ... 8
    ir::Type x = ir::Type::F32, gamma = ir::Type::F32, y = ir::Type::F32;
    bool w_is_aligned = true, x_is_aligned = true, gamma_is_aligned = true;

    /// Also for a single token: then half as many blocks find its norm.
    static constexpr std::uint32_t rows_of_warp = 2, rows_of_block = WarpGroup::rows_of_block * rows_of_warp;

    /// "rmsnorm_gemv_q4_k_f32_f32_f16_tokens_2": of x, gamma and y.
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const NormProductKernel&) const = default;
};

/// Y = X W' for several W. The blocks of the grid are those of the first part, then those of the second, and so on; one
/// multiplies rows of one part. Parameters:
///
///     x, columns, x_pitch
///     w0, y0, rows0, w0_begin, w0_pitch, w0_bytes, y0_pitch      of part 0, then those of part 1 ...
struct PartsKernel {
    struct Part {
        runtime::Quantised format = runtime::Quantised::Q4_0;
        ir::Type y = ir::Type::F32;
        bool w_is_aligned = true;
        auto operator<=>(const Part&) const = default;
    };
    std::vector<Part> parts{};
    std::uint32_t tokens = 1;  // 1 ... 8
    /// U32: Q8_1.
    ir::Type x = ir::Type::F32;
    bool x_is_aligned = true;

    static constexpr std::uint32_t max_parts = 4;
    ProductKernel product() const { return {.tokens = tokens, .x = x, .x_is_aligned = x_is_aligned}; }
    /// How many blocks there are for a part of so many rows.
    std::uint64_t blocks_for(std::uint64_t rows) const { return (rows - 1) / product().rows_of_block() + 1; }

    /// "gemm_parts_f16_tokens_2_q4_k_f32_q6_k_f32": of x, and each part with its y.
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const PartsKernel&) const = default;
};

}  // namespace ikat::stdlib
