// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/emulator_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"
#include "runtime/device.hpp"
#include "runtime/emulator/core/checks/suppressions.hpp"
#include "runtime/emulator/host/trace.hpp"

namespace ikat::runtime {
namespace {

/// A number from 1 on; otherwise what it is without the variable.
unsigned number_from_environment(const char* name, unsigned otherwise, std::string_view what) {
    const std::string_view text = environment(name);
    if (text.empty()) return otherwise;
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number == 0)
        throw Error(fmt::format("{} is '{}'", name, text), fmt::format("it is {}: 1, 2, ...", what));
    return number;
}

/// The file that IKAT_TRACE names, for all devices of the process that have it.
std::shared_ptr<emulator::Trace> trace_from_environment() {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<emulator::Trace>> traces;
    const std::string path(environment("IKAT_TRACE"));
    if (path.empty()) return nullptr;
    const std::lock_guard lock(mutex);
    std::shared_ptr<emulator::Trace>& trace = traces[path];
    if (!trace) trace = std::make_shared<emulator::Trace>(path);
    return trace;
}

/// A line for the log.
std::string line_of(const emulator::Coverage& coverage) {
    const emulator::RaceCounts& races = coverage.races;
    std::string lines;
    for (const emulator::HeapLeft& each : coverage.heap_left)
        lines += fmt::format("; {} by {}:{}", each.bytes, each.file, each.line);
    return fmt::format(
        "checked: kernel '{}', {} of {} orders, races: {} accesses of shared and {} of global memory, {} "
        "unsure, {} unchecked; {} bytes of the heap left{}\n",
        coverage.entry, coverage.orders, coverage.asked, races.shared, races.global, races.unsure, races.unchecked,
        coverage.heap_bytes, lines);
}

/// "7", "random", with the words that OpenOptions lists. Nothing if none is asked for.
std::optional<emulator::Schedule> schedule_of(std::string_view asked) {
    const std::string_view text = asked.empty() ? environment("IKAT_SCHEDULE") : asked;
    if (text.empty()) return {};
    const auto schedule = emulator::read_schedule(text);
    if (!schedule)
        throw Error(fmt::format("there is no schedule '{}'{}", text, asked.empty() ? " (from IKAT_SCHEDULE)" : ""),
                    "a schedule is 0 (round-robin), a number that gives the order of warps, or random; then, "
                    "separated by commas, " +
                        emulator::schedule_words());
    if (text.starts_with("random")) note(fmt::format("schedule {}\n", to_string(*schedule)));
    return schedule;
}

}  // namespace

std::uint32_t emulated_devices() {
    const unsigned count = number_from_environment("IKAT_DEVICES", 1, "the number of emulated devices, at most 16");
    if (count > 16) throw Error(fmt::format("IKAT_DEVICES is '{}'", count), "there are at most 16 emulated devices");
    return count;
}

emulator::HostOptions emulator_options(const OpenOptions& options, int ordinal) {
    const int count = int(emulated_devices());
    if (ordinal < 0 || ordinal >= count)
        throw Error(fmt::format("there is no emulated device {}", ordinal),
                    count == 1 ? "there is one, device 0: IKAT_DEVICES=2 makes them two"
                               : fmt::format("there are {}, numbered from 0: IKAT_DEVICES says how many", count));
    emulator::HostOptions out;
    out.name = fmt::format("emulator:{}", ordinal);
    out.threads = options.threads
                      ? options.threads
                      : number_from_environment("IKAT_THREADS", std::max(1u, std::thread::hardware_concurrency()),
                                                "the number of threads of the emulator");
    out.schedules = options.schedules ? options.schedules
                                      : number_from_environment("IKAT_SCHEDULES", 1,
                                                                "the number of orders in which each launch runs");
    out.idle = std::chrono::milliseconds(number_from_environment(
        "IKAT_STREAM_IDLE", unsigned(out.idle.count()),
        "how many milliseconds a program does nothing before a thread goes on with the work of its streams"));
    out.graph_rounds = options.graph_rounds
                           ? options.graph_rounds
                           : number_from_environment("IKAT_GRAPH_ROUNDS", unsigned(out.graph_rounds),
                                                     "how many rounds the loops of a launch of a graph may do");
    if (out.schedules > 1 || options.coverage)
        out.covered = [to = options.coverage](const emulator::Coverage& coverage) {
            log(line_of(coverage));
            if (to) to->push_back(coverage);
        };
    if (options.step_budget) out.step_budget = options.step_budget;
    if (options.launch_budget) out.launch_budget = options.launch_budget;
    emulator::apply(out.sets, options.check.empty() ? environment("IKAT_CHECK") : options.check,
                    options.check.empty() ? " (from IKAT_CHECK)" : "");
    const std::string file(options.suppressions.empty() ? environment("IKAT_SUPPRESS") : options.suppressions);
    if (!file.empty()) {
        std::ifstream in(file);
        const std::string text(std::istreambuf_iterator<char>(in), {});
        if (!in.is_open() || in.bad())
            throw Error(fmt::format("cannot read the suppressions in '{}'", file), "docs/emulator.md has their form");
        out.suppressions = std::make_shared<emulator::Suppressions>(text, file);
        if (options.suppressed) options.suppressed->file = out.suppressions;
    }
    out.warning = [to = options.warnings](const Diagnostic& warning) {
        const std::string text = to_string(warning) + "\n";
        note(text);
        log(text);
        if (to) to->push_back(warning);
    };
    if (options.printed) out.output = [to = options.printed](std::string_view text) { to->append(text); };
    if (options.traffic)
        out.tools.push_back(emulator::count_traffic(
            [to = options.traffic](const emulator::LaunchTraffic& launch) { to->push_back(launch); }));
    out.trace = trace_from_environment();
    const auto schedule = schedule_of(options.schedule);
    out.by_number = !schedule;
    static_cast<emulator::Schedule&>(out) = schedule.value_or(emulator::Schedule::of(0));
    return out;
}

}  // namespace ikat::runtime
