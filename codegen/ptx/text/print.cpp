// SPDX-License-Identifier: Apache-2.0
// A module as text: one statement per line, four spaces for each open brace, labels at the left edge.
//
//     .visible .entry saxpy(
//         .param .u64 x
//     )
//     .maxntid 256, 1, 1
//     {
//         .reg .b32 %r<2>;
//         mov.u32 %r0, %tid.x;
//     done:
//         ret;
//     }
// Tokens are written as they are in the module; only blanks, comments and the order of a declaration's parts are chosen
// by the printer. So its output parses and prints to the same bytes.
#include <algorithm>
#include <array>
#include <charconv>

#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {
namespace {

class Printer {
public:
    explicit Printer(const Module& module) : module_(module) {}

    void whole(std::vector<std::vector<std::uint32_t>>* lines);
    void instruction(const Instruction& instruction);
    void operand(const Operand& operand);
    std::string take() { return std::move(out_); }

private:
    void put(std::string_view text) { out_ += text; }
    void put(Name name) { out_ += module_.text(name); }
    void number(auto value);
    void hexadecimal(std::string_view prefix, std::uint64_t value, int digits);
    void end_line();
    void indent() { out_.append(4 * depth_, ' '); }

    void header();
    void function(const Function& function, std::vector<std::uint32_t>* lines);
    void parameters(const Function& function);
    void body(const Function& function, std::vector<std::uint32_t>* lines);
    void variable(const Variable& variable);
    void part(const Variable& variable);
    void declarator(const Variable::Declarator& declarator);
    void raw(std::string_view text);
    void directive(const Directive& directive);
    void directive_operands(const Directive& directive);
    void operands(Span span, std::string_view separator);
    void offset(const Operand& operand);
    void literal(const Operand& operand);

