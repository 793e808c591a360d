// SPDX-License-Identifier: Apache-2.0
// `ikat run`: arguments to buffers, one launch, buffers to files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "codegen/ast/ast.hpp"
#include "codegen/ptx/module.hpp"
#include "codegen/support/write_file.hpp"
#include "runtime/device.hpp"
#include "stdlib/registry.hpp"
#include "tools/cli/argument.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/entry.hpp"
#include "tools/cli/files.hpp"
#include "tools/cli/kernel_parameters.hpp"
#include "tools/cli/kernels.hpp"
#include "tools/cli/report.hpp"

namespace ikat::cli {
namespace {

constexpr const char* argument_help = R"(Arguments stand in the order of the kernel's parameters:
  u32:7  f32:1.5  b64:0x1f        a scalar
  f32[]:1,2,3                     a buffer of these values
  f32[1024]  f32[300x250]         a buffer of this shape, uninitialised
  f32[1024]:0                     ... filled with one value
  f32[1024]:rand(SEED)            ... with random values: floats from -1 to 1, integers of any value
  u8[]:@file.bin  f32[]:@file.npy from a file; .npy in C order and of the same type
  b8[16]:@file.bin  b8[]:1,0,...  a structure of a PTX file's kernel, passed by value
  &N                              the same buffer as argument N (from 0)
A buffer may end in =>file.npy, =>file.bin or =>- (print): what it holds after the run.
Types: u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 e4m3 e5m2, and b8 b16 b32 b64 for raw bits.
Exit codes: 0 done, 1 the kernel failed a check, 2 bad usage or input.)";

struct RunOptions {
    std::string what, entry, device, grid, block, schedule, check, report;
    std::optional<std::uint32_t> shared;
    std::uint64_t steps = 0;
    std::vector<std::string> arguments;
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

using Buffer = runtime::Buffer<std::uint8_t>;
using Traffic = std::vector<emulator::LaunchTraffic>;

/// The parsed arguments with their buffers on the device.
class Arguments {
public:
    explicit Arguments(const std::vector<std::string>& texts) {
        for (const std::string& text : texts) parsed_.push_back(parse_argument(text));
        for (const ParsedArgument& argument : parsed_) check_same(argument);
        for (std::size_t i = 0; i < size(); ++i) check_output(parsed_[i], parsed_[original(i)].type);
        check_outputs_differ();
    }

    std::size_t size() const { return parsed_.size(); }
    const ParsedArgument& operator[](std::size_t i) const { return parsed_[i]; }
    /// Argument i, or the one that it says it is the same as.
    std::size_t original(std::size_t i) const {
        return parsed_[i].kind == ParsedArgument::Kind::Same ? parsed_[i].same : i;
    }
    const Buffer* buffer(std::size_t i) const { return buffers_[original(i)] ? &*buffers_[original(i)] : nullptr; }

    /// Makes and fills the buffers; names[i] is what messages call that of argument i.
    void upload(const runtime::Device& device, const std::vector<std::string>& names) {
        buffers_.resize(size());
        for (std::size_t i = 0; i < size(); ++i) {
            const ParsedArgument& argument = parsed_[i];
            if (argument.kind != ParsedArgument::Kind::Buffer) continue;
            buffers_[i] = device.buffer<std::uint8_t>(argument.elements * argument.type.bytes(), names[i]);
            if (!argument.contents) continue;
            const auto* bytes = reinterpret_cast<const std::uint8_t*>(argument.contents->data());
            buffers_[i]->upload({bytes, argument.contents->size()});
        }
    }

    /// Those of the arguments first, in their order; then others by their addresses.
    void sort(std::vector<emulator::BufferTraffic>& buffers) const {
        const auto position = [&](const emulator::BufferTraffic& of) {
            std::size_t i = 0;
            while (i < size() && !(buffer(i) && buffer(i)->address() == of.address)) ++i;
            return std::pair(i, of.address);
        };
        std::ranges::sort(buffers, {}, position);
    }

