// SPDX-License-Identifier: Apache-2.0
// Interaction with other threads and the host: operations with effects, barriers, printed texts.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "codegen/ir/text/format.hpp"
#include "dsl/record/complaint.hpp"
#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::NodeInfo;
using ir::Op;

namespace {

NodeInfo operation_node(Recorder& recorder, const Operation& what, RecordedValues arguments) {
    NodeInfo node = recorder.node_of(what);
    node.arguments = recorder.commit_operands(arguments);
    return node;
}

/// Complains about a text of print() or check() that does not match its values, given as nodes.
void check_text(Recorder& recorder, const std::string& what, const char* text, const ast::Nodes& values) {
    const std::optional<ir::Format> format = ir::read_format(text);
    if (!format)
        return recorder.complain("a single { or } in the text of " + what,
                                 "{} prints the next value, {{ and }} print braces", recorder.here());
    if (format->holes.size() != values.size())
        return recorder.complain(what + " needs as many {} in its text as values after it: here " +
                                     std::to_string(format->holes.size()) + " and " + std::to_string(values.size()),
                                 "{{ and }} print braces", recorder.here());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const ir::Type type = recorder.kernel[values[i]].type;
        if (ir::conversion(format->holes[i], type)) continue;
        recorder.complain("{:" + format->holes[i] + "} in the text of " + what + " is not how a " +
                              std::string(ir::info(type).name) + " is written",
                          "{:8.3f} {:e} {:g} are for floats, {:5} {:<5} {:+} {:08x} {:#x} {:o} for integers",
                          recorder.here());
    }
}

}  // namespace

ir::Word Recorder::add_text(std::string_view text) {
    const auto found = std::ranges::find(kernel.texts, text);
    if (found != kernel.texts.end()) return ir::Word(found - kernel.texts.begin());
    kernel.texts.emplace_back(text);
    return kernel.texts.size() - 1;
}

void require_whole_warps() { Recorder::active().kernel.block.whole_warps = true; }
void require_linear_blocks() { Recorder::active().kernel.block.linear = true; }
void require_linear_grid() {
    require_linear_blocks();
    Recorder::active().kernel.block.linear_grid = true;
}
void complain(std::string message, std::string hint, const Where& where, std::vector<Diagnostic::Note> notes) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const auto is_same = [&](const Diagnostic& other) {
        return other.where == recorder.here() && other.message == message;
    };
    if (std::ranges::any_of(recorder.diagnostics, is_same)) return;
    recorder.complain(std::move(message), std::move(hint), recorder.here(), std::move(notes));
}

namespace {

void expect(Recorder& recorder, std::uint32_t parameter, const Expected& expected, const Where& where) {
    const Location place = Location::of(where);
    const auto is_same = [&](const KernelInfo::Expectation& other) {
        return other.parameter == parameter && other.multiple == expected.multiple && other.where == place;
    };
    auto& all = recorder.kernel.expectations;
    if (std::ranges::none_of(all, is_same))
        all.push_back({parameter, expected.multiple, expected.what, expected.hint, place});
}

}  // namespace

void expect_multiple(const Recorded& number, const Expected& expected, const Where& where) {
    Recorder& recorder = Recorder::active();
    if (!is_leaf(number.tree) || number.capture != recorder.capture()) return;
    const ast::NodeInfo& node = recorder.kernel[node_of_leaf(number.tree)];
    if (node.kind == ast::Kind::Operation && node.op == ir::Op::Param)
        expect(recorder, ir::parameter_of(node.attribute), expected, where);
}
void expect_aligned(const Array& array, const Expected& expected, const Where& where) {
    Recorder& recorder = Recorder::active();
    if (!array.symbol && !array.sliced && array.capture == recorder.capture())
        expect(recorder, array.index, expected, where);
}

void require_threads(std::uint32_t count) { Recorder::active().kernel.block.threads = count; }

Recorded exchange(const Operation& what, RecordedValues arguments, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    Recorded out = recorder.leaf(recorder.append(operation_node(recorder, what, arguments)));
    out.effects = 1;
    return out;
}

void barrier(const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    recorder.statement({.kind = Kind::Operation, .op = Op::Barrier, .where = recorder.here()});
}

void sync_warp(Recorded members, const Where& where) { effect({.op = Op::SyncWarp}, {&members, 1}, where); }

void effect(const Operation& what, RecordedValues arguments, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    recorder.statement(operation_node(recorder, what, arguments));
}

void print(const char* text, RecordedValues arguments, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    NodeInfo node = operation_node(recorder, {.op = Op::Print, .attribute = recorder.add_text(text)}, arguments);
    check_text(recorder, "print()", text, node.arguments);
    recorder.statement(std::move(node));
}

void check(Recorded condition, const char* text, RecordedValues arguments, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    std::vector<Recorded> operands{condition};
    operands.insert(operands.end(), arguments.begin(), arguments.end());
    NodeInfo node = operation_node(recorder, {.op = Op::Check, .attribute = recorder.add_text(text)},
                                   {operands.data(), std::uint32_t(operands.size())});
    ast::Nodes values;
    for (std::size_t i = 1; i < node.arguments.size(); ++i) values.push_back(node.arguments[i]);
    if (!values.empty()) check_text(recorder, "check()", text, values);
    recorder.statement(std::move(node));
}

}  // namespace ikat::trace
