// SPDX-License-Identifier: Apache-2.0
// Source: the technical specifications of the CUDA programming guide. tests/unit/report compares with the calculator in
// NVIDIA's <cuda_occupancy.h>, if it is installed.
#include "codegen/report/occupancy.hpp"

#include <algorithm>

namespace ikat {
namespace {

constexpr std::uint32_t warp_size = 32, partitions = 4;  // of a multiprocessor, each with its share of the registers
constexpr std::uint32_t register_unit = 256;             // the granularity of register allocation to warps

constexpr std::uint32_t up(std::uint32_t x, std::uint32_t unit) { return (x + unit - 1) / unit * unit; }

std::uint32_t blocks_by_registers(const ptx::Target& target, const BlockNeeds& block, std::uint32_t warps) {
    if (block.registers > target.registers_per_thread) return 0;
    const std::uint32_t per_warp = up(std::max(block.registers, 1u) * warp_size, register_unit);
    if (per_warp * up(warps, partitions) > target.registers) return 0;
    return target.registers / partitions / per_warp * partitions / warps;
}

/// From 8.0 on the system reserves 1 KiB of each block's shared memory.
std::uint32_t blocks_by_shared(const ptx::Target& target, const BlockNeeds& block) {
    if (block.shared_bytes > target.shared_opt_in) return 0;
    const bool turing = target.number < 80;
    const std::uint32_t bytes = up(block.shared_bytes + (turing ? 0 : 1024), turing ? 256 : 128);
    return bytes ? target.shared_per_multiprocessor / bytes : target.blocks_per_multiprocessor;
}

}  // namespace

Occupancy occupancy(const ptx::Target& target, const BlockNeeds& block) {
    const std::uint32_t warps = std::max(up(block.threads, warp_size) / warp_size, 1u);
    if (block.threads > target.threads_per_block) return {block.registers, 0, 0, "threads"};
    const std::pair<std::uint32_t, std::string_view> limits[] = {
        {target.warps_per_multiprocessor / warps, "warps"},
        {blocks_by_registers(target, block, warps), "registers"},
        {blocks_by_shared(target, block), "shared memory"},
        {target.blocks_per_multiprocessor, "blocks"},
    };
    const auto& [blocks, limit] = *std::ranges::min_element(limits, {}, [](const auto& row) { return row.first; });
    return {block.registers, blocks, blocks * warps, limit};
}

}  // namespace ikat
