// SPDX-License-Identifier: Apache-2.0
// Basic blocks of micro-ops, and the values that a micro-op reads and writes; for the second half of decoding.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

inline constexpr std::uint32_t nowhere = ~0u;

struct BasicBlock {
    std::uint32_t begin = 0, end = 0;  // of micros
    std::vector<std::uint32_t> successors{};
    std::uint32_t predecessors = 0;
    bool falls = false;  // into the next block of the text: the first successor
    std::uint32_t op = nowhere;
};

/// Calls f(i) for each field of a set.
template <class F>
void each_field(std::uint8_t set, F f) {
    for (unsigned i = 0; i < 6; ++i)
        if (set >> i & 1) f(i);
}
/// Calls f(value) for each value that a micro-op reads, or writes.
template <class F>
void each_source(const Lowering& lowering, const Micro& micro, F f) {
    each_field(micro.reads, [&](unsigned i) { f(micro.fields[i]); });
    for (std::uint32_t i = micro.list.results; i < micro.list.count; ++i)
        f(index(lowering.listed[micro.list.first + i]));
}
template <class F>
void each_result(const Lowering& lowering, const Micro& micro, F f) {
    each_field(micro.writes, [&](unsigned i) { f(micro.fields[i]); });
    for (std::uint32_t i = 0; i < micro.list.results; ++i) f(index(lowering.listed[micro.list.first + i]));
}

/// How many registers some path may lead to with no assignment after it. `order` has the blocks in reach.
std::uint32_t count_unassigned_reads(const Lowering& lowering, std::span<const BasicBlock> blocks,
                                     std::span<const std::uint32_t> order, std::span<const std::uint32_t> entries);

}  // namespace ikat::emulator
