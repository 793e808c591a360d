// SPDX-License-Identifier: Apache-2.0
// Which bytes of its buffers a launch was given. A view is the rows of an array: runs of bytes that are a pitch apart,
// nested for planes; rows without a gap between them are one run. A buffer's bytes are those of all its views together.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/emulator/core/memory/memory.hpp"
#include "runtime/facts/launch_view.hpp"

namespace ikat::emulator::views {

/// The bytes [begin, end).
struct Run {
    std::uint64_t begin = 0, end = 0;
    bool has(std::uint64_t address) const { return address - begin < end - begin; }
    bool has(std::uint64_t address, std::uint64_t bytes) const { return has(address) && bytes <= end - address; }
};

/// Those of one view.
class Region {
public:
    /// With its halo, or without.
    Region(const LaunchView& view, bool with_halo);

    const LaunchView& view() const { return *view_; }
    /// The row that an address is in.
    std::optional<Run> row(std::uint64_t address) const {
        const auto found = locate(address);
        return found && found->has(address) ? found : std::nullopt;
    }
    /// The gap between that row and the next, or after the last one, if an address is in it.
    std::optional<Run> padding(std::uint64_t address) const {
        const auto found = locate(address);
        if (!found || found->has(address) || dimensions_.empty()) return {};
        return Run{found->end, found->begin + dimensions_.back().pitch};
    }
    /// From its first row to its last.
    Run span() const { return {begin_, end_}; }
    /// Whether it has no gaps.
    bool is_one_run() const { return dimensions_.empty(); }

private:
    /// The row that an address is in, or in the gap after it.
    std::optional<Run> locate(std::uint64_t address) const;

    struct Dimension {
        std::uint64_t count = 0, pitch = 0;  // in bytes
    };
    const LaunchView* view_;
    std::uint64_t begin_ = 0, end_ = 0, row_bytes_ = 0;
    std::vector<Dimension> dimensions_;  // outermost first, without that of the row's elements
};

/// Those of a launch.
class Regions {
public:
    /// The views must outlive it.
    Regions(std::span<const LaunchView> views, const Memory::State& memory);

    /// Whether some byte of a buffer was not given.
    bool are_parts() const { return are_parts_; }
    /// Bytes around an address of which all may be accessed, as far as it is known at once; none if it may not. Outside
    /// of the launch's buffers all may: other checks know what is there.
    std::optional<Run> around(std::uint64_t address, bool reads) const;
    /// The first byte of an access that may not be accessed. A read that begins inside may reach less than `reach`
    /// bytes into the padding after its row.
    std::optional<std::uint64_t> outside(std::uint64_t address, std::uint64_t bytes, bool reads,
                                         std::uint64_t reach) const;
    /// The views of the buffer that an address is in.
    std::vector<const LaunchView*> views_at(std::uint64_t address) const;

private:
    struct Buffer {
        Run bytes;
        std::vector<Region> read{}, written{};
        std::span<const Region> of(bool reads) const { return reads ? read : written; }
    };
    const Buffer* buffer_of(std::uint64_t address) const {
        for (const Buffer& each : buffers_)
            if (each.bytes.has(address)) return &each;
        return nullptr;
    }

    std::vector<Buffer> buffers_;
    bool are_parts_ = false;
};

}  // namespace ikat::emulator::views
