// SPDX-License-Identifier: Apache-2.0
// Clusters (machine/cluster.hpp): their barrier, which has two steps, arrive and wait, and the addresses of the shared
// memory of other blocks.
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

/// barrier.cluster.arrive and barrier.cluster.wait
void cluster_barrier(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take(Modifier::Cluster);
    const bool arrives = modifiers.take(Modifier::Arrive);
    if (!arrives && !modifiers.take(Modifier::Wait)) code.unsupported("barrier.cluster needs .arrive or .wait");
    const bool releases = arrives && !modifiers.take(Modifier::Relaxed);
    modifiers.take_any({Modifier::Release, Modifier::Acquire});
    const std::uint32_t bits =
        BarrierCluster | (modifiers.take(Modifier::Aligned) ? BarrierAligned : 0) | (releases ? BarrierReleases : 0);
    const Synchronises how{.acquires = !arrives, .releases = releases, .scope = Scope::Cluster};
    code.count_here();
    code.emit({barrier, {.operation = Op::ClusterBarrier, .synchronises = how}}, 0, 0,
              {0, 0, 0, 0, bits | (arrives ? BarrierArrive : 0)})
        .apart = true;
}

/// An address in shared memory, with 64 bits; without .shared::cluster it is generic.
struct SharedAddress {
    VReg value{};
    bool is_generic = true;
    Type type{};
};
SharedAddress shared_address(Lowering& code, Modifiers& modifiers, const ptx::Operand& operand) {
    const bool is_generic = !modifiers.take(Modifier::SharedCluster);
    const Type type = modifiers.take_type().value_or(Type::U64);
    return {code.resized(code.source(operand, type), 8), is_generic, type};
}

/// mapa: the corresponding address in the block of a rank
void mapa(Lowering& code, Modifiers& modifiers, Operands operands) {
    code.kernel.maps_shared = true;
    const SharedAddress from = shared_address(code, modifiers, operands[1]);
    const Result d = code.result(operands[0], from.type);
    const VReg rank = code.source(operands[2], Type::U32), mapped = code.temporary(8);
    code.apply({map_shared, {.operation = Op::Peer, .use = DefinedUse::Address}}, mapped, {from.value, rank},
               from.is_generic);
    code.apply(select_move(slot_of(from.type), 8), d.at, {mapped});
    code.finish(d);
}

/// getctarank: the rank of the block that an address belongs to
void getctarank(Lowering& code, Modifiers& modifiers, Operands operands) {
    const SharedAddress of = shared_address(code, modifiers, operands[1]);
    const Result d = code.result(operands[0], Type::U32);
    code.apply({rank_of_shared, {.operation = OwnOp::RankOfShared, .use = DefinedUse::Address}}, d.at, {of.value},
               of.is_generic);
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
