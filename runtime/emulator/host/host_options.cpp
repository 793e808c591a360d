// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/host/host_options.hpp"

#include <fmt/format.h>

#include <atomic>
#include <iterator>
#include <mutex>
#include <set>
#include <tuple>

#include "codegen/support/notes.hpp"
#include "runtime/emulator/core/memory/memory.hpp"

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

const Checks& checks_of(const HostOptions& options, Origin origin) {
    return origin == Origin::Own ? options.sets.strict : options.sets.foreign;
}

}  // namespace

Schedule order_after(const Schedule& first, unsigned number) {
    using Turns = Schedule::Turns;
    using Arrivals = Schedule::Arrivals;
    struct Row {
        Turns turns;
        Arrivals arrivals;
        bool has_adversaries = false;
    };
    constexpr Row table[] = {{Turns::Descending, Arrivals::Late},  {Turns::BySeed, Arrivals::BySeed, true},
                             {Turns::Priorities, Arrivals::Early}, {Turns::Priorities, Arrivals::Late},
                             {Turns::Descending, Arrivals::Early}, {Turns::Priorities, Arrivals::BySeed, true},
                             {Turns::Ascending, Arrivals::Late}};
    if (number == 0) return first;
    const Row row = number <= std::size(table)
                        ? table[number - 1]
                        : Row{number % 2 ? Turns::Priorities : Turns::BySeed, Arrivals(number / 2 % 3), true};
    Schedule order = first;
    order.seed = first.seed + number == 0 ? 1 : first.seed + number;
    order.turns = row.turns;
    order.arrivals = row.arrivals;
    order.lanes = number % 2 == 0;
    if (row.has_adversaries) order.missed_waits = order.starved_block = order.any_blocks = true;
    return order;
}

namespace {

/// What has been found is the kernel's fault, and is said to repeat.
[[noreturn]] void throw_failure(const Error& finding, std::string_view entry, const Schedule& order) {
    std::vector<Diagnostic> diagnostics = finding.diagnostics();
    diagnostics.front().notes.push_back(
        {{}, fmt::format("in kernel '{}'; IKAT_SCHEDULE={} repeats this order of warps", entry, to_string(order))});
    const KernelFailure error(std::move(diagnostics));
    log(error.what() + std::string("\n"));
    throw error;
}

}  // namespace

Statistics run(Program& program, const Launch& launch, const HostOptions& asked, Origin origin) {
    static std::atomic<std::uint32_t> launches = 0;
    Options options = asked;
    const bool is_strict = origin == Origin::Own || asked.sets.all_strict;
    options.checks = checks_of(asked, origin);
    Schedule order = asked;  // as it is said
    if (asked.by_number) order = Schedule::of(++launches);
    const auto take = [&](const Schedule& next) {
        order = next;
        static_cast<Schedule&>(options) = next;
        options.moved_shared |= is_strict;
        options.any_leader |= is_strict;
    };
    take(order);
    options.warning = [&](const Diagnostic& warning) {
        if (!asked.warned->is_new(launch.entry, warning)) return;
        Diagnostic named = warning;
        named.notes.push_back({{}, fmt::format("in kernel '{}'", launch.entry)});
        asked.warning(named);
    };
    Memory::State& memory = program.memory().state();
    const auto heap_before = std::int64_t(memory.heap_used());
    Coverage coverage{.entry = std::string(launch.entry), .asked = asked.schedules};
    options.asks_for_heap = bool(asked.covered);
    const auto run_once = [&] {
        try {
            Statistics statistics = program.run(launch, options);
            coverage.races += statistics.races;
            if (coverage.heap_left.empty()) coverage.heap_left = std::move(statistics.heap_left);
            return statistics;
        } catch (const Error& finding) { throw_failure(finding, launch.entry, order); }
    };
    Statistics first_run;
    const auto run_first = [&] {
        first_run = run_once();
        coverage.heap_bytes = std::int64_t(memory.heap_used()) - heap_before;
    };
    if (asked.schedules <= 1) {
        run_first();
    } else {
        const Memory::State::Running running(memory);  // nothing is written yet that a launch would find unwritten
        const Memory::State::Snapshot before = memory.snapshot();
        run_first();
        const Memory::State::Snapshot after = memory.snapshot(before);
        const Restored restored{memory, after};
        options.output = [](std::string_view) {};
        options.tools.clear();
        const Schedule first = order;
        // Without a change of buffers by the kernel itself, which cannot be undone.
        for (; coverage.orders < asked.schedules && memory.restore(before); ++coverage.orders) {
            take(order_after(first, coverage.orders));
            run_once();
        }
    }
    if (asked.covered) asked.covered(coverage);
    return first_run;
}

bool is_new(const HostOptions& options, std::string_view about, const Diagnostic& warning) {
    return options.warned->is_new(about, warning);
}

Action action_about(FaultCode code, const HostOptions& options, Origin origin) {
    return checks_of(options, origin).of(code);
}

void check_download(const HostOptions& options, Origin origin, const Memory::State& memory, std::uint64_t from,
                    std::size_t bytes) {
    constexpr FaultCode code = FaultCode::UndefinedDownload;
    const Action action = action_about(code, options, origin);
    if (action == Action::Off) return;
    const Memory::Unwritten gap = Memory::unwritten(memory, from, bytes);
    if (gap.count == 0) return;
    Diagnostic diagnostic{
        .severity = severity_of(action),
        .message =
            fmt::format("nothing has written {} of the {} bytes of {} that are copied to the host, from offset {} on",
                        gap.count == bytes ? "any" : std::to_string(gap.count), bytes, gap.buffer, gap.first),
        .hint = info(code).hint,
        .code = info(code).name};
    if (action == Action::Error) throw KernelFailure(std::vector{std::move(diagnostic)});
    if (is_new(options, gap.buffer, diagnostic)) options.warning(diagnostic);
}

}  // namespace ikat::emulator
