// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/text/print.hpp"

#include "codegen/ir/op/accesses.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/ir/text/literal.hpp"

namespace ikat::ir {
namespace {

/// The number of each value in the text; values that no block defines (in an invalid function) have none.
std::vector<std::uint32_t> value_numbers(const Function& fn) {
    std::vector<std::uint32_t> numbers(fn.value_count(), ~0u);
    std::uint32_t next = 0;
    const auto define = [&](Value value) {
        if (index(value) < numbers.size() && numbers[index(value)] == ~0u) numbers[index(value)] = next++;
    };
    for (Block block : fn.blocks()) {
        for (Value parameter : fn[block].parameters) define(parameter);
        for (Inst inst : fn[block].instructions)
            for (Value result : fn.results(inst)) define(result);
    }
    return numbers;
}

class Printer {
public:
    Printer(const Function& fn, const PrintOptions& options)
        : fn_(fn), options_(options), numbers_(value_numbers(fn)) {}

    std::string function() {
        header();
        for (const Symbol& symbol : fn_.symbols) this->symbol(symbol);
        for (Block block : fn_.blocks()) this->block(block);
        out_ += "}\n";
        return std::move(out_);
    }
    std::string line(Inst inst) {
        instruction(fn_[inst], inst);
        return std::move(out_);
    }
    std::string line(const Terminator& terminator) {
        this->terminator(terminator);
        return std::move(out_);
    }
    std::string name(Value value) {
        this->value(value);
        return std::move(out_);
    }

private:
    void number(auto n) { out_ += std::to_string(n); }
    void keyword(std::string_view word, std::uint64_t n, std::uint64_t unsaid) {
        if (n != unsaid) (((out_ += ' ') += word) += ' ') += std::to_string(n);
    }
    void list(const auto& items, auto&& print_item) {
        bool first = true;
        for (const auto& item : items) {
            if (!first) out_ += ", ";
            first = false;
            print_item(item);
        }
    }

    void header() {
        out_ += fn_.is_entry ? "kernel @" : "function @";
        out_ += fn_.name + '(';
        list(fn_.parameters, [&](const Parameter& parameter) { this->parameter(parameter); });
        out_ += ')';
        if (fn_.gives != Type::Void) (out_ += " -> ") += info(fn_.gives).name;
        keyword("max_threads", fn_.bounds.max_threads, 0);
        keyword("min_blocks", fn_.bounds.min_blocks, 0);
        keyword("max_registers", fn_.bounds.max_registers, 0);
        for (std::size_t axis = 0; axis < 3; ++axis) keyword(cluster_words[axis], fn_.bounds.cluster[axis], 1);
        out_ += " {\n";
    }

    void parameter(const Parameter& parameter) {
        (out_ += '%') += parameter.name + ": ";
        if (parameter.access == Access::Value)
            out_ += info(parameter.type).name;
        else
            (((out_ += access_names[int(parameter.access)]) += ' ') += info(parameter.element).name) += '*';
        keyword("bytes", parameter.bytes, 0);
        keyword("align", parameter.alignment, 0);
        keyword("multiple", parameter.multiple, 1);
    }

    void symbol(const Symbol& symbol) {
        out_ += symbol.dynamic ? "  dynamic " : "  ";
        ((out_ += space_names[int(symbol.space)]) += " $") += symbol.name + ": ";
        (out_ += info(symbol.element).name) += '[';
        if (symbol.count) number(symbol.count);
        out_ += ']';
        keyword("align", symbol.alignment, 0);
        keyword("at", symbol.offset, 0);
        if (!symbol.values.empty()) out_ += " = ";
        list(symbol.values, [&](Word value) { out_ += literal_text(symbol.element, value); });
        out_ += '\n';
    }

    void block(Block block) {
        block_name(block);
        const BasicBlock& body = fn_[block];
        if (!body.parameters.empty()) {
            out_ += '(';
            list(body.parameters, [&](Value parameter) { typed(parameter); });
            out_ += ')';
        }
        out_ += ':';
        comment(options_.remark, block);
        out_ += '\n';
        for (Inst inst : body.instructions) {
            out_ += "  ";
            instruction(fn_[inst], inst);
            comment(options_.note, inst);
            out_ += '\n';
        }
        if (body.terminator.kind == Terminator::Kind::None) return;
        out_ += "  ";
        terminator(body.terminator);
        out_ += '\n';
    }

