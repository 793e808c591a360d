// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/monitor/host_load.hpp"

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace ikat::cli {
namespace {

std::string contents_of(const char* path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The number at the beginning of a text, after spaces, which it takes off; nothing if there is none.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return {};
    text.remove_prefix(std::size_t(end - text.data()));
    return number;
}

}  // namespace

/// "cpu  user nice system idle iowait irq softirq steal ...": guests are part of user and nice.
std::optional<CpuTicks> cpu_ticks(std::string_view stat) {
    constexpr std::string_view begin = "cpu ";
    if (!stat.starts_with(begin)) return {};
    stat = stat.substr(begin.size(), stat.find('\n') - begin.size());
    CpuTicks out;
    for (int field = 0; field < 8; ++field) {
        const auto ticks = take_number(stat);
        if (!ticks) return field > 3 ? std::optional(out) : std::nullopt;
        out.all += *ticks;
        if (field != 3 && field != 4) out.busy += *ticks;
    }
    return out;
}

std::optional<std::uint64_t> memory_line(std::string_view meminfo, std::string_view name) {
    const std::size_t at = meminfo.find(std::string(name) + ":");
    if (at == meminfo.npos) return {};
    std::string_view rest = meminfo.substr(at + name.size() + 1);
    const auto kibibytes = take_number(rest);
    return kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
}

HostLoad::HostLoad() : last_(cpu_ticks(contents_of("/proc/stat"))) {}

HostReadings HostLoad::read(unsigned threads) {
    HostReadings out{.threads = threads};
    const std::optional<CpuTicks> now = cpu_ticks(contents_of("/proc/stat"));
    if (now && last_ && now->all > last_->all)
        out.cpu_percent = 100.0 * double(now->busy - last_->busy) / double(now->all - last_->all);
    last_ = now;
    const std::string meminfo = contents_of("/proc/meminfo");
    out.memory_total = memory_line(meminfo, "MemTotal");
    const auto available = memory_line(meminfo, "MemAvailable");
    if (out.memory_total && available) out.memory_used = *out.memory_total - *available;
    return out;
}

}  // namespace ikat::cli
