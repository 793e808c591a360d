// SPDX-License-Identifier: Apache-2.0
// Copies in flight.
#include "dsl/record/copies.hpp"

#include <string>
#include <vector>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Kind;
using ast::Node;
using ir::Op;
using ir::Type;

namespace {

/// The address of a slot whose index, and before it the start of a slice, are the next operands.
Node address(Recorder& recorder, const Slot& slot, const Node*& operand) {
    ast::NodeInfo node{.kind = Kind::Address,
                       .type = slot.array.symbol ? Type::U32 : Type::U64,
                       .operand_type = slot.array.element,
                       .place = recorder.place_of(slot.array, slot.array.sliced ? *operand++ : ast::no_node),
                       .arguments = {*operand++},
                       .where = recorder.here()};
    node.memory.count = slot.count;
    return recorder.append(std::move(node));
}

/// Whether the element is at a constant index at which so many bytes are not aligned.
bool is_misaligned(const Recorder& recorder, Node address, std::uint32_t bytes) {
    const ast::NodeInfo& at = recorder.kernel[address];
    const ast::NodeInfo& index = recorder.kernel[at.arguments[0]];
    const std::uint64_t step = std::uint64_t{at.memory.count} * ir::info(at.operand_type).bytes;
    const bool is_constant = index.kind == Kind::Operation && index.op == Op::Const && at.place.offset == ast::no_node;
    return is_constant && index.attribute * step % bytes != 0;
}

}  // namespace

void copy_async(const Slot& to, const Slot& from, std::uint32_t bytes, const Recorded* condition, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(to.array.capture) || !recorder.owns(from.array.capture)) return;
    if (!to.array.symbol || recorder.kernel.symbols[to.array.index].space != ir::Space::Shared)
        return recorder.complain("copy_async() to memory that is not shared",
                                 "copy to a Shared<T, N> or dynamic_shared<T>() array; store elsewhere",
                                 recorder.here());
    if (from.array.symbol)
        return recorder.complain("copy_async() from memory that is not global",
                                 "copy from a parameter: In<T> or InOut<T>; load and store otherwise", recorder.here());
    std::vector<Recorded> operands;
    for (const Slot* slot : {&to, &from}) {
        if (slot->array.sliced) operands.push_back(slot->array.first);
        operands.push_back(slot->index);
    }
    Recorded read = literal(Type::U32, std::uint64_t{bytes});
    if (condition) {
        const Recorded choice[] = {read, literal(Type::U32, std::uint64_t{0}), *condition};
        read = operation({.op = Op::Select, .type = Type::U32, .operand_type = Type::U32}, {choice, 3});
    }
    operands.push_back(read);
    const ast::Nodes nodes = recorder.commit_operands({operands.data(), std::uint32_t(operands.size())});
    const Node* operand = nodes.begin();
    const Node written = address(recorder, to, operand), source = address(recorder, from, operand);
    if (is_misaligned(recorder, written, bytes) || is_misaligned(recorder, source, bytes))
        recorder.complain(
            "copy_async() of " + std::to_string(bytes) + " bytes at an element that is not aligned to as many",
            "both places are at multiples of " + std::to_string(bytes) + " bytes", recorder.here());
    const auto cache = bytes == 16 ? ir::CopyForm::Cache::Cg : ir::CopyForm::Cache::Ca;
    ast::NodeInfo node = recorder.node_of(
        {.op = Op::CopyAsync, .attribute = ir::pack(ir::CopyForm{.bytes = std::uint8_t(bytes), .cache = cache})});
    node.arguments = {written, source, *operand};
    recorder.statement(std::move(node));
}

void copy_commit(const Where& where) { effect({.op = Op::CopyCommit}, {}, where); }
void copy_wait(ir::Word groups, const Where& where) { effect({.op = Op::CopyWait, .attribute = groups}, {}, where); }

}  // namespace ikat::trace
