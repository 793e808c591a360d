// SPDX-License-Identifier: Apache-2.0
// A module ready to run: its variables placed in memory, its kernels decoded on first use.
#include "runtime/emulator/host/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "codegen/ptx/text/source_lines.hpp"
#include "runtime/emulator/agents/agents.hpp"
#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/decode/decode.hpp"
#include "runtime/emulator/decode/vector_registers.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/ops/handlers.hpp"
#include "runtime/emulator/tools/definedness/definedness.hpp"
#include "runtime/emulator/tools/grids/grids.hpp"
#include "runtime/emulator/tools/heap/heap.hpp"
#include "runtime/emulator/tools/nan/nan.hpp"
#include "runtime/emulator/tools/proxies/proxies.hpp"
#include "runtime/emulator/tools/races/races.hpp"
#include "runtime/emulator/tools/touched/touched.hpp"
#include "runtime/emulator/tools/views/views.hpp"

namespace ikat::emulator {

struct Program::State {
    State(ptx::Module m, Memory& memory, std::vector<Location> lines)
        : module(without_vector_registers(std::move(m))),
          memory(memory),
          vocabulary(lines.empty() ? Vocabulary::Ptx : Vocabulary::Language),
          source_lines(lines.empty() ? ptx::source_lines(module) : std::move(lines)),
          variables(place_variables(module, memory)) {}
    ~State() {
        for (const std::uint64_t buffer : variables.buffers) memory.release(buffer);
    }

    const DecodedKernel& kernel(std::string_view name, const DecodeOptions& how = {}) {
        const std::lock_guard lock(mutex);
        const auto same_tools = [&](const DecodeOptions& known) {
            return std::ranges::equal(known.tools, how.tools, {}, &Tool::name, &Tool::name);
        };
        for (const Known& known : kernels)
            if (known.kernel->name == name && known.how.checks == how.checks && known.how.cluster == how.cluster &&
                known.how.moves_dynamic == how.moves_dynamic && same_tools(known.how))
                return *known.kernel;
        const ptx::Function* const function = module.find_function(name);
        if (!function || !function->is_entry || !function->has_body)
            throw Error(fmt::format("the module has no kernel '{}'", name), kernel_names());
        kernels.push_back({how, std::make_unique<DecodedKernel>(decode(module, *function, variables, how))});
        return *kernels.back().kernel;
    }

    /// Throws Error if there is none of that name.
    const ModuleMemory::Variable& variable(std::string_view name) const;

    std::string kernel_names() const {
        std::string text = "its kernels are:";
        for (const ptx::Function& function : module.functions)
            if (function.is_entry) text += fmt::format(" {}", module.text(function.name));
        return text;
    }

    const ptx::Module module;
    Memory& memory;
    const Vocabulary vocabulary;  // of messages
    const std::vector<Location> source_lines;
    ModuleMemory variables;
    struct Known {
        DecodeOptions how;
        std::unique_ptr<DecodedKernel> kernel;
    };
    std::vector<Known> kernels;
    std::mutex mutex;
};

Program::Program(ptx::Module module, Memory& memory, std::vector<Location> source_lines)
    : state_(std::make_unique<State>(std::move(module), memory, std::move(source_lines))) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;

std::vector<Program::Parameter> Program::parameters(std::string_view entry) const {
    return state_->kernel(entry).parameters;
}

std::vector<std::string> Program::entries() const {
    std::vector<std::string> names;
    for (const ptx::Function& function : state_->module.functions)
        if (function.is_entry && function.has_body) names.emplace_back(state_->module.text(function.name));
    return names;
}

bool Program::has_entry(std::string_view name) const {
    const ptx::Function* const function = state_->module.find_function(name);
    return function && function->is_entry && function->has_body;
}

Program::Entry Program::entry(std::string_view name) const {
    const DecodedKernel& kernel = state_->kernel(name);
    const auto& required = kernel.required_block;
    return {.shared_bytes = kernel.shared_bytes,
            .local_bytes = kernel.local.packed,
            .constant_bytes = state_->variables.constants.packed,
            .parameter_bytes = kernel.parameter_bytes,
            .registers = std::uint32_t(kernel.register_bytes / (4 * warp_size)),
            .unassigned_reads = kernel.unassigned_reads,
            .max_threads = required[0] ? std::uint64_t(required[0]) * required[1] * required[2] : kernel.max_threads,
            .cluster = kernel.names_cluster ? kernel.cluster : std::array<std::uint32_t, 3>{},
            .needs_cluster = kernel.needs_cluster && !kernel.names_cluster};
}

const ModuleMemory::Variable& Program::State::variable(std::string_view name) const {
    const auto found = variables.variables.find(module.find(name));
    if (found == variables.variables.end())
        throw Error(fmt::format("the PTX has no variable '{}'", name),
                    "only variables in .global and .const outside functions can be set");
    return found->second;
}

Program::Variable Program::variable(std::string_view name) const {
    const ModuleMemory::Variable& its = state_->variable(name);
    return {its.space == Space::Global ? its.address : 0, its.bytes};
}

std::vector<std::byte> Program::constant(std::string_view name) const {
    const ModuleMemory::Variable& its = state_->variable(name);
    const auto begin = state_->variables.constant.begin() + std::ptrdiff_t(its.host);
    return {begin, begin + std::ptrdiff_t(its.bytes)};
}

void Program::set_variable(std::string_view name, std::span<const std::byte> contents) {
    const ModuleMemory::Variable& variable = state_->variable(name);
    if (contents.size() != variable.bytes)
        throw Error(fmt::format("variable '{}' has {} bytes, not {}", name, variable.bytes, contents.size()),
                    "give all of its elements");
    if (variable.space == Space::Global)
        state_->memory.write(variable.address, contents);
    else
        std::ranges::copy(contents, state_->variables.constant.begin() + std::ptrdiff_t(variable.host));
}

void Program::check(const Launch& launch) const {
    check_launch(state_->module, state_->kernel(launch.entry, {.cluster = launch.cluster}), launch);
}

Memory& Program::memory() const { return state_->memory; }

namespace {

/// What a cooperative launch finds through %envreg1 and %envreg2: its own size and the grid's barrier, initially 0.
struct GridWorkspace {
    GridWorkspace(Memory& of, const DecodedKernel& kernel) : memory(of) {
        const auto asks = [](const DecodedKernel::SpecialSlot& slot) {
            return slot.special.kind == Special::Kind::GridWorkspace;
        };
        if (std::ranges::none_of(kernel.specials, asks)) return;
        constexpr std::uint32_t words[2] = {8, 0};
        address = memory.allocate(sizeof words, "the grid's workspace");
        memory.write(address, std::as_bytes(std::span(words)));
    }
    ~GridWorkspace() {
        if (address) memory.release(address);
    }
    GridWorkspace(const GridWorkspace&) = delete;
    GridWorkspace& operator=(const GridWorkspace&) = delete;

