// SPDX-License-Identifier: Apache-2.0
// Where an instruction touches memory: its addresses, each with its own space and offset. The only place that knows
// which operands are addresses, so that verifier, analyses, selection and emission treat all of them alike.
//
//     load.f32.v4 global [%0+16]                        reads 16 bytes of global memory
//     copy_async 8.ca, [%0+64], [%1+8], %2              writes 8 bytes of shared memory, reads 8 of global memory
//     barrier 0                                         none: what it orders is all memory (effects.hpp)
#pragma once
#include <array>

#include "codegen/ir/op/shape.hpp"

namespace ikat::ir {

struct MemoryAccess {
    std::uint32_t operand = 0;  // the address
    Space space = Space::None;
    bool reads = false, writes = false;
    std::int32_t offset = 0;  // bytes added to the address
    std::uint32_t bytes = 0;  // from there on
};

/// The accesses of one instruction, in the order of their operands.
class MemoryAccesses {
public:
    constexpr void add(const MemoryAccess& access) { all_[count_++] = access; }
    constexpr const MemoryAccess* begin() const { return all_.data(); }
    constexpr const MemoryAccess* end() const { return all_.data() + count_; }
    constexpr std::size_t size() const { return count_; }
    constexpr bool empty() const { return count_ == 0; }
    constexpr const MemoryAccess& operator[](std::size_t i) const { return all_[i]; }

private:
    std::array<MemoryAccess, 2> all_{};
    std::size_t count_ = 0;
};

/// Whether operand `position` of the op is an address.
constexpr bool is_address(Op op, std::size_t position) {
    const auto& slots = info(op).shape.arguments;
    return position < slots.size() && is_address(slots[position]);
}

/// Whether it uses the barrier of another block of the cluster.
constexpr bool is_peer_barrier(const Instruction& inst) {
    return info(inst.op).attribute == Attribute::Mbarrier &&
           unpack<MbarrierForm>(inst.attribute).reach == MbarrierForm::Reach::Peer;
}

constexpr MemoryAccesses accesses(const Instruction& inst) {
    MemoryAccesses out;
    if (!is_address(inst.op, 0)) return out;  // if there are any, operand 0 is one
    const MemoryInfo& memory = inst.memory;
    const Effects does = effects(inst);
    for (std::uint32_t i = 0; is_address(inst.op, i); ++i) switch (info(inst.op).shape.arguments[i]) {
            case Slot::ToShared:
                out.add({.operand = i,
                         .space = Space::Shared,
                         .writes = true,
                         .offset = memory.offset,
                         .bytes = has_matrices(inst.op) ? matrix_row_bytes : unpack<CopyForm>(inst.attribute).bytes});
                break;
            case Slot::FromShared:  // of the rows, the one whose address this lane has
                out.add({.operand = i,
                         .space = Space::Shared,
                         .reads = true,
                         .offset = memory.offset,
                         .bytes = matrix_row_bytes});
                break;
            case Slot::AtBarrier:
                out.add({.operand = i,
                         .space = is_peer_barrier(inst) ? Space::Peer : Space::Shared,
                         .reads = true,
                         .writes = true,
                         .offset = memory.offset,
                         .bytes = barrier_bytes});
                break;
            case Slot::FromGlobal:
                out.add({.operand = i,
                         .space = Space::Global,
                         .reads = true,
                         .offset = unpack<CopyForm>(inst.attribute).from_offset,
                         .bytes = unpack<CopyForm>(inst.attribute).bytes});
                break;
            default:
                out.add({.operand = i,
                         .space = memory.space,
                         .reads = does.reads,
                         .writes = does.writes,
                         .offset = memory.offset,
                         .bytes = std::uint32_t(memory.count * info(inst.type).bytes)});
        }
    return out;
}

/// Changes the offset of the address that is operand `position`.
constexpr void set_offset(Instruction& inst, std::uint32_t position, std::int32_t offset) {
    if (info(inst.op).shape.arguments[position] != Slot::FromGlobal) {
        inst.memory.offset = offset;
        return;
    }
    auto form = unpack<CopyForm>(inst.attribute);
    form.from_offset = offset;
    inst.attribute = pack(form);
}

}  // namespace ikat::ir