    const Module& module_;
    std::string out_;
    std::size_t depth_ = 0;
    std::uint32_t line_ = 1;
};

void Printer::number(auto value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out_.append(digits.data(), end);
}

void Printer::hexadecimal(std::string_view prefix, std::uint64_t value, int digits) {
    put(prefix);
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out_ += "0123456789ABCDEF"[value >> shift & 15];
}

void Printer::end_line() {
    out_ += '\n';
    ++line_;
}

void Printer::whole(std::vector<std::vector<std::uint32_t>>* lines) {
    using Kind = Module::Item::Kind;
    if (lines) lines->assign(module_.functions.size(), {});
    header();
    Kind previous = Kind::Function;
    for (const Module::Item& item : module_.items) {
        if (item.kind == Kind::Function || previous == Kind::Function) end_line();
        previous = item.kind;
        switch (item.kind) {
            case Kind::Function:
                function(module_.functions[item.index], lines ? &(*lines)[item.index] : nullptr);
                break;
            case Kind::Variable:
                variable(module_.variables[item.index]);
                put(";");
                part(module_.variables[item.index]);
                end_line();
                break;
            case Kind::Directive: directive(module_.directives[item.index]); break;
        }
    }
}

void Printer::header() {
    put(".version ");
    number(module_.version.major);
    put(".");
    number(module_.version.minor);
    end_line();
    for (std::string_view separator = ".target "; Name name : module_.target) {
        put(separator);
        put(name);
        separator = ", ";
    }
    if (!module_.target.empty()) end_line();
    put(".address_size ");
    number(module_.address_size);
    end_line();
}

void Printer::function(const Function& function, std::vector<std::uint32_t>* lines) {
    for (Name name : function.linkage) put(name), put(" ");
    put(function.is_entry ? ".entry " : ".func ");
    if (function.attribute != no_name) put(function.attribute), put(" ");
    parameters(function);
    if (function.has_body || !function.directives.empty()) end_line();
    for (const Directive& each : function.directives) directive(each);
    put(function.has_body ? "{" : ";");
    end_line();
    if (!function.has_body) return;
    body(function, lines);
    put("}");
    end_line();
}

void Printer::parameters(const Function& function) {
    if (!function.results.empty()) {
        put("(");
        for (std::string_view separator = ""; const Variable& result : function.results) {
            put(separator);
            variable(result);
            separator = ", ";
        }
        put(") ");
    }
    put(function.name);
    put("(");
    for (std::string_view separator = ""; const Variable& parameter : function.parameters) {
        put(separator);
        end_line();
        put("    ");
        variable(parameter);
        separator = ",";
    }
    if (!function.parameters.empty()) end_line();
    put(")");
}

void Printer::body(const Function& function, std::vector<std::uint32_t>* lines) {
    using Kind = Statement::Kind;
    if (lines) lines->resize(function.instructions.size());
    depth_ = 1;
    for (const Statement& statement : function.body) {
        if (statement.kind == Kind::ScopeEnd) --depth_;
        if (statement.kind != Kind::Label) indent();
        switch (statement.kind) {
            case Kind::Instruction:
                if (lines) (*lines)[statement.index] = line_;
                instruction(function.instructions[statement.index]);
                break;
            case Kind::Label:
                put(Name(statement.index));
                put(":");
                break;
            case Kind::Variable:
                variable(function.variables[statement.index]);
                put(";");
                break;
            case Kind::Directive: directive(function.body_directives[statement.index]); continue;
            case Kind::ScopeBegin:
                put("{");
                ++depth_;
                break;
            case Kind::ScopeEnd: put("}"); break;
        }
        end_line();
    }
    depth_ = 0;
}

void Printer::variable(const Variable& variable) {
    for (Name name : variable.linkage) put(name), put(" ");
    put(variable.space);
    if (variable.attribute != no_name) put(" "), put(variable.attribute);
    if (variable.alignment) put(" .align "), number(variable.alignment);
    if (variable.vector != no_name) put(" "), put(variable.vector);
    put(" ");
    put(variable.type);
    for (Name name : variable.pointer) put(" "), put(name);
    for (std::string_view separator = " "; const Variable::Declarator& each : variable.declarators) {
        put(separator);
        declarator(each);
        separator = ", ";
    }
}

void Printer::part(const Variable& variable) {
    if (!variable.part) return;
    put("  // ");
    if (variable.part->bytes)
        number(variable.part->bytes), put(" bytes at ");
    else
        put("the rest, at ");
    number(variable.part->offset);
}

void Printer::declarator(const Variable::Declarator& declarator) {
    put(declarator.name);
    if (declarator.has_range) put("<"), number(declarator.range), put(">");
    for (std::int64_t extent : declarator.extents) {
        put("[");
        if (extent >= 0) number(extent);
        put("]");
    }
    if (declarator.initialiser.count) put(" = "), operands(declarator.initialiser, ", ");
}

void Printer::raw(std::string_view text) {
    put(text);
    line_ += std::uint32_t(std::ranges::count(text, '\n'));
}

void Printer::directive(const Directive& directive) {
    put(directive.name);
    directive_operands(directive);
    if (directive.has_body) {
        end_line();
        indent();
        put("{");
        raw(directive.raw);
        put("}");
    } else if (!directive.raw.empty()) {
        put(" ");
        raw(directive.raw);
    }
    static constexpr std::string_view with_semicolon[] = {".pragma", ".alias", ".branchtargets", ".calltargets"};
    for (std::string_view name : with_semicolon)
        if (module_.text(directive.name) == name) put(";");
    end_line();
}

/// Commas between operands, except for the two of DWARF: `.file 1 "a.cu", 12, 7` and
/// `.loc 1 10 5, function_name f, inlined_at 1 3 2`.
void Printer::directive_operands(const Directive& directive) {
    const bool is_loc = module_.text(directive.name) == ".loc";
    const bool is_file = module_.text(directive.name) == ".file";
    std::size_t i = 0;
    for (const Operand& each : module_.operands(directive.operands)) {
        const std::string_view word = each.kind == Operand::Kind::Symbol ? module_.text(each.name) : "";
        const bool is_clause = word == "function_name" || word == "inlined_at";
        const bool comma = is_loc ? is_clause : is_file ? i > 1 : i > 0;
        put(comma ? ", " : " ");
        operand(each);
        ++i;
    }
}

void Printer::instruction(const Instruction& instruction) {
    if (instruction.guard != no_name) {
        put(instruction.guard_negated ? "@!" : "@");
        put(instruction.guard);
        put(" ");
    }
    put(instruction.spelling);
    for (Name modifier : module_.modifiers(instruction.modifiers)) put(modifier);
    if (instruction.operands.count) {
        put(" ");
        operands(instruction.operands, ", ");
    }
    put(";");
}

void Printer::operands(Span span, std::string_view separator) {
    bool first = true;
    for (const Operand& each : module_.operands(span)) {
        if (!first) put(separator);
        first = false;
        operand(each);
    }
}

void Printer::offset(const Operand& operand) {
    if (!operand.has_offset) return;
    put("+");
    number(std::int64_t(operand.value));
}

void Printer::operand(const Operand& operand) {
    using Kind = Operand::Kind;
    const std::span<const Operand> children = module_.operands(operand.children);
    switch (operand.kind) {
        case Kind::Symbol:
            put(operand.negated ? "!" : operand.minus ? "-" : "");
            put(operand.name);
            put(operand.suffix);
            offset(operand);
            break;
        case Kind::Integer: literal(operand); break;
        case Kind::Float32: literal(operand); break;
        case Kind::Float64: literal(operand); break;
        case Kind::String: put("\""), put(operand.name), put("\""); break;
        case Kind::Vector: put("{"), operands(operand.children, ", "), put("}"); break;
        case Kind::List: put("("), operands(operand.children, ", "), put(")"); break;
        case Kind::Address: put("["), operands(operand.children, ", "), put("]"); break;
        case Kind::Pair: operands(operand.children, "|"); break;
        case Kind::Sink: put("_"); break;
        case Kind::Generic: put("generic("), operands(operand.children, ", "), put(")"), offset(operand); break;
        case Kind::Assign: operands(operand.children, " = "); break;
        case Kind::Element: this->operand(children[0]), put("["), this->operand(children[1]), put("]"); break;
        case Kind::Mask: literal(operand), put("("), this->operand(children[0]), put(")"); break;
    }
}

/// In its original spelling, or in an exact form.
void Printer::literal(const Operand& operand) {
    if (operand.name != no_name)
        put(operand.name);
    else if (operand.kind == Operand::Kind::Float32)
        hexadecimal("0f", operand.value, 8);
    else if (operand.kind == Operand::Kind::Float64)
        hexadecimal("0d", operand.value, 16);
    else
        number(std::int64_t(operand.value));
}

}  // namespace

std::string print(const Module& module) {
    Printer printer(module);
    printer.whole(nullptr);
    return printer.take();
}

std::string print(const Module& module, std::vector<std::vector<std::uint32_t>>& lines) {
    Printer printer(module);
    printer.whole(&lines);
    return printer.take();
}

std::string print(const Module& module, const Instruction& instruction) {
    Printer printer(module);
    printer.instruction(instruction);
    return printer.take();
}

std::string print(const Module& module, const Operand& operand) {
    Printer printer(module);
    printer.operand(operand);
    return printer.take();
}

}  // namespace ikat::ptx
