// SPDX-License-Identifier: Apache-2.0
// Kernels of a stream that may overlap on a device: one that has executed griddepcontrol.launch_dependents, and the
// next one, if its launch may begin early. Grids do not overlap here, so the results are those of one after the other.
// What is found is an access of the second, before its griddepcontrol.wait, to bytes that the first writes, or a write
// to bytes that it reads.
//
//     GridsInFlight      of a stream: the grids that a launch may overlap
//     GridRecord         of one of them: what it has read and written (footprint.hpp)
//     overlapping_grids  the tool, which records the grid that runs and compares it with those
//
// A thread has waited if it has executed the instruction, or has met one that has: in a barrier of the block, the
// cluster or the warp.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/tools/grids/footprint.hpp"

namespace ikat::emulator {

/// What is known of a grid: threads of all its blocks add to it.
struct GridRecord {
    explicit GridRecord(std::string name) : kernel(std::move(name)) {}
    std::string kernel;
    Footprint footprint{};
    std::atomic<bool> launches_next = false;  // a thread has executed that
    std::atomic<bool> has_waited = false;     // ... for the grids before
};

/// The grids of a stream that may not have ended when the next one begins, as far as the device promises.
class GridsInFlight {
public:
    /// The one launched last, whose end griddepcontrol.wait waits for; nullptr if it has ended.
    const GridRecord* last() const { return last_.get(); }
    /// Those before, whose ends nobody has waited for. Newest last.
    const std::vector<std::shared_ptr<const GridRecord>>& older() const { return older_; }
    bool any() const { return last_ || !older_.empty(); }

    /// A grid begins; another order of the same one begins anew.
    std::shared_ptr<GridRecord> begin(std::string kernel);
    /// The launch has ended, which could begin early or not.
    void end(bool began_early);
    /// All have ended.
    void clear() { *this = {}; }

private:
    std::shared_ptr<const GridRecord> last_{};
    std::shared_ptr<GridRecord> running_{};
    std::vector<std::shared_ptr<const GridRecord>> older_{};
};

/// Used where a kernel lets the next one begin, or may itself begin before others have ended.
const Tool& overlapping_grids();

}  // namespace ikat::emulator