    void write_outputs() const {
        for (std::size_t i = 0; i < size(); ++i) {
            if (parsed_[i].output.empty()) continue;
            const ParsedArgument& owner = parsed_[original(i)];
            std::vector<std::byte> contents(buffer(i)->size());
            buffer(i)->download({reinterpret_cast<std::uint8_t*>(contents.data()), contents.size()});
            write_output(parsed_[i].output, owner.type, owner.shape, contents);
        }
    }

private:
    void check_same(const ParsedArgument& argument) const {
        if (argument.kind != ParsedArgument::Kind::Same) return;
        if (argument.same >= size() || parsed_[argument.same].kind != ParsedArgument::Kind::Buffer)
            throw Error(fmt::format("argument '{}': argument {} is no buffer", argument.text, argument.same),
                        "&N names an argument, counted from 0, that is written as a buffer");
    }

    /// Two outputs in one file would leave the second alone there.
    void check_outputs_differ() const {
        std::map<std::string, const ParsedArgument*> taken;
        for (const ParsedArgument& argument : parsed_) {
            if (argument.output.empty() || argument.output == "-") continue;
            const auto [earlier, is_new] = taken.emplace(resolved(argument.output), &argument);
            if (!is_new)
                throw Error(fmt::format("arguments '{}' and '{}' are written to the same file", earlier->second->text,
                                        argument.text),
                            "give each a file of its own");
        }
    }

    std::vector<ParsedArgument> parsed_;
    std::vector<std::optional<Buffer>> buffers_;
};

void check_count(const std::string& kernel, std::size_t wanted, std::size_t given, const std::string& names) {
    if (wanted != given)
        throw Error(fmt::format("'{}' takes {} argument{}, not {}", kernel, wanted, wanted == 1 ? "" : "s", given),
                    wanted ? "its parameters are " + names : "it has no parameters");
}

/// One that counts what a launch moves, where a report is asked for and it can.
runtime::Device open_device(const RunOptions& options, Traffic& traffic) {
    if (!options.check.empty()) setenv("IKAT_CHECK", options.check.c_str(), 1);  // as if the user had
    return runtime::Device::open({.device = options.device,
                                  .step_budget = options.steps,
                                  .schedule = options.schedule,
                                  .traffic = options.report.empty() ? nullptr : &traffic});
}

/// To standard error, so that what the run prints stays clean.
void print_report(const RunOptions& options, const runtime::Grid& grid, const Arguments& arguments, Traffic& traffic,
                  auto&& kernel_report) {
    if (options.report.empty()) return;
    for (emulator::LaunchTraffic& launch : traffic) arguments.sort(launch.buffers);
    ReportOptions wanted = report_options();
    wanted.threads_per_block = std::uint32_t(grid.threads.count());
    wanted.dynamic_shared_bytes = grid.dynamic_shared_bytes;
    std::fflush(stdout);
    fmt::print(stderr, "{}", render(kernel_report(wanted), options.report, traffic));
}

std::string joined(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

void run_file(const RunOptions& options, Arguments& arguments) {
    if (options.grid.empty() || options.block.empty())
        throw Error("a PTX file needs --grid and --block", "such as --grid 4 --block 256: blocks, and threads in each");
    const std::string text = read_text(options.what);
    const nvptx::Module module = nvptx::parse(text, options.what);
    const PtxEntry entry = find_entry(module, options.entry);
    std::vector<std::string> names;
    for (const EntryParameter& parameter : entry.parameters) names.push_back(parameter.name);
    check_count(entry.name, names.size(), arguments.size(), joined(names));
    for (std::size_t i = 0; i < arguments.size(); ++i) check_argument(entry.parameters[i], arguments[i]);
    const runtime::Grid grid{parse_dim3(options.grid, "--grid"), parse_dim3(options.block, "--block"),
                             options.shared.value_or(0)};

    Traffic traffic;
    const runtime::Device device = open_device(options, traffic);
    arguments.upload(device, names);
    std::vector<PassedValue> values;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        values.push_back({.bits = arguments.buffer(i) ? arguments.buffer(i)->address() : arguments[i].bits});
        if (arguments[i].contents) values.back().bytes = *arguments[i].contents;
    }
    device.launch(device.load(text, options.what), entry.name, grid, pack(entry, values));
    arguments.write_outputs();
    print_report(options, grid, arguments, traffic,
                 [&](const ReportOptions& wanted) { return report(module, entry.name, wanted); });
}

/// Argument i as the runtime takes it. Raw bits become the parameter's type where the width is the same.
runtime::Argument as_argument(const Arguments& arguments, std::size_t i, const ir::Parameter& parameter) {
    const NumberType given = arguments[arguments.original(i)].type;
    const ir::Type wanted = parameter.access == ir::Access::Value ? parameter.type : parameter.element;
    const ir::Type type = given.raw && info(given.type).bytes == info(wanted).bytes ? wanted : given.type;
    const Buffer* buffer = arguments.buffer(i);
    return {.type = type, .bits = arguments[i].bits, .memory = buffer ? &buffer->memory() : nullptr};
}

/// What the launch helper chooses, where the command line does not say.
runtime::Grid choose_grid(const RunOptions& options, const stdlib::Entry& entry,
                          std::span<const runtime::Argument> arguments) {
    runtime::Grid grid = entry.grid(arguments);
    if (!options.grid.empty()) grid.blocks = parse_dim3(options.grid, "--grid");
    if (!options.block.empty()) grid.threads = parse_dim3(options.block, "--block");
    grid.dynamic_shared_bytes = options.shared.value_or(grid.dynamic_shared_bytes);
    return grid;
}

void run_kernel(const RunOptions& options, Arguments& arguments) {
    const stdlib::Entry& entry = find_kernel(options.what);
    if (!options.entry.empty() && options.entry != entry.name)
        throw Error(fmt::format("'{}' has no entry '{}'", options.what, options.entry), "--entry is for PTX files");
    const ast::Kernel& kernel = entry.kernel();
    const std::vector<KernelParameter> parameters = parameters_of(kernel);
    std::vector<std::string> names;
    for (const KernelParameter& parameter : parameters) names.push_back(parameter.name);
    check_count(kernel.name, names.size(), arguments.size(), joined(names));

    Traffic traffic;
    const runtime::Device device = open_device(options, traffic);
    arguments.upload(device, names);
    std::vector<runtime::Argument> launched;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        launched.push_back(as_argument(arguments, i, kernel.parameters[parameters[i].number]));
        if (parameters[i].view)
            append_shape(parameters[i], arguments[i].text, arguments[arguments.original(i)], launched);
    }
    runtime::check_arguments(kernel, launched, {});
    const runtime::Grid grid = choose_grid(options, entry, launched);
    device.launch({kernel}, {grid, Location{}}, launched);
    arguments.write_outputs();
    print_report(options, grid, arguments, traffic, [&](const ReportOptions& wanted) {
        return report(compile(kernel, {.target = device.properties().target, .pressure = true}), wanted);
    });
}

void run(const RunOptions& options) {
    check_report_format(options.report);
    Arguments arguments(options.arguments);
    options.what.ends_with(".ptx") ? run_file(options, arguments) : run_kernel(options, arguments);
}

}  // namespace

