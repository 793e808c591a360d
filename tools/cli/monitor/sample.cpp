// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/monitor/sample.hpp"

#include <fmt/format.h>

namespace ikat::cli {
namespace {

/// A number with its unit, or "-".
template <class Number>
std::string number(const std::optional<Number>& its, const char* unit) {
    if (!its) return "-";
    if constexpr (std::is_floating_point_v<Number>)
        return fmt::format("{:.1f} {}", *its, unit);
    else
        return fmt::format("{} {}", *its, unit);
}

std::string gibibytes(const std::optional<std::uint64_t>& bytes) {
    return bytes ? fmt::format("{:.1f}", double(*bytes) / double(1 << 30)) : "-";
}

std::string of_memory(const std::optional<std::uint64_t>& used, const std::optional<std::uint64_t>& total) {
    return fmt::format("{} of {} GiB", gibibytes(used), gibibytes(total));
}

std::string of_power(const GpuReadings& gpu) {
    const auto watts = [](const std::optional<double>& its) { return its ? fmt::format("{:.1f}", *its) : "-"; };
    return fmt::format("{} of {} W", watts(gpu.watts), watts(gpu.watt_limit));
}

std::string of_processes(const std::optional<std::vector<GpuReadings::Process>>& processes) {
    if (!processes) return "-";
    std::string out;
    for (const GpuReadings::Process& each : *processes)
        out += fmt::format("{}{} ({} GiB)", out.empty() ? "" : ", ", each.id, gibibytes(each.memory_bytes));
    return out.empty() ? "none" : out;
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (static_cast<unsigned char>(c) < 0x20)
            out += fmt::format("\\u{:04x}", int(c));
        else
            out += c;
    }
    return out + "\"";
}

template <class Number>
std::string json_number(const std::optional<Number>& its) {
    if constexpr (std::is_floating_point_v<Number>)
        return its ? fmt::format("{:.1f}", *its) : "null";
    else
        return its ? fmt::format("{}", *its) : "null";
}

std::string json_processes(const std::optional<std::vector<GpuReadings::Process>>& processes) {
    if (!processes) return "null";
    std::string out;
    for (const GpuReadings::Process& each : *processes)
        out += fmt::format(R"({}{{"pid":{},"memory_bytes":{}}})", out.empty() ? "" : ",", each.id,
                           json_number(each.memory_bytes));
    return "[" + out + "]";
}

std::string json_of(const GpuReadings& gpu, std::size_t number, double time) {
    return fmt::format(
        R"({{"time":{:.3f},"device":"gpu {}","name":{},"gpu_percent":{},"memory_percent":{},"memory_used_bytes":{},)"
        R"("memory_total_bytes":{},"celsius":{},"watts":{},"watt_limit":{},"sm_megahertz":{},"memory_megahertz":{},)"
        R"("processes":{}}})"
        "\n",
        time, number, gpu.name.empty() ? "null" : quoted(gpu.name), json_number(gpu.gpu_percent),
        json_number(gpu.memory_percent), json_number(gpu.memory_used), json_number(gpu.memory_total),
        json_number(gpu.celsius), json_number(gpu.watts), json_number(gpu.watt_limit), json_number(gpu.sm_megahertz),
        json_number(gpu.memory_megahertz), json_processes(gpu.processes));
}

}  // namespace

std::string text_of(const Sample& sample) {
    std::string out;
    const auto row = [&](std::string_view what, const std::string& value) {
        out += fmt::format("  {:<12} {}\n", what, value);
    };
    for (std::size_t i = 0; i < sample.gpus.size(); ++i) {
        const GpuReadings& gpu = sample.gpus[i];
        out += fmt::format("gpu {}: {}\n", i, gpu.name.empty() ? "-" : gpu.name);
        row("busy", fmt::format("GPU {}, memory {}", number(gpu.gpu_percent, "%"), number(gpu.memory_percent, "%")));
        row("memory", of_memory(gpu.memory_used, gpu.memory_total));
        row("temperature", number(gpu.celsius, "C"));
        row("power", of_power(gpu));
        row("clocks",
            fmt::format("SM {}, memory {}", number(gpu.sm_megahertz, "MHz"), number(gpu.memory_megahertz, "MHz")));
        row("processes", of_processes(gpu.processes));
    }
    if (sample.gpus.empty()) out += fmt::format("gpu: {}\n", sample.problem.empty() ? "none" : sample.problem);
    out += fmt::format("emulator: {} host thread{}\n", sample.host.threads, sample.host.threads == 1 ? "" : "s");
    row("host CPU", number(sample.host.cpu_percent, "%"));
    row("host memory", of_memory(sample.host.memory_used, sample.host.memory_total));
    return out;
}

std::string json_of(const Sample& sample) {
    std::string out;
    for (std::size_t i = 0; i < sample.gpus.size(); ++i) out += json_of(sample.gpus[i], i, sample.time);
    if (sample.gpus.empty())
        out += fmt::format(R"({{"time":{:.3f},"device":"gpu","problem":{}}})"
                           "\n",
                           sample.time, quoted(sample.problem.empty() ? "there is none" : sample.problem));
    return out + fmt::format(R"({{"time":{:.3f},"device":"emulator","host_threads":{},"host_cpu_percent":{},)"
                             R"("host_memory_used_bytes":{},"host_memory_total_bytes":{}}})"
                             "\n",
                             sample.time, sample.host.threads, json_number(sample.host.cpu_percent),
                             json_number(sample.host.memory_used), json_number(sample.host.memory_total));
}

}  // namespace ikat::cli
