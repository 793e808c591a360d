// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/host_options.hpp"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <set>
#include <tuple>

#include "codegen/support/notes.hpp"
#include "runtime/emulator/core/memory.hpp"

namespace ikat::emulator {

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

std::shared_ptr<Warned> nothing_warned() { return std::make_shared<Warned>(); }

namespace {

/// Makes memory what it was at the end, whatever happens.
struct Restored {
    Memory::State& memory;
    const Memory::State::Snapshot& snapshot;
    ~Restored() { memory.restore(snapshot); }
};

/// The seed of another order than the first: round-robin, in which copies arrive as late as they may, unless that was
/// the first; then others.
std::uint32_t order_behind(std::uint32_t first, unsigned number) {
    if (number == 1 && first != 0) return 0;
    return first + number == 0 ? 1 : first + number;
}

const Checks& checks_of(const HostOptions& options, Origin origin) {
    return origin == Origin::Own ? options.sets.strict : options.sets.foreign;
}

}  // namespace

std::string schedule_text(const HostOptions& options, std::uint32_t seed, bool lanes) {
    if (!seed) return "0";
    return fmt::format("{}{}{}{}", seed, lanes ? ",lanes" : "", options.asks_moved_shared ? ",moved-shared" : "",
                       options.asks_any_leader ? ",any-leader" : "");
}

void run(Program& program, const Launch& launch, const HostOptions& asked, Origin origin) {
    static std::atomic<std::uint32_t> launches = 0;
    Options options = asked;
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
    Memory::State& memory = program.memory().state();
    const auto heap_before = std::int64_t(memory.heap_used());
    Coverage coverage{.entry = std::string(launch.entry), .asked = asked.schedules};
    options.asks_for_heap = bool(asked.covered);
    const auto run_once = [&] {
        try {
            Statistics statistics = program.run(launch, options);
            coverage.races += statistics.races;
            if (coverage.heap_left.empty()) coverage.heap_left = std::move(statistics.heap_left);
        } catch (const Error& finding) {
            std::vector<Diagnostic> diagnostics = finding.diagnostics();
            diagnostics.front().notes.push_back(
                {{},
                 fmt::format("in kernel '{}'; IKAT_SCHEDULE={} repeats this order of warps", launch.entry,
                             schedule_text(asked, options.seed, options.lanes))});
            const KernelFailure error(std::move(diagnostics));
            log(error.what() + std::string("\n"));
            throw error;
        }
    };
    const auto run_first = [&] {
        run_once();
        coverage.heap_bytes = std::int64_t(memory.heap_used()) - heap_before;
    };
    if (asked.schedules <= 1) {
        run_first();
    } else {
        const Memory::State::Running running(memory);  // nothing is written yet that a launch would find unwritten
        const Memory::State::Snapshot before = memory.snapshot();
        run_first();
        const Memory::State::Snapshot after = memory.snapshot();
        const Restored restored{memory, after};
        options.output = [](std::string_view) {};
        options.tools.clear();
        const std::uint32_t first = options.seed;
        // Without a change of buffers by the kernel itself, which cannot be undone.
        for (; coverage.orders < asked.schedules && memory.restore(before); ++coverage.orders) {
            options.seed = order_behind(first, coverage.orders);
            options.lanes = coverage.orders % 2 == 0;
            run_once();
        }
    }
    if (asked.covered) asked.covered(coverage);
}

void check_download(const HostOptions& options, Origin origin, const Memory& memory, std::uint64_t from,
                    std::size_t bytes) {
    constexpr FaultCode code = FaultCode::UndefinedDownload;
    const Action action = checks_of(options, origin).of(code);
    if (action == Action::Off) return;
    const Memory::Unwritten gap = memory.unwritten(from, bytes);
    if (gap.count == 0) return;
    Diagnostic diagnostic{
        .severity = severity_of(action),
        .message =
            fmt::format("nothing has written {} of the {} bytes of {} that are copied to the host, from offset {} on",
                        gap.count == bytes ? "any" : std::to_string(gap.count), bytes, gap.buffer, gap.first),
        .hint = info(code).hint,
        .code = info(code).name};
    if (action == Action::Error) throw KernelFailure(std::vector{std::move(diagnostic)});
    if (options.warned->is_new(gap.buffer, diagnostic)) options.warning(diagnostic);
}

}  // namespace ikat::emulator
