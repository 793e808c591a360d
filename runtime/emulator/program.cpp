// SPDX-License-Identifier: Apache-2.0
// A module ready to run: its variables placed in memory, its kernels decoded on first use.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "codegen/ptx/text/source_lines.hpp"
#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/decode/vector_registers.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/observe/messages.hpp"
#include "runtime/emulator/observe/wording.hpp"

namespace ikat::emulator {

namespace {

/// The bytes of an initialiser, element after element.
class Initialiser {
public:
    Initialiser(const nvptx::Module& module, const ModuleMemory& variables, std::span<std::byte> to, unsigned element)
        : module_(module), variables_(variables), to_(to), element_(element) {}

    void write(const nvptx::Operand& operand) {
        using Kind = nvptx::Operand::Kind;
        if (operand.kind == Kind::Vector) {
            for (const nvptx::Operand& child : module_.operands(operand.children)) write(child);
            return;
        }
        std::uint64_t bits = operand.value;
        if (operand.kind == Kind::Float64 && element_ == 4)
            bits = std::bit_cast<std::uint32_t>(float(std::bit_cast<double>(operand.value)));
        if (operand.kind == Kind::Symbol) bits = address(operand, false);
        if (operand.kind == Kind::Mask) bits = masked(operand);
        if (operand.kind == Kind::String) return text(module_.text(operand.name));
        if (operand.kind == Kind::Generic) bits = address(operand, true);
        if (at_ + element_ <= to_.size()) std::memcpy(to_.data() + at_, &bits, element_);
        at_ += element_;
    }

private:
    /// 0xff00(symbol): the bits of its address under the mask, shifted down.
    std::uint64_t masked(const nvptx::Operand& operand) const {
        const nvptx::Operand& of = module_.operands(operand.children)[0];
        const std::uint64_t bits = address(of, of.kind == nvptx::Operand::Kind::Generic);
        return operand.value ? (bits & operand.value) >> std::countr_zero(operand.value) : 0;
    }

    /// The characters between quotes, with C's escapes.
    void text(std::string_view characters) {
        for (std::size_t i = 0; i < characters.size(); ++i) {
            char c = characters[i];
            if (c == '\\' && i + 1 < characters.size()) {
                c = characters[++i];
                c = c == 'n' ? '\n' : c == 't' ? '\t' : c == '0' ? '\0' : c;
            }
            if (at_ < to_.size()) to_[at_] = std::byte(c);
            ++at_;
        }
    }

    std::uint64_t address(const nvptx::Operand& operand, bool generic) const {
        const nvptx::Operand& symbol = generic ? module_.operands(operand.children)[0] : operand;
        if (const nvptx::Function* const function = module_.find_function(module_.text(symbol.name)); function) {
            if (symbol.has_offset || operand.has_offset)
                throw Error(fmt::format("an initialiser names a place inside function '{}'", module_.text(symbol.name)),
                            "the address of a function is its name alone");
            return function_address(std::uint64_t(function - module_.functions.data()));
        }
        const auto found = variables_.variables.find(symbol.name);
        if (found == variables_.variables.end())
            throw Error(fmt::format("an initialiser names '{}', which is not a variable of the module",
                                    module_.text(symbol.name)),
                        "only .global and .const variables have an address before a launch");
        const bool window = generic && found->second.space != Space::Global;
        return found->second.address + symbol.value + (generic ? operand.value : 0) +
               (window ? window_address(found->second.space) : 0);
    }