    void comment(const auto& note, auto id) {
        const std::string text = note ? note(id) : std::string();
        if (!text.empty()) out_ += "  // " + text;
    }

    void instruction(const Instruction& inst, Inst id) {
        results(inst, fn_.results(id));
        mnemonic(inst);
        if (inst.memory.space != Space::None || print(inst.memory) != "none") (out_ += ' ') += print(inst.memory);
        const auto operands = fn_.operands(id);
        const bool passes_through = has_else(inst);
        arguments(inst, passes_through ? operands.first(inst.tie.operand) : operands);
        if (inst.guard != no_value) {
            out_ += inst.guard_negated ? " guard !" : " guard ";
            value(inst.guard);
        }
        if (passes_through) {
            out_ += " else ";
            list(operands.subspan(inst.tie.operand), [&](Value operand) { value(operand); });
        } else if (inst.tie.count) {
            out_ += " tie " + std::to_string(inst.tie.result) + '=' + std::to_string(inst.tie.operand);
            keyword("count", inst.tie.count, 1);
        }
        location(inst.where);
    }

    void results(const Instruction& inst, std::span<const Value> results) {
        if (results.empty()) return;
        for (std::uint32_t i = 0; i < results.size(); ++i) {
            if (i) out_ += ", ";
            if (index(results[i]) < numbers_.size() && fn_.type(results[i]) == result_type(inst, i))
                value(results[i]);
            else
                typed(results[i]);
        }
        out_ += " = ";
    }

    void mnemonic(const Instruction& inst) {
        out_ += ir::name(inst.op);
        if (inst.type != Type::Void) (out_ += '.') += info(inst.type).name;
        if (inst.from != Type::Void) (out_ += '.') += info(inst.from).name;
        if (inst.memory.count != 1) (out_ += ".v") += std::to_string(inst.memory.count);
        out_ += print(inst.fp);
    }

    /// Whether the tie is the usual one of a guarded instruction, printed as `else %1, %2`: all results, and the
    /// operands beyond those of the row.
    bool has_else(const Instruction& inst) const {
        const bool trailing = inst.tie.operand + inst.tie.count == inst.operands.count;
        return inst.guard != no_value && inst.tie.count && inst.tie.result == 0 && trailing &&
               inst.tie.count == inst.results.count && inst.tie.operand == operand_count(inst);
    }

    void arguments(const Instruction& inst, std::span<const Value> operands) {
        std::string_view separator = " ";
        if (info(inst.op).attribute != Attribute::None) {
            out_ += ' ';
            attribute(inst);
            separator = ", ";
        }
        const MemoryAccesses at = accesses(inst);  // their addresses come first
        for (std::size_t i = 0; i < operands.size(); ++i) {
            out_ += separator;
            separator = ", ";
            if (i < at.size())
                address(operands[i], at[i].offset);
            else
                value(operands[i]);
        }
    }

    void address(Value base, std::int32_t offset) {
        out_ += '[';
        value(base);
        if (offset > 0) out_ += '+';
        if (offset) number(offset);
        out_ += ']';
    }

    void attribute(const Instruction& inst) {
        const auto named = [&](const auto& names, std::string_view sigil, auto&& name_of) {
            out_ += sigil;
            out_ +=
                inst.attribute < std::size(names) ? std::string(name_of(names[inst.attribute])) : out_of_range(inst);
        };
        const auto itself = [](std::string_view name) { return name; };
        switch (info(inst.op).attribute) {
            case Attribute::None: break;
            case Attribute::Constant: out_ += literal_text(inst.type, inst.attribute); break;
            case Attribute::Parameter: parameter(inst); break;
            case Attribute::Symbol: named(fn_.symbols, "$", [](const auto& s) { return s.name; }); break;
            case Attribute::Text: named(fn_.texts, "", quoted); break;
            case Attribute::Callee: named(fn_.texts, "@", itself); break;
            default: {
                const std::string text = attribute_text(inst.op, inst.attribute);
                out_ += text.empty() ? out_of_range(inst) : text;
            }
        }
    }
    /// %n, or [%map+16] for raw bytes.
    void parameter(const Instruction& inst) {
        const std::uint32_t number = parameter_of(inst.attribute), offset = offset_in_parameter(inst.attribute);
        const std::string name =
            '%' + (number < fn_.parameters.size() ? fn_.parameters[number].name : out_of_range(inst));
        out_ += offset ? '[' + name + '+' + std::to_string(offset) + ']' : name;
    }
    static std::string out_of_range(const Instruction& inst) { return '?' + std::to_string(inst.attribute); }

