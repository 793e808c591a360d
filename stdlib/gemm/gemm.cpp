// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/gemm.hpp"

#include "stdlib/size.hpp"

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

void gemm(const runtime::Queue& queue, const runtime::Buffer<float>& A, const runtime::Buffer<float>& B,
          runtime::Buffer<float>& C, std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    const auto elements = [](std::uint32_t rows, std::uint32_t columns) { return std::uint64_t(rows) * columns; };
    require_size("gemm", "A", A.size(), u32_size("gemm", "A", elements(m, k)));
    require_size("gemm", "B", B.size(), u32_size("gemm", "B", elements(k, n)));
    require_size("gemm", "C", C.size(), u32_size("gemm", "C", elements(m, n)));
    if (m == 0 || n == 0) return;
    queue.launch(gemm_tiled(), gemm_tiled_grid(m, n), A, B, C, m, n, k);
}

}  // namespace ikat::stdlib
