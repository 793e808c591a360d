// SPDX-License-Identifier: Apache-2.0
// Finds accesses that are inside of a buffer but outside of what the launch was given of it (regions.hpp). It does not
// know which argument an address was computed from, so two views of a buffer are not told apart. Buffers that are no
// argument are not judged, nor are copies by the map of a tensor, which have bounds of their own.
#pragma once
#include <array>
#include <optional>

#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/core/warp.hpp"
#include "runtime/emulator/tools/views/regions.hpp"

namespace ikat::emulator {

/// Used where the class `views` is not off, and an argument is a part of its buffer.
const Tool& in_views();

namespace views {

/// Field c of note_access.
struct AccessForm {
    std::uint8_t slot = 0;  // of the tool
    std::uint8_t bytes = 4;
    Direction direction = Direction::Read;
    Space space = Space::Global;

    std::uint32_t bits() const {
        return slot | std::uint32_t(bytes) << 8 | std::uint32_t(direction) << 16 | std::uint32_t(space) << 18;
    }
    static AccessForm of(std::uint32_t bits) {
        return {std::uint8_t(bits), std::uint8_t(bits >> 8), Direction(bits >> 16 & 3), Space(bits >> 18 & 7)};
    }
};

/// Before an access: a + x is its address, b the lanes that give one, c the form; d says which run is tried first.
Handler select_note_access();

class BlockViews final : public BlockTool {
public:
    static constexpr std::uint32_t runs = 64;

    BlockViews(ThreadBlock& block, const Regions& regions) : block_(block), regions_(regions) {}

    /// Bytes that may be accessed, which those ops have met that have the number.
    Run& run(std::uint32_t number) { return runs_[number % runs]; }
    /// False after a finding that stops the warp.
    bool access_lanes(Warp* w, const MicroOp* op, const std::uint64_t* addresses, std::uint32_t lanes);
    bool access(const AgentAccess& access) override;
    bool describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const override;
    void forget_finding() override { found_.reset(); }

private:
    struct Access {
        unsigned lane = 0;
        std::uint64_t address = 0, bytes = 0;
        Direction direction = Direction::Read;
        bool is_bulk = false;
    };
    bool judge(Warp* w, const MicroOp* op, const Access& access, Run& run);

    struct Found {
        Access access;
        std::uint64_t outside = 0;  // its first byte that is
    };
    ThreadBlock& block_;
    const Regions& regions_;
    std::array<Run, runs> runs_{};
    std::optional<Found> found_;
};

inline BlockViews& views_of(const Warp* w, std::uint32_t slot) { return static_cast<BlockViews&>(*w->tools[slot]); }

}  // namespace views

}  // namespace ikat::emulator
