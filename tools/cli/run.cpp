// SPDX-License-Identifier: Apache-2.0
// `ikat run`: arguments to buffers, launches one after the other, buffers to files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "codegen/ast/ast.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/text/module.hpp"
#include "runtime/device.hpp"
#include "runtime/emulator/core/checks.hpp"
#include "stdlib/registry.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/entry.hpp"
#include "tools/cli/files.hpp"
#include "tools/cli/function_call.hpp"
#include "tools/cli/kernel_parameters.hpp"
#include "tools/cli/kernels.hpp"
#include "tools/cli/modules.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/run_arguments.hpp"

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
an output of a function that chooses its kernels, which gives it its type and shape.
Types: u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 e4m3 e5m2, and b8 b16 b32 b64 for raw bits.
--then WHAT [options] ARG...      at the end, another launch; &N counts the arguments of all launches
Exit codes: 0 done, 1 the kernel failed a check, 2 bad usage or input.)";

/// One launch as given on the command line.
struct LaunchOptions {
    std::string what, entry, grid, block;
    std::optional<std::uint32_t> shared;
    std::vector<std::string> set, links, arguments, outputs;
};

struct RunOptions {
    std::vector<LaunchOptions> launches;
    std::string device, target, schedule, check, report;
    std::uint64_t steps = 0, launch_steps = 0;
    bool unchecked = false, warnings_as_errors = false;
};

/// X[,Y[,Z]]
runtime::Dim3 parse_dim3(const std::string& text, std::string_view option) {
    runtime::Dim3 out;
    std::uint32_t* const extents[] = {&out.x, &out.y, &out.z};
    const char* at = text.data();
    const char* const end = at + text.size();
    for (std::uint32_t* extent : extents) {
        const auto [next, error] = std::from_chars(at, end, *extent);
        if (error != std::errc{} || *extent == 0) break;
        if (next == end) return out;
        if (*next != ',') break;
        at = next + 1;
    }
    throw Error(fmt::format("{} '{}' is not X[,Y[,Z]]", option, text), "one to three numbers from 1, such as 16,16");
}

void check_count(const std::string& kernel, std::size_t wanted, std::size_t given, const std::string& names) {
    if (wanted != given)
        throw Error(fmt::format("'{}' takes {} argument{}, not {}", kernel, wanted, wanted == 1 ? "" : "s", given),
                    wanted ? "its parameters are " + names : "it has no parameters");
}

using Traffic = std::vector<emulator::LaunchTraffic>;

