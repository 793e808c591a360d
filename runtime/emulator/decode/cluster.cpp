// SPDX-License-Identifier: Apache-2.0
// Clusters. The emulator's have one block each: its rank is 0, its shared memory is the cluster's, and the cluster's
// barrier is one of the block that is reached (arrive) and waited at (wait) in two steps.
#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

/// barrier.cluster.arrive and barrier.cluster.wait
void Lowering::cluster_barrier(Form& form) {
    const bool arrives = form.take(".arrive");
    if (!arrives && !form.take(".wait")) unsupported("barrier.cluster either arrives or waits");
    form.take_any({".release", ".relaxed", ".acquire"});
    const std::uint32_t bits = BarrierCluster | (form.take(".aligned") ? BarrierAligned : 0);
    count_here();
    emit(barrier, 0, 0, {0, 0, 0, 0, bits | (arrives ? BarrierArrive : 0)}).apart = true;
}

/// The address of the same place in the block of rank b: rank 0 is the only one.
void Lowering::mapa(Form& form, Operands operands) {
    form.take(".shared::cluster");
    const Type type = form.take_type().value_or(Type::U64);
    const Result d = result(operands[0], type);
    const Value rank = source(operands[2], Type::U32);
    emit(check_rank, 0, A, {0, index(rank)});
    apply(select_move(slot_of(type), slot_of(type)), d.at, {source(operands[1], type)});
    finish(d);
}

void Lowering::getctarank(Form& form, Operands operands) {
    form.take(".shared::cluster");
    source(operands[1], form.take_type().value_or(Type::U64));
    const Result d = result(operands[0], Type::U32);
    emit(select_literal(4), D, 0, {index(d.at), 0, 0, 0, 0, 0});
    finish(d);
}

}  // namespace ikat::emulator
