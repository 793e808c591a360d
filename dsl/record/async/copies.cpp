// SPDX-License-Identifier: Apache-2.0
// Copies in flight, and matrices from shared memory.
#include "dsl/record/async/copies.hpp"

#include <string>
#include <vector>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Node;
using ir::Op;
using ir::Type;

void copy_async(const Slot& to, const Slot& from, std::uint32_t bytes, const Recorded* condition, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(to.array.capture) || !recorder.owns(from.array.capture)) return;
    if (!recorder.is_shared(to))
        return recorder.complain("copy_async() to memory that is not shared",
                                 "copy to a Shared<T, N> or dynamic_shared<T>() array; store elsewhere",
                                 recorder.here());
    if (from.array.symbol)
        return recorder.complain("copy_async() from memory that is not global",
                                 "copy from a parameter: In<T> or InOut<T>; load and store otherwise", recorder.here());
    Recorded read = literal(Type::U32, std::uint64_t{bytes});
    if (condition) {
        const Recorded choice[] = {read, literal(Type::U32, std::uint64_t{0}), *condition};
        read = operation({.op = Op::Select, .type = Type::U32, .operand_type = Type::U32}, {choice, 3});
    }
    const ast::Nodes operands = recorder.commit_places({&to, &from}, {&read, 1});
    if (recorder.is_misaligned(operands[0], bytes) || recorder.is_misaligned(operands[1], bytes))
        recorder.complain(
            "copy_async() of " + std::to_string(bytes) + " bytes at an element that is not aligned to as many",
            "both places are at multiples of " + std::to_string(bytes) + " bytes", recorder.here());
    const auto cache = bytes == 16 ? ir::CopyForm::Cache::Cg : ir::CopyForm::Cache::Ca;
    ast::NodeInfo node = recorder.node_of(
        {.op = Op::CopyAsync, .attribute = ir::pack(ir::CopyForm{.bytes = std::uint8_t(bytes), .cache = cache})});
    node.arguments = operands;
    recorder.statement(std::move(node));
}

int checked_element(int number, int elements) {
    if (number >= 0 && number < elements) return number;
    Recorder::active().complain("element " + std::to_string(number) + " of a fragment that has " +
                                    std::to_string(elements) + " elements in each lane",
                                "elements are numbered from 0");
    return 0;
}

namespace {

/// The address of a row, and values.
ast::Nodes matrix_operands(Recorder& recorder, const std::string& what, const Slot& row, RecordedValues values) {
    ast::Nodes operands = recorder.commit_places({&row}, values);
    if (recorder.is_misaligned(operands[0], ir::matrix_row_bytes))
        recorder.complain(what + " of a row at an element that is not aligned to 16 bytes",
                          "rows are 16 bytes, at multiples of 16 bytes", recorder.here());
    return operands;
}

}  // namespace

void load_matrix(const Slot& from, ir::MatricesForm form, Recorded* results, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const bool is_shared = recorder.is_shared(from);
    if (!is_shared)
        recorder.complain("load_matrix() from memory that is not shared",
                          "it reads rows of a Shared<T, N> or dynamic_shared<T>() array", recorder.here());
    if (!is_shared || !recorder.owns(from.array.capture)) {
        for (int i = 0; i < form.count; ++i) results[i] = literal(Type::U32, std::uint64_t{0});
        return;
    }
    const ast::Nodes operands = matrix_operands(recorder, "load_matrix()", from, {});
    ast::NodeInfo node = recorder.node_of(
        {.op = Op::LoadMatrix, .type = Type::U32, .operand_type = Type::U32, .attribute = ir::pack(form)});
    node.arguments = operands;
    const Type types[] = {Type::U32, Type::U32, Type::U32, Type::U32};
    const auto loaded = recorder.append(std::move(node), {types, form.count});
    for (int i = 0; i < form.count; ++i) results[i] = recorder.leaf(loaded[std::size_t(i)]);
}

void store_matrix(const Slot& to, ir::MatricesForm form, RecordedValues words, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(to.array.capture)) return;
    if (!recorder.is_shared(to))
        return recorder.complain("store_matrix() to memory that is not shared",
                                 "it writes rows of a Shared<T, N> or dynamic_shared<T>() array", recorder.here());
    const ast::Nodes operands = matrix_operands(recorder, "store_matrix()", to, words);
    ast::NodeInfo node =
        recorder.node_of({.op = Op::StoreMatrix, .operand_type = Type::U32, .attribute = ir::pack(form)});
    node.arguments = operands;
    recorder.statement(std::move(node));
}

void copy_commit(const Where& where) { effect({.op = Op::CopyCommit}, {}, where); }
void copy_wait(ir::Word groups, const Where& where) {
    effect({.op = Op::CopyWait, .attribute = ir::pack(ir::GroupsForm{std::uint16_t(groups)})}, {}, where);
}

}  // namespace ikat::trace