std::string joined(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

/// A file whose entries are launched. It is loaded once, so that its variables keep their values between launches.
struct LoadedFile {
    std::string text;
    nvptx::Module module;
    std::optional<runtime::Module> loaded{};
};

/// `--set NAME=VALUE`
struct Setting {
    std::string name;
    ParsedArgument value;
};

/// One launch, checked as far as possible before anything runs.
struct Launch {
    const LaunchOptions* options;
    std::size_t first;               // of its arguments
    std::vector<std::string> names;  // of its parameters
    std::optional<runtime::Dim3> grid, block;
    // Of a file:
    LoadedFile* file = nullptr;
    PtxEntry entry{};
    std::vector<Setting> settings{};
    // Of the library:
    const stdlib::Entry* kernel = nullptr;
    std::vector<KernelParameter> parameters{};
    // A function of the library that chooses its kernels:
    std::optional<FunctionCall> call{};

    // Once it has run: the kernels, if it is not of a file, and their launches, one behind the other in the traffic
    std::vector<runtime::RecordedLaunch> launched{};
    std::optional<std::size_t> traffic{};  // the first one's index in the counted traffic

    std::size_t size() const { return names.size(); }
};

class Run {
public:
    explicit Run(const RunOptions& options) : options_(options), arguments_(all_arguments(options)) {
        std::size_t first = 0;
        for (const LaunchOptions& launch : options.launches) {
            prepare(launch, first);
            first += launch.arguments.size();
        }
    }

    void operator()() {
        const runtime::Device device = open_device();
        std::vector<std::string> names;
        for (const Launch& launch : launches_) names.insert(names.end(), launch.names.begin(), launch.names.end());
        arguments_.upload(device, names);
        for (Launch& launch : launches_) {
            const std::size_t before = traffic_.size();
            if (launch.call)
                launch.launched = launch.call->run(device, arguments_);
            else
                launch.launched = {launch.file ? run_file(device, launch) : run_kernel(device, launch)};
            if (traffic_.size() > before) launch.traffic = before;
        }
        arguments_.write_outputs();
        for (const Launch& launch : launches_) print_report(device, launch);
        count_warnings();
    }

private:
    static std::vector<std::string> all_arguments(const RunOptions& options) {
        std::vector<std::string> out;
        for (const LaunchOptions& launch : options.launches)
            out.insert(out.end(), launch.arguments.begin(), launch.arguments.end());
        return out;
    }
    /// Argument i of the launch.
    const ParsedArgument& argument(const Launch& launch, std::size_t i) const { return arguments_[launch.first + i]; }
    const ParsedArgument& original(const Launch& launch, std::size_t i) const {
        return arguments_[arguments_.original(launch.first + i)];
    }

    void prepare(const LaunchOptions& options, std::size_t first);
    void prepare_file(Launch& launch);
    void prepare_kernel(Launch& launch);
    void prepare_function(Launch& launch, const stdlib::NamedFunction& function);
    const stdlib::Entry& choose_kernel(const Launch& launch) const;
    bool takes(const stdlib::Entry& entry, const Launch& launch) const;
    Setting parse_setting(const std::string& text) const;

    runtime::Device open_device();
    runtime::RecordedLaunch run_file(const runtime::Device& device, Launch& launch);
    runtime::RecordedLaunch run_kernel(const runtime::Device& device, const Launch& launch);
    std::uint64_t bits(const ParsedArgument& argument, std::size_t number) const;
    std::vector<std::byte> structure(const ParsedArgument& argument, std::size_t number) const;
    std::vector<std::byte> bytes_of(const ParsedArgument& value) const;
    runtime::Argument as_argument(const Launch& launch, std::size_t i, const ir::Parameter& parameter) const;
    void print_report(const runtime::Device& device, const Launch& launch);
    void count_warnings() const;

    const RunOptions& options_;
    Arguments arguments_;
    std::map<std::vector<std::string>, LoadedFile> files_;  // by the paths that are linked
    std::vector<Launch> launches_;
    Traffic traffic_;
    std::vector<Diagnostic> warnings_;
};

void Run::prepare(const LaunchOptions& options, std::size_t first) {
    Launch launch{.options = &options, .first = first, .names = {}, .grid = {}, .block = {}};
    if (!options.grid.empty()) launch.grid = parse_dim3(options.grid, "--grid");
    if (!options.block.empty()) launch.block = parse_dim3(options.block, "--block");
    const stdlib::NamedFunction* const function = stdlib::find_function(options.what);
    for (std::size_t i = 0; !function && i < options.arguments.size(); ++i)
        if (argument(launch, i).is_made)
            throw Error(fmt::format("output '{}' has no shape, which '{}' does not give it", argument(launch, i).text,
                                    options.what),
                        "write f32[300x250]=>FILE; only functions that choose their kernels make their outputs, see "
                        "the end of `ikat kernels`");
    if (!function) arguments_.lay_out_in_rows(first, options.arguments.size());  // kernels take no pitch
    if (options.what.ends_with(".ptx"))
        prepare_file(launch);
    else
        function ? prepare_function(launch, *function) : prepare_kernel(launch);
    launches_.push_back(std::move(launch));
}

void Run::prepare_file(Launch& launch) {
    const LaunchOptions& options = *launch.options;
    if (!launch.grid || !launch.block)
        throw Error("a PTX file needs --grid and --block", "such as --grid 4 --block 256: blocks, and threads in each");
    std::vector<std::string> paths{options.what};
    paths.insert(paths.end(), options.links.begin(), options.links.end());
    auto [place, is_new] = files_.try_emplace(paths);
    LoadedFile& file = place->second;
    if (is_new) {
        file.module = read_modules(paths, !options_.unchecked, true);
        file.text = paths.size() == 1 ? read_text(options.what) : nvptx::print(file.module);
    }
    launch.file = &file;
    launch.entry = find_entry(file.module, options.entry);
    for (const EntryParameter& parameter : launch.entry.parameters) launch.names.push_back(parameter.name);
    check_count(launch.entry.name, launch.size(), options.arguments.size(), joined(launch.names));
    for (std::size_t i = 0; i < launch.size(); ++i) check_argument(launch.entry.parameters[i], argument(launch, i));
    for (const std::string& text : options.set) launch.settings.push_back(parse_setting(text));
}

Setting Run::parse_setting(const std::string& text) const {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0)
        throw Error(fmt::format("--set '{}' is not NAME=VALUE", text), "such as --set table=f32[]:@table.npy");
    Setting out{text.substr(0, equals), parse_argument(std::string_view(text).substr(equals + 1))};
    const ParsedArgument& value = out.value;
    if (value.kind == ParsedArgument::Kind::Same) arguments_.check_same(value, text);
    for (const ParsedArgument& field : value.fields)
        if (field.kind == ParsedArgument::Kind::Same) arguments_.check_same(field, text);
    if (!value.output.empty() || (value.kind == ParsedArgument::Kind::Buffer && !value.has_contents()))
        throw Error(fmt::format("--set '{}' gives no contents", text), "such as f32[]:1,2,3, f32[]:@file.npy or u32:7");
    return out;
}

