// SPDX-License-Identifier: Apache-2.0
// The lanes of a warp that go different ways.
//
// A warp is a short list of splits, each a set of lanes at one op. The split with the lowest op runs (ops lie in
// reverse post order, so those behind catch up and splits that meet merge) until it comes to another's, and a split
// that was passed over for long gets a turn, so that a lane may spin for one that waits. Lanes at a warp-wide
// instruction wait for its other members, lanes at a barrier for the rest of the warp; then the warp as a whole arrives
// at the barrier.
#pragma once
#include <optional>
#include <random>
#include <vector>

#include "runtime/emulator/machine/kernel.hpp"

namespace ikat::emulator {

struct Split {
    enum class Wait : std::uint8_t { None, Members, Barrier };
    std::uint32_t pc = 0, mask = 0;
    Wait wait = Wait::None;
    std::uint64_t since = 0;  // the warp's instructions when it was last put aside
};

class ScheduledWarp : public Warp {
public:
    /// The lanes begin at op `entry`.
    void start(std::uint32_t lanes, std::byte* frame, std::uint32_t entry);

    enum class Stop { SliceOver, AtBarrier, Done, Fault, Stuck };
    /// Runs until the slice (in warp instructions) is over or the warp cannot go on by itself. `random` orders the
    /// splits of a seeded launch.
    Stop run(std::uint64_t slice, std::minstd_rand* random);

    /// The splits of a warp that is at a barrier, and how it goes on.
    const std::vector<Split>& splits() const { return splits_; }
    void pass_barrier();
    /// Of the lanes that run, those that go on are `staying`; the others, which are ahead of them, wait at `pc`.
    void part(std::uint32_t pc, std::uint32_t others, std::uint32_t staying);
    /// Where the running lanes come to the only others, which can go on: all go on as one, and the scheduler need not
    /// be asked, who would say the same. False if it must be.
    bool join_others(std::uint32_t running_lanes);
    /// The split that runs next where no seed orders them, if any can.
    std::optional<Split> next() const;
    /// Instructions since the warp began or last passed a barrier.
    std::uint64_t spent() const { return instructions - passed_at_; }

    std::byte* frame() const { return frame_; }

    /// Goes on in the checked code of the kernel: registers are all defined, or none is.
    void start_checking(const DecodedKernel& checked, bool defined);
    /// The code of a kernel from its beginning.
    void load(const DecodedKernel& kernel);

private:
    void put(std::uint32_t pc, std::uint32_t mask, Split::Wait wait);
    struct Choice {
        std::size_t split, ready = 0;  // ready: how many can run
        bool waited = false;           // it was passed over for long
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
    std::vector<std::uint32_t> undefined_;
    std::byte* frame_ = nullptr;
    std::uint64_t passed_at_ = 0;
};

}  // namespace ikat::emulator
