// SPDX-License-Identifier: Apache-2.0
// The operands and results of an instruction according to its row of the op table. Printer, parser and verifier use
// this one definition, so that they agree on what may be omitted.
#pragma once
#include "codegen/ir/function.hpp"

namespace ikat::ir {

/// The type of an address in `space`; Void if both widths are in use.
constexpr Type address_type(Space space) {
    switch (space) {
        case Space::Shared:
        case Space::Peer:
        case Space::Local: return Type::U32;
        case Space::Generic:
        case Space::Global: return Type::U64;
        default: return Type::Void;
    }
}

/// The row's, or the form's.
Shape shape_of_form(Op op, Form form);
inline Shape shape_of(Op op, Form form) { return has_form(op) ? shape_of_form(op, form) : info(op).shape; }
inline Shape shape_of(const Instruction& inst) { return shape_of(inst.op, inst.attribute); }

/// Whether its MemoryInfo says how it touches memory, at the address that is its first operand.
constexpr bool has_memory_info(Op op) { return info(op).shape.arguments[0] == Slot::Address; }
constexpr bool is_conversion(Op op) { return info(op).shape.arguments[0] == Slot::From; }
/// Whether the op has a second type: what it converts from, or that of its second operand.
constexpr bool has_second_type(Op op) { return info(op).from != 0; }

/// The number of results in the row; an instruction of a variadic op may have any number more.
constexpr std::uint32_t result_count(const Shape& shape, const MemoryInfo& memory) {
    return shape.vector && shape.result != Slot::None ? memory.count : shape.results();
}
inline std::uint32_t result_count(const Instruction& inst) { return result_count(shape_of(inst), inst.memory); }

/// The type of result `position` according to the row; Void for results beyond it.
inline Type result_type(const Instruction& inst, std::uint32_t position) {
    const Shape shape = shape_of(inst);
    if (position >= result_count(shape, inst.memory)) return Type::Void;
    return at(shape.result_slot(position), inst.type, inst.from);
}

/// The number of operands in the row; tied ones may follow.
constexpr std::uint32_t operand_count(const Shape& shape, const MemoryInfo& memory) {
    const bool vector_operands = shape.vector && shape.result == Slot::None;
    return shape.arity() + (vector_operands ? memory.count - 1u : 0u);
}
inline std::uint32_t operand_count(const Instruction& inst) { return operand_count(shape_of(inst), inst.memory); }

/// The type of operand `position` according to the row; Void if the row leaves it open.
inline Type operand_type(const Instruction& inst, std::uint32_t position) {
    const Shape shape = shape_of(inst);
    if (position >= operand_count(shape, inst.memory)) return Type::Void;
    const Slot slot = shape.argument_slot(position);
    return slot == Slot::Address ? address_type(inst.memory.space) : at(slot, inst.type, inst.from);
}

/// What the verifier asks a form.
struct FormCheck {
    std::string_view noun{};
    bool exists = true;
    Type type = Type::Void;      // of an instruction of this form
    std::string_view problem{};  // a sentence without a full stop
};
FormCheck check_form(Op op, Form form, Type type);

}  // namespace ikat::ir
