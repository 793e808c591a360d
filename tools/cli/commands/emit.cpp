// SPDX-License-Identifier: Apache-2.0
// The commands that run nothing: kernels, emit, opt, ptx.
#include <fmt/format.h>
#include <algorithm>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/kernel/section.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/pipeline/stages.hpp"
#include "codegen/ptx/text/link.hpp"
#include "codegen/ptx/text/module.hpp"
#include "codegen/support/digest.hpp"
#include "runtime/device.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tools/cli/arguments/function_call.hpp"
#include "tools/cli/arguments/kernel_parameters.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/kernels.hpp"
#include "tools/cli/commands/modules.hpp"
#include "tools/cli/report/report.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct EmitOptions {
    std::string name, target = CompileOptions{}.target, stage = "ptx", passes, output, report;
    std::vector<std::string> sizes, set, types;  // of a function
    std::optional<std::uint32_t> multiprocessors;
    bool time = false, line_info = false;

    bool is_call() const { return !sizes.empty() || !set.empty() || !types.empty() || multiprocessors; }
};

/// A table on standard error, so that what is emitted stays clean.
void print_times(const Compiled& compiled, std::chrono::nanoseconds capture) {
    std::chrono::nanoseconds total = capture;
    const auto row = [](std::string_view stage, std::chrono::nanoseconds time) {
        fmt::print(stderr, "{:>10} {:9.1f} us\n", stage, double(time.count()) * 1e-3);
    };
    row("capture", capture);
    for (const Compiled::Stage& stage : compiled.stages) {
        row(stage.name, stage.time);
        total += stage.time;
    }
    row("total", total);
}

std::string stage_text(const Compiled& compiled, const std::string& stage) {
    std::string names;
    for (const Compiled::Stage& kept : compiled.stages) {
        if (kept.name == stage) return kept.text;
        names += " " + kept.name;
    }
    throw Error(fmt::format("there is no stage '{}'", stage), "stages are" + names);
}

/// Whether it is the name of one kernel.
bool is_kernel(const std::string& name) {
    const stdlib::Alias* const alias = stdlib::find_alias(name);
    return stdlib::find(name) || (alias && alias->kernels.size() == 1);
}

/// The kernels of the name, each once: of a function all that it launches. Some kernels have the name of a function,
/// which is meant where a call of it is described.
std::vector<trace::KernelHandle> kernels_of(const EmitOptions& options) {
    const stdlib::NamedFunction* const function = stdlib::find_function(options.name);
    const bool is_one_of_its_kernels = function && stdlib::find(options.name) && function->name != options.name;
    if (!function || is_one_of_its_kernels || (is_kernel(options.name) && !options.is_call())) {
        const trace::KernelHandle& kernel = find_kernel(options.name).handle();
        if (options.is_call())
            throw Error(
                fmt::format("--size, --set, --type and --multiprocessors: '{}' is not a function", options.name),
                "they are for the functions at the end of `ikat kernels`");
        return {kernel};
    }
    std::vector<trace::KernelHandle> out;
    constexpr std::uint32_t usual = 132;
    for (const runtime::node::Launch& launch : launches_of(
             *function,
             {options.target, options.multiprocessors.value_or(usual), options.sizes, options.set, options.types}))
        if (std::ranges::find(out, launch.kernel->digest(), &trace::KernelHandle::digest) == out.end())
            out.push_back(*launch.kernel);
    if (out.empty())
        throw Error(fmt::format("'{}' has nothing to run for these sizes", options.name), "ask for others: --size");
    return out;
}

/// Several kernels as one file. Linked, they are in other lines than each was.
std::string linked_text(std::vector<Compiled> kernels) {
    if (kernels.size() == 1) return file_text(kernels[0]);
    std::vector<KernelInfo> infos;
    std::vector<ptx::Module> modules;
    for (Compiled& each : kernels) {
        modules.push_back(ptx::parse(each.ptx, each.info.name));
        each.info.source_lines.clear();
        infos.push_back(std::move(each.info));
    }
    return with_sections(ptx::print(ptx::link(modules)), infos);
}

