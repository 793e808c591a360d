// SPDX-License-Identifier: Apache-2.0
// The operands and results of an instruction according to its row of the op table. Printer, parser and verifier use
// this one definition, so that they agree on what may be omitted.
#pragma once
#include "codegen/ir/function.hpp"
#include "codegen/ir/op/families.hpp"

namespace ikat::ir {

/// The type of an address in `space`; Void if both widths are in use.
constexpr Type address_type(Space space) {
    switch (space) {
        case Space::Shared:
        case Space::Local: return Type::U32;
        case Space::Generic:
        case Space::Global: return Type::U64;
        default: return Type::Void;
    }
}

constexpr Shape shape_of(const Instruction& inst) { return shape_of(inst.op, inst.attribute); }

/// Whether its MemoryInfo says how it touches memory, at the address that is its first operand.
constexpr bool has_memory_info(Op op) { return info(op).shape.arguments[0] == Slot::Address; }
constexpr bool is_conversion(Op op) { return info(op).shape.arguments[0] == Slot::From; }
/// Whether the op has a second type: what it converts from, or that of its second operand.
constexpr bool has_second_type(Op op) { return info(op).from != 0; }

/// The number of results in the row; an instruction of a variadic op may have any number more.
constexpr std::uint32_t result_count(const Instruction& inst) {
    const Shape shape = shape_of(inst);
    return shape.vector && shape.result != Slot::None ? inst.memory.count : std::uint32_t(shape.results());
}

/// The type of result `position` according to the row; Void for results beyond it.
constexpr Type result_type(const Instruction& inst, std::uint32_t position) {
    if (position >= result_count(inst)) return Type::Void;
    return at(shape_of(inst).result_slot(position), inst.type, inst.from);
}

/// The number of operands in the row; tied ones may follow.
constexpr std::uint32_t operand_count(const Instruction& inst) {
    const Shape shape = shape_of(inst);
    const bool vector_operands = shape.vector && shape.result == Slot::None;
    return std::uint32_t(shape.arity()) + (vector_operands ? inst.memory.count - 1u : 0u);
}

/// The type of operand `position` according to the row; Void if the row leaves it open.
constexpr Type operand_type(const Instruction& inst, std::uint32_t position) {
    if (position >= operand_count(inst)) return Type::Void;
    const Shape shape = shape_of(inst);
    const Slot slot = shape.arguments[std::min<std::uint32_t>(position, std::uint32_t(shape.arity()) - 1)];
    return slot == Slot::Address ? address_type(inst.memory.space) : at(slot, inst.type, inst.from);
}

}  // namespace ikat::ir
