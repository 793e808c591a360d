// SPDX-License-Identifier: Apache-2.0
// What the warps of a block know of each other's ordinary writes, and what of these fences have shown to the
// asynchronous proxy (PTX ISA, "Proxies"), in kernels whose products or bulk copies access memory by it.
//
// Events are numbered in the order in which they are run. A warp's clock says of each warp up to which number it has
// met it: at a barrier, or by waiting for a barrier in shared memory at which that one has arrived. A fence shows all
// that its warp knows of.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/core/warp.hpp"

namespace ikat::emulator {

/// What a fence shows: ordinary writes to shared and to global memory, barriers that its own thread has made, tensor
/// maps, which one fence has to release and another to acquire.
enum class Shown : std::uint8_t { Shared, Global, Barriers, ReleasedMaps, Maps };
inline constexpr std::size_t shown_kinds = 5;
constexpr std::uint32_t bit(Shown shown) { return 1u << int(shown); }

class WarpOrder {
public:
    static constexpr std::uint32_t max_warps = 32;

    /// A new block begins. Events are numbered by `first`, that of the cluster's first block.
    void clear(std::size_t warps, WarpOrder& first);
    std::uint32_t now() const { return first_->now_; }

    void meet(std::uint32_t warp);
    /// A warp arrives at a barrier, or has waited there.
    void arrive(std::uint32_t warp, const Meeting& at);
    void leave(std::uint32_t warp, const Meeting& at);
    /// All have arrived: those who wait from now on leave.
    void complete(const Meeting& at);
    /// The barrier begins again.
    void forget(const Meeting& at) { meetings_.erase(key(at)); }

    void fence(std::uint32_t warp, std::uint32_t lanes, std::uint32_t shown);
    /// A warp arrives at the cluster's barrier and releases what its threads have done.
    void release(std::uint32_t warp);
    /// All have arrived there: the barriers that they have made before are shown.
    void acquire_released();
    /// A map is acquired, by some thread.
    void acquire(std::uint64_t address) { acquired_[address] = now(); }
    /// Whether it has been since it was written at `when`.
    bool is_acquired(std::uint64_t address, std::uint32_t when) const {
        const auto found = acquired_.find(address);
        return found != acquired_.end() && found->second > when;
    }
    /// Whether a fence of these threads has shown what was written at `when`.
    bool has_fenced(Shown shown, std::uint32_t thread, std::uint32_t when) const {
        return fenced_[int(shown)][thread] > when;
    }
    /// ... or, as the warp knows, of one that knew what the writing warp did then.
    bool is_shown(Shown shown, std::uint32_t warp, std::uint32_t writer, std::uint32_t when) const {
        return clocks_[warp].shown[int(shown)][writer] > when;
    }
    std::uint32_t warps() const { return std::uint32_t(clocks_.size()); }

private:
    using Events = std::array<std::uint32_t, max_warps>;  // by warp
    struct Clock {
        Events known{};
        std::array<Events, shown_kinds> shown{};
        void join(const Clock& other);
    };
    struct Known {
        Clock arrived, over;
    };
    static constexpr std::uint64_t key(const Meeting& at) { return at.place << 2 | std::uint64_t(at.kind); }

    WarpOrder* first_ = this;
    std::uint32_t now_ = 0;
    std::vector<Clock> clocks_;                                     // by warp
    std::unordered_map<std::uint64_t, Known> meetings_;             // by key
    std::unordered_map<std::uint64_t, std::uint32_t> acquired_;     // by the address of a map
    std::array<std::vector<std::uint32_t>, shown_kinds> fenced_{};  // by thread: its last fence
    std::array<std::uint32_t, max_warps> released_{};               // by warp: when, 0: not since the cluster's barrier
};

}  // namespace ikat::emulator