    const nvptx::Module& module_;
    const ModuleMemory& variables_;
    std::span<std::byte> to_;
    unsigned element_;
    std::size_t at_ = 0;
};

template <class F>
void each_declarator(const nvptx::Module& module, std::string_view space, F f) {
    const auto each = [&](const std::vector<nvptx::Variable>& variables, bool in_function) {
        for (const nvptx::Variable& variable : variables)
            if (module.text(variable.space) == space)
                for (const auto& declarator : variable.declarators) f(variable, declarator, in_function);
    };
    each(module.variables, false);
    for (const nvptx::Function& function : module.functions) each(function.variables, true);
}

ModuleMemory::Variable& place_of(ModuleMemory& memory, const nvptx::Variable::Declarator& declarator,
                                 bool in_function) {
    return in_function ? memory.of_functions[&declarator] : memory.variables[declarator.name];
}

}  // namespace

ModuleMemory place_variables(const nvptx::Module& module, Memory& memory) {
    ModuleMemory result;
    std::uint64_t global_bytes = 0;
    const auto limit = [&](std::uint64_t bytes, std::uint64_t most, std::string_view space, const auto& declarator) {
        if (bytes > most)
            throw Error(fmt::format("'{}' brings the module's {} variables to over {} bytes",
                                    module.text(declarator.name), space, most),
                        "allocate large arrays with the runtime");
    };
    each_declarator(module, ".global", [&](const nvptx::Variable& variable, const auto& declarator, bool in_function) {
        const std::uint64_t bytes = variable_bytes(module, variable, declarator);
        limit(global_bytes += bytes, std::uint64_t{1} << 31, ".global", declarator);
        const std::uint64_t address = memory.allocate(bytes, module.text(declarator.name));
        result.buffers.push_back(address);
        place_of(result, declarator, in_function) = {Space::Global, address, bytes};
    });
    each_declarator(module, ".const", [&](const nvptx::Variable& variable, const auto& declarator, bool in_function) {
        const std::uint64_t bytes = variable_bytes(module, variable, declarator);
        const std::uint64_t offset = rounded_up(result.constants.packed, variable_alignment(module, variable));
        limit(offset + bytes, 11 * 65536, ".const", declarator);  // eleven banks
        const NamedRange& range =
            result.constants.add(module.text(declarator.name), bytes, variable_alignment(module, variable));
        place_of(result, declarator, in_function) = {Space::Const, range.address, bytes, range.host};
    });
    result.constant.resize(result.constants.host_bytes);
    result.constant_views = result.constants.views(result.constant.data(), 0, false);
    // Without an initialiser they are zero, and take memory only where they are used.
    const auto host_bytes = [&](const ModuleMemory::Variable& placed) -> std::span<std::byte> {
        if (placed.space == Space::Const) return {result.constant.data() + placed.host, placed.bytes};
        constexpr std::byte zero[] = {std::byte{0}};
        memory.fill(placed.address, zero, placed.bytes);
        return {memory.state().range(placed.address, placed.bytes, "a variable", true).begin, placed.bytes};
    };
    const auto initialise = [&](const nvptx::Variable& variable, const auto& declarator, bool in_function) {
        const ModuleMemory::Variable& placed = place_of(result, declarator, in_function);
        const unsigned element = element_bytes(module.text(variable.type));
        if (declarator.initialiser.count && (element == 0 || element > 8))
            throw Error(fmt::format("'{}' of type {} cannot have an initial value", module.text(declarator.name),
                                    module.text(variable.type)),
                        "initial values are of types of 8 to 64 bits");
        Initialiser initialiser(module, result, host_bytes(placed), element);
        for (const nvptx::Operand& operand : module.operands(declarator.initialiser)) initialiser.write(operand);
    };
    each_declarator(module, ".global", initialise);
    each_declarator(module, ".const", initialise);
    return result;
}

namespace {

/// Reserves space for calls and alloca after the kernel's own local variables.
void prepare_stack(const nvptx::Module& module, const Lowering& lowering, DecodedKernel& kernel) {
    constexpr std::uint32_t stack_bytes = 16 * 1024;
    const auto is_alloca = [](const Micro& micro) { return micro.run == allocate_on_stack; };
    if (lowering.roots.empty() && std::ranges::none_of(lowering.micros, is_alloca)) return;
    const NamedRange& stack = kernel.local.add("the stack", stack_bytes, 256);
    kernel.stack_base = stack.address;
    kernel.stack_end = stack.address + stack.bytes;
    kernel.functions.resize(module.functions.size());
    for (const Lowering::Root& root : lowering.roots)
        kernel.functions[root.function].parameter_bytes = signature_of(module, module.functions[root.function]).bytes;
}

/// Rejects .reqnctapercluster with more blocks than any device supports in a cluster.
[[noreturn]] void refuse_cluster(const nvptx::Module& module, const nvptx::Directive& directive) {
    Diagnostic diagnostic = diagnostic_of(FaultCode::NotRun);
    diagnostic.where = location(module, directive.where);
    diagnostic.message = fmt::format("a cluster has 1 to {} blocks", most_blocks_in_cluster);
    diagnostic.hint = "use smaller clusters";
    throw Error(std::move(diagnostic));
}

/// The registers of a thread that setmaxnreg starts from; 0 if they are not known, and it has no effect. As ptxas, from
/// .maxnreg, or from the threads of a block and how many of them a multiprocessor is to run, one if nothing says it.
std::uint32_t registers_of(const nvptx::Module& module, const nvptx::Function& entry) {
    constexpr std::uint64_t of_multiprocessor = 65536, most = 256, unit = 8;
    std::uint64_t threads = 0, blocks = 1;
    for (const nvptx::Directive& directive : entry.directives) {
        const auto operands = module.operands(directive.operands);
        const std::string_view name = module.text(directive.name);
        if (name == ".maxnreg") return std::uint32_t(operands[0].value);
        if (name == ".minnctapersm") blocks = std::max<std::uint64_t>(operands[0].value, 1);
        if (name != ".maxntid" && name != ".reqntid") continue;
        threads = 1;
        for (const nvptx::Operand& operand : operands) threads *= operand.value;
    }
    if (!threads) return 0;
    return std::uint32_t(std::min(most, of_multiprocessor / (threads * blocks) / unit * unit));
}

/// Dynamic shared memory begins behind the static variables. The arrays whose part of it is known are variables, too.
DynamicPlaces place_dynamic(const Lowering& lowering, DecodedKernel& kernel, bool moves) {
    Variables& shared = kernel.shared;
    const std::uint64_t alignment = lowering.dynamic_alignment ? lowering.dynamic_alignment : 1;
    shared.packed = rounded_up(shared.packed, alignment);
    kernel.shared_bytes = std::uint32_t(shared.packed);
    if (moves && shared.packed % (2 * alignment) == 0) shared.packed += alignment;
    const std::uint64_t begin = shared.packed;
    DynamicPlaces places;
    for (const auto& [offset, array] : lowering.dynamic_arrays) {
        shared.packed = begin + offset;
        NamedRange& range = shared.add(array.name, array.bytes, 1);
        range.line = array.line;
        places.arrays[offset] = range.address;
    }
    shared.packed = begin + kernel.own_dynamic_bytes;
    places.rest = shared.next_address();
    return places;
}

}  // namespace

DecodedKernel decode(const nvptx::Module& module, const nvptx::Function& entry, const ModuleMemory& variables,
                     Observers observers, const std::array<std::uint32_t, 3>& cluster, bool moves_dynamic) {
    DynamicPlaces dynamic;
    for (;;) {
        DecodedKernel kernel;
        kernel.name = module.text(entry.name);
        kernel.observers = observers;
        kernel.where = entry.where;
        for (const nvptx::Directive& directive : entry.directives) {
            const auto operands = module.operands(directive.operands);
            std::array<std::uint32_t, 3> sizes{1, 1, 1};
            for (std::size_t i = 0; i < operands.size() && i < 3; ++i) sizes[i] = std::uint32_t(operands[i].value);
            if (module.text(directive.name) == ".maxntid")
                kernel.max_threads = std::uint64_t(sizes[0]) * sizes[1] * sizes[2];
            if (module.text(directive.name) == ".explicitcluster") kernel.needs_cluster = true;
            if (module.text(directive.name) == ".reqntid") kernel.required_block = sizes;
            if (module.text(directive.name) == ".reqnctapercluster") {
                if (!is_cluster(sizes)) refuse_cluster(module, directive);
                kernel.cluster = sizes;
                kernel.names_cluster = true;
            }
        }
        kernel.registers = registers_of(module, entry);
        if (cluster[0] && !kernel.names_cluster) {
            kernel.cluster = cluster;
            kernel.names_cluster = true;
        }
        Lowering lowering(module, variables, kernel, dynamic);
        lowering.run(entry);
        DynamicPlaces found = place_dynamic(lowering, kernel, moves_dynamic);
        if (lowering.dynamic_alignment && found != dynamic) {
            dynamic = std::move(found);
            continue;
        }
        prepare_stack(module, lowering, kernel);
        lay_out(lowering, kernel);
        return kernel;
    }
}

struct Program::State {
    State(nvptx::Module m, Memory& memory, std::vector<Location> lines)
        : module(without_vector_registers(std::move(m))),
          memory(memory),
          vocabulary(lines.empty() ? Vocabulary::Ptx : Vocabulary::Language),
          source_lines(lines.empty() ? nvptx::source_lines(module) : std::move(lines)),
          variables(place_variables(module, memory)) {}
    ~State() {
        for (const std::uint64_t buffer : variables.buffers) memory.release(buffer);
    }

