// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <random>
#include <thread>

#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"
#include "runtime/device.hpp"

namespace ikat::runtime {
namespace {

unsigned threads_from_environment() {
    const std::string_view text = environment("IKAT_THREADS");
    if (text.empty()) return std::max(1u, std::thread::hardware_concurrency());
    unsigned threads = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
    if (error != std::errc{} || end != text.data() + text.size() || threads == 0)
        throw Error(fmt::format("IKAT_THREADS is '{}'", text),
                    "it is the number of threads of the emulator: 1, 2, ...");
    return threads;
}

/// "registers,no-barrier-fences": see OpenOptions.
void set_checks(emulator::Options& options, std::string_view asked) {
    std::string_view rest = asked.empty() ? environment("IKAT_CHECK") : asked;
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
        constexpr std::string_view no = "no-";
        const bool on = !word.starts_with(no);
        const std::string_view name = on ? word : word.substr(no.size());
        if (name == "registers")
            options.check_registers = on;
        else if (name == "barrier-fences")
            options.check_barrier_fences = on;
        else
            throw Error(fmt::format("there is no check '{}'{}", name, asked.empty() ? " (from IKAT_CHECK)" : ""),
                        "checks are registers: that each has been assigned before it is used; and barrier-fences: that "
                        "one is behind mbarrier.init before a bulk copy arrives, which no-barrier-fences turns off");
    }
}

/// "7", "7,lanes", "random", "random,lanes": see OpenOptions. False if it is malformed.
bool set_schedule(emulator::Options& options, std::string_view asked) {
    const std::string_view text = asked.empty() ? environment("IKAT_SCHEDULE") : asked;
    if (text.empty()) return false;
    std::string_view number = text;
    constexpr std::string_view suffix = ",lanes";
    options.lanes = number.ends_with(suffix);
    if (options.lanes) number.remove_suffix(suffix.size());
    const bool random = number == "random";
    if (random) options.seed = std::random_device()() | 1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), options.seed);
    if (!random && (error != std::errc{} || end != number.data() + number.size()))
        throw Error(fmt::format("there is no schedule '{}'{}", text, asked.empty() ? " (from IKAT_SCHEDULE)" : ""),
                    "a schedule is 0 (round-robin), a number that gives the order of warps, or random; with ,lanes "
                    "appended also the order of diverged lanes of a warp");
    if (random) note(fmt::format("schedule {}{}\n", options.seed, options.lanes ? suffix : ""));
    return true;
}

}  // namespace

EmulatorOptions emulator_options(const OpenOptions& options) {
    EmulatorOptions out;
    out.threads = options.threads ? options.threads : threads_from_environment();
    if (options.step_budget) out.step_budget = options.step_budget;
    set_checks(out, options.check);
    if (options.printed) out.output = [to = options.printed](std::string_view text) { to->append(text); };
    if (options.traffic)
        out.traffic = [to = options.traffic](const emulator::LaunchTraffic& launch) { to->push_back(launch); };
    out.by_number = !set_schedule(out, options.schedule);
    return out;
}

void run(emulator::Program& program, const emulator::Launch& launch, const EmulatorOptions& asked) {
    static std::atomic<std::uint32_t> launches = 0;
    emulator::Options options = asked;
    if (asked.by_number) {
        options.seed = ++launches;
        options.lanes = false;
    }
    try {
        program.run(launch, options);
    } catch (const Error& finding) {
        std::vector<Diagnostic> diagnostics = finding.diagnostics();
        diagnostics.front().notes.push_back(
            {{},
             fmt::format("in kernel '{}'; IKAT_SCHEDULE={}{} repeats this order of warps", launch.entry, options.seed,
                         options.seed && options.lanes ? ",lanes" : "")});
        const KernelError error(std::move(diagnostics));
        log(error.what() + std::string("\n"));
        throw error;
    }
}

}  // namespace ikat::runtime
