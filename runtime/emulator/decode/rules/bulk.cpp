// SPDX-License-Identifier: Apache-2.0
// Copies in bulk (agents/bulk_copies.hpp), and changes of tensor maps (agents/map_changes.hpp).
#include <fmt/format.h>

#include "runtime/emulator/agents/bulk/bulk_copies.hpp"
#include "runtime/emulator/agents/bulk/map_changes.hpp"
#include "runtime/emulator/decode/rules/rules.hpp"

namespace ikat::emulator {

namespace {

/// A copy with these operands: a list of addresses and numbers.
void start(Lowering& code, const BulkForm& form, std::span<const VReg> sources) {
    code.emit({.run = start_bulk,
               .fields = {0, 0, 0, 0, form.bits()},
               .list = code.list({}, sources),
               .info = {.operation = Op::BulkCopy, .effects = Changes, .use = DefinedUse::Address}});
}

/// The sum of an address and its offset, with 8 bytes.
VReg whole(Lowering& code, const AddressOperand& at) {
    return code.resized(at.offset ? code.with_offset(at.base, at.offset) : at.base, 8);
}

constexpr std::pair<Modifier, Atomic> reductions[] = {{Modifier::Add, Atomic::Add}, {Modifier::Min, Atomic::Min},
                                                      {Modifier::Max, Atomic::Max}, {Modifier::Inc, Atomic::Inc},
                                                      {Modifier::Dec, Atomic::Dec}, {Modifier::And, Atomic::And},
                                                      {Modifier::Or, Atomic::Or},   {Modifier::Xor, Atomic::Xor}};

void take_reduction(Lowering& code, Modifiers& modifiers, BulkForm& form) {
    form.reduces = true;
    form.atomic = modifiers.take_named(reductions).value_or(Atomic::Add);
    if (modifiers.has(Modifier::Tensor)) return;  // the map has the type
    const bool keeps_subnormals = modifiers.take(Modifier::Noftz);
    form.type = modifiers.take_type().value_or(Type::U32);
    const bool is_small_sum = form.atomic == Atomic::Add && (form.type == Type::F16 || form.type == Type::BF16);
    if (is_small_sum != keeps_subnormals || !select_reducer(form.atomic, form.type))
        code.unsupported("its operation or its type is not supported");
}

/// cp.async.bulk and cp.reduce.async.bulk without tensor
void copy_bulk(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::Bulk);
    BulkForm form;
    if (modifiers.take(Modifier::Reduce)) take_reduction(code, modifiers, form);
    modifiers.take(Modifier::MbarrierCompleteTxBytes);
    form.is_multicast = modifiers.take(Modifier::MulticastCluster);
    modifiers.take(Modifier::BulkGroup);
    modifiers.take_cache_hints();
    const Modifier to = modifiers.take_next({Modifier::Global, Modifier::SharedCluster, Modifier::SharedCta}),
                   from = modifiers.take_next({Modifier::Global, Modifier::SharedCluster, Modifier::SharedCta});
    form.kind = to == Modifier::Global     ? BulkForm::Kind::Store
                : from == Modifier::Global ? BulkForm::Kind::Load
                                           : BulkForm::Kind::Exchange;
    const bool is_store = form.kind == BulkForm::Kind::Store;
    const Space space = to == Modifier::SharedCluster ? Space::Cluster : Space::Shared;
    if (form.is_multicast) code.kernel.maps_shared = true;
    const AddressOperand shared = code.address(operands[is_store], space),
                         other = code.address(operands[!is_store],
                                              form.kind == BulkForm::Kind::Exchange ? Space::Shared : Space::Global);
    form.space = shared.space;
    const VReg bytes = code.source(operands[2], Type::U32);
    const VReg barrier = is_store ? code.constant(0, 8) : whole(code, code.address(operands[3], space));
    const VReg blocks = form.is_multicast ? code.resized(code.source(operands[4], Type::U16), 4) : code.constant(0, 4);
    const VReg sources[] = {whole(code, shared), whole(code, other), bytes, barrier, blocks};
    start(code, form, sources);
}

/// st.async and red.async to shared memory of the cluster
void store_async(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Async);
    modifiers.take_any({Modifier::Weak, Modifier::Relaxed});
    modifiers.take(Modifier::Cluster);
    modifiers.take(Modifier::SharedCluster);
    if (!modifiers.take(Modifier::MbarrierCompleteTxBytes) || operands.size() < 3)
        code.unsupported("it needs .mbarrier::complete_tx::bytes and a barrier");
    BulkForm form{.kind = BulkForm::Kind::Values};
    const bool reduces = std::ranges::any_of(reductions, [&](const auto& each) { return modifiers.has(each.first); });
    const unsigned count = modifiers.take_vector();
    if (reduces)
        take_reduction(code, modifiers, form);
    else
        form.type = modifiers.take_type().value_or(Type::U32);
    const AddressOperand at = code.address(operands[0], Space::Cluster),
                         barrier = code.address(operands[2], Space::Cluster);
    form.space = at.space;
    const bool is_vector = operands[1].kind == ptx::Operand::Kind::Vector;
    const Operands parts = is_vector ? Operands(code.module.operands(operands[1].children)) : Operands();
    if (is_vector ? parts.size() != count : count > 1)
        code.unsupported("the vector's length is not that of the instruction");
    const VReg none = code.constant(0, 8);
    std::vector<VReg> sources = {whole(code, at), none, code.constant(count * ir::info(form.type).bytes, 4),
                                 whole(code, barrier), code.constant(0, 4)};
    for (unsigned i = 0; i < count; ++i) sources.push_back(code.source(is_vector ? parts[i] : operands[1], form.type));
    start(code, form, sources);
}

