// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/gemm.hpp"

#include "stdlib/spec/families.hpp"

namespace ikat::stdlib {

const GemmKernel& gemm_tiled() {
    static const auto made = make_gemm_tiled<GemmTile{}>("gemm_tiled");
    return made;
}

runtime::Grid gemm_tiled_grid(std::uint32_t m, std::uint32_t n) {
    constexpr GemmTile tile;
    const auto tiles = [](std::uint32_t extent, std::uint32_t size) { return extent / size + (extent % size != 0); };
    constexpr std::uint32_t most = 65535;  // of a grid in y and z
    const std::uint32_t across = tiles(n, tile.n), down = tiles(m, tile.m), layers = tiles(down, most);
    return {.blocks = {across, tiles(down, layers), layers}, .threads = {tile.threads(), 1, 1}};
}

void gemm(const Queue& queue, const Buffer<float>& A, const Buffer<float>& B, Buffer<float>& C, std::uint32_t m,
          std::uint32_t n, std::uint32_t k, GemmBlock block) {
    SizeCheck{"gemm", queue.where()}.enumerator("block", std::size_t(block), 3);
    const bool has_many =
        m > 64 && n > 64 && gemm_tiled_large_grid(m, n).blocks.x >= queue.device().properties().multiprocessors;
    const bool is_large = block == GemmBlock::large || (block == GemmBlock::chosen && has_many);
    run<float>(queue, gemm_recipe, {A, B, C, m, n, k}, {.kernel = is_large ? 1u : 0u});
}

// ---- the recipe

static Grid grid_of(const Call& call, Grid (*of)(std::uint32_t m, std::uint32_t n)) {
    const std::uint32_t m = call["m"], n = call["n"];
    return m && n ? of(m, n) : Grid{{0}, {of(1, 1).threads}};
}

constexpr Recipe gemm_recipe{
    .call = "gemm(queue, A, B, C, m, n, k)",
    .kernels = {{"C = A B, f32, tiled through shared memory and registers", IKAT_KERNEL(gemm_tiled()),
                 [](const Call& call) { return grid_of(call, gemm_tiled_grid); }},
                {"C = A B, f32, for large matrices", IKAT_KERNEL(gemm_tiled_large()),
                 [](const Call& call) { return grid_of(call, gemm_tiled_large_grid); }}},
    .document =
        "A is m x k, B is k x n, C is m x n, row-major, with fewer than 2^32 elements each. Any sizes; k = 0\n"
        "gives zeros. Blocks of 256 threads cover tiles of C: of gemm_tiled 64 x 64 each, and the grid is\n"
        "n / 64 by m / 64, rounded up, beyond 65535 in y it goes on in z; of gemm_tiled_large 128 x 128,\n"
        "and the grid is their number. Both give the same bits.",
    .shapes = "A: m k, B: k n, C: m n",
    .reference = reference::gemm,
    .bound_by = "bound by arithmetic: each element is used for many of C",
    .note = "f32: C = A B"};

}  // namespace ikat::stdlib
