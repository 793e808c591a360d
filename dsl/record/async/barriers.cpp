// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory, and copies that arrive there.
#include "dsl/record/async/barriers.hpp"

#include <string>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ast::Node;
using ir::BulkForm, ir::MbarrierForm;
using ir::Op;
using ir::Type;

namespace {

ast::NodeInfo barrier_node(Recorder& recorder, const Slot& barrier, MbarrierForm form, RecordedValues numbers) {
    if (barrier.array.peer) form.reach = MbarrierForm::Reach::Peer;
    ast::NodeInfo node = recorder.node_of({.op = Op::Mbarrier, .operand_type = Type::U32, .attribute = ir::pack(form)});
    node.arguments = recorder.commit_places({&barrier}, numbers);
    return node;
}

Node test(Recorder& recorder, const Slot& barrier, const Recorded& parity) {
    const Type types[] = {Type::Pred};
    return recorder.append(barrier_node(recorder, barrier, {MbarrierForm::Kind::Try}, {&parity, 1}), types)[0];
}

/// Complains about what is known of a copy's size and places.
void check_copy(Recorder& recorder, const std::string& what, const ByteCount& bytes,
                std::initializer_list<Node> places) {
    const std::string unit = std::to_string(ir::bulk_unit);
    if (bytes.known % ir::bulk_unit)
        recorder.complain(what + " of " + std::to_string(bytes.known) + " bytes, which is not a multiple of " + unit,
                          "it copies multiples of 16 bytes; copy_async() copies 4 or 8", recorder.here());
    for (const Node place : places)
        if (recorder.is_misaligned(place, ir::bulk_unit))
            return recorder.complain(what + " at an element that is not aligned to " + unit + " bytes",
                                     "both places are at multiples of " + unit + " bytes", recorder.here());
}

/// Whether the two places are in shared and in global memory; complains if not.
bool check_places(Recorder& recorder, const std::string& what, const Slot& shared, const Slot& global) {
    if (!recorder.owns(shared.array.capture) || !recorder.owns(global.array.capture)) return false;
    if (!recorder.is_shared(shared))
        recorder.complain(what + " whose place in shared memory is not there",
                          "it is in a Shared<T, N> or dynamic_shared<T>() array", recorder.here());
    else if (global.array.symbol)
        recorder.complain(what + " whose place in global memory is not there", "it is in a parameter, such as In<T>",
                          recorder.here());
    else
        return true;
    return false;
}

void bulk(Recorder& recorder, BulkForm form, Type type, ast::Nodes operands) {
    ast::NodeInfo node = recorder.node_of({.op = Op::BulkCopy, .operand_type = type, .attribute = ir::pack(form)});
    node.arguments = std::move(operands);
    recorder.statement(std::move(node));
}

}  // namespace

void mbarrier(const Slot& barrier, MbarrierForm form, const Recorded* number, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(barrier.array.capture)) return;
    recorder.statement(barrier_node(recorder, barrier, form, {number, number ? 1u : 0u}));
}

Recorded try_barrier(const Slot& barrier, const Recorded& parity, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(barrier.array.capture)) return literal(Type::Pred, std::uint64_t{1});
    return recorder.leaf(test(recorder, barrier, parity));
}

void wait_at_barrier(const Slot& barrier, const Recorded& parity, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(barrier.array.capture)) return;
    const Location here = recorder.here();
    const ast::Region condition = recorder.add_region(), body = recorder.add_region();
    const Node loop = recorder.statement({.kind = ast::Kind::While, .regions = {condition, body}, .where = here});
    const Caller caller{__builtin_dwarf_cfa(), here};
    Node waits{};
    recorder.record(condition, caller, [&] {
        recorder.at(here);
        const Recorded ended = recorder.leaf(test(recorder, barrier, parity));
        waits =
            recorder.commit(operation({.op = Op::Not, .type = Type::Pred, .operand_type = Type::Pred}, {&ended, 1}));
    });
    recorder.set_condition(loop, waits);
    recorder.record(body, caller, [] {});
}

void copy_arrive(const Slot& barrier, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(barrier.array.capture)) return;
    ast::NodeInfo node = recorder.node_of({.op = Op::CopyArrive, .operand_type = Type::U32});
    node.arguments = recorder.commit_places({&barrier}, {});
    recorder.statement(std::move(node));
}

void bulk_load(const Slot& to, const Slot& from, const ByteCount& bytes, const Slot& barrier, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(barrier.array.capture) || !check_places(recorder, "bulk_load()", to, from)) return;
    const ast::Nodes operands = recorder.commit_places({&to, &from, &barrier}, {&bytes.value, 1});
    check_copy(recorder, "bulk_load()", bytes, {operands[0], operands[1]});
    bulk(recorder, {.kind = BulkForm::Kind::Load}, Type::Void, {operands[0], operands[1], operands[3], operands[2]});
}

void bulk_store(const Slot& to, const Slot& from, const ByteCount& bytes, BulkForm::Reduction reduction,
                const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    const bool reduces = reduction != BulkForm::Reduction::None;
    const std::string what = reduces ? "bulk_reduce()" : "bulk_store()";
    if (!check_places(recorder, what, from, to)) return;
    const ast::Nodes operands = recorder.commit_places({&to, &from}, {&bytes.value, 1});
    check_copy(recorder, what, bytes, {operands[0], operands[1]});
    bulk(recorder, {.kind = BulkForm::Kind::Store, .reduction = reduction}, reduces ? to.array.element : Type::Void,
         operands);
}

void bulk_send(const Slot& to, const Slot& from, const ByteCount& bytes, const Slot& barrier, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    for (const Slot* slot : {&to, &from, &barrier})
        if (!recorder.owns(slot->array.capture)) return;
    if (!to.array.peer)
        return recorder.complain("bulk_send() to memory that is not of another block of the cluster",
                                 "its first argument is peer(s, rank)[i]; bulk_store() copies to global memory",
                                 recorder.here());
    if (!recorder.is_shared(from))
        return recorder.complain("bulk_send() from memory that is not the block's own shared memory",
                                 "copy from a Shared<T, N> or dynamic_shared<T>() array", recorder.here());
    const ast::Nodes operands = recorder.commit_places({&to, &from, &barrier}, {&bytes.value, 1});
    check_copy(recorder, "bulk_send()", bytes, {operands[0], operands[1]});
    bulk(recorder, {.kind = BulkForm::Kind::Send}, Type::Void, {operands[0], operands[1], operands[3], operands[2]});
}

void bulk_prefetch(const Slot& from, const ByteCount& bytes, const Where& where) {
    Recorder& recorder = Recorder::active();
    recorder.at(where);
    if (!recorder.owns(from.array.capture)) return;
    if (from.array.symbol)
        return recorder.complain("bulk_prefetch() of memory that is not global", "it is a parameter, such as In<T>",
                                 recorder.here());
    const ast::Nodes operands = recorder.commit_places({&from}, {&bytes.value, 1});
    check_copy(recorder, "bulk_prefetch()", bytes, {operands[0]});
    bulk(recorder, {.kind = BulkForm::Kind::Prefetch}, Type::Void, operands);
}

void bulk_commit(const Where& where) { effect({.op = Op::BulkCommit}, {}, where); }
void bulk_wait(ir::Word groups, bool read_only, const Where& where) {
    effect({.op = read_only ? Op::BulkWaitRead : Op::BulkWait,
            .attribute = ir::pack(ir::GroupsForm{std::uint16_t(groups)})},
           {}, where);
}

}  // namespace ikat::trace
