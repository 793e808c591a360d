// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/gemm.hpp"

namespace ikat::stdlib {

const GemmKernel& gemm_tiled() {
    static const auto made = make_gemm_tiled<GemmTile{}>("gemm_tiled");
    return made;
}

runtime::Grid gemm_tiled_grid(std::uint32_t m, std::uint32_t n) {
    constexpr GemmTile tile;
    const auto tiles = [](std::uint32_t extent, std::uint32_t size) { return extent / size + (extent % size != 0); };
    constexpr std::uint32_t max_extent = 65535;  // of a grid in y and z
    const std::uint32_t across = tiles(n, tile.n), down = tiles(m, tile.m), layers = tiles(down, max_extent);
    return {.blocks = {across, tiles(down, layers), layers}, .threads = {tile.threads(), 1, 1}};
}

const GemmPitchedKernel& gemm_tiled_pitched() {
    static const auto made =
        kernel("gemm_tiled_pitched", params("A", "B", "C", "m", "n", "k", "a_pitch", "b_pitch", "c_pitch"),
               [](In<float> A, In<float> B, Out<float> C, u32 m, u32 n, u32 k, u32 a_pitch, u32 b_pitch, u32 c_pitch) {
                   detail::tile_of_block<GemmTile{}>(A, B, C, m, n, k, {a_pitch, b_pitch, c_pitch});
               })
            .launch_bounds(GemmTile{}.threads());
    return made;
}

}  // namespace ikat::stdlib
