// SPDX-License-Identifier: Apache-2.0
// What the machine does on which the emulator runs: it lives inside each program, so this is of all programs together.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace ikat::cli {

struct HostReadings {
    unsigned threads = 0;                                        // that a launch of the emulator takes
    std::optional<double> cpu_percent{};                         // of all cores, since the reading before
    std::optional<std::uint64_t> memory_used{}, memory_total{};  // bytes
};

/// Ticks of all cores since the system began: all, and without those in which they were idle.
struct CpuTicks {
    std::uint64_t all = 0, busy = 0;
};
/// From the text of /proc/stat; nothing for another text.
std::optional<CpuTicks> cpu_ticks(std::string_view stat);
/// A line of /proc/meminfo, in bytes.
std::optional<std::uint64_t> memory_line(std::string_view meminfo, std::string_view name);

/// Remembers the last reading.
class HostLoad {
public:
    HostLoad();
    HostReadings read(unsigned threads);

private:
    std::optional<CpuTicks> last_;
};

}  // namespace ikat::cli
