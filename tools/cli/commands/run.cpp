// SPDX-License-Identifier: Apache-2.0
// `ikat run`: arguments to buffers, launches one after the other, buffers to files.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "codegen/pipeline/compile.hpp"
#include "codegen/ptx/text/module.hpp"
#include "runtime/device.hpp"
#include "runtime/emulator/core/checks/suppressions.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tools/cli/arguments/entry.hpp"
#include "tools/cli/arguments/function_call.hpp"
#include "tools/cli/arguments/kernel_parameters.hpp"
#include "tools/cli/arguments/run_arguments.hpp"
#include "tools/cli/commands/check.hpp"
#include "tools/cli/commands/kernels.hpp"
#include "tools/cli/commands/modules.hpp"
#include "tools/cli/commands/run.hpp"
#include "tools/cli/report/report.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {
namespace {

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
    ptx::Module module;
    std::optional<runtime::Module> loaded{};
};

/// `--set NAME=VALUE`
struct Setting {
    std::string name;
    ParsedArgument value;
};

/// A kernel that has run, or an entry of a file.
struct Ran {
    std::optional<trace::KernelHandle> kernel;
    runtime::Grid grid;
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

    // Once it has run: the kernels, if it is not of a file, and their launches, one after the other in the traffic
    std::vector<Ran> launched{};
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
        if (!options_.verdict) return run();
        Verdict verdict;
        try {
            run();
        } catch (const runtime::KernelError& error) {
            verdict.findings = error.diagnostics();
            print_verdict(verdict);
            throw;
        }
        print_verdict(verdict);
        require_complete(verdict);
    }

private:
    void run() {
        const runtime::Device device = open_device();
        std::vector<std::string> names;
        for (const Launch& launch : launches_) names.insert(names.end(), launch.names.begin(), launch.names.end());
        arguments_.upload(device, names);
        for (Launch& launch : launches_) {
            const std::size_t before = traffic_.size();
            if (launch.call)
                for (const runtime::node::Launch& each : launch.call->run(device, arguments_))
                    launch.launched.push_back({each.kernel, each.grid});
            else
                launch.launched = {launch.file ? run_file(device, launch) : run_kernel(device, launch)};
            if (traffic_.size() > before) launch.traffic = before;
        }
        arguments_.write_outputs();
        for (const Launch& launch : launches_) print_report(device, launch);
        count_warnings();
    }
    void print_verdict(Verdict& verdict) const {
        verdict.findings.insert(verdict.findings.begin(), warnings_.begin(), warnings_.end());
        verdict.coverage = coverage_;
        if (suppressed_.file) verdict.unused = suppressed_.file->unused();
        std::fflush(stderr);
        write_text({}, render(verdict, *options_.verdict));
    }

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
    const stdlib::NamedFunction* find_function(const Launch& launch) const;
    const stdlib::Entry& choose_kernel(const Launch& launch) const;
    bool takes(const stdlib::Entry& entry, const Launch& launch) const;
    Setting parse_setting(const std::string& text) const;

    runtime::Device open_device();
    Ran run_file(const runtime::Device& device, Launch& launch);
    Ran run_kernel(const runtime::Device& device, const Launch& launch);
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
    std::vector<emulator::Coverage> coverage_;
    emulator::SharedSuppressions suppressed_;
};

/// The function of that name: where it is also that of kernels, which take numbers, with arrays alone.
const stdlib::NamedFunction* Run::find_function(const Launch& launch) const {
    const std::string& name = launch.options->what;
    const std::size_t count = launch.options->arguments.size();
    bool is_function = count > 0;
    for (std::size_t i = 0; i < count; ++i)
        is_function = is_function && original(launch, i).kind == ParsedArgument::Kind::Buffer;
    const auto fits = [&](const stdlib::NamedFunction* each) {
        bool out = each->arrays.size() == count;
        for (std::size_t i = 0; out && i < count; ++i) {
            const ir::Type wanted = each->arrays[i].type;
            out = wanted == ir::Type::Void || original(launch, i).is_made || has_type(original(launch, i), wanted);
        }
        return out;
    };
    if (is_function)
        for (const stdlib::NamedFunction* each : stdlib::functions_called(name))
            if (fits(each)) return each;
    const bool is_of_kernels = stdlib::find(name) || stdlib::find_alias(name);
    return is_function || !is_of_kernels ? stdlib::find_function(name, count) : nullptr;
}