void emit(const EmitOptions& options) {
    check_report_format(options.report);
    if (!options.report.empty() && options.stage != "ptx")
        throw Error(fmt::format("--stage {} and --report: each is what is printed", options.stage),
                    "ask for one; a report is about the finished kernel");
    check_output_file(options.output);
    const auto start = Clock::now();
    const std::vector<trace::KernelHandle> kernels = kernels_of(options);
    for (const trace::KernelHandle& kernel : kernels) kernel.info();
    const auto captured = Clock::now();
    std::vector<Compiled> compiled;
    for (const trace::KernelHandle& kernel : kernels)
        compiled.push_back(compile(kernel.ast(), {.target = options.target,
                                                  .passes = options.passes,
                                                  .line_info = options.line_info,
                                                  .keep_stages = options.stage != "ptx",
                                                  .pressure = !options.report.empty()}));
    std::string text;
    if (options.report.empty() && options.stage == "ptx") {
        text = linked_text(compiled);
    } else {
        for (const Compiled& each : compiled)
            text += (text.empty() ? "" : "\n") + (options.report.empty()
                                                      ? stage_text(each, options.stage)
                                                      : render(report(each, report_options()), options.report));
    }
    write_text(options.output, text);
    if (!options.time) return;
    for (const Compiled& each : compiled)
        print_times(each, each.info.name == compiled[0].info.name ? captured - start : Clock::duration{});
}

/// The IR is verified when it is read, with the file's lines in errors, and again after each pass.
void optimise(const std::string& input, const std::string& passes, const std::string& output) {
    check_output_file(output);
    const std::string text = read_text(input);
    const auto verify = [](const ir::Module& module) {
        ir::verify(module);
        analysis::verify_convergence(module.functions);
    };
    ir::Module module = ir::parse(text, input);
    try {
        verify(module);
    } catch (const Error&) { verify(ir::parse(text, input, ir::Lines::Own)); }
    pipeline::run_passes(module.functions, {.passes = passes, .verify_each = true});
    write_text(output, print(module));
}

void reprint(const std::vector<std::string>& inputs, const std::string& output, bool check) {
    check_output_file(output);
    write_text(output, ptx::print(read_modules(inputs, check, false)));
}

std::string list_of_passes() {
    std::string out = "Passes:\n";
    for (const pipeline::Stage* pass : pipeline::all_passes())
        out += fmt::format("  {:<10} {}\n", pass->name, pass->does);
    return out;
}

/// Of the functions that recipes describe, in lines of at most 100 columns.
std::string names_of_functions() {
    std::string out, line;
    for (const stdlib::NamedFunction::Family* family : stdlib::function_families()) {
        if (!family->summary.empty()) continue;
        if (line.size() + family->form.size() > 98) out += line + "\n", line.clear();
        line += (line.empty() ? "" : " ") + std::string(family->form);
    }
    return out + line + "\n";
}

void list_kernels() {
    std::size_t width = 0;
    for (const stdlib::Entry& entry : stdlib::registry()) width = std::max(width, std::string_view(entry.name).size());
    std::string out;
    for (const stdlib::Entry& entry : stdlib::registry())
        out += fmt::format("{:<{}}  {}\n", entry.name, width, entry.summary);
    out += "\nAliases; of several kernels `ikat run` uses the first that fits the arguments:\n";
    for (const stdlib::Alias& alias : stdlib::aliases())
        out += fmt::format("{:<{}}  {}{}\n", alias.name, width, names_of(alias), alias.chooses ? "" : " (say which)");
    out += "\nFunctions, which take arrays alone, choose the kernel and its launch, and make their outputs:\n" +
           names_of_functions();
    out += "\nFunctions that choose their kernels by sizes, alignment and device:\n";
    for (const stdlib::NamedFunction::Family* family : stdlib::function_families())
        if (!family->summary.empty()) out += fmt::format("{}\n  {}\n", family->form, family->summary);
    write_text({}, out);
}

void show_kernel(const std::string& name) {
    const stdlib::NamedFunction* const function = stdlib::find_function(name);
    if (function && !is_kernel(name)) return write_text({}, description(*function));
    const stdlib::Entry& entry = find_kernel(name);
    const stdlib::Recipe& recipe = *entry.recipe;
    std::string out =
        signature(entry.info()) + "\n" + std::string(entry.summary) + "\n\n" + std::string(entry.document) + "\n";
    if (!recipe.call.empty()) out += fmt::format("In programs: stdlib::{}.\n", recipe.call);
    if (const std::string shapes = recipe.operands.shapes(); !shapes.empty())
        out += fmt::format("Shapes of the arrays there: {}.\n", shapes);
    out += recipe.bound_by.empty()
               ? fmt::format(
                     "Minimum memory traffic in bytes, for s elements of E bytes each, or weights of b bytes: {}.\n",
                     recipe.traffic)
               : fmt::format("Memory traffic: {}.\n", recipe.bound_by);
    if (function)
        out += fmt::format("\nWith arrays alone `ikat run` calls the function:\n{}\n{}", signature(*function),
                           details_of(*function));
    write_text({}, out);
}

}  // namespace