    void terminator(const Terminator& terminator) {
        constexpr std::string_view names[] = {"?", "jump", "branch", "multiway", "return", "trap"};
        out_ += names[int(terminator.kind)];
        if (terminator.uniform) out_ += ".uniform";
        std::string_view separator = " ";
        if (terminator.condition != no_value) {
            out_ += separator;
            value(terminator.condition);
            separator = ", ";
        }
        for (const Jump& jump : terminator.targets) {
            out_ += separator;
            separator = ", ";
            block_name(jump.to);
            if (jump.arguments.empty()) continue;
            out_ += '(';
            list(jump.arguments, [&](Value argument) { value(argument); });
            out_ += ')';
        }
        if (terminator.unroll) out_ += " unroll " + std::to_string(terminator.unroll);
        if (terminator.given != no_value) out_ += ' ', value(terminator.given);
        location(terminator.where);
    }

    void location(const Location& where) {
        if (!options_.locations || !where.known()) return;
        out_ += " loc " + quoted(where.file) + ':' + std::to_string(where.line);
        if (where.column) out_ += ':' + std::to_string(where.column);
    }

    void block_name(Block block) { out_ += '^' + std::to_string(index(block)); }
    void value(Value value) {
        const bool known = index(value) < numbers_.size() && numbers_[index(value)] != ~0u;
        if (value == no_value)
            out_ += "%?";
        else
            out_ += known ? '%' + std::to_string(numbers_[index(value)]) : "%?" + std::to_string(index(value));
    }
    void typed(Value value) {
        this->value(value);
        out_ += ": ";
        out_ += index(value) < fn_.value_count() ? info(fn_.type(value)).name : "?";
    }

    const Function& fn_;
    const PrintOptions& options_;
    std::vector<std::uint32_t> numbers_;
    std::string out_;
};

const PrintOptions for_messages{};

}  // namespace

std::string print(const Function& fn, const PrintOptions& options) { return Printer(fn, options).function(); }
std::string print(const Function& fn, Inst inst) { return Printer(fn, for_messages).line(inst); }
std::string print(const Function& fn, const Terminator& terminator) {
    return Printer(fn, for_messages).line(terminator);
}
std::string print(const Function& fn, Value value) { return Printer(fn, for_messages).name(value); }

std::string print(std::span<const Function> functions, const PrintOptions& options) {
    std::string out;
    for (const Function& fn : functions) {
        if (!out.empty()) out += '\n';
        out += print(fn, options);
    }
    return out;
}

std::string print(const FloatInfo& fp) {
    std::string out;
    if (fp.rounding != Rounding::Nearest) (out += '.') += rounding_names[int(fp.rounding)];
    if (fp.ftz) out += ".ftz";
    if (fp.sat) out += ".sat";
    if (fp.approx) out += ".approx";
    if (fp.contract) out += ".contract";
    return out;
}

std::string print(const MemoryInfo& memory) {
    std::string out(memory.space == Space::None ? "none" : space_names[int(memory.space)]);
    if (memory.cache != CacheOperator::None) (out += '.') += cache_operator_names[int(memory.cache)];
    if (memory.order != Order::Weak) (out += '.') += order_names[int(memory.order)];
    if (memory.scope != Scope::None) (out += '.') += scope_names[int(memory.scope)];
    if (memory.is_volatile) out += ".volatile";
    return out;
}

std::string quoted(std::string_view text) {
    constexpr char digits[] = "0123456789abcdef";
    std::string out = "\"";
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (byte < 32 || byte == 127)
            ((out += "\\x") += digits[byte >> 4]) += digits[byte & 15];
        else
            out += c;
    }
    return out += '"';
}

}  // namespace ikat::ir
