// SPDX-License-Identifier: Apache-2.0
// Everything is read from the PTX text; only liveness comes from the compilation.
#include "codegen/report/report.hpp"

#include <algorithm>
#include <map>

#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/report/mix.hpp"

namespace ikat {
namespace {

using ptx::Module, ptx::Variable;

constexpr std::uint32_t usual_threads = 256;

/// The bits of a type: 32 for ".b32", 1 for ".pred".
std::uint32_t bits(std::string_view type) {
    if (type == ".pred") return 1;
    std::uint32_t number = 0;
    for (char c : type) {
        if (c >= '0' && c <= '9') number = number * 10 + std::uint32_t(c - '0');
        if (number && c == 'x') break;  // .f16x2 is 16 bits, twice
    }
    return type.find('x') != type.npos ? 2 * number : number;
}

std::uint64_t bytes(const Module& module, const Variable& variable) {
    std::uint64_t element = (bits(module.text(variable.type)) + 7) / 8, sum = 0;
    if (variable.vector != ptx::no_name) element *= bits(module.text(variable.vector).substr(2));
    for (const Variable::Declarator& declarator : variable.declarators) {
        std::uint64_t size = element;
        for (std::int64_t extent : declarator.extents) size *= extent > 0 ? std::uint64_t(extent) : 0;
        sum += size;
    }
    return sum;
}

/// The arrays of one space, one after the other, each at its alignment.
class Space {
public:
    void add(const Module& module, const Variable& variable) {
        const std::uint64_t element = std::max(1u, (bits(module.text(variable.type)) + 7) / 8);
        const std::uint64_t alignment = std::max<std::uint64_t>(variable.alignment, element);
        size_ = (size_ + alignment - 1) / alignment * alignment + bytes(module, variable);
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
        out_.shared_bytes = spaces_[".shared"].size();
        out_.local_bytes = spaces_[".local"].size();
        out_.constant_bytes = spaces_[".const"].size();
        count_instructions();
    }

private:
    void bound(const ptx::Directive& directive) {
        std::uint32_t product = 1;
        for (const ptx::Operand& operand : module_.operands(directive.operands))
            product *= std::uint32_t(operand.value);
        const std::string_view name = module_.text(directive.name);
        if (name == ".maxntid" || name == ".reqntid") out_.max_threads = product;
        if (name == ".minnctapersm") out_.min_blocks = product;
        if (name == ".maxnreg") out_.max_registers = product;
    }

    void declared(const Variable& variable) {
        const std::string_view space = module_.text(variable.space), type = module_.text(variable.type);
        if (space != ".reg") return spaces_[space].add(module_, variable);
        const std::size_t pool = type == ".pred" ? 0 : bits(type) <= 16 ? 1 : bits(type) <= 32 ? 2 : 3;
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
    std::map<std::string_view, Space> spaces_;
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
        const std::uint32_t most = report.max_registers ? report.max_registers : target->registers_per_thread;
        if (report.words) row.predicted = with(std::min(*report.words, most));
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
