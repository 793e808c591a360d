// SPDX-License-Identifier: Apache-2.0
// The time of an allocation and a release in a pool of memory, of its bookkeeping alone:
//
//     build/release/bench/bench_pool
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/pool/blocks.hpp"

namespace {

using namespace ikat::runtime;
using pool::BlockId;
using pool::Blocks;
using pool::QueueId;

/// CPU time in nanoseconds.
double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
}

/// CPU time for each pair, the best of nine rounds of a million: `kept` blocks live at once, and the oldest ends
/// when a new one is there; every `waits` pairs all work of the queue is done.
double pair_time(std::size_t kept, std::size_t waits) {
    constexpr std::size_t pairs = 1'000'000;
    std::mt19937 random(1);
    std::vector<std::uint64_t> sizes(4096);
    for (std::uint64_t& bytes : sizes) bytes = std::uint64_t{1} << (6 + random() % 14), bytes += random() % bytes;
    double best = 1e9;
    for (int round = 0; round < 9; ++round) {
        Blocks blocks;
        const QueueId queue = blocks.add_queue();
        const auto take = [&](std::size_t i) {
            const std::uint64_t bytes = sizes[i % sizes.size()];
            for (;;) {
                if (const auto block = blocks.take(bytes, queue)) return *block;
                blocks.add_segment(blocks.reserved(), pool::segment_bytes(bytes));
            }
        };
        std::vector<BlockId> ring;
        for (std::size_t i = 0; i < kept; ++i) ring.push_back(take(i));
        const double start = now();
        for (std::size_t i = 0; i < pairs; ++i) {
            BlockId& oldest = ring[i % kept];
            blocks.give(oldest, queue);
            oldest = take(i + kept);
            if (waits && i % waits == 0) blocks.reached(queue, blocks.last_ticket());
        }
        best = std::min(best, (now() - start) / double(pairs));
    }
    return best;
}

}  // namespace

int main() {
    fmt::print("an allocation and a release, in ns\nblocks at once   no waits   a wait for each 100\n");
    for (const std::size_t kept : {1, 10, 100, 1000, 10000})
        fmt::print("{:>14} {:>10.1f} {:>21.1f}\n", kept, pair_time(kept, 0), pair_time(kept, 100));
}
