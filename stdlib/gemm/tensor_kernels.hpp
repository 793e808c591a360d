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

/// The shared memory of a block beside its barriers.
inline constexpr std::size_t cluster_room = 226 * 1024;

/// The same by wgmma: 128 x 128 or, large, of 16-bit elements, 128 x 256, by clusters of two blocks; 64 x 256 by each
/// of the two warpgroups in turn.
constexpr ClusterTile cluster_tile(TileSize size, std::size_t element_bytes, bool takes_turns = false) {
    if (takes_turns) return {.m = 64, .n = 256, .stages = 4, .blocks = 2, .takes_turns = true};
    if (size == TileSize::large) return {.m = 128, .n = 256, .stages = 4, .blocks = 2};
    return {.m = 128, .n = 128, .stages = element_bytes == 2 ? 5u : 4u, .blocks = 2};
}
/// The same tile with the stages for which there is room beside this many bytes.
constexpr ClusterTile beside(ClusterTile tile, std::size_t bytes) {
    while (tile.stage_bytes() + bytes > cluster_room) --tile.stages;
    return tile;
}

/// How a block stores C by boxes: so many columns at once, 64 rows by each warpgroup, which has `stages` for them.
struct StagesOfC {
    std::uint32_t columns, stages;
};
/// For elements of so many bytes: all columns of the tile at once, or, where there is no room for these beside A and B,
/// as many as there is room for twice, so that some are copied while the next ones are written.
constexpr StagesOfC stages_of_c(const ClusterTile& tile, std::size_t element_bytes) {
    const std::size_t room = cluster_room - tile.stage_bytes(), of_column = 2 * 64 * element_bytes;
    if (tile.n * of_column <= room) return {tile.n, 1};
    std::uint32_t columns = tile.n / 2;
    while (2 * columns * of_column > room) columns /= 2;
    return {columns, 2};
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
    bool takes_turns = false;  // Cluster and Boxes: each warpgroup makes every second tile
    Raster raster = Raster::grouped;
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