    using Cluster = std::array<std::uint32_t, 3>;
    const DecodedKernel& kernel(std::string_view name, Observers observers = 0, const Cluster& cluster = {},
                                bool moves_dynamic = false) {
        const std::lock_guard lock(mutex);
        for (const Known& known : kernels)
            if (known.kernel->name == name && known.kernel->observers == observers && known.cluster == cluster &&
                known.moves_dynamic == moves_dynamic)
                return *known.kernel;
        const nvptx::Function* const function = module.find_function(name);
        if (!function || !function->is_entry || !function->has_body)
            throw Error(fmt::format("the module has no kernel '{}'", name), kernel_names());
        kernels.push_back(
            {cluster, moves_dynamic,
             std::make_unique<DecodedKernel>(decode(module, *function, variables, observers, cluster, moves_dynamic))});
        return *kernels.back().kernel;
    }

    /// Throws Error if there is none of that name.
    const ModuleMemory::Variable& variable(std::string_view name) const;

    std::string kernel_names() const {
        std::string text = "its kernels are:";
        for (const nvptx::Function& function : module.functions)
            if (function.is_entry) text += fmt::format(" {}", module.text(function.name));
        return text;
    }

    const nvptx::Module module;
    Memory& memory;
    const Vocabulary vocabulary;  // of messages
    const std::vector<Location> source_lines;
    ModuleMemory variables;
    struct Known {
        Cluster cluster;  // the launch's
        bool moves_dynamic;
        std::unique_ptr<DecodedKernel> kernel;
    };
    std::vector<Known> kernels;
    std::mutex mutex;
};

Program::Program(nvptx::Module module, Memory& memory, std::vector<Location> source_lines)
    : state_(std::make_unique<State>(std::move(module), memory, std::move(source_lines))) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;

std::vector<Program::Parameter> Program::parameters(std::string_view entry) const {
    return state_->kernel(entry).parameters;
}

std::vector<std::string> Program::entries() const {
    std::vector<std::string> names;
    for (const nvptx::Function& function : state_->module.functions)
        if (function.is_entry && function.has_body) names.emplace_back(state_->module.text(function.name));
    return names;
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
    check_launch(state_->module, state_->kernel(launch.entry, 0, launch.cluster), launch);
}

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

}  // namespace

