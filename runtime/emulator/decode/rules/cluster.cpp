// SPDX-License-Identifier: Apache-2.0
// Clusters (machine/cluster.hpp). Their barrier has two steps, arrive and wait. A block can only access its own shared
// memory.
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

/// barrier.cluster.arrive and barrier.cluster.wait
void cluster_barrier(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take(Modifier::Cluster);
    const bool arrives = modifiers.take(Modifier::Arrive);
    if (!arrives && !modifiers.take(Modifier::Wait)) code.unsupported("barrier.cluster either arrives or waits");
    modifiers.take_any({Modifier::Release, Modifier::Relaxed, Modifier::Acquire});
    const std::uint32_t bits = BarrierCluster | (modifiers.take(Modifier::Aligned) ? BarrierAligned : 0);
    code.count_here();
    code.emit(barrier, 0, 0, {0, 0, 0, 0, bits | (arrives ? BarrierArrive : 0)}).apart = true;
}

/// The corresponding address in the block of rank b: in a cluster of one, rank 0.
void mapa(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::SharedCluster);
    if (code.kernel.blocks_in_cluster() > 1)
        code.unsupported("another block's shared memory is not reached", "exchange through global memory");
    const Type type = modifiers.take_type().value_or(Type::U64);
    const Result d = code.result(operands[0], type);
    const VReg rank = code.source(operands[2], Type::U32);
    code.emit(check_rank, 0, A, {0, index(rank)});
    code.apply(select_move(slot_of(type), slot_of(type)), d.at, {code.source(operands[1], type)});
    code.finish(d);
}

void getctarank(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::SharedCluster);
    code.source(operands[1], modifiers.take_type().value_or(Type::U64));
    const Result d = code.result(operands[0], Type::U32);
    code.apply(select_move(4, 4), d.at, {code.special({Special::Kind::ClusterRank})});
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
