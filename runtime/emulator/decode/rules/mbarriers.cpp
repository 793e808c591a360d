// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory (agents/mbarriers.hpp). Orders and scopes have no effect here: the blocks of a cluster run
// in turn, so each sees what the others have done.
#include "runtime/emulator/agents/mbarriers.hpp"
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

struct OfBarrier {
    MbarrierForm form{};
    AddressOperand at{};
    bool may_be_remote = false;  // .shared::cluster
};

OfBarrier take_barrier(Lowering& code, Modifiers& modifiers, const ptx::Operand& operand) {
    modifiers.take_any({Modifier::Release, Modifier::Acquire, Modifier::Relaxed});
    modifiers.take_any({Modifier::Cta, Modifier::Cluster});
    OfBarrier of{.may_be_remote = modifiers.has(Modifier::SharedCluster)};
    of.at = code.address(operand, modifiers.take_space());
    of.form.space = of.at.space;
    modifiers.take(Modifier::B64);
    return of;
}

MicroInfo with(std::uint8_t effects) {
    return {.operation = Op::Mbarrier, .effects = effects, .use = DefinedUse::Barrier};
}

void emit(Lowering& code, const Behaviour& behaviour, const OfBarrier& of, std::optional<VReg> b = {},
          const Result* d = nullptr, std::uint32_t c = 0) {
    MbarrierForm form = of.form;
    form.has_b = b.has_value();
    code.emit(behaviour, d ? D : 0, std::uint8_t(A | (b ? B : 0)),
              {d ? index(d->at) : 0, index(code.resized(of.at.base, 8)), b ? index(*b) : 0, c,
               std::uint32_t(of.at.offset), form.bits()})
        .apart = true;
    if (d) code.finish(*d);
}

void init(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Init);
    const OfBarrier of = take_barrier(code, modifiers, operands[0]);
    emit(code, {init_mbarrier, with(Changes)}, of, code.source(operands[1], Type::U32));
}

void inval(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Inval);
    emit(code, {invalidate_mbarrier, with(Changes)}, take_barrier(code, modifiers, operands[0]));
}

/// mbarrier.arrive and mbarrier.arrive_drop
void arrive(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool drops = modifiers.take(Modifier::ArriveDrop);
    modifiers.take(Modifier::Arrive);
    OfBarrier of = take_barrier(code, modifiers, operands[1]);
    of.form.drops = drops;
    of.form.expects = modifiers.take(Modifier::ExpectTx);
    of.form.never_completes = modifiers.take(Modifier::NoComplete);
    if (of.may_be_remote && operands[0].kind != ptx::Operand::Kind::Sink)
        code.unsupported("an arrival at a barrier in .shared::cluster returns no state", "write _ for it");
    std::optional<VReg> amount;
    if (operands.size() > 2) amount = code.source(operands[2], Type::U32);
    const Result state = code.result(operands[0], Type::U64);
    emit(code, {arrive_at_mbarrier, with(Changes)}, of, amount, &state);
}

/// mbarrier.expect_tx and mbarrier.complete_tx
void transact(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool completes = modifiers.take(Modifier::CompleteTx);
    modifiers.take(Modifier::ExpectTx);
    OfBarrier of = take_barrier(code, modifiers, operands[0]);
    of.form.completes = completes;
    emit(code, {transact_mbarrier, with(Changes)}, of, code.source(operands[1], Type::U32));
}

/// mbarrier.test_wait and mbarrier.try_wait, whose time limit has no effect: nothing takes time here.
void wait(Lowering& code, Modifiers& modifiers, Operands operands) {
    const bool may_miss = modifiers.take(Modifier::TryWait);
    modifiers.take(Modifier::TestWait);
    const bool has_parity = modifiers.take(Modifier::Parity);
    OfBarrier of = take_barrier(code, modifiers, operands[1]);
    of.form.may_miss = may_miss;
    of.form.has_parity = has_parity;
    const VReg asked = code.source(operands[2], has_parity ? Type::U32 : Type::U64);
    if (operands.size() > 3) code.source(operands[3], Type::U32);
    const Result over = code.result(operands[0], Type::Pred);
    emit(code, {test_mbarrier, with(ReadsBlock)}, of, asked, &over);
}

/// mbarrier.pending_count: the low bits of a state.
void pending_count(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::PendingCount);
    modifiers.take(Modifier::B64);
    const VReg state = code.source(operands[1], Type::U64), low = code.temporary(4);
    const Result count = code.result(operands[0], Type::U32);
    code.apply(select_move(4, 8), low, {state});
    code.apply(select_integer(Op::And, Type::U32), count.at,
               {low, code.constant((1u << MbarrierState::phase_at) - 1, 4)});
    code.finish(count);
}

/// cp.async.mbarrier.arrive
void arrive_for_copies(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::Mbarrier);
    modifiers.take(Modifier::Arrive);
    const bool is_counted = modifiers.take(Modifier::Noinc);
    const MicroInfo info{.operation = Op::CopyArrive, .effects = Changes, .use = DefinedUse::Barrier};
    emit(code, {arrive_after_copies, info}, take_barrier(code, modifiers, operands[0]), {}, nullptr, is_counted);
}

constexpr RuleRow mbarriers_rows[] = {
    {"mbarrier", "init", init},
    {"mbarrier", "inval", inval},
    {"mbarrier", "arrive", arrive},
    {"mbarrier", "expect_tx", transact},
    {"mbarrier", "arrive expect_tx", arrive},
    {"mbarrier", "test_wait", wait},
    {"mbarrier", "try_wait", wait},
    {"mbarrier", "pending_count", pending_count},
    {"cp", "mbarrier", arrive_for_copies},
};

}  // namespace

constinit const Family mbarriers_family{mbarriers_rows};

}  // namespace ikat::emulator