void Run::prepare_kernel(Launch& launch) {
    const LaunchOptions& options = *launch.options;
    if (!options.links.empty())
        throw Error(fmt::format("--link is for PTX files, and '{}' is a kernel of the library", options.what), {});
    if (!options.set.empty())
        throw Error(fmt::format("--set is for PTX files, and '{}' is a kernel of the library", options.what), {});
    launch.kernel = &choose_kernel(launch);
    const stdlib::Entry& entry = *launch.kernel;
    if (!options.entry.empty() && options.entry != entry.name)
        throw Error(fmt::format("'{}' has no entry '{}'", options.what, options.entry), "--entry is for PTX files");
    launch.parameters = parameters_of(entry.kernel());
    for (const KernelParameter& parameter : launch.parameters) launch.names.push_back(parameter.name);
    check_count(entry.kernel().name, launch.size(), options.arguments.size(), joined(launch.names));
    for (std::size_t i = 0; i < launch.size(); ++i)
        if (argument(launch, i).kind == ParsedArgument::Kind::Structure)
            throw Error(fmt::format("argument '{}' is a structure, which '{}' does not take", argument(launch, i).text,
                                    entry.name),
                        "its parameters are " + joined(launch.names));
}

void Run::prepare_function(Launch& launch, const stdlib::NamedFunction& function) {
    const LaunchOptions& options = *launch.options;
    const std::pair<const char*, bool> chosen[] = {{"--grid", launch.grid.has_value()},
                                                   {"--block", launch.block.has_value()},
                                                   {"--shared", options.shared.has_value()},
                                                   {"--entry", !options.entry.empty()},
                                                   {"--link", !options.links.empty()}};
    for (const auto& [option, is_given] : chosen)
        if (is_given)
            throw Error(fmt::format("{}: '{}' chooses its kernels and their launches", option, function.name),
                        fmt::format("`ikat kernels {}` has what can be set", function.name));
    launch.call.emplace(function, options.set, arguments_, launch.first, options.arguments.size());
    launch.names = launch.call->names();
}

/// Whether the arguments match the kernel's parameters in number and types.
bool Run::takes(const stdlib::Entry& entry, const Launch& launch) const {
    const std::vector<KernelParameter> parameters = parameters_of(entry.kernel());
    if (parameters.size() != launch.options->arguments.size()) return false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const ir::Parameter& parameter = entry.kernel().parameters[parameters[i].number];
        const ParsedArgument& given = original(launch, i);
        const bool is_value = parameter.access == ir::Access::Value;
        const ir::Type wanted = is_value ? parameter.type : parameter.element;
        if (is_value != (given.kind == ParsedArgument::Kind::Scalar) || !has_type(given, wanted)) return false;
    }
    return true;
}

