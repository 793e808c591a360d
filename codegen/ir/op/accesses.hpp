// SPDX-License-Identifier: Apache-2.0
// Where an instruction touches memory: its addresses, each with its own space and offset. The only place that knows
// which operands are addresses, so that verifier, analyses, selection and emission treat all of them alike.
//
//     load.f32.v4 global [%0+16]                        reads 16 bytes of global memory
//     copy_async 8.ca, [%0+64], [%1+8], %2              writes 8 bytes of shared memory, reads 8 of global memory
//     barrier 0                                         none: what it orders is all memory (effects.hpp)
#pragma once
#include <array>
#include <optional>

#include "codegen/ir/op/shape.hpp"

namespace ikat::ir {

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

/// What a form adds to what its row says of an access.
MemoryAccess access_of_form(Op op, Form form, const MemoryAccess& row);
/// The form with another offset of the address that is operand `operand`, if it is the form that has it.
std::optional<Form> form_moved(Op op, Form form, std::uint32_t operand, std::int32_t offset);

/// Of operand `operand`, as the row says.
constexpr MemoryAccess access_of_row(const Instruction& inst, std::uint32_t operand, const Effects& does) {
    MemoryAccess out{.operand = operand, .space = Space::Shared, .offset = inst.memory.offset};
    switch (info(inst.op).shape.arguments[operand]) {
        case Slot::ToShared: out.writes = true; break;
        case Slot::FromShared: out.reads = true; break;
        case Slot::FromGlobal: out.space = Space::Global, out.reads = true; break;
        case Slot::AtBarrier: out.reads = out.writes = true, out.bytes = 8; break;
        default:
            out.space = inst.memory.space, out.reads = does.reads, out.writes = does.writes;
            out.bytes = std::uint32_t(inst.memory.count * info(inst.type).bytes);
    }
    return out;
}

inline MemoryAccesses accesses(const Instruction& inst) {
    MemoryAccesses out;
    if (!is_address(inst.op, 0)) return out;  // if there are any, operand 0 is one
    const Effects does = effects(inst);
    for (std::uint32_t i = 0; is_address(inst.op, i); ++i) {
        const MemoryAccess row = access_of_row(inst, i, does);
        out.add(has_form(inst.op) ? access_of_form(inst.op, inst.attribute, row) : row);
    }
    return out;
}

/// Changes the offset of the address that is operand `position`.
inline void set_offset(Instruction& inst, std::uint32_t position, std::int32_t offset) {
    if (const auto moved = form_moved(inst.op, inst.attribute, position, offset))
        inst.attribute = *moved;
    else
        inst.memory.offset = offset;
}

}  // namespace ikat::ir
