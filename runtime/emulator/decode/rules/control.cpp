// SPDX-License-Identifier: Apache-2.0
// Branches and barriers.
#include <fmt/format.h>

#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

void bra(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool uniform = modifiers.take(Modifier::Uni);
    const Binding* const target = code.find(operands[0].name);
    if (!target || target->kind != Binding::Kind::Label)
        code.unsupported(fmt::format("label '{}' is not visible here", code.module.text(operands[0].name)));
    const std::uint32_t label = target->label;
    if (code.current->guard == ptx::no_name) return code.jump_to(label);
    ptx::Operand guard{.kind = ptx::Operand::Kind::Symbol};
    guard.name = code.current->guard;
    code.branch_to(label, code.predicate(guard), code.current->guard_negated, uniform);
}

void brx(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Idx);
    modifiers.take(Modifier::Uni);
    const Binding* const table = code.find(operands[1].name);
    if (!table || table->kind != Binding::Kind::Table) code.unsupported("its .branchtargets list is not visible here");
    const Operands targets = code.module.operands(table->targets);
    const VReg selector = code.source(operands[0], Type::U32);
    Micro micro = micro_of({branch_table, {.operation = OwnOp::Branch, .use = DefinedUse::Branch}});
    micro.fields = {0, index(selector)};
    micro.reads = A;
    micro.flow = Flow::Table;
    micro.counts = true;
    micro.label = std::uint32_t(code.table_labels.size());
    micro.targets = std::uint32_t(targets.size());
    code.emit(micro);
    for (const ptx::Operand& target : targets) {
        const Binding* const binding = code.find(target.name);
        if (!binding || binding->kind != Binding::Kind::Label) code.unsupported("a branch target is not visible here");
        code.table_labels.push_back(binding->label);
    }
}

void end_thread(Lowering& code, Modifiers&, Operands) {
    Micro micro = micro_of({end_lanes, {OwnOp::End}});
    micro.flow = Flow::End;
    micro.counts = true;
    code.emit(micro);
}

void ret(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Uni);
    if (code.return_label == ~0u) return end_thread(code, modifiers, operands);
    code.jump_to(code.return_label);
}

void stop(Lowering& code, Modifiers&, Operands) { code.emit({trap, {OwnOp::Trap}}, 0, 0, {}); }

void nanosleep(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take_type();
    code.emit({give_way, {OwnOp::GiveWay}}, 0, 0, {});
}

// ---- barriers

void sync_warp(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Warp);
    modifiers.take(Modifier::Sync);
    code.count_here();
    code.emit(select_sync_warp(), 0, X, {0, 0, 0, 0, index(code.source(operands[0], Type::U32))});
}

void bar(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Cta);
    const bool stem_is_bar = code.current->opcode == ptx::Opcode::Bar;
    std::uint32_t bits = modifiers.take(Modifier::Aligned) || stem_is_bar ? BarrierAligned : 0;
    if (modifiers.take(Modifier::Arrive)) bits |= BarrierArrive;
    Result d;
    std::size_t at = 0;
    if (modifiers.take(Modifier::Red)) {
        bits |= BarrierReduce;
        bits |= modifiers.take(Modifier::Popc)  ? BarrierPopc
                : modifiers.take(Modifier::And) ? BarrierAnd
                : modifiers.take(Modifier::Or)  ? BarrierOr
                                                : 0;
        const auto type = modifiers.take_type();
        d = code.result(operands[at++], type.value_or(Type::U32));
    } else {
        modifiers.take(Modifier::Sync);
    }
    const VReg id = code.source(operands[at++], Type::U32);
    const std::size_t left = operands.size() - at - (bits & BarrierReduce ? 1 : 0);
    VReg threads = id, p = id;
    if (left == 1) {
        threads = code.source(operands[at++], Type::U32);
        bits |= BarrierCounted;
    }
    if (bits & BarrierReduce) p = code.predicate(operands[at]);
    code.count_here();
    const Synchronises how{.acquires = !(bits & BarrierArrive), .releases = true, .scope = Scope::Block};
    std::uint8_t reads = A | B, writes = 0;
    if (bits & BarrierReduce) reads |= C, writes |= D;
    code.emit({barrier, {.operation = Op::Barrier, .synchronises = how, .use = DefinedUse::Barrier}}, writes, reads,
              {bits & BarrierReduce ? index(d.at) : 0, index(id), index(threads), bits & BarrierReduce ? index(p) : 0,
               bits})
        .apart = true;
    if (bits & BarrierReduce) code.finish(d);
}

constexpr RuleRow control_rows[] = {
    {"bra", bra},     {"brx", brx},
    {"ret", ret},     {"exit", end_thread},
    {"trap", stop},   {"nanosleep", nanosleep},
    {"bar", bar},     {"bar", "warp", sync_warp},
    {"barrier", bar},
};

}  // namespace

constinit const Family control_family{control_rows};

}  // namespace ikat::emulator
