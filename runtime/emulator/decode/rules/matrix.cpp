// SPDX-License-Identifier: Apache-2.0
// Matrices that are distributed over the threads of a warp (ops/matrix.hpp).
#include <fmt/format.h>

#include "codegen/ptx/table/fragments.hpp"
#include "runtime/emulator/decode/rules/rules.hpp"
#include "runtime/emulator/ops/matrix/matrix.hpp"

namespace ikat::emulator {

namespace {

using Element = MatrixProduct::Element;
using Sum = MatrixProduct::Sum;

/// The type of a register that holds elements of c or d.
Type register_of(Sum sum) {
    return sum == Sum::F64 ? Type::F64 : sum == Sum::F32 ? Type::F32 : sum == Sum::S32 ? Type::I32 : Type::U32;
}

Operands parts_of(Lowering& code, const ptx::Operand& operand, std::size_t count) {
    const bool is_vector = operand.kind == ptx::Operand::Kind::Vector;
    const Operands parts =
        is_vector ? Operands(code.module.operands(operand.children)) : Operands(std::span(&operand, 1));
    if (parts.size() != count) code.unsupported("the vector's length is not that of the instruction");
    return parts;
}

std::vector<Result> results_of(Lowering& code, const ptx::Operand& operand, std::size_t count, Type type) {
    std::vector<Result> results;
    for (const ptx::Operand& each : parts_of(code, operand, count)) results.push_back(code.result(each, type));
    return results;
}

void add_sources(Lowering& code, std::vector<VReg>& all, const ptx::Operand& operand, std::size_t count, Type type) {
    for (const ptx::Operand& each : parts_of(code, operand, count)) all.push_back(code.source(each, type));
}

/// Emits an op of the whole warp: d is a list, x the members, for which it waits.
Micro& emit_together(Lowering& code, Micro micro, std::span<const Result> results, std::span<const VReg> sources) {
    std::vector<VReg> to;
    for (const Result& each : results) to.push_back(each.at);
    code.count_here();
    micro.fields[4] = index(code.constant(all_lanes, 4));
    micro.reads |= X;
    micro.list = code.list(to, sources);
    return code.emit(micro);
}

/// Of a sparse a: which threads hold its metadata.
void take_metadata(Lowering& code, const Modifiers& modifiers, Operands operands, MatrixProduct& product) {
    product.is_sparse = true;
    product.is_ordered = modifiers.has(Modifier::SpOrderedMetadata);
    const SparseRows rows = SparseRows::of(product);
    const ptx::Operand& selector = operands[5];
    if (selector.kind != ptx::Operand::Kind::Integer || selector.value >= rows.selectors())
        code.refuse(FaultCode::WrongImmediate,
                    fmt::format("the sparsity selector of this shape is from 0 to {}", rows.selectors() - 1));
    product.selector = std::uint8_t(selector.value);
}

void mma(Lowering& code, Modifiers& modifiers, Operands operands) {
    const ptx::Match match = ptx::match(code.module, *code.current);
    const auto a = element_named(match.elements[1].type), b = element_named(match.elements[2].type);
    const auto d = sum_named(match.elements[0].type), c = sum_named(match.elements[3].type);
    if (!a || !b || !c || !d || match.problems || match.shape.k == 0)
        code.unsupported("its shape or its types are not supported");
    const bool quads = *a == Element::F16 && match.shape.k == 4;
    using enum Modifier;
    const bool a_columns = modifiers.take_next({Row, Col}) == Col, b_rows = modifiers.take_next({Row, Col}) == Row;
    const unsigned held = *a == Element::F64 ? 4 : 128 / element_bits(*a);  // elements of a row, in a register
    MatrixProduct product{.a = *a,
                          .b = *b,
                          .c = *c,
                          .d = *d,
                          .row_blocks = std::uint8_t(match.shape.m / 8),
                          .k_blocks = std::uint8_t(quads ? 1 : match.shape.k / held),
                          .saturates = modifiers.has(Satfinite),
                          .is_and = modifiers.has(And),
                          .of_quads = quads,
                          .a_columns = a_columns,
                          .b_rows = b_rows};
    const bool is_sparse = modifiers.has(Sp) || modifiers.has(SpOrderedMetadata);
    if (is_sparse) take_metadata(code, modifiers, operands, product);
    modifiers.take_all();  // they match the form
    const Type of_factors = *a == Element::F64 ? Type::F64 : *a == Element::TF32 ? Type::F32 : Type::U32;
    const std::vector<Result> results = results_of(code, operands[0], product.registers_of(*d), register_of(*d));
    std::vector<VReg> sources;
    add_sources(code, sources, operands[1], product.a_registers(), of_factors);
    add_sources(code, sources, operands[2], product.b_registers(), of_factors);
    add_sources(code, sources, operands[3], product.registers_of(*c), register_of(*c));
    if (is_sparse) sources.push_back(code.source(operands[4], Type::U32));
    Micro micro = micro_of(select_matrix_product(kind_of(product)));
    micro.info.arithmetic = arithmetic_of(product);
    micro.fields[5] = product.bits();
    emit_together(code, micro, results, sources);
    for (const Result& each : results) code.finish(each);
}

/// How many matrices: .x1, .x2 or .x4.
unsigned take_count(Modifiers& modifiers) {
    using enum Modifier;
    if (modifiers.take(X4)) return 4;
    return modifiers.take(X2) ? 2 : (modifiers.take(X1), 1);
}

/// The op of ldmatrix and stmatrix, without its registers.
Micro matrix_access(Lowering& code, Modifiers& modifiers, const ptx::Operand& address, const Behaviour& behaviour) {
    for (const Modifier each : {Modifier::Sync, Modifier::Aligned, Modifier::M8n8, Modifier::B16}) modifiers.take(each);
    MatrixAccess access{.matrices = std::uint8_t(take_count(modifiers)), .transposes = modifiers.take(Modifier::Trans)};
    const Space space = modifiers.take_space();
    if (space != Space::Shared && space != Space::Generic) code.unsupported("matrices are in shared memory");
    const AddressOperand at = code.address(address, space);
    access.is_generic = space == Space::Generic;
    access.is_wide = code.values[index(at.base)].slot == 8;
    const std::uint32_t lanes = access.matrices == 4 ? all_lanes : (1u << 8 * access.matrices) - 1;
    Micro micro = micro_of(behaviour);
    micro.fields = {0, index(at.base), std::uint32_t(at.offset), 0, 0, access.bits()};
    micro.reads = A;
    micro.info.access.space = space;
    micro.info.access.lanes = lanes;
    micro.info.access.offset = at.offset;
    return micro;
}

void ldmatrix(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Micro micro = matrix_access(code, modifiers, operands[1], select_load_matrices());
    const std::vector<Result> results =
        results_of(code, operands[0], MatrixAccess::of(micro.fields[5]).matrices, Type::U32);
    emit_together(code, micro, results, {});
    for (const Result& each : results) code.finish(each);
}

void stmatrix(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Micro micro = matrix_access(code, modifiers, operands[0], select_store_matrices());
    std::vector<VReg> sources;
    add_sources(code, sources, operands[1], MatrixAccess::of(micro.fields[5]).matrices, Type::U32);
    emit_together(code, micro, {}, sources);
}

void movmatrix(Lowering& code, Modifiers& modifiers, Operands operands) {
    for (const Modifier each : {Modifier::Sync, Modifier::Aligned, Modifier::M8n8, Modifier::Trans, Modifier::B16})
        modifiers.take(each);
    const Result d = code.result(operands[0], Type::U32);
    const VReg a = code.source(operands[1], Type::U32);
    code.count_here();
    code.emit(select_transpose_matrix(), D, A | X, {index(d.at), index(a), 0, 0, index(code.constant(all_lanes, 4))});
    code.finish(d);
}

constexpr RuleRow matrix_rows[] = {
    {"ldmatrix", ldmatrix},
    {"ldmatrix", "m16n16", not_run},
    {"ldmatrix", "m8n16", not_run},
    {"stmatrix", stmatrix},
    {"stmatrix", "m16n8", not_run},
    {"movmatrix", movmatrix},
    {"mma", mma},
    {"mma", "sp", mma},
    {"mma", "sp kind::f8f6f4", not_run},
    {"mma", "sp block_scale", not_run},
    {"mma", "kind::f8f6f4", not_run},
    {"mma", "block_scale", not_run},
};

}  // namespace

constinit const Family matrix_family{matrix_rows};

std::optional<MatrixProduct::Element> element_named(std::string_view name) {
    static constexpr std::pair<std::string_view, MatrixProduct::Element> names[] = {
        {"f16", Element::F16},   {"bf16", Element::BF16}, {"tf32", Element::TF32}, {"f64", Element::F64},
        {"e4m3", Element::E4M3}, {"e5m2", Element::E5M2}, {"s8", Element::S8},     {"u8", Element::U8},
        {"s4", Element::S4},     {"u4", Element::U4},     {"b1", Element::Bit}};
    for (const auto& [known, element] : names)
        if (known == name) return element;
    return {};
}

std::optional<MatrixProduct::Sum> sum_named(std::string_view name) {
    static constexpr std::pair<std::string_view, MatrixProduct::Sum> names[] = {
        {"f16", Sum::F16}, {"f32", Sum::F32}, {"f64", Sum::F64}, {"s32", Sum::S32}};
    for (const auto& [known, sum] : names)
        if (known == name) return sum;
    return {};
}

}  // namespace ikat::emulator
