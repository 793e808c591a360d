// SPDX-License-Identifier: Apache-2.0
// Divergence within a warp.
// A warp is a short list of splits, each a set of lanes at one op. The split with the lowest op runs (ops are in
// reverse postorder, so splits that are behind catch up, and splits that meet merge) until it reaches another's op; a
// split that has waited long gets a turn, so that a lane may spin for a waiting one; one that polls a barrier in shared
// memory lets the others go first. Lanes at a warp-wide instruction
// wait for its other members, lanes at a barrier for the rest of the warp; then the warp as a whole arrives at the
// barrier.
#pragma once
#include <optional>
#include <random>
#include <vector>

#include "runtime/emulator/core/definedness.hpp"
#include "runtime/emulator/core/kernel.hpp"

namespace ikat::emulator {

struct Split {
    enum class Wait : std::uint8_t { None, Members, Barrier };
    std::uint32_t pc = 0, mask = 0;
    Wait wait = Wait::None;
    std::uint64_t since = 0;  // the warp's instruction count when it was last suspended
    bool polls = false;       // it has asked in vain whether a phase is over
};

class ScheduledWarp final : public Warp {
public:
    /// The lanes begin at op `entry`.
    void start(std::uint32_t lanes, std::byte* frame, std::uint32_t entry);

    enum class Stop { SliceOver, AtBarrier, Done, Fault, Stuck };
    /// Runs until the slice (in warp instructions) is over or the warp cannot continue alone. `random` orders the
    /// splits of a seeded launch.
    Stop run(std::uint64_t slice, std::minstd_rand* random);

    /// The splits of a warp that is at a barrier, and how it continues.
    const std::vector<Split>& splits() const { return splits_; }
    void pass_barrier();
    /// ... or executes its op again.
    void try_again();
    void part(std::uint32_t pc, std::uint32_t others, std::uint32_t staying) override;
    bool join_others(std::uint32_t running_lanes) override;
    /// The split that runs next without a seed, if any can.
    std::optional<Split> next() const;
    /// Whether all splits that can run poll.
    bool only_polls() const;
    /// Instructions since the warp started or last passed a barrier.
    std::uint64_t spent() const { return instructions - passed_at_; }

    std::byte* frame() const { return frame_; }

    /// At the next branch, lanes that let all others go first, as those that poll do.
    std::uint32_t late = 0;

    /// Continues in the checked code of the kernel, with all registers defined, or none.
    void start_checking(const DecodedKernel& checked, bool defined);
    /// Loads the code of a kernel, to start at its beginning.
    void load(const DecodedKernel& kernel);

private:
    void put(std::uint32_t pc, std::uint32_t mask, Split::Wait wait, bool polls = false);
    struct Choice {
        std::size_t split, ready = 0;  // ready: how many can run
        bool waited = false;           // it has waited long
        bool overtakes = false;        // others, which poll, are further behind
    };
    Choice furthest_behind() const;
    std::size_t choose(std::minstd_rand* random, bool& strays);
    void set_running(std::uint32_t lanes);
    void bound_turn(std::uint32_t from, bool strays);
    void execute(Split split, bool strays);
    void end_lanes();
    bool at_barrier() const;
    bool release_met_members();

    std::vector<Split> splits_;
    Definedness checked_;
    std::byte* frame_ = nullptr;
    std::uint64_t passed_at_ = 0;
};

}  // namespace ikat::emulator