void prefetch(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::Bulk);
    modifiers.take(Modifier::Prefetch);
    modifiers.take(Modifier::L2);
    modifiers.take(Modifier::Global);
    modifiers.take_cache_hints();
    const VReg none = code.constant(0, 8);
    const VReg sources[] = {none, whole(code, code.address(operands[0], Space::Global)),
                            code.source(operands[1], Type::U32), none, code.constant(0, 4)};
    const BulkForm form{.kind = BulkForm::Kind::Prefetch};
    start(code, form, sources);
}

/// prefetch.tensormap
void prefetch_map(Lowering& code, Modifiers& modifiers, Operands operands) {
    using enum Modifier;
    const Space space = modifiers.take(Param) ? Space::Param : modifiers.take(Const) ? Space::Const : Space::Generic;
    modifiers.take(Tensormap);
    const AddressOperand map = code.address(operands[0], space);
    VReg address = map.fixed ? map.base : whole(code, map);
    if (space != Space::Generic) address = code.with_offset(address, std::int64_t(window_address(space)));
    const VReg none = code.constant(0, 8);
    const VReg sources[] = {none, address, code.constant(0, 4), none, code.constant(0, 4)};
    const BulkForm form{.kind = BulkForm::Kind::PrefetchMap};
    start(code, form, sources);
}

/// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and cp.async.bulk.prefetch.tensor, in tile mode
void copy_tensor(Lowering& code, Modifiers& modifiers, Operands operands) {
    static constexpr std::pair<Modifier, std::uint8_t> names[] = {{Modifier::Geometry1d, 1},
                                                                  {Modifier::Geometry2d, 2},
                                                                  {Modifier::Geometry3d, 3},
                                                                  {Modifier::Geometry4d, 4},
                                                                  {Modifier::Geometry5d, 5}};
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::Bulk);
    BulkForm form;
    if (modifiers.take(Modifier::Reduce)) take_reduction(code, modifiers, form);
    modifiers.take(Modifier::Tensor);
    const bool prefetches = modifiers.take(Modifier::Prefetch);
    if (prefetches) modifiers.take(Modifier::L2);
    form.dimensions = modifiers.take_named(names).value_or(0);
    modifiers.take(Modifier::Tile);
    modifiers.take(Modifier::MbarrierCompleteTxBytes);
    form.is_multicast = modifiers.take(Modifier::MulticastCluster);
    modifiers.take(Modifier::BulkGroup);
    modifiers.take_cache_hints();
    const Modifier to = modifiers.take_next({Modifier::Global, Modifier::SharedCluster, Modifier::SharedCta});
    modifiers.take_next({Modifier::Global, Modifier::SharedCta});
    const bool stores = to == Modifier::Global && !prefetches;
    form.kind = prefetches ? BulkForm::Kind::Prefetch : stores ? BulkForm::Kind::Store : BulkForm::Kind::Load;
    if (form.is_multicast) code.kernel.maps_shared = true;

    const Operands tensor = code.module.operands(operands[stores || prefetches ? 0 : 1].children);
    if (tensor[1].kind != ptx::Operand::Kind::Vector) code.unsupported("coordinates are needed here");
    const Operands coordinates = code.module.operands(tensor[1].children);
    if (coordinates.size() != form.dimensions) code.unsupported("it has as many coordinates as dimensions");
    const VReg none = code.constant(0, 8);
    std::vector<VReg> sources = {none, code.source(tensor[0], Type::U64), code.constant(0, 4), none,
                                 code.constant(0, 4)};
    if (!prefetches) {
        const Space space = to == Modifier::SharedCluster ? Space::Cluster : Space::Shared;
        const AddressOperand shared = code.address(operands[stores ? 1 : 0], space);
        form.space = shared.space;
        sources[0] = whole(code, shared);
        if (!stores) sources[3] = whole(code, code.address(operands[2], space));
    }
    if (form.is_multicast) sources[4] = code.resized(code.source(operands[3], Type::U16), 4);
    for (const ptx::Operand& coordinate : coordinates) sources.push_back(code.source(coordinate, Type::I32));
    start(code, form, sources);
}

