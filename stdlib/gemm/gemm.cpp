// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/gemm.hpp"

#include "stdlib/families.hpp"

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

// ---- the recipe

constexpr Recipe gemm_recipe{
    .call = "gemm(queue, A, B, C, m, n, k)",
    .kernels = {{"C = A B, f32, tiled through shared memory and registers", IKAT_KERNEL(gemm_tiled()),
                 [](const Call& call) {
                     const std::uint32_t m = call["m"], n = call["n"];
                     return m && n ? gemm_tiled_grid(m, n) : Grid{{0}, {gemm_tiled_grid(1, 1).threads}};
                 }}},
    .document =
        "A is m x k, B is k x n, C is m x n, row-major, with fewer than 2^32 elements each. Any sizes; k = 0\n"
        "gives zeros. Blocks of 256 threads cover tiles of C, 64 x 64 each: the grid is n / 64 by m / 64,\n"
        "rounded up; beyond 65535 in y it goes on in z.",
    .shapes = "A: m k, B: k n, C: m n",
    .reference = reference::gemm,
    .bound_by = "bound by arithmetic: each element is used for many of C",
    .note = "f32: C = A B"};

}  // namespace ikat::stdlib