void Run::prepare(const LaunchOptions& options, std::size_t first) {
    Launch launch{.options = &options, .first = first, .names = {}, .grid = {}, .block = {}};
    if (!options.grid.empty()) launch.grid = parse_dim3(options.grid, "--grid");
    if (!options.block.empty()) launch.block = parse_dim3(options.block, "--block");
    const stdlib::NamedFunction* const function = find_function(launch);
    for (std::size_t i = 0; !function && i < options.arguments.size(); ++i)
        if (argument(launch, i).is_made)
            throw Error(fmt::format("output '{}' of '{}' has no shape", argument(launch, i).text, options.what),
                        "write f32[300x250]=>FILE; functions make their outputs, which take arrays alone, see the end "
                        "of `ikat kernels`");
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
        file.text = paths.size() == 1 ? read_text(options.what) : ptx::print(file.module);
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
    launch.parameters = parameters_of(entry.info());
    for (const KernelParameter& parameter : launch.parameters) launch.names.push_back(parameter.name);
    check_count(entry.info().name, launch.size(), options.arguments.size(), joined(launch.names));
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
    const std::vector<KernelParameter> parameters = parameters_of(entry.info());
    if (parameters.size() != launch.options->arguments.size()) return false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const ir::Parameter& parameter = entry.info().parameters[parameters[i].number];
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
            const std::vector<KernelParameter> parameters = parameters_of(entry->info());
            const auto columns = std::ranges::find(parameters, "columns", &KernelParameter::name);
            const bool fits =
                columns == parameters.end() ||
                argument(launch, std::size_t(columns - parameters.begin())).bits <= entry->variant->max_columns;
            if (fits) return *entry;
        }
    throw Error(fmt::format("'{}' stands for {}, and none of them takes these arguments", name, names_of(*alias)),
                fmt::format("the first takes {}", signature(find_kernel(std::string(alias->kernels[0])).info())));
}

/// The device; it counts the work and traffic of launches if a report is requested and it can.
runtime::Device Run::open_device() {
    return runtime::Device::open({.device = options_.device,
                                  .target = options_.target,
                                  .step_budget = options_.steps,
                                  .launch_budget = options_.launch_steps,
                                  .schedule = options_.schedule,
                                  .check = options_.check,
                                  .suppressions = options_.suppressions,
                                  .schedules = options_.schedules,
                                  .warnings = &warnings_,
                                  .traffic = options_.report.empty() ? nullptr : &traffic_,
                                  .coverage = options_.verdict ? &coverage_ : nullptr,
                                  .suppressed = &suppressed_},
                                 Location{});
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
            kernel ? report(compile(kernel->ast(), {.target = device.properties().target, .pressure = true}), wanted)
                   : report(launch.file->module, launch.entry.name, wanted);
        fmt::print(stderr, "{}{}", i ? "\n" : "", render(made, options_.report, traffic));
    }
}

/// The last line, if there are any. Notes do not count.
void Run::count_warnings() const {
    const auto count = std::ranges::count(warnings_, Severity::Warning, &Diagnostic::severity);
    if (count == 0 || (options_.verdict && !options_.warnings_as_errors)) return;
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

Ran Run::run_file(const runtime::Device& device, Launch& launch) {
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
    runtime::Grid grid{*launch.grid, *launch.block, launch.options->shared.value_or(0)};
    device.launch(*file.loaded, launch.entry.name, grid, pack(launch.entry, values), Location{});
    if (const KernelInfo* const info = file.loaded->info(launch.entry.name))
        grid.dynamic_shared_bytes += info->own_dynamic_shared_bytes;
    return {std::nullopt, grid};
}

/// Argument i for the runtime. Raw bits become the parameter's type if the width is the same.
runtime::Argument Run::as_argument(const Launch& launch, std::size_t i, const ir::Parameter& parameter) const {
    const ir::Type wanted = parameter.access == ir::Access::Value ? parameter.type : parameter.element;
    const ir::Type type = has_type(original(launch, i), wanted) ? wanted : original(launch, i).type.type;
    const Arguments::Buffer* buffer = arguments_.buffer(launch.first + i);
    return {.type = type,
            .bits = argument(launch, i).bits,
            .part = buffer ? buffer->memory().whole().from(argument(launch, i).offset) : runtime::BufferPart{}};
}

/// Grid and block default to the kernel's own choice.
Ran Run::run_kernel(const runtime::Device& device, const Launch& launch) {
    const KernelInfo& kernel = launch.kernel->info();
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
    device.launch(launch.kernel->handle(), {grid, Location{}}, launched);
    return {launch.kernel->handle(), grid};
}

}  // namespace

void run(const RunOptions& options) {
    check_report_format(options.report);
    Run{options}();
}

}  // namespace ikat::cli
