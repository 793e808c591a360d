// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <tuple>

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

/// "7,lanes,moved-shared": the words that are on. Our own kernels have the adversaries by every seed.
std::string schedule_text(const EmulatorOptions& options, std::uint32_t seed, bool lanes) {
    if (!seed) return "0";
    return fmt::format("{}{}{}{}", seed, lanes ? ",lanes" : "", options.asks_moved_shared ? ",moved-shared" : "",
                       options.asks_any_leader ? ",any-leader" : "");
}

/// "7", "random", with the words that OpenOptions lists. False if it is empty.
bool set_schedule(EmulatorOptions& options, std::string_view asked) {
    const std::string_view text = asked.empty() ? environment("IKAT_SCHEDULE") : asked;
    if (text.empty()) return false;
    const auto malformed = [&] {
        return Error(fmt::format("there is no schedule '{}'{}", text, asked.empty() ? " (from IKAT_SCHEDULE)" : ""),
                     "a schedule is 0 (round-robin), a number that gives the order of warps, or random; then, "
                     "separated by commas, lanes: also the order of diverged lanes of a warp; moved-shared: dynamic "
                     "shared memory does not begin at a multiple of 1024; any-leader: elect takes any lane");
    };
    options.lanes = false;
    std::string_view number = text.substr(0, text.find(','));
    std::string_view words = text.substr(number.size());
    while (!words.empty()) {
        words.remove_prefix(1);
        const std::string_view word = words.substr(0, words.find(','));
        words.remove_prefix(word.size());
        bool* const is_on = word == "lanes"          ? &options.lanes
                            : word == "moved-shared" ? &options.asks_moved_shared
                            : word == "any-leader"   ? &options.asks_any_leader
                                                     : nullptr;
        if (!is_on) throw malformed();
        *is_on = true;
    }
    const bool random = number == "random";
    if (random) options.seed = std::random_device()() | 1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), options.seed);
    if (!random && (error != std::errc{} || end != number.data() + number.size())) throw malformed();
    if (random) note(fmt::format("schedule {}\n", schedule_text(options, options.seed, options.lanes)));
    return true;
}

const emulator::Checks& checks_of(const EmulatorOptions& options, Origin origin) {
    return origin == Origin::Own ? options.sets.strict : options.sets.foreign;
}

}  // namespace

/// Which lines of which kernels have been warned of.
class Warned {
public:
    bool is_new(std::string_view entry, const Diagnostic& warning) {
        const std::lock_guard lock(mutex_);
        return said_.emplace(entry, warning.where.file, warning.where.line, warning.code).second;
    }

private:
    std::mutex mutex_;
    std::set<std::tuple<std::string, std::string, std::uint32_t, std::string>> said_;
};

EmulatorOptions emulator_options(const OpenOptions& options) {
    EmulatorOptions out;
    out.threads = options.threads ? options.threads : threads_from_environment();
    if (options.step_budget) out.step_budget = options.step_budget;
    if (options.launch_budget) out.launch_budget = options.launch_budget;
    emulator::apply(out.sets, options.check.empty() ? environment("IKAT_CHECK") : options.check,
                    options.check.empty() ? " (from IKAT_CHECK)" : "");
    out.warned = std::make_shared<Warned>();
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
    out.by_number = !set_schedule(out, options.schedule);
    return out;
}

void run(emulator::Program& program, const emulator::Launch& launch, const EmulatorOptions& asked, Origin origin) {
    static std::atomic<std::uint32_t> launches = 0;
    emulator::Options options = asked;
    const bool is_strict = origin == Origin::Own || asked.sets.all_strict;
    options.checks = checks_of(asked, origin);
    options.moved_shared = is_strict || asked.asks_moved_shared;
    options.any_leader = is_strict || asked.asks_any_leader;
    options.warning = [&](const Diagnostic& warning) {
        if (!asked.warned->is_new(launch.entry, warning)) return;
        Diagnostic named = warning;
        named.notes.push_back({{}, fmt::format("in kernel '{}'", launch.entry)});
        asked.warning(named);
    };
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
             fmt::format("in kernel '{}'; IKAT_SCHEDULE={} repeats this order of warps", launch.entry,
                         schedule_text(asked, options.seed, options.lanes))});
        const KernelError error(std::move(diagnostics));
        log(error.what() + std::string("\n"));
        throw error;
    }
}

void check_download(const EmulatorOptions& options, Origin origin, const emulator::Memory& memory, std::uint64_t from,
                    std::size_t bytes) {
    constexpr emulator::FaultCode code = emulator::FaultCode::UndefinedDownload;
    const emulator::Action action = checks_of(options, origin).of(code);
    if (action == emulator::Action::Off) return;
    const emulator::Memory::Unwritten gap = memory.unwritten(from, bytes);
    if (gap.count == 0) return;
    Diagnostic diagnostic{
        .severity = emulator::severity_of(action),
        .message =
            fmt::format("nothing has written {} of the {} bytes of {} that are copied to the host, from offset {} on",
                        gap.count == bytes ? "any" : std::to_string(gap.count), bytes, gap.buffer, gap.first),
        .hint = emulator::info(code).hint,
        .code = emulator::info(code).name};
    if (action == emulator::Action::Error) throw KernelError(std::vector{std::move(diagnostic)});
    if (options.warned->is_new(gap.buffer, diagnostic)) options.warning(diagnostic);
}

}  // namespace ikat::runtime
