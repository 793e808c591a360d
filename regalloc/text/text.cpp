// SPDX-License-Identifier: Apache-2.0
// Prints problems and answers. The grammar is in text.hpp.
#include "regalloc/text/text.hpp"

#include <algorithm>

#include "codegen/support/bitset.hpp"

namespace ikat::regalloc {
namespace {

std::string joined(const auto& items, auto&& print) {
    std::string out;
    for (const auto& item : items) out += (out.empty() ? "" : ", ") + print(item);
    return out;
}

/// Malformed problems are printed too (by the assertion that found them), so nothing here trusts an id.
struct Printer {
    const Problem& problem;
    const std::vector<std::string>& classes;
    const Allocation* answer = nullptr;
    std::size_t next_edit = 0;
    std::string out{};

    std::string class_name(std::size_t c) const { return c < classes.size() ? classes[c] : "c" + std::to_string(c); }
    static std::string name(LiveRange v) { return 'v' + std::to_string(index(v)); }
    static std::string name(FlowBlock b) { return "block" + std::to_string(index(b)); }
    std::string reg(Class c, Register r) const {
        return class_name(c) + '.' + (r == no_register ? "none" : std::to_string(r));
    }
    Register register_of(LiveRange v) const {
        return index(v) < answer->registers.size() ? answer->registers[index(v)] : no_register;
    }

    std::string definition(LiveRange v) const {
        if (index(v) >= problem.values.size()) return name(v) + ":?";
        const auto [c, rematerialisable] = problem.values[index(v)];
        return name(v) + ':' + (answer ? reg(c, register_of(v)) : class_name(c)) + (rematerialisable ? "!" : "");
    }
    std::string definitions(std::span<const LiveRange> values) const {
        return joined(values, [&](LiveRange v) { return definition(v); });
    }

    std::string use(FlowBlock b, std::size_t i, std::size_t u, LiveRange v) const {
        if (!answer || index(v) >= problem.values.size()) return name(v);
        Register r = register_of(v);
        for (const Reassigned& each : answer->reassigned)
            if (each.block == b && each.instruction == i && each.use == u) r = each.to;
        return name(v) + ':' + reg(problem.values[index(v)].register_class, r);
    }
    std::string uses(FlowBlock b, std::size_t i, std::span<const LiveRange> values) const {
        std::string text;
        for (std::size_t u = 0; u < values.size(); ++u) text += (u ? ", " : "") + use(b, i, u, values[u]);
        return text;
    }

    static std::string pairs(const Instruction& instruction, const char* word, const InlineVector<Tied, 2>& pairs) {
        if (pairs.empty()) return "";
        return word + joined(pairs, [&](const Tied& pair) {
                   return name(instruction.definitions[pair.definition]) + ' ' + name(instruction.uses[pair.use]);
               });
    }

    std::string edit(const Edit& e) const {
        const std::string slot = "slot" + std::to_string(e.slot);
        switch (e.kind) {
            case Edit::Kind::Move: return reg(e.register_class, e.to) + " <- " + reg(e.register_class, e.from);
            case Edit::Kind::Spill: return slot + " <- " + reg(e.register_class, e.from) + ' ' + name(e.value);
            case Edit::Kind::Reload: return reg(e.register_class, e.to) + " <- " + slot + ' ' + name(e.value);
            case Edit::Kind::Rematerialise: return reg(e.register_class, e.to) + " <- again " + name(e.value);
        }
        return "";
    }

    void line(std::string text) {
        const std::size_t last = text.find_last_not_of(' ');
        text.resize(last == std::string::npos ? 0 : last + 1);
        out += "    " + text + '\n';
    }

    void edits(FlowBlock b, std::size_t before) {
        if (!answer) return;
        for (; next_edit < answer->edits.size(); ++next_edit) {
            const Edit& each = answer->edits[next_edit];
            if (each.block != b || each.before != before) return;
            line("    " + edit(each));
        }
    }

    void terminator(FlowBlock b, const BasicBlock& block) {
        const std::string read = uses(b, block.instructions.size(), block.terminator_uses);
        if (block.edges.empty()) return line("return " + read);
        line("goto " +
             joined(block.edges,
                    [&](const Edge& edge) {
                        const std::string arguments = joined(edge.arguments, [](LiveRange v) { return name(v); });
                        return name(edge.to) + (arguments.empty() ? "" : '(' + arguments + ')');
                    }) +
             (read.empty() ? "" : " on " + read));
    }

    void body(FlowBlock b) {
        const BasicBlock& block = problem.blocks[index(b)];
        const std::string parameters = definitions(block.parameters);
        out += name(b) + (parameters.empty() ? "" : '(' + parameters + ')') + ":\n";
        for (std::size_t i = 0; i < block.instructions.size(); ++i) {
            const Instruction& instruction = block.instructions[i];
            edits(b, i);
            const std::string defined = definitions(instruction.definitions);
            line(defined + (defined.empty() ? "= " : " = ") + uses(b, i, instruction.uses) +
                 (instruction.early ? " early" : "") + pairs(instruction, " tied ", instruction.tied) +
                 pairs(instruction, " prefers ", instruction.preferred));
        }
        edits(b, block.instructions.size());
        terminator(b, block);
    }

    std::size_t class_count() const {
        std::size_t count = std::max(classes.size(), problem.limits.size());
        for (const Problem::Range& range : problem.values)
            count = std::max<std::size_t>(count, range.register_class + 1u);
        return count;
    }

    void header() {
        out += "classes";
        for (std::size_t c = 0; c < class_count(); ++c) {
            out += ' ' + class_name(c);
            if (c < problem.limits.size() && problem.limits[c] != unlimited)
                out += '=' + std::to_string(problem.limits[c]);
        }
        out += '\n';
    }

    void counts(const char* what, const std::vector<std::uint32_t>& by_class) {
        out += what;
        for (std::size_t c = 0; c < by_class.size(); ++c)
            out += (c ? ", " : ": ") + class_name(c) + ' ' + std::to_string(by_class[c]);
        out += '\n';
    }
    void summary() {
        counts("registers", answer->used);
        counts("live at once", answer->max_live);
        if (answer->stack_slots) out += "stack slots: " + std::to_string(answer->stack_slots) + '\n';
    }

    std::string run() {
        if (!answer) header();
        for (FlowBlock b : ids<FlowBlock>(problem.blocks.size())) body(b);
        if (answer) summary();
        return std::move(out);
    }
};

}  // namespace

std::string to_string(const Problem& problem, const std::vector<std::string>& classes) {
    return Printer{problem, classes}.run();
}

std::string to_string(const Problem& problem, const Allocation& allocation, const std::vector<std::string>& classes) {
    return Printer{problem, classes, &allocation}.run();
}

}  // namespace ikat::regalloc
