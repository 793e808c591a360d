// SPDX-License-Identifier: Apache-2.0
#include "codegen/compile.hpp"

#include <algorithm>
#include <cstdio>

#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/lower/lower.hpp"
#include "codegen/nvptx/emit/emit.hpp"
#include "codegen/nvptx/select/select.hpp"
#include "codegen/passes/pipeline.hpp"

namespace ikat {
namespace {

using Clock = std::chrono::steady_clock;

/// Builds without NDEBUG prove each allocation; the others do with verify_each.
#ifdef NDEBUG
constexpr bool checked_build = false;
#else
constexpr bool checked_build = true;
#endif

/// Notes the end of each stage: its time, and on request its text and whether it left well-formed IR.
class Stages {
public:
    Stages(std::string_view kernel, const CompileOptions& options, std::vector<Compiled::Stage>& out)
        : kernel_(kernel), options_(options), out_(out) {}

    void done(const char* name, auto&& text) {
        out_.push_back({name, {}, Clock::now() - start_});
        if (options_.keep_stages) out_.back().text = text();
        if (passes::dump_wanted(name, kernel_)) std::fprintf(stderr, "// after %s\n%s\n", name, text().c_str());
        start_ = Clock::now();
    }
    void done(const char* name, const ir::Function& fn, ir::Level level) {
        done(name, [&] { return ir::print(fn); });
        if (options_.verify_each) check(name, ir::report(fn, level));
    }
    /// Our fault, if there are findings; the time they took to make is no stage's.
    void check(const char* name, const std::string& findings) {
        IKAT_ASSERT(findings.empty(), "after stage " + std::string(name) + ":\n" + findings);
        start_ = Clock::now();
    }

private:
    const std::string kernel_;
    const CompileOptions& options_;
    std::vector<Compiled::Stage>& out_;
    Clock::time_point start_ = Clock::now();
};

/// What the launch and the reports need to know of the kernel.
void describe(const ir::Function& fn, Compiled& out) {
    out.name = fn.name;
    out.parameters = fn.parameters;
    out.symbols = fn.symbols;
    out.bounds = fn.bounds;
    out.static_shared_bytes = std::uint32_t(ir::symbol_bytes(fn.symbols, ir::Space::Shared));
    out.dynamic_shared = std::ranges::any_of(fn.symbols, &ir::Symbol::dynamic);
}

std::vector<RegisterUse> register_use(const regalloc::Allocation& allocation) {
    std::vector<RegisterUse> out;
    for (std::size_t pool = 0; pool < std::size(nvptx::pools); ++pool)
        out.push_back({std::string(nvptx::pools[pool].name), allocation.used[pool], allocation.max_live[pool]});
    return out;
}

/// From places by instruction to places by line.
std::vector<Location> by_line(const std::vector<Location>& places, const std::vector<std::uint32_t>& lines) {
    std::vector<Location> out(lines.empty() ? 1 : lines.back() + 1);
    for (std::size_t i = 0; i < lines.size(); ++i) out[lines[i]] = places[i];
    return out;
}

/// A function that the kernel calls, ready to be written.
struct Callee {
    ir::Function fn;
    nvptx::Registers registers;
};
Callee compile_callee(const ast::Kernel& function, const CompileOptions& options) {
    ir::Function fn = lower::ast_to_ssa(function);
    passes::run_pipeline(fn, {.level = options.optimise ? passes::OptLevel::Default : passes::OptLevel::None,
                              .passes = options.passes,
                              .verify_each = options.verify_each});
    nvptx::select(fn, nvptx::target(options.target));
    nvptx::Registers registers = nvptx::allocate(fn, {.method = options.allocation});
    return {std::move(fn), std::move(registers)};
}

/// The compiler from the IR on.
void finish(ir::Function fn, const std::vector<Callee>& callees, const CompileOptions& options, Stages& stages,
            Compiled& out) {
    const nvptx::Target& target = nvptx::target(options.target);
    describe(fn, out);
    passes::run_pipeline(fn, {.level = options.optimise ? passes::OptLevel::Default : passes::OptLevel::None,
                              .passes = options.passes,
                              .verify_each = options.verify_each});
    stages.done("opt", fn, ir::Level::Typed);
    nvptx::select(fn, target);
    stages.done("select", fn, ir::Level::Selected);
    const nvptx::Registers registers = nvptx::allocate(fn, {.method = options.allocation});
    out.registers = register_use(registers.allocation);
    if (options.pressure) out.pressure = nvptx::pressure_of(fn, registers);
    stages.done("registers", [&] { return nvptx::print(fn, registers); });
    if (checked_build || options.verify_each) stages.check("registers", nvptx::report(fn, registers));
    std::vector<nvptx::Part> parts;
    for (const Callee& callee : callees) parts.push_back({callee.fn, callee.registers});
    const nvptx::Emitted emitted = nvptx::emit(parts, {fn, registers}, target, options.line_info);
    std::vector<std::vector<std::uint32_t>> lines;
    out.ptx = nvptx::print(emitted.module, lines);
    out.source_lines = by_line(emitted.places, lines.back());
    stages.done("ptx", [&] { return out.ptx; });
}

}  // namespace

Compiled compile(const ast::Kernel& kernel, const CompileOptions& options) {
    Compiled out;
    Stages stages(kernel.name, options, out.stages);
    if (!kernel.checked)
        if (auto findings = ast::check(kernel); !findings.empty()) throw Error(std::move(findings));
    stages.done("ast", [&] { return ast::print(kernel); });
    ir::Function fn = lower::ast_to_ssa(kernel);
    stages.done("ssa", fn, ir::Level::Typed);
    std::vector<Callee> callees;
    for (const ast::Kernel& function : kernel.functions) callees.push_back(compile_callee(function, options));
    if (!callees.empty())
        stages.done("functions", [&] {
            std::string text;
            for (const Callee& callee : callees) text += ir::print(callee.fn);
            return text;
        });
    finish(std::move(fn), callees, options, stages, out);
    return out;
}

Compiled compile(ir::Function fn, const CompileOptions& options) {
    Compiled out;
    Stages stages(fn.name, options, out.stages);
    ir::verify(fn);
    finish(std::move(fn), {}, options, stages, out);
    return out;
}

}  // namespace ikat
