// SPDX-License-Identifier: Apache-2.0
// The command lines of `ikat run` and `ikat check`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "runtime/emulator/core/checks/checks.hpp"
#include "runtime/emulator/core/schedule.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "stdlib/spec/functions.hpp"
#include "tools/cli/commands/check.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/kernels.hpp"
#include "tools/cli/commands/run.hpp"
#include "tools/cli/report/report.hpp"

namespace ikat::cli {
namespace {

constexpr const char* argument_help = R"(Arguments are given in the order of the kernel's parameters:
  u32:7  f32:1.5  b64:0x1f        a scalar
  f32[]:1,2,3                     a buffer of these values
  f32[1024]  f32[300x250]         a buffer of this shape, uninitialised
  f32[1024]:0                     ... filled with one value
  f32[1024]:rand(SEED)            ... with random values: floats from -1 to 1, integers of any value
  file.npy                        a file, of its own type; uint16 may be the bits of bf16
  u8[]:@file.bin  f32[]:@file.npy from a file; .npy in C order and of the same type
  b8[48]:{&0,u32:7}               a structure of a PTX file's kernel, passed by value: its fields, naturally aligned
  b8[16]:@file.bin  b8[]:1,0,...  ... or its bytes
  &N  &N+BYTES                    the same buffer as argument N (from 0), or an address in it
A buffer may end in =>file.npy, =>file.bin or =>- (print): its contents after the run. =>FILE alone, or -o FILE, is
an output of a function, which takes arrays alone and gives it its type and shape.
Types: u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 e4m3 e5m2, and b8 b16 b32 b64 for raw bits.
--then WHAT [options] ARG...      at the end, another launch; &N counts the arguments of all launches
Exit codes: 0 done, 1 the kernel failed a check, 2 bad usage or input.)";

/// The options of a single launch.
void add_launch_options(CLI::App& command, LaunchOptions& options) {
    command
        .add_option("WHAT", options.what,
                    "A kernel or a function that `ikat kernels` lists, or a file that ends in .ptx")
        ->required();
    command.add_option("ARG", options.arguments, "The kernel's arguments, see below")->expected(0, -1);
    command.add_option("--entry", options.entry, "Which entry of a file with several; a part of the name is enough");
    command.add_option("--grid", options.grid, "Blocks: X[,Y[,Z]]; required for a file");
    command.add_option("--block", options.block, "Threads per block: X[,Y[,Z]]; required for a file");
    command.add_option("--shared", options.shared, "Bytes of dynamic shared memory per block");
    command.add_option("--link", options.links, "Another file, with functions and variables that the first uses")
        ->type_name("FILE")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command
        .add_option("--set", options.set,
                    "NAME=VALUE: the initial value of a .global or .const variable of a file, or a number or a "
                    "choice of a function, such as epsilon=1e-5")
        ->type_name("TEXT")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command.add_option("-o,--output", options.outputs, "An output at the end of the arguments, as =>FILE is")
        ->type_name("FILE")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// Throws Error for what is neither a file nor a name of the library.
void check_name(const std::string& what) {
    const stdlib::Alias* const alias = stdlib::find_alias(what);
    const bool is_known = stdlib::find_function(what) || (alias && alias->chooses);
    if (!what.ends_with(".ptx") && !is_known) find_kernel(what);
}

/// -o FILE is =>FILE as the next argument.
void append_outputs(LaunchOptions& options) {
    for (const std::string& file : options.outputs) options.arguments.push_back("=>" + file);
}

/// The words after a --then.
LaunchOptions parse_launch(std::vector<std::string> words) {
    LaunchOptions options;
    CLI::App command("", "ikat run ... --then");
    command.set_help_flag();
    add_launch_options(command, options);
    std::ranges::reverse(words);  // as CLI11 expects them
    command.parse(std::move(words));
    return options;
}

void run_all(RunOptions& options, const std::vector<std::vector<std::string>>& then) {
    for (const std::vector<std::string>& words : then) options.launches.push_back(parse_launch(words));
    for (LaunchOptions& launch : options.launches) {
        check_name(launch.what);
        append_outputs(launch);
    }
    run(options);
}

/// Adds all that `ikat run` and `ikat check` have in common.
void add_options(CLI::App* command, const std::shared_ptr<RunOptions>& options) {
    options->launches.emplace_back();
    add_launch_options(*command, options->launches[0]);
    command->add_option("--device", options->device,
                        "emulator or cuda, or one of several: cuda:1; default: IKAT_DEVICE, else what is available");
    command->add_option("--arch,--target", options->target,
                        "Compile the library for this target, such as sm_90a, which the emulator then is; default: "
                        "that of the device");
    command->add_option("--check", options->check,
                        "What the emulator does about findings: CLASS[=error|warning|note|off],..., where no-CLASS is "
                        "CLASS=off, all is every class, and strict treats PTX files as the library's own kernels; "
                        "default: IKAT_CHECK");
    command->add_flag_callback(
        "--list-checks",
        [] {
            fmt::print("{}", emulator::list_of_checks());
            throw CLI::Success();
        },
        "Print the classes of --check and end");
    command->add_flag("--warnings-as-errors", options->warnings_as_errors, "Exit with 1 if there are warnings");
    command->add_option("--schedule", options->schedule,
                        "The order in which the emulator runs warps: 0 (round-robin), a number, or random; then, "
                        "separated by commas, " +
                            emulator::schedule_words() + "; default: IKAT_SCHEDULE, else 1");
    command
        ->add_option("--schedules", options->schedules,
                     "In how many orders the emulator runs each launch; the first one's results count")
        ->check(CLI::Range(1u, 1000000u));
    command->add_option("--suppress", options->suppressions,
                        "A file of known findings, a line each: CLASS FILE:LINE REASON; default: IKAT_SUPPRESS");
    command->add_option("--steps", options->steps,
                        "How many instructions a warp may execute between two barriers before it counts as an endless "
                        "loop; default 10^9");
    command->add_option("--launch-steps", options->launch_steps,
                        "How many instructions all warps of a launch may execute together; default: no limit");
    command->add_flag("--unchecked", options->unchecked, "Run a file even if ptxas would reject its PTX");
    add_report_option(
        *command, options->report,
        "Print the kernel's use of resources and, on the emulator, its work and memory traffic, to standard error");
    command->footer(argument_help);
}

}  // namespace

void add_run(CLI::App& app, std::vector<std::vector<std::string>> then) {
    CLI::App* const command = app.add_subcommand("run", "Run kernels of the standard library or of PTX files");
    const auto options = std::make_shared<RunOptions>();
    add_options(command, options);
    command->callback([options, then = std::move(then)] { run_all(*options, then); });
}

void add_check(CLI::App& app, std::vector<std::vector<std::string>> then, std::vector<std::string> program) {
    CLI::App* const command =
        app.add_subcommand("check",
                           "Run what `ikat run` would with every check, in eight orders of the warps; or a program of "
                           "the CUDA driver API: ikat check -- ./program");
    const auto options = std::make_shared<RunOptions>();
    const auto format = std::make_shared<std::string>("text");
    add_options(command, options);
    if (!program.empty()) command->get_option("WHAT")->required(false);
    command->add_option("--format", *format, "text, json (a line for each finding), or sarif; default text")
        ->check(CLI::IsMember({"text", "json", "sarif"}));
    command->callback([options, format, then = std::move(then), program = std::move(program)] {
        options->check = options->check.empty() ? every_check : fmt::format("{},{}", every_check, options->check);
        if (options->schedules == 0) options->schedules = 8;
        if (!program.empty())
            return check_program(program, {.check = options->check,
                                           .suppressions = options->suppressions,
                                           .schedules = options->schedules,
                                           .format = *format});
        if (options->device.empty()) options->device = "emulator";
        if (!options->device.starts_with("emulator"))
            throw Error(fmt::format("--device {}: checks are the emulator's", options->device), {});
        options->verdict = *format;
        run_all(*options, then);
    });
}

}  // namespace ikat::cli
