// SPDX-License-Identifier: Apache-2.0
// Counts memory traffic (traffic.hpp): a tool with an op before each access that may be to global memory, and one
// before each that may be to shared memory; the access ops themselves are unchanged.
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

#include "codegen/ptx/text/module.hpp"
#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/core/warp.hpp"
#include "runtime/emulator/tools/traffic/sector_cache.hpp"
#include "runtime/emulator/tools/traffic/traffic.hpp"

namespace ikat::emulator {

/// The counts of all blocks of a launch.
class TrafficOfLaunch {
public:
    struct Buffer {
        Buffer(std::uint64_t base, std::uint64_t bytes) : base(base), bytes(bytes) {
            const std::uint64_t sectors = Memory::State::max_bytes_like(bytes) / sector_bytes;
            for (auto& set : touched) set = std::vector<std::atomic<std::uint64_t>>(sectors / 64 + 1);
        }
        std::uint64_t base, bytes;
        std::array<Traffic, directions> counts{};
        std::array<std::vector<std::atomic<std::uint64_t>>, directions> touched;  // a bit for each sector
    };

    Buffer& buffer(const View& view);
    void add(Buffer& to, const std::array<Traffic, directions>& counts);
    void add(const ptx::Instruction* instruction, const SharedTraffic& counts);
    /// To be called at the end of the launch.
    std::vector<BufferTraffic> result(const Memory::State& memory) const;
    /// source_lines: by PTX line, the kernel's source line.
    std::vector<SharedTraffic> shared(const ptx::Module& module, const std::vector<Location>& source_lines) const;

private:
    std::mutex mutex_;
    std::map<std::uint64_t, Buffer> buffers_;  // by base
    std::unordered_map<const ptx::Instruction*, SharedTraffic> shared_;
};

/// The counts of a block's warps.
class TrafficCounter final : public BlockTool {
public:
    TrafficCounter(TrafficOfLaunch& launch, std::size_t warps) : launch_(launch), caches_(warps) {}

    void start() override {
        for (SectorCache& cache : caches_) cache.clear();
    }
    /// Counts what bulk copies move.
    bool access(const AgentAccess& access) override;
    /// Adds the counts to the launch's.
    void finish() override;
    struct Request {
        std::uint64_t address = 0;
        std::uint32_t bytes = 0;
    };
    /// An access of the lanes of a warp, each of at most 64 bytes.
    void count(const Warp& warp, Direction direction, bool cached, std::span<const Request> requests);
    /// An access to shared memory.
    void count_shared(const ptx::Instruction* instruction, std::uint64_t wavefronts, std::uint64_t possible) {
        shared_[instruction].add({.accesses = 1, .wavefronts = wavefronts, .possible = possible});
    }

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
    std::unordered_map<const ptx::Instruction*, SharedTraffic> shared_;
};

inline TrafficCounter& counter_of(const Warp* w, std::uint32_t slot) {
    return static_cast<TrafficCounter&>(*w->tools[slot]);
}

}  // namespace ikat::emulator
