// SPDX-License-Identifier: Apache-2.0
#include "codegen/analysis/memory.hpp"

#include <algorithm>

#include "codegen/ir/op/forms/address.hpp"

namespace ikat::analysis {
namespace {

using namespace ir;

constexpr int max_additions = 16;  // how many additions we look through

const Instruction* defined_by(const Function& fn, Value value) {
    const Inst inst = fn[value].instruction;
    return inst == no_inst ? nullptr : &fn[inst];
}

std::int64_t signed_constant(Type type, Word bits) {
    return ir::bits(type) == 32 ? std::int64_t(std::int32_t(bits)) : std::int64_t(bits);
}

/// Strips constant addends from the sum that defines value and adds them to offset.
void strip(const Function& fn, Value& value, std::int64_t& offset) {
    for (int depth = 0; depth < max_additions; ++depth) {
        const Instruction* inst = defined_by(fn, value);
        if (!inst || (inst->op != Op::Add && inst->op != Op::Sub)) return;
        const auto operands = fn.operands(fn[value].instruction);
        const auto right = constant(fn, operands[1]);
        if (!right) return;
        const std::int64_t by = signed_constant(inst->type, *right);
        offset += inst->op == Op::Add ? by : -by;
        value = operands[0];
    }
}

/// Two accesses with the same base: their distance is the difference of their offsets, modulo the address width.
Alias at_offsets(const Address& a, const Address& b, Type type) {
    std::int64_t distance = b.offset - a.offset;
    if (bits(type) == 32) distance = std::int32_t(distance);
    if (distance == 0 && a.bytes == b.bytes) return Alias::Must;
    return distance >= std::int64_t(a.bytes) || distance <= -std::int64_t(b.bytes) ? Alias::No : Alias::May;
}

/// A block's own shared memory is also its cluster's.
bool disjoint_spaces(Space a, Space b) {
    if (a == Space::Peer) a = Space::Shared;
    if (b == Space::Peer) b = Space::Shared;
    const auto named = [](Space space) { return space != Space::Generic && space != Space::None; };
    return a != b && named(a) && named(b);
}

bool is_raw_bytes(const Function& fn, Object object) {
    return object.kind == Object::Parameter && fn.parameters[object.number].bytes;
}
/// The buffer of an In parameter, or a parameter of raw bytes.
bool is_only_read(const Function& fn, Object object) {
    return is_raw_bytes(fn, object) ||
           (object.kind == Object::Parameter && fn.parameters[object.number].access == Access::In);
}

bool disjoint_objects(const Function& fn, Object a, Object b) {
    if (a == b || a.kind == Object::Unknown || b.kind == Object::Unknown) return false;
    if (a.kind == Object::Symbol || b.kind == Object::Symbol) {
        // Dynamic symbols that begin at one place share their memory.
        const auto dynamic = [&](Object o) { return o.kind == Object::Symbol && fn.symbols[o.number].dynamic; };
        return !(dynamic(a) && dynamic(b) && fn.symbols[a.number].offset == fn.symbols[b.number].offset);
    }
    return is_only_read(fn, a) || is_only_read(fn, b);
}

}  // namespace

Address address_of(const Function& fn, Inst inst) { return address_of(fn, inst, accesses(fn[inst])[0]); }

Address address_of(const Function& fn, Inst inst, const MemoryAccess& access) {
    Address out;
    out.base = fn.operands(inst)[access.operand];
    out.offset = access.offset, out.bytes = access.bytes, out.space = access.space;
    out.object = object_of(fn, out.base);
    strip(fn, out.base, out.offset);
    if (const Instruction* at = defined_by(fn, out.base); at && at->op == Op::At) {
        const auto form = unpack<AddressForm>(at->attribute);
        const auto operands = fn.operands(fn[out.base].instruction);
        out.base = operands[0], out.index = operands[1], out.scale = form.scale;
        out.offset += form.constant;
        strip(fn, out.base, out.offset);
    }
    return out;
}

Alias alias(const Function& fn, const Address& a, const Address& b) {
    if (disjoint_spaces(a.space, b.space)) return Alias::No;
    if (disjoint_objects(fn, a.object, b.object)) return Alias::No;
    if (!a.has_same_base(b) || a.space != b.space) return Alias::May;
    return at_offsets(a, b, fn.type(a.base));
}

bool waits_for_grids(const Function& fn) {
    return std::ranges::any_of(fn.blocks(), [&](Block block) {
        return std::ranges::any_of(fn[block].instructions, [&](Inst inst) { return fn[inst].op == Op::GridWait; });
    });
}

bool ConstantMemory::is_read_by(Inst load) const {
    const Instruction& inst = fn_[load];
    if (inst.op != Op::Load || effects(inst).orders) return false;
    if (inst.memory.space == Space::Const || inst.memory.space == Space::Param) return true;
    const Object object = address_of(fn_, load).object;
    if (is_raw_bytes(fn_, object)) return true;
    return !others_write_ && (inst.memory.cache == CacheOperator::Nc || is_only_read(fn_, object));
}

}  // namespace ikat::analysis
