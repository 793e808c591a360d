// SPDX-License-Identifier: Apache-2.0
// A line on a terminal that says how far a training is; where standard output is none, nothing:
//
//     step 40/150   loss 0.2113   8120 samples/s   2 s left
#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace ikat::training {

class Progress {
public:
    /// Of so many steps with so many items each, which are called `unit`.
    Progress(std::uint32_t steps, std::uint64_t items, const char* unit, bool is_shown = isatty(STDOUT_FILENO))
        : steps_(steps), items_(items), unit_(unit), is_shown_(is_shown) {}
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// After a step, which are counted from 1. The line changes at most ten times in a second.
    void step(std::uint32_t number, double loss) {
        done_ = number;
        const double now = seconds();
        if (!is_shown_ || (now - shown_at_ < 0.1 && number != steps_)) return;
        shown_at_ = now;
        std::printf("\r\x1b[Kstep %u/%u   loss %.4f   %.0f %s/s   %.0f s left", number, steps_, loss, per_second(),
                    unit_, now / number * (steps_ - number));
        std::fflush(stdout);
    }
    /// Removes the line, for others.
    void clear() {
        if (is_shown_ && shown_at_ >= 0) std::printf("\r\x1b[K");
        std::fflush(stdout);
        shown_at_ = -1;
    }
    /// Items in a second so far.
    double per_second() const { return seconds() > 0 ? double(items_) * done_ / seconds() : 0; }
    double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

private:
    using Clock = std::chrono::steady_clock;

    std::uint32_t steps_, done_ = 0;
    std::uint64_t items_;
    const char* unit_;
    bool is_shown_;
    double shown_at_ = -1;
    Clock::time_point begin_ = Clock::now();
};

}  // namespace ikat::training
