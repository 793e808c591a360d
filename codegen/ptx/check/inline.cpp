// SPDX-License-Identifier: Apache-2.0
// The text becomes the body of a function in which {k} is replaced by a register name. %i0 is as long as {0}, so
// positions in the body and in the text are the same.
#include "codegen/ptx/check/inline.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/table/special_registers.hpp"

namespace ikat::ptx {
namespace {

/// Calls operand(k, place) for each {k} of the text, and between(part) for the parts in between.
void each_part(std::string_view text, auto&& operand, auto&& between) {
    std::size_t from = 0;
    for (std::size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
        std::size_t end = at + 1, number = 0;
        while (end < text.size() && text[end] >= '0' && text[end] <= '9' && end < at + 4)
            number = number * 10 + std::size_t(text[end++] - '0');
        if (end == at + 1 || end == text.size() || text[end] != '}') continue;
        between(text.substr(from, at - from));
        operand(number, at);
        from = end + 1;
        at = end;
    }
    between(text.substr(from));
}

std::string numbered(std::size_t k) { return "%i" + std::to_string(k); }

std::string head(std::string_view target) {
    return ".version 9.0\n.target " + std::string(target) + "\n.address_size 64\n.func inline_text()\n{\n";
}

/// The function around the text: its lines before the text.
struct Body {
    std::string text;
    std::uint32_t first_line;
};
Body body_of(std::string_view text, std::span<const std::string_view> types, std::string_view target) {
    Body out{head(target), 6};
    std::vector<std::string> names;
    for (std::size_t k = 0; k < types.size(); ++k, ++out.first_line) {
        names.push_back(numbered(k));
        (((out.text += ".reg .") += types[k]) += ' ') += names[k] + ";\n";
    }
    out.text += with_operands(text, names);
    out.text += "\n}\n";
    return out;
}

/// A message with {k} for the name of each operand again.
std::string as_written(std::string message, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
        const std::string name = numbered(k);
        for (std::size_t at = 0; (at = message.find(name, at)) != message.npos; ++at) {
            const std::size_t end = at + name.size();
            const bool is_whole = end == message.size() || !std::isalnum(static_cast<unsigned char>(message[end]));
            if (is_whole) message.replace(at, name.size(), "{" + std::to_string(k) + "}");
        }
    }
    return message;
}

/// Converts a finding to a location in the user's text, with the user's line and names of operands.
Diagnostic in_text(Diagnostic finding, std::string_view text, std::uint32_t first_line, std::size_t count) {
    finding.message = as_written(std::move(finding.message), count);
    const auto lines = std::uint32_t(std::ranges::count(text, '\n')) + 1;
    std::uint32_t line = finding.where.line < first_line ? 1 : finding.where.line - first_line + 1;
    if (line > lines) {  // the end of the body, where more was expected
        line = lines;
        const std::size_t last = text.rfind('\n');
        finding.where.column = std::uint32_t(text.size() - (last == text.npos ? 0 : last + 1)) + 1;
    }
    finding.where.file = "";
    finding.where.line = line;
    finding.excerpt = excerpt(text, finding.where);
    return finding;
}

std::vector<Diagnostic> findings_for(std::string_view text, std::span<const std::string_view> types,
                                     std::string_view target, std::optional<Module>& module) {
    const Body body = body_of(text, types, target);
    std::vector<Diagnostic> out;
    try {
        module = parse(body.text, "");
        out = check(*module, {.unknown_opcodes = Severity::Error});
    } catch (const Error& error) {
        module.reset();
        out = error.diagnostics();
    }
    std::erase_if(out, [](const Diagnostic& each) { return each.severity != Severity::Error; });
    for (Diagnostic& each : out) each = in_text(std::move(each), text, body.first_line, types.size());
    return out;
}

/// Reports, for example, {7} with only three operands, and operands that the text does not use.
std::vector<Diagnostic> wrong_operands(std::string_view text, std::size_t count) {
    std::vector<Diagnostic> out;
    std::vector<bool> named(count);
    each_part(
        text,
        [&](std::size_t k, std::size_t at) {
            if (k < count) {
                named[k] = true;
                return;
            }
            const std::string_view before = text.substr(0, at);
            const std::size_t line_start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
            const Location where{.line = std::uint32_t(std::ranges::count(before, '\n')) + 1,
                                 .column = std::uint32_t(at - line_start) + 1};
            out.push_back({.where = where,
                           .message = "the text names operand {" + std::to_string(k) + "}, but only " +
                                      std::to_string(count) + (count == 1 ? " is given" : " are given"),
                           .hint = "operands are numbered from 0 in the order of out(), inout() and in()",
                           .excerpt = excerpt(text, where)});
        },
        [](std::string_view) {});
    for (std::size_t k = 0; k < count && out.empty(); ++k)
        if (!named[k])
            out.push_back({.where = {.line = 1, .column = 1},
                           .message = "the text does not name operand {" + std::to_string(k) + "}",
                           .hint = "leave out what the text does not use"});
    return out;
}

bool reads_special(const Module& module, Span operands) {
    return std::ranges::any_of(module.operands(operands), [&](const Operand& operand) {
        return (operand.kind == Operand::Kind::Symbol && find_special_register(module.text(operand.name))) ||
               reads_special(module, operand.children);
    });
}

bool is_pure(const Module& module) {
    const Function& function = module.functions.front();
    return std::ranges::all_of(function.instructions, [&](const Instruction& instruction) {
        return info(instruction.opcode).is_pure() && !reads_special(module, instruction.operands);
    });
}

}  // namespace

std::string with_operands(std::string_view text, std::span<const std::string> operands) {
    std::string out;
    each_part(
        text, [&](std::size_t k, std::size_t) { out += operands[k]; }, [&](std::string_view part) { out += part; });
    return out;
}

InlineText read_inline(std::string_view text, std::span<const std::string_view> types) {
    InlineText out{.findings = wrong_operands(text, types.size())};
    if (!out.findings.empty()) return out;
    // No target has everything: text that one of the newest accepts is valid.
    std::optional<Module> module;
    out.findings = findings_for(text, types, "sm_120", module);
    if (!out.findings.empty() && findings_for(text, types, "sm_90a", module).empty()) out.findings.clear();
    if (out.findings.empty()) out.pure = is_pure(*module);
    return out;
}

Module parse_inline(std::string_view text, std::span<const std::string> operands) {
    return parse(head("sm_90a") + with_operands(text, operands) + "\n}\n", "inline PTX");
}

bool writes_early(std::string_view text) { return std::ranges::count(text, ';') > 1; }

}  // namespace ikat::ptx
