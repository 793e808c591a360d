// SPDX-License-Identifier: Apache-2.0
// The options of `ikat run` and `ikat check`, and what they do.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ikat::cli {

/// One launch as given on the command line.
struct LaunchOptions {
    std::string what, entry, grid, block;
    std::optional<std::uint32_t> shared;
    std::vector<std::string> set, links, arguments, outputs;
};

struct RunOptions {
    std::vector<LaunchOptions> launches;
    std::string device, target, schedule, check, report, suppressions;
    std::uint64_t steps = 0, launch_steps = 0;
    std::uint32_t schedules = 0;
    bool unchecked = false, warnings_as_errors = false;
    std::optional<std::string> verdict;  // of `ikat check`, in this format
};

void run(const RunOptions& options);

}  // namespace ikat::cli