const stdlib::Entry& Run::choose_kernel(const Launch& launch) const {
    const std::string& name = launch.options->what;
    const stdlib::Alias* alias = stdlib::find(name) ? nullptr : stdlib::find_alias(name);
    if (!alias || !alias->chooses) return find_kernel(name);
    for (const std::string_view candidate : alias->kernels)
        for (const stdlib::Entry* entry : stdlib::entries_of(candidate)) {
            if (!takes(*entry, launch)) continue;
            const std::vector<KernelParameter> parameters = parameters_of(entry->kernel());
            const auto columns = std::ranges::find(parameters, "columns", &KernelParameter::name);
            const bool fits =
                columns == parameters.end() ||
                argument(launch, std::size_t(columns - parameters.begin())).bits <= entry->variant->most_columns;
            if (fits) return *entry;
        }
    throw Error(fmt::format("'{}' stands for {}, and none of them takes these arguments", name, names_of(*alias)),
                "`ikat kernels NAME` lists the parameters of each");
}

/// The device; it counts the work and traffic of launches if a report is requested and it can.
runtime::Device Run::open_device() {
    return runtime::Device::open({.device = options_.device,
                                  .target = options_.target,
                                  .step_budget = options_.steps,
                                  .launch_budget = options_.launch_steps,
                                  .schedule = options_.schedule,
                                  .check = options_.check,
                                  .warnings = &warnings_,
                                  .traffic = options_.report.empty() ? nullptr : &traffic_});
}

/// Goes to standard error, to keep the run's output clean.
void Run::print_report(const runtime::Device& device, const Launch& launch) {
    if (options_.report.empty()) return;
    std::fflush(stdout);
    for (std::size_t i = 0; i < launch.launched.size(); ++i) {
        const auto& [kernel, grid] = launch.launched[i];
        std::span<emulator::LaunchTraffic> traffic;
        if (launch.traffic) traffic = std::span(traffic_).subspan(*launch.traffic + i, 1);
        for (emulator::LaunchTraffic& each : traffic) arguments_.sort(each.buffers);
        ReportOptions wanted = report_options();
        wanted.threads_per_block = std::uint32_t(grid.threads.count());
        wanted.dynamic_shared_bytes = grid.dynamic_shared_bytes;
        const KernelReport made =
            kernel ? report(compile(*kernel, {.target = device.properties().target, .pressure = true}), wanted)
                   : report(launch.file->module, launch.entry.name, wanted);
        fmt::print(stderr, "{}{}", i ? "\n" : "", render(made, options_.report, traffic));
    }
}

/// The last line, if there are any. Notes do not count.
void Run::count_warnings() const {
    const auto count = std::ranges::count(warnings_, Severity::Warning, &Diagnostic::severity);
    if (count == 0) return;
    const std::string text = fmt::format("{} warning{}", count, count == 1 ? "" : "s");
    if (options_.warnings_as_errors) throw runtime::KernelError(text, "--warnings-as-errors makes them errors");
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", text);
}

/// The value passed for a scalar or a buffer.
std::uint64_t Run::bits(const ParsedArgument& argument, std::size_t number) const {
    if (argument.kind == ParsedArgument::Kind::Same) return arguments_.address(argument);
    return arguments_.buffer(number) ? arguments_.buffer(number)->address() : argument.bits;
}

/// The bytes of a scalar, an address or a structure.
std::vector<std::byte> Run::bytes_of(const ParsedArgument& value) const {
    if (value.kind == ParsedArgument::Kind::Structure)
        return pack_structure(value, [this](const ParsedArgument& field) { return arguments_.address(field); });
    if (value.kind == ParsedArgument::Kind::Buffer) return contents_of(value);
    const bool is_address = value.kind == ParsedArgument::Kind::Same;
    const std::uint64_t bits = is_address ? arguments_.address(value) : value.bits;
    const auto bytes = std::as_bytes(std::span(&bits, 1)).first(is_address ? 8 : value.type.bytes());
    return {bytes.begin(), bytes.end()};
}

/// The bytes of an argument passed by value: its fields, or its contents as a buffer.
std::vector<std::byte> Run::structure(const ParsedArgument& argument, std::size_t number) const {
    if (!arguments_.buffer(number)) return bytes_of(argument);
    const std::vector<std::uint8_t> bytes = arguments_.buffer(number)->download();
    const auto of_bytes = std::as_bytes(std::span(bytes));
    return {of_bytes.begin(), of_bytes.end()};
}

