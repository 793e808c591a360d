// SPDX-License-Identifier: Apache-2.0
// inline_ptx(): the user's text is parsed with the PTX grammar here, so that mistakes in it are reported here. In the
// AST it is an operation whose results come first:
//
//     inline_ptx("add.u32 {1}, {0}, 1;", in(a), out(b))          %5, … = opaque_value "add.u32 {0}, {1}, 1;", %4
// A variable that is read and written becomes two operands, with a mov before the text.
#include "codegen/ptx/check/inline.hpp"
#include "dsl/record/recorder.hpp"

namespace ikat::trace {
namespace {

using ast::Kind;
using ast::NodeInfo;

constexpr std::size_t max_results = 16;

/// Appends the node of a text to the window; returns its results as nodes.
std::vector<ast::Node> append_text(Recorder& recorder, bool pure, std::string_view text,
                                   std::span<const Recorded> arguments, std::span<const ir::Type> types) {
    NodeInfo node{.kind = Kind::Operation,
                  .op = pure ? ir::Op::OpaqueValue : ir::Op::Opaque,
                  .attribute = recorder.add_text(text),
                  .where = recorder.here()};
    node.arguments = recorder.commit_operands({arguments.data(), std::uint32_t(arguments.size())});
    if (types.empty()) return recorder.statement(std::move(node)), std::vector<ast::Node>{};
    return recorder.append(std::move(node), types);
}

/// A mov for each operand that is read and written: {result}, {operand}.
std::string copied_first(std::span<const TextOperand> operands, const std::vector<std::size_t>& results,
                         const std::vector<std::size_t>& sources) {
    std::string out;
    for (std::size_t k = 0; k < operands.size(); ++k)
        if (operands[k].reads && operands[k].writes)
            out += "mov." + std::string(ir::info(operands[k].type).bits) + " {" + std::to_string(results[k]) + "}, {" +
                   std::to_string(sources[k]) + "};\n";
    return out;
}

}  // namespace

void inline_ptx(const char* text, const TextOperand* first, std::uint32_t count, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const std::span operands(first, count);
    std::vector<std::string_view> registers;
    std::vector<ir::Type> written;
    for (const TextOperand& operand : operands) {
        registers.push_back(ir::info(operand.type).bits);
        if (operand.writes) written.push_back(operand.type);
    }
    if (written.size() > max_results)
        return recorder.complain("inline_ptx() gives at most 16 values", "split the text", recorder.here());
    const ikat::ptx::InlineText read = ikat::ptx::read_inline(text, registers);
    for (const Diagnostic& finding : read.findings) {
        const Location& place = finding.where;
        recorder.diagnostics.push_back({.where = recorder.here(),
                                        .message = "in the text of inline_ptx(), line " + std::to_string(place.line) +
                                                   ", column " + std::to_string(place.column) + ": " + finding.message,
                                        .hint = finding.hint,
                                        .excerpt = finding.excerpt});
    }
    if (!read.findings.empty()) return;

    std::vector<std::size_t> results(count), sources(count);
    std::vector<std::string> numbers(count);
    std::size_t next = 0;
    for (std::size_t k = 0; k < count; ++k)
        if (operands[k].writes) results[k] = next++;
    std::vector<Recorded> arguments;
    for (std::size_t k = 0; k < count; ++k) {
        if (operands[k].reads) sources[k] = next++, arguments.push_back(operands[k].value);
        numbers[k] = "{" + std::to_string(operands[k].writes ? results[k] : sources[k]) + "}";
    }
    const auto nodes = append_text(recorder, read.pure,
                                   copied_first(operands, results, sources) + ikat::ptx::with_operands(text, numbers),
                                   arguments, written);
    for (std::size_t k = 0, result = 0; k < count; ++k) {
        if (!operands[k].writes) continue;
        Recorded written = recorder.leaf(nodes[result++]);
        if (operands[k].variable_type != operands[k].type)
            written = convert(operands[k].variable_type, operands[k].type, written, {});
        assign(operands[k].variable, written, where);
    }
}

}  // namespace ikat::trace
