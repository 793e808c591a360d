// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipeline/compile.hpp"

#include <algorithm>

#include "codegen/analysis/memory.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/kernel/section.hpp"
#include "codegen/nvptx/target.hpp"
#include "codegen/pipeline/stages.hpp"
#include "codegen/support/environment.hpp"
#include "codegen/support/notes.hpp"

namespace ikat {
namespace {

using Clock = std::chrono::steady_clock;
using pipeline::Work;

/// Builds without NDEBUG verify each allocation; other builds do so with verify_each.
#ifdef NDEBUG
constexpr bool checked_build = false;
#else
constexpr bool checked_build = true;
#endif

/// Records the end of each stage: its time and, on request, its text; also on request, verifies what it has left.
class Stages {
public:
    Stages(const Work& work, std::string_view kernel, const CompileOptions& options, std::vector<std::string> names,
           std::vector<Compiled::Stage>& out)
        : work_(work), kernel_(kernel), options_(options), names_(std::move(names)), out_(out) {
        out_.reserve(names_.size());
        pipeline::check_dump(dump_, options_.dump.empty() ? "IKAT_DUMP" : "", *work.target);
    }

    void done(const pipeline::Stage& stage, bool changed) {
        out_.push_back({.name = std::move(names_[out_.size()]), .text = {}, .time = Clock::now() - start_});
        if (options_.keep_stages) out_.back().text = stage.text(work_);
        if (pipeline::dump_wanted(dump_, stage.name, kernel_, changed))
            note("// after " + std::string(stage.name) + '\n' + stage.text(work_) + '\n');
        check(stage);
        start_ = Clock::now();
    }

private:
    /// Findings are a bug in the compiler; the time to compute them is not charged to a stage.
    void check(const pipeline::Stage& stage) const {
        std::string findings;
        if (stage.complaint && (checked_build || options_.verify_each)) findings = stage.complaint(work_);
        if (options_.verify_each && stage.text == pipeline::functions_text)
            findings += ir::complaint(work_.module.functions, stage.leaves);
        IKAT_ASSERT(findings.empty(), "after stage " + std::string(stage.name) + ":\n" + findings);
    }

    const Work& work_;
    const std::string kernel_;
    const CompileOptions& options_;
    std::vector<std::string> names_;
    std::vector<Compiled::Stage>& out_;
    const std::string dump_{options_.dump.empty() ? environment("IKAT_DUMP") : options_.dump};
    Clock::time_point start_ = Clock::now();
};

/// What is known of a kernel that is given as IR.
KernelInfo info_of(const ir::Function& fn) {
    return {.name = fn.name,
            .parameters = fn.parameters,
            .bounds = fn.bounds,
            .takes_dynamic_shared = std::ranges::any_of(
                fn.symbols, [](const ir::Symbol& symbol) { return symbol.dynamic && symbol.count == 0; })};
}

/// Fills in what the compiler has made of it.
void describe(const ir::Function& fn, std::string_view target, Compiled& out) {
    out.symbols = fn.symbols;
    out.info.target = target;
    out.info.waits_for_grids = analysis::waits_for_grids(fn);
    out.info.static_shared_bytes = std::uint32_t(ir::symbol_bytes(fn.symbols, ir::Space::Shared));
    out.info.own_dynamic_shared_bytes = std::uint32_t(ir::own_dynamic_bytes(fn.symbols));
}

std::vector<RegisterUse> register_use(const regalloc::Allocation& allocation, const Target& target) {
    std::vector<RegisterUse> out;
    for (std::size_t pool = 0; pool < target.pools.size(); ++pool)
        out.push_back({std::string(target.pools[pool]), allocation.used[pool], allocation.max_live[pool]});
    return out;
}

/// The stages after `left`, with what that has left; all if it is empty.
void finish(Work& work, std::string_view left, const CompileOptions& options, Compiled& out) {
    const auto level = options.optimise ? pipeline::OptLevel::Default : pipeline::OptLevel::None;
    const Target& target = nvptx::target(options.target);
    const std::vector<const pipeline::Stage*> all = pipeline::all_stages(target, level, options.passes);
    const std::size_t first = left.empty() ? 0 : pipeline::place_of(all, left) + 1;
    std::size_t last = all.size() - 1;
    if (!options.stop_after.empty()) {
        last = pipeline::place_of(all, options.stop_after);
        if (last < pipeline::place_of(all, "ssa") || last > pipeline::place_of(all, "select") || last < first)
            throw Error("the compiler cannot stop after stage '" + options.stop_after + "'",
                        "it stops after ssa, select, or a stage between them that is still to be run");
    }
    std::vector<std::string> names = pipeline::names_of(all);
    names.erase(names.begin(), names.begin() + std::ptrdiff_t(first));
    work.target = &target;
    Stages stages(work, out.info.name, options, std::move(names), out.stages);
    work.allocation = options.allocation, work.line_info = options.line_info;
    pipeline::run(
        std::span(all).subspan(first, last + 1 - first), work,
        [&](const pipeline::Stage& stage, bool changed) { stages.done(stage, changed); }, options.verify_each);
    describe(work.module.functions.back(), target.name, out);
    if (!work.registers.empty()) {
        out.registers = register_use(work.registers.back().allocation, target);
        if (options.pressure) out.pressure = target.pressure(work.module.functions.back(), work.registers.back());
    }
    out.ptx = std::move(work.text.text);
    out.info.source_lines = std::move(work.text.source_lines);
    if (!options.stop_after.empty()) out.snapshot = {std::move(work.module), out.stages.back().name, out.info};
}

}  // namespace

Compiled compile(const ast::KernelTree& kernel, const CompileOptions& options) {
    Compiled out;
    out.info = kernel;
    Work work{.kernel = &kernel};
    finish(work, "", options, out);
    return out;
}

Compiled compile(ir::Module module, const CompileOptions& options) {
    ir::verify(module);
    analysis::verify_convergence(module.functions);
    const auto kernels = std::ranges::count_if(module.functions, &ir::Function::is_entry);
    if (kernels != 1) throw Error("a module has one kernel, not " + std::to_string(kernels), "compile each by itself");
    if (!module.functions.back().is_entry)
        throw Error("@" + module.functions.back().name + " comes after the kernel", "functions come before it");
    Compiled out;
    out.info = info_of(module.functions.back());
    Work work{.module = std::move(module)};
    finish(work, "ssa", options, out);
    return out;
}

Compiled compile(Snapshot snapshot, const CompileOptions& options) {
    if (snapshot.module.functions.empty()) throw Error("a snapshot of nothing", "it is what stop_after leaves");
    Compiled out;
    out.info = snapshot.info.name.empty() ? info_of(snapshot.module.functions.back()) : std::move(snapshot.info);
    Work work{.module = std::move(snapshot.module)};
    finish(work, snapshot.stage, options, out);
    return out;
}

std::string file_text(const Compiled& compiled) { return with_sections(compiled.ptx, {&compiled.info, 1}); }

Compiled compile(ir::Function fn, const CompileOptions& options) {
    ir::Module module;
    module.functions.push_back(std::move(fn));
    return compile(std::move(module), options);
}

}  // namespace ikat