runtime::RecordedLaunch Run::run_file(const runtime::Device& device, Launch& launch) {
    LoadedFile& file = *launch.file;
    if (!file.loaded) file.loaded = device.load(file.text, file.module.file, false);
    for (const Setting& setting : launch.settings)
        device.set_variable(*file.loaded, setting.name, bytes_of(setting.value));
    std::vector<std::vector<std::byte>> structures(launch.size());
    std::vector<PassedValue> values;
    for (std::size_t i = 0; i < launch.size(); ++i) {
        if (launch.entry.parameters[i].is_array) structures[i] = structure(argument(launch, i), launch.first + i);
        values.push_back({.bits = bits(argument(launch, i), launch.first + i), .bytes = structures[i]});
    }
    const std::uint64_t bytes =
        std::uint64_t{launch.options->shared.value_or(0)} + own_dynamic_bytes(file.text, launch.entry.name);
    const runtime::Grid grid{*launch.grid, *launch.block, std::uint32_t(std::min<std::uint64_t>(bytes, ~0u))};
    device.launch(*file.loaded, launch.entry.name, grid, pack(launch.entry, values));
    return {nullptr, grid};
}

/// Argument i for the runtime. Raw bits become the parameter's type if the width is the same.
runtime::Argument Run::as_argument(const Launch& launch, std::size_t i, const ir::Parameter& parameter) const {
    const ir::Type wanted = parameter.access == ir::Access::Value ? parameter.type : parameter.element;
    const ir::Type type = has_type(original(launch, i), wanted) ? wanted : original(launch, i).type.type;
    const Arguments::Buffer* buffer = arguments_.buffer(launch.first + i);
    return {.type = type,
            .bits = argument(launch, i).bits,
            .memory = buffer ? &buffer->memory() : nullptr,
            .offset = argument(launch, i).offset};
}

/// Grid and block default to the kernel's own choice.
runtime::RecordedLaunch Run::run_kernel(const runtime::Device& device, const Launch& launch) {
    const ast::KernelTree& kernel = launch.kernel->kernel();
    std::vector<runtime::Argument> launched;
    for (std::size_t i = 0; i < launch.size(); ++i) {
        launched.push_back(as_argument(launch, i, kernel.parameters[launch.parameters[i].number]));
        if (launch.parameters[i].view)
            append_shape(launch.parameters[i], argument(launch, i).text, original(launch, i), launched);
    }
    runtime::check_arguments(kernel, launched, {});
    runtime::Grid grid = launch.kernel->grid(launched, launch.block ? std::uint32_t(launch.block->count()) : 0);
    if (launch.grid) grid.blocks = *launch.grid;
    if (launch.block) grid.threads = *launch.block;
    grid.dynamic_shared_bytes = launch.options->shared.value_or(grid.dynamic_shared_bytes);
    device.launch({kernel}, {grid, Location{}}, launched);
    return {&kernel, grid};
}

/// The options of a single launch.
void add_launch_options(CLI::App& command, LaunchOptions& options) {
    command.add_option("WHAT", options.what, "A kernel that `ikat kernels` lists, or a file that ends in .ptx")
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
                    "NAME=VALUE: the initial value of a .global or .const variable of a file, or a setting of a "
                    "function that chooses its kernels, such as alpha=2")
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
    if (!what.ends_with(".ptx") && !stdlib::find_function(what) && !stdlib::find_alias(what)) find_kernel(what);
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

void run(RunOptions& options, const std::vector<std::vector<std::string>>& then) {
    check_report_format(options.report);
    for (const std::vector<std::string>& words : then) options.launches.push_back(parse_launch(words));
    for (LaunchOptions& launch : options.launches) {
        check_name(launch.what);
        append_outputs(launch);
    }
    Run{options}();
}

}  // namespace

void add_run(CLI::App& app, std::vector<std::vector<std::string>> then) {
    CLI::App* command = app.add_subcommand("run", "Run kernels of the standard library or of PTX files");
    auto options = std::make_shared<RunOptions>();
    options->launches.emplace_back();
    add_launch_options(*command, options->launches[0]);
    command->add_option("--device", options->device, "emulator or cuda; default: IKAT_DEVICE, else what is available");
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
                        "The order in which the emulator runs warps: 0 (round-robin), a number, or random; then "
                        ",lanes: also the order of diverged lanes; ,moved-shared: dynamic shared memory not at a "
                        "multiple of 1024; ,any-leader: elect takes any lane; default: IKAT_SCHEDULE, else 1");
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
    command->callback([options, then = std::move(then)] { run(*options, then); });
}

}  // namespace ikat::cli
