// SPDX-License-Identifier: Apache-2.0
// Clusters. The emulator's have one block each: its rank is 0, its shared memory is the cluster's, and the cluster's
// barrier is one of the block that is reached (arrive) and waited at (wait) in two steps.
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

/// barrier.cluster.arrive and barrier.cluster.wait
void cluster_barrier(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take(".cluster");
    const bool arrives = modifiers.take(".arrive");
    if (!arrives && !modifiers.take(".wait")) code.unsupported("barrier.cluster either arrives or waits");
    modifiers.take_any({".release", ".relaxed", ".acquire"});
    const std::uint32_t bits = BarrierCluster | (modifiers.take(".aligned") ? BarrierAligned : 0);
    code.count_here();
    code.emit(barrier, 0, 0, {0, 0, 0, 0, bits | (arrives ? BarrierArrive : 0)}).apart = true;
}

/// The address of the same place in the block of rank b: rank 0 is the only one.
void mapa(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(".shared::cluster");
    const Type type = modifiers.take_type().value_or(Type::U64);
    const Result d = code.result(operands[0], type);
    const Value rank = code.source(operands[2], Type::U32);
    code.emit(check_rank, 0, A, {0, index(rank)});
    code.apply(select_move(slot_of(type), slot_of(type)), d.at, {code.source(operands[1], type)});
    code.finish(d);
}

void getctarank(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(".shared::cluster");
    code.source(operands[1], modifiers.take_type().value_or(Type::U64));
    const Result d = code.result(operands[0], Type::U32);
    code.emit(select_literal(4), D, 0, {index(d.at), 0, 0, 0, 0, 0});
    code.finish(d);
}

constexpr RuleRow cluster_rows[] = {
    {"barrier", "cluster", cluster_barrier},
    {"mapa", mapa},
    {"getctarank", getctarank},
};

}  // namespace

constinit const Family cluster_family{cluster_rows};

}  // namespace ikat::emulator
