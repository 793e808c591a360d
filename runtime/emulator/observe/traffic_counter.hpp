// SPDX-License-Identifier: Apache-2.0
// Counts memory traffic (traffic.hpp): an observer (observer.hpp) with an op before each access that may be to global
// memory, and one before each that may be to shared memory; the access ops themselves are unchanged.
// Each block counts separately and each warp has its own cache, so sums do not depend on host threads. All blocks share
// the bit set of touched sectors.
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/machine/machine.hpp"
#include "runtime/emulator/observe/sector_cache.hpp"
#include "runtime/emulator/observe/traffic.hpp"

namespace ikat::emulator {

enum class Direction : std::uint8_t { Read, Write, Atomic };
inline constexpr std::size_t directions = 3;

/// Before an access of b bytes at address a (a register of 8 bytes) + x: c is its Direction, y whether it bypasses the
/// cache.
const MicroOp* count_traffic(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);
/// Before copies that read as many bytes as an operand says, with the fields of start_copies (agents/async_copies.hpp).
const MicroOp* count_copies(const MicroOp* op, Warp* w, std::byte* frame, std::uint32_t mask);

/// The counts of all blocks of a launch.
class TrafficOfLaunch {
public:
    struct Buffer {
        Buffer(std::uint64_t base, std::uint64_t bytes) : base(base), bytes(bytes) {
            const std::uint64_t sectors = Memory::State::most_bytes_like(bytes) / sector_bytes;
            for (auto& set : touched) set = std::vector<std::atomic<std::uint64_t>>(sectors / 64 + 1);
        }
        std::uint64_t base, bytes;
        std::array<Traffic, directions> counts{};
        std::array<std::vector<std::atomic<std::uint64_t>>, directions> touched;  // a bit for each sector
    };

    Buffer& buffer(const View& view);
    void add(Buffer& to, const std::array<Traffic, directions>& counts);
    void add(const nvptx::Instruction* instruction, const SharedTraffic& counts);
    /// To be called at the end of the launch.
    std::vector<BufferTraffic> result(const Memory::State& memory) const;
    /// source_lines: by PTX line, the kernel's source line.
    std::vector<SharedTraffic> shared(const nvptx::Module& module, const std::vector<Location>& source_lines) const;

private:
    std::mutex mutex_;
    std::map<std::uint64_t, Buffer> buffers_;  // by base
    std::unordered_map<const nvptx::Instruction*, SharedTraffic> shared_;
};

/// The counts of a block's warps.
class TrafficCounter {
public:
    TrafficCounter(TrafficOfLaunch& launch, std::size_t warps) : launch_(launch), caches_(warps) {}

    /// For a new block.
    void clear_caches() {
        for (SectorCache& cache : caches_) cache.clear();
    }
    struct Request {
        std::uint64_t address = 0;
        std::uint32_t bytes = 0;
    };
    /// An access of the lanes of a warp, each of at most 64 bytes.
    void count(const Warp& warp, Direction direction, bool cached, std::span<const Request> requests);
    /// A bulk copy, which passes by the caches. Requests ascend, or are far apart.
    void count_bulk(const Warp& warp, Direction direction, std::span<const Request> requests);
    /// An access to shared memory.
    void count_shared(const nvptx::Instruction* instruction, std::uint64_t wavefronts, std::uint64_t possible) {
        shared_[instruction].add({.accesses = 1, .wavefronts = wavefronts, .possible = possible});
    }
    /// Adds the counts to the launch's.
    void finish() const;

private:
    struct Share {
        TrafficOfLaunch::Buffer* buffer;
        std::array<Traffic, directions> counts{};
    };
    Share& share_of(const View& view);
    /// The sector's buffer, which an access has come to if it is not the one in `view` and `share`; nullptr outside.
    Share* next_share(const Warp& warp, Direction direction, std::uint64_t address, View& view, Share* share);

    TrafficOfLaunch& launch_;
    std::vector<SectorCache> caches_;  // by warp
    std::vector<Share> shares_;
    std::unordered_map<const nvptx::Instruction*, SharedTraffic> shared_;
};

}  // namespace ikat::emulator
