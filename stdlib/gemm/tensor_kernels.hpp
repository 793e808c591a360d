// SPDX-License-Identifier: Apache-2.0
// The kernels behind gemm_tensor_core().
#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "dsl/record/capture.hpp"
#include "stdlib/epilogue/bound_epilogue.hpp"
#include "stdlib/gemm/choices.hpp"
#include "stdlib/math/activation.hpp"
#include "stdlib/tile/cluster_product.hpp"

namespace ikat::stdlib {

/// Those of mma.sync.
constexpr TensorTile tensor_tile(TileSize size) {
    if (size == TileSize::small) return {.m = 64, .n = 64, .warp_m = 32, .warp_n = 32, .stages = 4};
    if (size == TileSize::large) return {.m = 256, .n = 128, .warp_m = 64, .warp_n = 64, .stages = 3};
    return {.m = 128, .n = 128, .warp_m = 64, .warp_n = 64, .stages = 5, .k_bytes = 64};
}

/// The same by wgmma: 128 x 128 or, large, of 16-bit elements, 128 x 256, by clusters of two blocks.
constexpr ClusterTile cluster_tile(TileSize size, std::size_t element_bytes) {
    if (size == TileSize::large) return {.m = 128, .n = 256, .stages = 3, .blocks = 2};
    return {.m = 128, .n = 128, .stages = element_bytes == 2 ? 5u : 4u, .blocks = 2};
}

/// How many columns of C, of elements of so many bytes, a block stores at once, 64 rows by each warpgroup: all of its
/// tile's, or a part of them for which there is room beside the stages.
constexpr std::uint32_t columns_at_once(const ClusterTile& tile, std::size_t element_bytes) {
    const std::size_t room = 226 * 1024 - tile.stages * (tile.m + tile.n) * 128;  // 1 KiB is for the ring
    std::uint32_t columns = tile.n;
    while (2 * 64 * columns * element_bytes > room) columns /= 2;
    return columns;
}

/// One of the kernels.
struct TensorKernel {
    /// Its parameters; those with ... are followed by alpha, beta, and those of the epilogue, such as bias and
    /// residual.
    enum class Step : std::uint8_t {
        Whole,        // A, B, C ...: a block for each tile of each matrix
        Persistent,   // A, B, C ...: any number of blocks, which take tile after tile
        Part,         // A, B, sums, parts: the sums of parts of k, a block for each tile of each part
        Finish,       // sums, C, parts ...: C from these sums, a row or several for each block
        Stream,       // A, B, C, sums, streamed ...: a block for each worker of StreamK; C where a tile is whole
        Join,         // sums, C, slices, streamed, workers ...: C from its sums, a block for each streamed tile
        Scale,        // C ...: C where k is 0, a row or several for each block
        Cluster,      // A, B, C, k ...: by wgmma, clusters that take tile after tile; A and B are maps
        Boxes,        // A, B, C, m, n, k, planes, alpha: the same, where C is not read, as a map
        ClusterPart,  // A, B, sums, k, planes, parts: the same, the sums of parts of k, for Finish
    } step = Step::Whole;
    ir::Type type = ir::Type::F32;  // of A and B
    bool c_is_f32 = false;          // where these are f16 or bf16: C, the bias and the residual
    MatrixOrder a = MatrixOrder::Rows, b = MatrixOrder::Rows;
    TileSize tile = TileSize::medium;
    ProductAccess access{};
    bool c_is_aligned = true;  // rows of C, the bias and the residual, to 16 bytes
    Activation activation = Activation::none;
    bool has_bias = false, has_residual = false;
    EpilogueCode epilogue{};  // a caller's own; then there are none of the above

    /// Whether there is the same one with c_is_f32.
    bool can_give_f32() const { return type == ir::Type::F16 || type == ir::Type::BF16; }
    /// The type of C, of the bias and of the residual.
    ir::Type type_of_c() const;
    /// What becomes of alpha A B + beta C: the caller's own function, or activation(sum + bias) + residual.
    EpilogueCode code() const;
    /// "gemm_tensor_core_bf16_nt_bias_gelu", or, with C of f32, "gemm_tensor_core_bf16_f32_nt_bias_gelu": n and t are
    /// for matrices by rows and by columns.
    std::string name() const;
    /// A new one, not yet captured.
    KernelHandle make() const;
    /// The same object for the same kernel; thread-safe.
    const KernelHandle& handle() const;
    auto operator<=>(const TensorKernel&) const = default;
};

// make() of each pair of types is in a file of its own.
KernelHandle made_of_f16(const TensorKernel& is);
KernelHandle made_of_f16_to_f32(const TensorKernel& is);
KernelHandle made_of_bf16(const TensorKernel& is);
KernelHandle made_of_bf16_to_f32(const TensorKernel& is);
KernelHandle made_of_i8(const TensorKernel& is);
KernelHandle made_of_tf32(const TensorKernel& is);

}  // namespace ikat::stdlib
