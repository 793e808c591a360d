// SPDX-License-Identifier: Apache-2.0
// `ikat devices`: what kernels can run on; with --watch, what these devices do at the moment, again and again.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/support/diagnostic.hpp"
#include "runtime/device.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/monitor/sample.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {
namespace {

std::string describe(const runtime::DeviceReport& report) {
    if (!report.problem.empty()) return fmt::format("{:<10} not available: {}\n", report.selector, report.problem);
    const runtime::DeviceProperties& p = report.properties;
    return fmt::format(
        "{:<10} {}\n           target {}, compute capability {}.{}, {} multiprocessors, warps of {}\n"
        "           {:.1f} GiB of memory, {} KiB of shared memory per block ({} KiB on demand), {} threads per block\n",
        report.selector, p.name, p.target, p.compute_major, p.compute_minor, p.multiprocessors, p.warp_size,
        double(p.memory_bytes) / double(1 << 30), p.shared_bytes / 1024, p.shared_bytes_optin / 1024,
        p.max_threads_per_block);
}

struct DevicesOptions {
    bool watch = false, json = false;
    std::optional<double> interval{};  // seconds
    std::optional<std::uint64_t> count{};
};

volatile std::sig_atomic_t interrupted = 0;
void interrupt(int) { interrupted = 1; }

/// While it lives, Ctrl-C and kill end the watch instead of the process.
class Interruptible {
public:
    Interruptible() {
        interrupted = 0;
        struct sigaction action {};
        action.sa_handler = interrupt;  // without SA_RESTART: a wait ends at once
        sigaction(SIGINT, &action, &before_[0]);
        sigaction(SIGTERM, &action, &before_[1]);
    }
    ~Interruptible() {
        sigaction(SIGINT, &before_[0], nullptr);
        sigaction(SIGTERM, &before_[1], nullptr);
    }
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

    static void wait(double seconds) {
        std::timespec left{std::time_t(seconds), long((seconds - double(std::time_t(seconds))) * 1e9)};
        nanosleep(&left, nullptr);
    }

private:
    struct sigaction before_[2]{};
};

/// A part of the terminal that is written again and again. Its lines are cut to the terminal's width, so that it knows
/// how many there are.
class Redrawn {
public:
    Redrawn() { write_text({}, "\x1b[?25l"); }
    ~Redrawn() {
        constexpr std::string_view show_cursor = "\x1b[?25h";
        static_cast<void>(!::write(STDOUT_FILENO, show_cursor.data(), show_cursor.size()));
    }
    Redrawn(const Redrawn&) = delete;
    Redrawn& operator=(const Redrawn&) = delete;

    void draw(std::string_view text) {
        winsize size{};
        const std::size_t width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
        std::string out = lines_ ? fmt::format("\x1b[{}A\x1b[J", lines_) : std::string();
        for (lines_ = 0; !text.empty(); ++lines_) {
            const std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(line.size() + 1, text.size()));
            out += std::string(line.substr(0, width - 1)) + "\n";
        }
        write_text({}, out);
    }

private:
    std::size_t lines_ = 0;
};

/// The library, or why there is none.
struct Gpus {
    std::unique_ptr<const Nvml> nvml{};
    std::string problem{};

    Gpus() {
        try {
            nvml = std::make_unique<const Nvml>(Nvml::default_path());
        } catch (const Error& error) { problem = error.diagnostics().front().message; }
    }
    void read(Sample& to) const {
        to.problem = problem;
        if (!nvml) return;
        try {
            to.gpus = nvml->read();
        } catch (const Error& error) { to.problem = error.diagnostics().front().message; }
    }
};

void watch(const DevicesOptions& options) {
    constexpr double shortest = 0.05, longest = 86400, before_first = 0.1;
    const double interval = options.interval.value_or(1);
    if (!(interval >= shortest && interval <= longest))
        throw Error(fmt::format("--interval {}", interval), "it is a number of seconds from 0.05 to 86400");
    if (options.count == 0) throw Error("--count 0", "it is how many times the devices are asked, from 1 on");
    const bool is_terminal = isatty(STDOUT_FILENO) == 1;
    const std::uint64_t count = options.count.value_or(is_terminal ? ~std::uint64_t{0} : 1);
    const unsigned threads =
        runtime::Device::open({.device = "emulator"}, Location{}).properties().multiprocessors;  // one for each
    const Interruptible until_interrupted;
    const Gpus gpus;
    HostLoad load;
    std::optional<Redrawn> redrawn;
    if (is_terminal && !options.json) redrawn.emplace();
    Interruptible::wait(std::min(before_first, interval));  // a load is that of a while
    for (std::uint64_t i = 0; i < count && !interrupted; ++i) {
        Sample sample{.time =
                          std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()};
        gpus.read(sample);
        sample.host = load.read(threads);
        const std::string text = options.json ? json_of(sample) : text_of(sample);
        if (redrawn)
            redrawn->draw(text);
        else
            write_text({}, (i > 0 && !options.json ? "\n" : "") + text);
        if (i + 1 < count && !interrupted) Interruptible::wait(interval);
    }
}

void list() {
    std::string out;
    for (const runtime::DeviceReport& report : runtime::list_devices()) out += describe(report);
    write_text({}, out);
}

}  // namespace

void add_devices(CLI::App& app) {
    CLI::App* const command = app.add_subcommand("devices", "List the devices that kernels can run on, or watch them");
    const auto options = std::make_shared<DevicesOptions>();
    command->add_flag("--watch", options->watch,
                      "Show what they do at the moment: load, memory, temperature, power, clocks; Ctrl-C ends it");
    command->add_flag("--json", options->json, "With --watch: a line of JSON for each device and time");
    command->add_option("--interval", options->interval, "With --watch: seconds between two looks; default 1");
    command->add_option("--count", options->count,
                        "With --watch: how many looks; default: on a terminal until Ctrl-C, else one");
    command->callback([options] {
        if (options->watch) return watch(*options);
        for (const auto& [is_given, name] : {std::pair(options->json, "--json"),
                                             {options->interval.has_value(), "--interval"},
                                             {options->count.has_value(), "--count"}})
            if (is_given) throw Error(fmt::format("{} without --watch", name), "the list of devices has no options");
        list();
    });
}

}  // namespace ikat::cli