    Memory& memory;
    std::uint64_t address = 0;
};

Diagnostic in_words(Vocabulary vocabulary, Diagnostic finding) {
    for (std::string* const text : {&finding.message, &finding.hint}) *text = in_words(vocabulary, *text);
    for (Diagnostic::Note& note : finding.notes) note.message = in_words(vocabulary, note.message);
    return finding;
}

/// Those that watch a launch.
Tools tools_of(const Launch& launch, const Options& options, const DecodedKernel& kernel, const Memory::State& memory) {
    Tools tools{&proxies()};
    if (options.checks.of(Check::Races) != Action::Off)
        tools.push_back(&all_races());
    else if (options.checks.of(Check::SharedRaces) != Action::Off)
        tools.push_back(&shared_races());
    if (options.checks.of(Check::Nan) != Action::Off) tools.push_back(&made_of_numbers());
    const bool may_overlap = kernel.launches_next || (launch.begins_early && launch.grids && launch.grids->any());
    if (launch.grids && may_overlap && options.checks.of(Check::Grids) != Action::Off)
        tools.push_back(&overlapping_grids());
    if (launch.touched) tools.push_back(&touched_memory());
    if (options.asks_for_heap) tools.push_back(&heap_left());
    if (options.checks.of(Check::Views) != Action::Off && views::Regions(launch.views, memory).are_parts())
        tools.push_back(&in_views());
    for (const auto& tool : options.tools) tools.push_back(tool.get());
    return tools;
}

}  // namespace

Statistics Program::run(const Launch& launch, const Options& options) {
    DecodeOptions how{.cluster = launch.cluster};
    const DecodedKernel& plain = state_->kernel(launch.entry, how);
    check_launch(state_->module, plain, launch);
    const bool has_dynamic = plain.has_dynamic();
    how.moves_dynamic = has_dynamic && options.moved_shared && options.seed && mixed(options.seed, 0) % 2;
    how.tools = tools_of(launch, options, plain, state_->memory.state());
    const auto checked = [&]() -> const DecodedKernel& {
        DecodeOptions with_checks = how;
        with_checks.checks = true;
        with_checks.tools.push_back(&definedness());
        return state_->kernel(launch.entry, with_checks);
    };
    const DecodedKernel& kernel = state_->kernel(launch.entry, how);
    Memory::State& memory = state_->memory.state();
    const Memory::State::Running running(memory);
    LaunchState state{.module = state_->module,
                      .kernel = kernel,
                      .checked = checked,
                      .launch = launch,
                      .options = options,
                      .memory = memory,
                      .variables = state_->variables,
                      .source_lines = state_->source_lines,
                      .parameters = {launch.parameters.begin(), launch.parameters.end()},
                      .make_agents = make_agents};
    for (std::size_t slot = 0; slot < how.tools.size(); ++slot)
        state.tools.push_back(how.tools[slot]->watches(kernel) ? how.tools[slot]->of(state, slot) : nullptr);
    const GridWorkspace workspace(state_->memory, kernel);
    state.grid_workspace = workspace.address;
    const Vocabulary vocabulary = state_->vocabulary;
    const auto warn = [&](std::uint64_t last) {
        if (!options.warning) return;
        state.findings.each(last, [&](const Diagnostic& finding) { options.warning(in_words(vocabulary, finding)); });
    };
    Statistics statistics;
    try {
        statistics = run_grid(state);
    } catch (const Error& error) {
        warn(state.failed_block);
        std::vector<Diagnostic> diagnostics = error.diagnostics();
        for (Diagnostic& each : diagnostics) each = in_words(vocabulary, each);
        throw Error(std::move(diagnostics));
    }
    warn(~std::uint64_t{0});
    for (const auto& tool : state.tools)
        if (tool) tool->end(statistics);
    return statistics;
}

std::string_view instruction_set() { return target_name(); }

}  // namespace ikat::emulator
