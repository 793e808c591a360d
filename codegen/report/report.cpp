// SPDX-License-Identifier: Apache-2.0
// Everything is read from the PTX text; only liveness comes from the compilation.
#include "codegen/report/report.hpp"

#include <algorithm>
#include <map>

#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/ptx/text/layout.hpp"
#include "codegen/ptx/text/words.hpp"
#include "codegen/report/mix.hpp"

namespace ikat {
namespace {

using ptx::Module, ptx::StateSpace, ptx::Variable;

constexpr std::uint32_t usual_threads = 256;

/// The arrays of one space, one after the other, each at its alignment.
class Space {
public:
    void add(const Module& module, const Variable& variable) {
        const std::uint64_t alignment = ptx::variable_alignment(module, variable);
        for (const Variable::Declarator& declarator : variable.declarators)
            size_ = (size_ + alignment - 1) / alignment * alignment + ptx::variable_bytes(module, variable, declarator);
    }
    std::uint64_t size() const { return size_; }

private:
    std::uint64_t size_ = 0;
};

class Reader {
public:
    Reader(const Module& module, const ptx::Function& entry, KernelReport& out)
        : module_(module), entry_(entry), out_(out) {}

    void run() {
        out_.name = module_.text(entry_.name);
        out_.target = module_.target.empty() ? "" : module_.text(module_.target[0]);
        out_.version = module_.version;
        for (const ptx::Directive& directive : entry_.directives) bound(directive);
        for (const Variable& variable : module_.variables) declared(variable);
        for (const Variable& variable : entry_.variables) declared(variable);
        Space parameters;
        for (const Variable& parameter : entry_.parameters) parameters.add(module_, parameter);
        out_.parameter_bytes = parameters.size();
        out_.shared_bytes = spaces_[StateSpace::Shared].size();
        out_.local_bytes = spaces_[StateSpace::Local].size();
        out_.constant_bytes = spaces_[StateSpace::Const].size();
        count_instructions();
    }

private:
    void bound(const ptx::Directive& directive) {
        std::uint32_t product = 1;
        for (const ptx::Operand& operand : module_.operands(directive.operands))
            product *= std::uint32_t(operand.value);
        switch (kind_of(module_, directive)) {
            case ptx::DirectiveKind::MaxThreads:
            case ptx::DirectiveKind::RequiredThreads: out_.max_threads = product; break;
            case ptx::DirectiveKind::MinBlocks: out_.min_blocks = product; break;
            case ptx::DirectiveKind::MaxRegisters: out_.max_registers = product; break;
            default: break;
        }
    }

    void declared(const Variable& variable) {
        const StateSpace space = space_of(module_, variable);
        if (space != StateSpace::Register) return spaces_[space].add(module_, variable);
        const std::uint64_t bytes = ptx::element_bytes(module_.text(variable.type));
        const std::size_t pool = is_predicate(module_, variable) ? 0 : bytes <= 2 ? 1 : bytes <= 4 ? 2 : 3;
        for (const Variable::Declarator& declarator : variable.declarators)
            out_.registers[pool] += declarator.has_range ? declarator.range : 1;
    }

    void count_instructions() {
        std::map<std::string_view, std::uint32_t> counts;
        for (const ptx::Instruction& instruction : entry_.instructions) ++counts[kind_of(module_, instruction)];
        out_.instructions = std::uint32_t(entry_.instructions.size());
        for (std::string_view kind : instruction_kinds())
            if (counts[kind]) out_.mix.push_back({kind, counts[kind]});
    }

    const Module& module_;
    const ptx::Function& entry_;
    KernelReport& out_;
    std::map<StateSpace, Space> spaces_;
};

/// The targets that can run the PTX: its own and later ones; for an "a" target only itself. Each architecture is listed
/// once.
std::vector<const ptx::Target*> runs_on(std::string_view name) {
    const ptx::Target* of = ptx::find_target(name);
    std::vector<const ptx::Target*> out;
    for (const ptx::Target& target : ptx::targets()) {
        const bool runs = !of || (of->specific ? target.name == of->name : target.number >= of->number);
        if (runs && (!target.specific || (of && of->specific))) out.push_back(&target);
    }
    return out;
}

std::optional<ptxas::Figures> figures(const KernelReport& report, const std::string& ptx, std::string_view target,
                                      const ReportOptions& options) {
    if (!options.ptxas) return std::nullopt;
    const ptxas::Output output = ptxas::assemble(*options.ptxas, ptx, target);
    if (output.exit_status != 0) return std::nullopt;
    for (ptxas::Figures& entry : ptxas::read_log(output.log))
        if (entry.entry == report.name) return std::move(entry);
    return std::nullopt;
}

void add_occupancy(KernelReport& report, const std::string& ptx, const ReportOptions& options) {
    const std::uint32_t usual = report.max_threads ? report.max_threads : usual_threads;
    report.threads_per_block = options.threads_per_block ? options.threads_per_block : usual;
    report.dynamic_shared_bytes = options.dynamic_shared_bytes;
    const std::uint32_t dynamic = options.dynamic_shared_bytes;
    const auto shared = std::uint32_t(std::min<std::uint64_t>(report.shared_bytes + dynamic, ~0u));
    for (const ptx::Target* target : runs_on(report.target)) {
        KernelReport::Row row{.target = target};
        const auto with = [&](std::uint32_t registers) {
            return ikat::occupancy(*target, {report.threads_per_block, registers, shared});
        };
        const std::uint32_t max_registers = report.max_registers ? report.max_registers : target->registers_per_thread;
        if (report.words) row.predicted = with(std::min(*report.words, max_registers));
        row.figures = figures(report, ptx, target->name, options);
        if (row.figures) row.assembled = with(row.figures->registers);
        report.occupancy.push_back(std::move(row));
    }
}

KernelReport read(const Module& module, std::string_view entry) {
    const ptx::Function* function = module.find_function(entry);
    if (!function || !function->is_entry || !function->has_body)
        throw Error("there is no entry '" + std::string(entry) + "' in the PTX", "an .entry with a body");
    KernelReport out;
    Reader(module, *function, out).run();
    return out;
}

}  // namespace

KernelReport report(const ptx::Module& module, std::string_view entry, const ReportOptions& options) {
    KernelReport out = read(module, entry);
    add_occupancy(out, ptx::print(module), options);
    return out;
}

KernelReport report(const Compiled& compiled, const ReportOptions& given) {
    ReportOptions options = given;
    options.dynamic_shared_bytes += compiled.info.own_dynamic_shared_bytes;
    const Module module = ptx::parse(compiled.ptx, compiled.info.name + ".ptx");
    KernelReport out = read(module, compiled.info.name);
    out.live.emplace();
    for (std::size_t pool = 0; pool < compiled.registers.size(); ++pool)
        (*out.live)[pool] = compiled.registers[pool].max_live;
    out.lines = compiled.pressure.lines;
    out.words = compiled.pressure.words;
    add_occupancy(out, compiled.ptx, options);
    return out;
}

}  // namespace ikat
