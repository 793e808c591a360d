// SPDX-License-Identifier: Apache-2.0
// The operands and results of an instruction according to its row of the op table. Printer, parser and verifier use
// this one definition, so that they agree on what may be omitted.
#pragma once
#include "codegen/ir/function.hpp"
#include "codegen/ir/op/async.hpp"
#include "codegen/ir/op/families.hpp"
#include "codegen/ir/op/matrix.hpp"
#include "codegen/ir/op/wgmma.hpp"

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
constexpr Shape shape_of(Op op, Word attribute) {
    if (info(op).attribute == Attribute::Barrier) return unpack<BarrierForm>(attribute).shape();
    if (info(op).attribute == Attribute::Mbarrier) return unpack<MbarrierForm>(attribute).shape();
    return info(op).shape;
}
constexpr Shape shape_of(const Instruction& inst) { return shape_of(inst.op, inst.attribute); }

/// Whether its MemoryInfo says how it touches memory, at the address that is its first operand.
constexpr bool has_memory_info(Op op) { return info(op).shape.arguments[0] == Slot::Address; }
constexpr bool is_conversion(Op op) { return info(op).shape.arguments[0] == Slot::From; }
/// Whether the op has a second type: what it converts from, or that of its second operand.
constexpr bool has_second_type(Op op) { return info(op).from != 0; }

/// Whether its form gives the number and types of its operands and results.
constexpr bool is_matrix_product(Op op) { return info(op).attribute == Attribute::Matrix; }
constexpr bool is_wgmma(Op op) { return info(op).attribute == Attribute::Wgmma; }
constexpr bool has_matrices(Op op) { return info(op).attribute == Attribute::Matrices; }
constexpr bool is_bulk(Op op) { return info(op).attribute == Attribute::Bulk; }

/// What a product of a warpgroup adds to becomes its results.
constexpr Tie tie_of(WgmmaForm form) {
    if (form.adds == WgmmaForm::Sum::Overwrites) return {};
    return {0, std::uint16_t(form.factors()), std::uint16_t(form.registers_of_sum())};
}

/// The number of results in the row; an instruction of a variadic op may have any number more.
constexpr std::uint32_t result_count(const Instruction& inst) {
    if (is_matrix_product(inst.op)) return registers_of_sum(unpack<MatrixForm>(inst.attribute));
    if (is_wgmma(inst.op)) return unpack<WgmmaForm>(inst.attribute).registers_of_sum();
    const Shape shape = shape_of(inst);
    if (has_matrices(inst.op)) return shape.results() * unpack<MatricesForm>(inst.attribute).count;
    return shape.vector && shape.result != Slot::None ? inst.memory.count : std::uint32_t(shape.results());
}

/// The type of result `position` according to the row; Void for results beyond it.
constexpr Type result_type(const Instruction& inst, std::uint32_t position) {
    if (position >= result_count(inst)) return Type::Void;
    if (is_matrix_product(inst.op) || is_wgmma(inst.op) || has_matrices(inst.op)) return inst.type;
    return at(shape_of(inst).result_slot(position), inst.type, inst.from);
}

/// The number of operands in the row; tied ones may follow.
constexpr std::uint32_t operand_count(const Instruction& inst) {
    if (is_matrix_product(inst.op)) {
        const auto form = unpack<MatrixForm>(inst.attribute);
        return registers_of_a(form) + registers_of_b(form) + registers_of_sum(form);
    }
    if (is_wgmma(inst.op)) return unpack<WgmmaForm>(inst.attribute).operands();
    if (is_bulk(inst.op)) return unpack<BulkForm>(inst.attribute).operands();
    const Shape shape = shape_of(inst);
    if (has_matrices(inst.op) && shape.arity() > 1) return 1 + unpack<MatricesForm>(inst.attribute).count;
    const bool vector_operands = shape.vector && shape.result == Slot::None;
    return std::uint32_t(shape.arity()) + (vector_operands ? inst.memory.count - 1u : 0u);
}

/// The type of operand `position` according to the row; Void if the row leaves it open.
constexpr Type operand_type(const Instruction& inst, std::uint32_t position) {
    if (position >= operand_count(inst)) return Type::Void;
    if (is_matrix_product(inst.op)) {
        const auto form = unpack<MatrixForm>(inst.attribute);
        const std::uint32_t a = registers_of_a(form), b = registers_of_b(form);
        return position < a ? register_type(form.a) : position < a + b ? register_type(form.b) : inst.type;
    }
    if (is_wgmma(inst.op)) return unpack<WgmmaForm>(inst.attribute).operand(position);
    if (is_bulk(inst.op)) return unpack<BulkForm>(inst.attribute).operand(position);
    const Shape shape = shape_of(inst);
    const Slot slot = shape.arguments[std::min<std::uint32_t>(position, std::uint32_t(shape.arity()) - 1)];
    return slot == Slot::Address ? address_type(inst.memory.space) : at(slot, inst.type, inst.from);
}

}  // namespace ikat::ir