void commit_group_of_bulk(Lowering& code, Modifiers& modifiers, Operands) {
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::Bulk);
    modifiers.take(Modifier::CommitGroup);
    code.emit({commit_bulk, {Op::BulkCommit}}, 0, 0, {});
}

void wait_group_of_bulk(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Async);
    modifiers.take(Modifier::Bulk);
    modifiers.take(Modifier::WaitGroup);
    const bool reads = modifiers.take(Modifier::Read);
    if (operands[0].kind != ptx::Operand::Kind::Integer) code.unsupported("a number of groups is needed here");
    code.emit({await_bulk, {reads ? Op::BulkWaitRead : Op::BulkWait}}, 0, 0,
              {0, 0, 0, 0, std::uint32_t(std::min<std::uint64_t>(operands[0].value, ~0u)), reads});
}

std::uint64_t immediate(Lowering& code, const ptx::Operand& operand, std::uint64_t values) {
    if (operand.kind != ptx::Operand::Kind::Integer || operand.value >= values)
        code.refuse(FaultCode::WrongImmediate, fmt::format("a number from 0 to {} is needed here", values - 1));
    return operand.value;
}

void replace_in_map(Lowering& code, Modifiers& modifiers, Operands operands) {
    using enum MapField;
    static constexpr std::pair<Modifier, MapField> names[] = {{Modifier::GlobalAddress, Address},
                                                              {Modifier::Rank, Rank},
                                                              {Modifier::BoxDim, Box},
                                                              {Modifier::GlobalDim, Extent},
                                                              {Modifier::GlobalStride, Stride},
                                                              {Modifier::ElementStride, ElementStride},
                                                              {Modifier::Elemtype, Type},
                                                              {Modifier::InterleaveLayout, Interleave},
                                                              {Modifier::SwizzleMode, Swizzle},
                                                              {Modifier::FillMode, FillsWithNan}};
    modifiers.take(Modifier::Replace);
    modifiers.take(Modifier::Tile);
    modifiers.take(Modifier::B1024);
    MapChange change{.field = modifiers.take_named(names).value_or(Address)};
    const AddressOperand map = code.address(operands[0], modifiers.take_space());
    change.space = map.space;
    const auto type = modifiers.take(Modifier::B64) ? ir::Type::U64 : ir::Type::U32;
    modifiers.take(Modifier::B32);
    const bool has_dimension = operands.size() > 2;
    if (has_dimension) change.dimension = std::uint8_t(immediate(code, operands[1], change.field == Stride ? 4 : 5));
    const ptx::Operand& value = operands[has_dimension ? 2 : 1];
    if (const std::uint32_t values = replaced_values(change.field)) immediate(code, value, values);
    const MicroInfo info{.operation = OwnOp::ChangeMap, .effects = Changes, .use = DefinedUse::Address};
    code.emit({change_map, info}, 0, A | B,
              {0, index(whole(code, map)), index(code.resized(code.source(value, type), 8)), 0, change.bits()});
}

void copy_of_map(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_all();
    const VReg to = whole(code, code.address(operands[0], Space::Global)),
               from = whole(code, code.address(operands[1], Space::Shared));
    if (immediate(code, operands[2], tensor_map_bytes + 1) != tensor_map_bytes)
        code.refuse(FaultCode::WrongImmediate, "a tensor map has 128 bytes");
    code.count_here();
    const MicroInfo info{.operation = OwnOp::CopyMap,
                         .synchronises = {.meets_warp = true, .releases = true, .shows_maps = true},
                         .effects = Changes,
                         .use = DefinedUse::Address};
    code.emit({copy_map, info}, 0, A | B | X, {0, index(to), index(from), 0, index(code.constant(all_lanes, 4))})
        .apart = true;
}

constexpr RuleRow bulk_rows[] = {
    {"cp", "bulk", copy_bulk},
    {"cp", "bulk tensor", copy_tensor},  // of prefetches, too
    {"cp", "bulk prefetch", prefetch},
    {"prefetch", "tensormap", prefetch_map},
    {"st", "async", store_async},
    {"red", "async", store_async},
    {"cp", "bulk cp_mask", not_run},
    {"cp", "bulk commit_group", commit_group_of_bulk},
    {"cp", "bulk wait_group", wait_group_of_bulk},
    {"tensormap", "replace", replace_in_map},
    {"tensormap", "cp_fenceproxy", copy_of_map},
};

}  // namespace

constinit const Family bulk_family{bulk_rows};

}  // namespace ikat::emulator
