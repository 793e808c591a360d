// SPDX-License-Identifier: Apache-2.0
// Which bytes of global memory a launch touches, for comparison with what other work of the device does.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/emulator/core/tool.hpp"
#include "runtime/emulator/tools/touched/byte_ranges.hpp"

namespace ikat::emulator {

/// How memory is touched: by accesses that race with others, or by atomics, and what is volatile or relaxed.
enum class Touch : std::uint8_t { Read, Write, Strong };
inline constexpr std::size_t touches = 3;

/// Ranges of bytes in the order of accesses, which are merged: those that begin in one KiB at once, and all of them
/// from time to time.
class RangeCollector {
public:
    void add(std::uint64_t begin, std::uint64_t end) {
        const std::uint64_t place = (begin >> 10) * 0x9e3779b97f4a7c15u >> 58;
        ByteRanges::Range& run = runs_[place];
        if (begin > run.end || end < run.begin) {
            keep(run);
            run = {begin, end};
            used_ |= std::uint64_t{1} << place;
        } else {
            run = {begin < run.begin ? begin : run.begin, end > run.end ? end : run.end};
        }
    }
    /// All of them, which ascend and do not touch.
    std::vector<ByteRanges::Range> take();

private:
    void keep(const ByteRanges::Range& run) {
        if (run.begin == run.end) return;
        kept_.push_back(run);
        if (kept_.size() >= limit_) merge();
    }
    void merge();

    std::array<ByteRanges::Range, 64> runs_{};
    std::uint64_t used_ = 0;  // which of them
    std::vector<ByteRanges::Range> kept_;
    std::size_t limit_ = 1024;
};

/// What the host threads of a launch have collected.
struct TouchedMemory {
    std::array<RangeCollector, touches> bytes;
    std::mutex mutex;
};

/// Adds to Launch::touched.
const Tool& touched_memory();

}  // namespace ikat::emulator