std::string names_of(const stdlib::Alias& alias) {
    std::string out;
    for (const std::string_view each : alias.kernels) out += (out.empty() ? "" : ", ") + std::string(each);
    return out;
}

const stdlib::Entry& find_kernel(const std::string& name) {
    if (const stdlib::Entry* entry = stdlib::find(name)) return *entry;
    if (const stdlib::Alias* alias = stdlib::find_alias(name)) {
        if (alias->kernels.size() == 1) return *stdlib::find(alias->kernels[0]);
        throw Error(fmt::format("'{}' stands for {}", name, names_of(*alias)), "name one of them");
    }
    std::string hint = "`ikat kernels` lists them; a file's name ends in .ptx";
    const std::string nearest = stdlib::nearest_name(name);
    if (const stdlib::NamedFunction* like = stdlib::find_function(nearest); like && like->family->has_several())
        hint = fmt::format("names are {}", like->family->form);
    if (!nearest.empty()) hint = fmt::format("did you mean '{}'? {}", nearest, hint);
    throw Error(fmt::format("there is no kernel '{}'", name), hint);
}

void add_kernels(CLI::App& app) {
    CLI::App* command = app.add_subcommand("kernels", "List the kernels of the standard library, or describe one");
    auto name = std::make_shared<std::string>();
    command->add_option("NAME", *name, "Describe this kernel: parameters, shapes, contracts");
    command->callback([name] { name->empty() ? list_kernels() : show_kernel(*name); });
}

void add_emit(CLI::App& app) {
    CLI::App* command = app.add_subcommand("emit", "Compile a kernel and print it");
    auto options = std::make_shared<EmitOptions>();
    command->add_option("NAME", options->name, "A kernel or a function that `ikat kernels` lists")->required();
    command->add_option("--arch,--target", options->target, "Target, such as sm_90")->capture_default_str();
    command->add_option("--stage", options->stage, "ast, ssa, opt, select, registers, ptx, or a pass or step between")
        ->capture_default_str();
    command->add_option("--passes", options->passes,
                        "Only these passes, in this order: cfg,fold; see `ikat opt --help`");
    command->add_option("--size", options->sizes, "NAME=N: an extent of the arrays of a function: m=4096")
        ->type_name("TEXT")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->add_option("--set", options->set, "NAME=VALUE: a setting of a function, as for run: tile=small")
        ->type_name("TEXT")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->add_option("--type", options->types, "f32, f16 or bf16: of the arrays of a function; or ARRAY=TYPE")
        ->type_name("TEXT")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command
        ->add_option("--multiprocessors", options->multiprocessors,
                     "Multiprocessors of the device for which a function chooses its kernels; default 132")
        ->check(CLI::Range(1u, 65535u).description(""));
    command->add_flag("--line-info", options->line_info, "Add source lines to the PTX, for profilers");
    add_report_option(*command, options->report, "Print the kernel's use of resources instead");
    command->add_flag("--time", options->time, "Print the time of each stage to standard error");
    command->add_option("-o,--output", options->output, "Write to this file");
    command->callback([options] { emit(*options); });
}

void add_opt(CLI::App& app) {
    CLI::App* command = app.add_subcommand("opt", "Run passes on an IR file and print the result");
    auto input = std::make_shared<std::string>();
    auto passes = std::make_shared<std::string>();
    auto output = std::make_shared<std::string>();
    command->add_option("FILE", *input, "IR as `ikat emit NAME --stage ssa` prints it")->required();
    command->add_option("--passes", *passes, "These passes, in this order: cfg,fold; default: the compiler's");
    command->add_option("-o,--output", *output, "Write to this file");
    command->footer(list_of_passes());
    command->callback([input, passes, output] { optimise(*input, *passes, *output); });
}

void add_ptx(CLI::App& app) {
    CLI::App* command = app.add_subcommand("ptx", "Parse, check and print a PTX file");
    auto input = std::make_shared<std::string>();
    auto links = std::make_shared<std::vector<std::string>>();
    auto output = std::make_shared<std::string>();
    auto unchecked = std::make_shared<bool>(false);
    command->add_option("FILE", *input, "A PTX file")->required();
    command->add_option("--link", *links, "Another file to link; prints the linked result")
        ->type_name("FILE")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->add_flag("--unchecked", *unchecked, "Print it even if ptxas would reject it");
    command->add_option("-o,--output", *output, "Write to this file");
    command->callback([input, links, output, unchecked] {
        links->insert(links->begin(), *input);
        reprint(*links, *output, !*unchecked);
    });
}

}  // namespace ikat::cli
