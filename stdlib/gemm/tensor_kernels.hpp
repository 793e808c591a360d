// SPDX-License-Identifier: Apache-2.0
// The kernels behind gemm_tensor_core().
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/tile/block_product.hpp"

namespace ikat::stdlib {

/// What a block makes of C: 64 x 64, 128 x 128 or 256 x 128 elements.
enum class TileSize : std::uint8_t { chosen, small, medium, large };
constexpr TensorTile tensor_tile(TileSize size) {
    if (size == TileSize::small) return {.m = 64, .n = 64, .warp_m = 32, .warp_n = 32, .stages = 4};
    if (size == TileSize::large) return {.m = 256, .n = 128, .warp_m = 64, .warp_n = 64, .stages = 3};
    return {.m = 128, .n = 128, .warp_m = 64, .warp_n = 32, .stages = 3};
}

/// Which of the kernels.
///
///     Whole     A, B, C, alpha, beta, (bias), (residual)      a block for each tile of each matrix
///     Part      A, B, sums, parts                             the sums of a part of k: a block for each tile of each
///     part Finish    sums, C, parts, alpha, beta, ...              C from these sums: blocks for rows of C Scale C,
///     alpha, beta, ...                           C where k is 0
struct TensorKernel {
    enum class Step : std::uint8_t { Whole, Part, Finish, Scale } step = Step::Whole;
    ir::Type type = ir::Type::F32;  // of A and B
    MatrixOrder a = MatrixOrder::Rows, b = MatrixOrder::Rows;
    TileSize tile = TileSize::medium;
    ProductAccess access{};
    bool c_is_aligned = true;  // rows of C, the bias and the residual, to 16 bytes
    Activation activation = Activation::none;
    bool has_bias = false, has_residual = false;

    /// "gemm_tensor_core_bf16_nt_bias_gelu": n and t are for matrices by rows and by columns.
    std::string name() const;
    /// The same object for the same kernel; thread-safe.
    const trace::KernelHandle& handle() const;
    auto operator<=>(const TensorKernel&) const = default;
};

}  // namespace ikat::stdlib
