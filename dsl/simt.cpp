// SPDX-License-Identifier: Apache-2.0
// What concerns other threads and the host: operations with effects, barriers, texts.
#include <optional>
#include <string>

#include "dsl/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::NodeInfo;
using ir::Op;

namespace {

NodeInfo operation_node(Recorder& recorder, const Operation& what, Values arguments) {
    NodeInfo node = recorder.node_of(what);
    node.arguments = recorder.commit_operands(arguments);
    return node;
}

ir::Word text_index(Recorder& recorder, const char* text) {
    auto& texts = recorder.kernel.texts;
    for (std::size_t i = 0; i < texts.size(); ++i)
        if (texts[i] == text) return i;
    texts.emplace_back(text);
    return texts.size() - 1;
}

/// How many values a text of print() takes: its {}; "{{" and "}}" stand for braces. Nothing if it is malformed.
std::optional<std::uint32_t> holes(std::string_view text) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '{' && text[i] != '}') continue;
        const char next = i + 1 < text.size() ? text[i + 1] : '\0';
        if (next != text[i] && (text[i] == '}' || next != '}')) return {};
        count += next != text[i];
        ++i;
    }
    return count;
}

}  // namespace

void require_whole_warps() { Recorder::active().kernel.block.whole_warps = true; }
void require_linear_blocks() { Recorder::active().kernel.block.linear = true; }
void require_threads(std::uint32_t count) { Recorder::active().kernel.block.threads = count; }

Value exchange(const Operation& what, Values arguments, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    Value out = recorder.leaf(recorder.append(operation_node(recorder, what, arguments)));
    out.effects = 1;
    return out;
}

void barrier(const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    recorder.statement({.kind = Kind::Operation, .op = Op::Barrier, .where = recorder.here()});
}

void sync_warp(Value members, const Where& where) { effect({.op = Op::SyncWarp}, {&members, 1}, where); }

void effect(const Operation& what, Values arguments, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    recorder.statement(operation_node(recorder, what, arguments));
}

void print(const char* text, Values arguments, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const std::optional<std::uint32_t> expected = holes(text);
    if (!expected)
        recorder.complain("a single { or } in the text of print()",
                          "{} stands for the next value, {{ and }} for braces", recorder.here());
    else if (*expected != arguments.count)
        recorder.complain("print() has as many {} in its text as values behind it: here " + std::to_string(*expected) +
                              " and " + std::to_string(arguments.count),
                          "{{ and }} stand for braces", recorder.here());
    recorder.statement(operation_node(recorder, {.op = Op::Print, .attribute = text_index(recorder, text)}, arguments));
}

void check(Value condition, const char* text, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    recorder.statement(
        operation_node(recorder, {.op = Op::Check, .attribute = text_index(recorder, text)}, {&condition, 1}));
}

}  // namespace ikat::trace
