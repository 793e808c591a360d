// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipeline/compile.hpp"

#include <algorithm>
#include <set>

#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/kernel/section.hpp"
#include "codegen/lower/lower.hpp"
#include "codegen/nvptx/emit/emit.hpp"
#include "codegen/pipeline/stages.hpp"
#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"

namespace ikat {
namespace {

using Clock = std::chrono::steady_clock;

/// Builds without NDEBUG verify each allocation; other builds do so with verify_each.
#ifdef NDEBUG
constexpr bool checked_build = false;
#else
constexpr bool checked_build = true;
#endif

/// Records the end of each stage: its time and, on request, its text; also on request, verifies the IR.
class Stages {
public:
    Stages(std::string_view kernel, const CompileOptions& options, std::vector<Compiled::Stage>& out)
        : kernel_(kernel), options_(options), out_(out) {
        constexpr std::size_t about_as_many = 40;
        out_.reserve(about_as_many), names_.reserve(about_as_many);
        pipeline::check_dump(dump_, options_.dump.empty() ? "IKAT_DUMP" : "");
    }

    void done(std::string_view name, bool changed, auto&& text) {
        const auto time = Clock::now() - start_;
        const auto times = std::ranges::count(names_, name);
        names_.push_back(name);
        Compiled::Stage& stage = out_.emplace_back();
        stage.name = name, stage.time = time;
        if (times) stage.name += '.' + std::to_string(times + 1);
        if (options_.keep_stages) stage.text = text();
        if (pipeline::dump_wanted(dump_, name, kernel_, changed))
            note("// after " + std::string(name) + '\n' + text() + '\n');
        start_ = Clock::now();
    }
    void done(std::string_view name, std::span<const ir::Function> functions, ir::Level level, bool changed = true) {
        done(name, changed, [&] { return ir::print(functions); });
        if (options_.verify_each) check(name, ir::complaint(functions, level));
    }
    /// Findings are a bug in the compiler; the time to compute them is not charged to a stage.
    void check(std::string_view name, const std::string& findings) {
        IKAT_ASSERT(findings.empty(), "after stage " + std::string(name) + ":\n" + findings);
        start_ = Clock::now();
    }

private:
    const std::string kernel_;
    const CompileOptions& options_;
    std::vector<Compiled::Stage>& out_;
    std::vector<std::string_view> names_;
    const std::string dump_{options_.dump.empty() ? environment("IKAT_DUMP") : options_.dump};
    Clock::time_point start_ = Clock::now();
};

/// What is known of a kernel that is given as IR.
KernelInfo info_of(const ir::Function& fn) {
    return {.name = fn.name,
            .parameters = fn.parameters,
            .bounds = fn.bounds,
            .takes_dynamic_shared = std::ranges::any_of(fn.symbols, &ir::Symbol::dynamic)};
}

/// Fills in what the compiler has made of it.
void describe(const ir::Function& fn, std::string_view target, Compiled& out) {
    out.symbols = fn.symbols;
    out.info.target = target;
    out.info.static_shared_bytes = std::uint32_t(ir::symbol_bytes(fn.symbols, ir::Space::Shared));
    out.info.own_dynamic_shared_bytes = std::uint32_t(ir::own_dynamic_bytes(fn.symbols));
}

std::vector<RegisterUse> register_use(const regalloc::Allocation& allocation) {
    std::vector<RegisterUse> out;
    for (std::size_t pool = 0; pool < std::size(nvptx::pools); ++pool)
        out.push_back({std::string(nvptx::pools[pool].name), allocation.used[pool], allocation.max_live[pool]});
    return out;
}

/// The texts of the functions, one after another.
std::string each(const ir::Module& module, const std::vector<nvptx::Registers>& registers,
                 std::string (*text)(const ir::Function&, const nvptx::Registers&)) {
    std::string out;
    for (std::size_t i = 0; i < registers.size(); ++i) {
        const std::string part = text(module.functions[i], registers[i]);
        out += (out.empty() || part.empty() ? "" : "\n") + part;
    }
    return out;
}

/// Converts source locations by instruction to source locations by PTX line.
std::vector<Location> by_line(const std::vector<Location>& places, const std::vector<std::uint32_t>& lines) {
    std::vector<Location> out(lines.empty() ? 1 : lines.back() + 1);
    for (std::size_t i = 0; i < lines.size(); ++i) out[lines[i]] = places[i];
    return out;
}

/// ... and of the kernel's arrays, at the lines of their declarations.
void add_declarations(std::string_view ptx, const std::vector<ir::Symbol>& symbols, std::vector<Location>& lines) {
    std::size_t line = 1;
    auto left = std::ranges::count_if(
        symbols, [](const ir::Symbol& it) { return it.space == ir::Space::Shared || it.space == ir::Space::Local; });
    for (std::size_t end; left > 0 && line < lines.size() && (end = ptx.find('\n')) != ptx.npos;
         ++line, ptx.remove_prefix(end + 1)) {
        std::string_view text = ptx.substr(0, end);
        text = text.substr(0, text.find('['));
        if (!text.contains(".shared ") && !text.contains(".local ")) continue;
        const auto found = std::ranges::find(symbols, text.substr(text.rfind(' ') + 1), &ir::Symbol::name);
        if (found != symbols.end()) lines[line] = found->where, --left;
    }
}

/// Removes functions that are no longer called.
void keep_called(ir::Module& module) {
    if (module.functions.size() == 1) return;
    std::set<std::string, std::less<>> called{module.functions.back().name};
    for (auto fn = module.functions.rbegin(); fn != module.functions.rend(); ++fn)
        if (called.contains(fn->name))
            for (ir::Block block : fn->blocks())
                for (ir::Inst inst : (*fn)[block].instructions)
                    if (info((*fn)[inst].op).attribute == ir::Attribute::Callee)
                        called.insert(fn->texts[(*fn)[inst].attribute]);
    std::erase_if(module.functions, [&](const ir::Function& fn) { return !called.contains(fn.name); });
}

/// Compiles from the IR on. The kernel is the module's last function.
void finish(ir::Module module, const CompileOptions& options, Stages& stages, Compiled& out) {
    const ptx::Target& target = ptx::target(options.target);
    const auto after = [&](const pipeline::Stage& stage, std::span<const ir::Function> functions, bool changed) {
        stages.done(stage.name, functions, stage.leaves, changed);
    };
    const auto level = options.optimise ? pipeline::OptLevel::Default : pipeline::OptLevel::None;
    pipeline::run(pipeline::optimisation(level, options.passes), module.functions, target, after, options.verify_each);
    keep_called(module);
    pipeline::run(pipeline::selection(), module.functions, target, after, options.verify_each);
    keep_called(module);
    describe(module.functions.back(), target.name, out);
    std::vector<nvptx::Registers> registers;
    for (const ir::Function& fn : module.functions)
        registers.push_back(nvptx::allocate(fn, {.method = options.allocation}));
    out.registers = register_use(registers.back().allocation);
    if (options.pressure) out.pressure = nvptx::pressure_of(module.functions.back(), registers.back());
    stages.done("registers", true, [&] { return each(module, registers, nvptx::print); });
    if (checked_build || options.verify_each) stages.check("registers", each(module, registers, nvptx::complaint));
    const nvptx::Emitted emitted = nvptx::emit(module, registers, target, options.line_info);
    std::vector<std::vector<std::uint32_t>> lines;
    out.ptx = ptx::print(emitted.module, lines);
    out.info.source_lines = by_line(emitted.places, lines.back());
    add_declarations(out.ptx, out.symbols, out.info.source_lines);
    stages.done("ptx", true, [&] { return out.ptx; });
}

}  // namespace

Compiled compile(const ast::KernelTree& kernel, const CompileOptions& options) {
    Compiled out;
    out.info = kernel;
    Stages stages(kernel.name, options, out.stages);
    if (!kernel.checked)
        if (auto findings = ast::check(kernel); !findings.empty()) throw Error(std::move(findings));
    stages.done("ast", true, [&] { return ast::print(kernel); });
    ir::Module module = lower::lower_module(kernel);
    stages.done("ssa", module.functions, ir::Level::Typed);
    finish(std::move(module), options, stages, out);
    return out;
}

Compiled compile(ir::Module module, const CompileOptions& options) {
    Compiled out;
    ir::verify(module);
    analysis::verify_convergence(module.functions);
    const auto kernels = std::ranges::count_if(module.functions, &ir::Function::is_entry);
    if (kernels != 1) throw Error("a module has one kernel, not " + std::to_string(kernels), "compile each by itself");
    if (!module.functions.back().is_entry)
        throw Error("@" + module.functions.back().name + " stands behind the kernel", "functions come before it");
    out.info = info_of(module.functions.back());
    Stages stages(out.info.name, options, out.stages);
    finish(std::move(module), options, stages, out);
    return out;
}

std::string file_text(const Compiled& compiled) { return with_sections(compiled.ptx, {&compiled.info, 1}); }

Compiled compile(ir::Function fn, const CompileOptions& options) {
    ir::Module module;
    module.functions.push_back(std::move(fn));
    return compile(std::move(module), options);
}

}  // namespace ikat