Statistics Program::run(const Launch& launch, const Options& options) {
    check(launch);
    const Observers observers = options.traffic ? observes_traffic : 0;
    const bool has_dynamic = state_->kernel(launch.entry, 0, launch.cluster).has_dynamic();
    const bool moves_dynamic = has_dynamic && options.moved_shared && options.seed && mixed(options.seed, 0) % 2;
    const DecodedKernel& kernel = state_->kernel(launch.entry, observers, launch.cluster, moves_dynamic);
    Memory::State& memory = state_->memory.state();
    const Memory::State::Running running(memory);
    LaunchState state{.module = state_->module,
                      .kernel = kernel,
                      .checked = [&]() -> const DecodedKernel& {
                          return state_->kernel(launch.entry, observers | observes_definedness, launch.cluster,
                                                moves_dynamic);
                      },
                      .launch = launch,
                      .options = options,
                      .memory = memory,
                      .variables = state_->variables,
                      .source_lines = state_->source_lines,
                      .parameters = {launch.parameters.begin(), launch.parameters.end()}};
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
    if (options.traffic)
        options.traffic({.entry = std::string(launch.entry),
                         .warp_instructions = statistics.warp_instructions,
                         .lane_instructions = statistics.lane_instructions,
                         .buffers = state.traffic.result(memory),
                         .shared = state.traffic.shared(state.module, state.source_lines)});
    return statistics;
}

std::string_view instruction_set() { return target_name(); }

}  // namespace ikat::emulator
