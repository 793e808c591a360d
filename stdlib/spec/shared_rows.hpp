// SPDX-License-Identifier: Apache-2.0
// Rows that are kept in shared memory: how much they take of it, and what a device has.
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/device.hpp"

namespace ikat::stdlib {

/// What a device can keep rows in.
struct RowMemory {
    /// Of the queue's device, for the target that it compiles for.
    explicit RowMemory(const runtime::Queue& queue);
    RowMemory(std::uint64_t block_bytes, bool has_clusters) : block_bytes(block_bytes), has_clusters(has_clusters) {}

    std::uint64_t block_bytes;  // the most shared memory of a block
    bool has_clusters = false;  // whose blocks reach each other's
};

/// What a kernel keeps of a row in the shared memory of a block, or of the blocks of a cluster. Each thread has vectors
/// of 16 bytes of a row of elements, and a float for each element of these in a row of floats.
struct SharedRows {
    static constexpr std::uint32_t cluster = 8;  // blocks
    static constexpr std::uint64_t other_bytes = 2048;

    std::uint32_t threads = 0;    // of a block; 0: it keeps nothing there
    std::uint32_t registers = 0;  // rows with at most that many columns are left to kernels with them in registers
    std::uint32_t elements = 1;   // rows of elements
    std::uint32_t floats = 0;     // rows of floats
    bool in_columns = false;      // threads have the same columns in every row: see SharedColumns

    constexpr explicit operator bool() const { return threads != 0; }
    /// How many vectors, of so many elements, each of all threads has of a row, also in a kernel. Without `in_columns`
    /// a row begins up to 8 vectors after its first thread's.
    constexpr auto vectors(const auto& columns, std::uint32_t lanes, std::uint32_t blocks) const {
        const std::uint32_t all = threads * blocks, before = in_columns ? 0 : 8;
        return ((columns + (lanes - 1)) / lanes + (before + all - 1)) / all;
    }
    /// Of a block of so many that have a row together, for elements of `bytes` bytes. Not 0, for rows without columns.
    constexpr std::uint64_t block_bytes(std::uint64_t columns, std::uint64_t bytes, std::uint32_t blocks) const {
        const auto lanes = std::uint32_t(16 / bytes);
        return std::max<std::uint64_t>(vectors(columns, lanes, blocks), 1) * threads *
               (elements * 16 + floats * lanes * 4);
    }
    /// How many blocks have to keep a row together, 1 or those of a cluster; 0 if even these cannot, or if others do.
    /// Rows that are no whole vectors are not kept in registers, but short ones in a cache.
    std::uint32_t blocks_for(std::uint64_t columns, std::uint64_t bytes, bool are_vectors,
                             const RowMemory& memory) const {
        constexpr std::uint32_t in_a_cache = 8192;
        const auto fits = [&](std::uint32_t blocks) {
            return block_bytes(columns, bytes, blocks) + other_bytes <= memory.block_bytes;
        };
        if (threads == 0 || columns <= (are_vectors ? registers : std::min(registers, in_a_cache))) return 0;
        return fits(1) ? 1 : memory.has_clusters && fits(cluster) ? cluster : 0;
    }
};

}  // namespace ikat::stdlib