void add_run(CLI::App& app) {
    CLI::App* command = app.add_subcommand("run", "Run a kernel of the standard library or of a PTX file");
    auto options = std::make_shared<RunOptions>();
    command->add_option("WHAT", options->what, "A kernel that `ikat kernels` lists, or a file that ends in .ptx")
        ->required();
    command->add_option("ARG", options->arguments, "The kernel's arguments, see below")->expected(0, -1);
    command->add_option("--entry", options->entry, "Which entry of a file that has several");
    command->add_option("--grid", options->grid, "Blocks: X[,Y[,Z]]; required for a file");
    command->add_option("--block", options->block, "Threads per block: X[,Y[,Z]]; required for a file");
    command->add_option("--shared", options->shared, "Bytes of dynamic shared memory per block");
    command->add_option("--device", options->device, "emulator or cuda; else IKAT_DEVICE, else what is there");
    command->add_option("--check", options->check,
                        "registers: the emulator finds the use of registers that nothing has assigned, too");
    command->add_option("--schedule", options->schedule,
                        "The order in which the emulator runs warps: 0 in turn, a number, or random; ,lanes behind it: "
                        "also of lanes that part; else IKAT_SCHEDULE, else 1");
    command->add_option(
        "--steps", options->steps,
        "How many instructions a warp may execute between two barriers; more are an endless loop; else 10^9");
    add_report_option(*command, options->report,
                      "Print what the kernel takes of the device and, on the emulator, moves, to standard error");
    command->footer(argument_help);
    command->callback([options] { run(*options); });
}

}  // namespace ikat::cli
