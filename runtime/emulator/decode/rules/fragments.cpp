// SPDX-License-Identifier: Apache-2.0
// wmma. Which elements a thread holds is left open by the ISA; here it is what ops/matrix_fragments.cpp says. Loads and
// stores of fragments are those of their elements, with the checks that these have.
#include <bit>

#include "runtime/emulator/decode/rules/rules.hpp"
#include "runtime/emulator/ops/matrix/matrix.hpp"

namespace ikat::emulator {

namespace {

using Element = MatrixProduct::Element;
using Sum = MatrixProduct::Sum;

/// The shape, or an index after the last.
std::uint8_t take_shape(Modifiers& modifiers) {
    static constexpr std::pair<Modifier, std::uint8_t> shapes[] = {
        {Modifier::M16n16k16, 0}, {Modifier::M8n32k16, 1}, {Modifier::M32n8k16, 2}, {Modifier::M16n16k8, 3},
        {Modifier::M8n8k4, 4},    {Modifier::M8n8k32, 5},  {Modifier::M8n8k128, 6}};
    return modifiers.take_named(shapes).value_or(std::uint8_t(std::size(fragment_shapes)));
}

Modifier take_element(Modifiers& modifiers) {
    using enum Modifier;
    return modifiers.take_next({F16, F32, F64, Bf16, Tf32, U8, S8, U4, S4, B1, S32});
}

std::optional<Element> element_of(Modifier modifier) {
    static constexpr std::pair<Modifier, Element> names[] = {
        {Modifier::F16, Element::F16}, {Modifier::Bf16, Element::BF16}, {Modifier::Tf32, Element::TF32},
        {Modifier::F64, Element::F64}, {Modifier::S8, Element::S8},     {Modifier::U8, Element::U8},
        {Modifier::S4, Element::S4},   {Modifier::U4, Element::U4},     {Modifier::B1, Element::Bit}};
    for (const auto& [known, element] : names)
        if (known == modifier) return element;
    return {};
}

std::optional<Sum> sum_of(Modifier modifier) {
    static constexpr std::pair<Modifier, Sum> names[] = {
        {Modifier::F16, Sum::F16}, {Modifier::F32, Sum::F32}, {Modifier::F64, Sum::F64}, {Modifier::S32, Sum::S32}};
    for (const auto& [known, sum] : names)
        if (known == modifier) return sum;
    return {};
}

/// Whether products of this shape have a matrix of this type.
bool has_matrix(std::uint8_t shape, char matrix, Modifier type) {
    using enum Modifier;
    const bool is_sum = matrix == 'c';
    const auto is = [&](std::initializer_list<Modifier> types) {
        return std::ranges::find(types, type) != types.end();
    };
    switch (shape) {
        case 0:
        case 1:
        case 2: return is_sum ? is({F16, F32, S32}) : is({F16, Bf16, U8, S8});
        case 3: return type == (is_sum ? F32 : Tf32);
        case 4: return type == F64;
        case 5: return is_sum ? type == S32 : is({U4, S4});
        case 6: return type == (is_sum ? S32 : B1);
        default: return false;
    }
}

[[noreturn]] void refuse(Lowering& code) { code.unsupported("its shape or its types are not supported"); }

Type type_of_register(unsigned bits, bool is_float) {
    return bits == 64 ? Type::F64 : bits == 32 && is_float ? Type::F32 : Type::U32;
}

Operands registers_in(Lowering& code, const ptx::Operand& operand, std::size_t count) {
    const bool is_vector = operand.kind == ptx::Operand::Kind::Vector;
    const Operands parts =
        is_vector ? Operands(code.module.operands(operand.children)) : Operands(std::span(&operand, 1));
    if (parts.size() != count) code.unsupported("the vector's length is not that of the instruction");
    return parts;
}

/// An op for which the whole warp must be there.
Micro& emit_for_all(Lowering& code, const Behaviour& behaviour, OperandList list = {}) {
    code.count_here();
    Micro micro = micro_of(behaviour);
    micro.reads = X;
    micro.list = list;
    micro.fields[4] = index(code.constant(all_lanes, 4));
    return code.emit(micro);
}

/// A matrix in memory, and how it is distributed.
struct Fragment {
    char matrix = 'a';
    std::uint8_t shape = 0;
    unsigned bits = 16;  // of an element
    bool is_float = true;
    bool by_rows = true;
    Space space = Space::Generic;

    unsigned unit() const { return bits < 8 ? 4 : bits / 8; }  // bytes that are loaded at once
    unsigned extent(unsigned i) const {
        const auto [m, n, k] = fragment_shapes[shape];
        return matrix == 'a' ? (i ? k : m) : matrix == 'b' ? (i ? n : k) : (i ? n : m);
    }
    /// Elements of a row of a or c, or of a column of b: what the parts of the lanes follow.
    bool follows_memory() const { return by_rows == (matrix != 'b'); }
    unsigned line() const { return matrix == 'b' ? extent(0) : extent(1); }
    unsigned line_units() const { return line() * bits / (8 * unit()); }
    unsigned units() const { return extent(0) * extent(1) * bits / (8 * unit()); }
    unsigned registers() const {
        if (bits == 16 && is_half && matrix != 'c') return 8;
        return extent(0) * extent(1) * bits / (bits == 64 ? 2048 : 1024);
    }
    unsigned parts() const { return bits == 64 || bits < 8 ? 1 : 32 / bits; }  // units of a register
    bool is_half = false;
};

/// Calls f(i, address) for part i of the registers, in their order, without the parts that are there once more.
template <class F>
void each_part(Lowering& code, const Fragment& fragment, const ptx::Operand& address, const ptx::Operand* pitch, F f) {
    AddressOperand at = code.address(address, fragment.space);
    const std::uint8_t slot = code.values[index(at.base)].slot;
    const Type type = slot == 8 ? Type::U64 : Type::U32;
    const auto number = [&](std::uint64_t n) { return code.constant(n, slot); };
    const auto made = [&](Operation operation, VReg a, VReg b) {
        const VReg to = code.temporary(slot);
        code.apply(select_integer(operation, type), to, {a, b});
        return to;
    };
    const unsigned unit = fragment.unit(), line = fragment.line_units();
    // Bytes from one line in memory to the next: the pitch counts elements.
    const VReg given = pitch ? code.resized(code.source(*pitch, Type::U32), slot)
                             : number(fragment.by_rows ? fragment.extent(1) : fragment.extent(0));
    const VReg bytes = made(Op::Shr, made(Op::Mul, given, number(fragment.bits)), code.constant(3, 4));
    const bool follows = fragment.follows_memory();
    const VReg along = follows ? number(unit) : bytes, across = follows ? bytes : number(unit);
    const VReg lane = code.resized(code.special({.kind = Special::Kind::LaneId}), slot);
    const VReg in_line = made(Op::And, lane, number(line - 1));
    const VReg of_line = made(Op::Shr, lane, code.constant(std::uint64_t(std::countr_zero(line)), 4));
    VReg base = made(Op::Add, at.base, made(Op::Mul, in_line, along));
    base = made(Op::Add, base, made(Op::Mul, of_line, across));
    const VReg step = made(Op::Mul, across, number(warp_size / line));
    std::vector<AddressOperand> places;
    for (unsigned i = 0; i < fragment.units() / warp_size; ++i) {
        if (i) base = made(Op::Add, base, step);
        places.push_back({base, at.offset, at.space});
    }
    for (unsigned i = 0; i < places.size(); ++i) f(i, places[i]);
}

Fragment take_fragment(Lowering& code, Modifiers& modifiers, char matrix) {
    for (const Modifier each : {Modifier::Sync, Modifier::Aligned}) modifiers.take(each);
    Fragment fragment{.matrix = matrix, .shape = take_shape(modifiers)};
    fragment.by_rows = modifiers.take_any({Modifier::Row, Modifier::Col}) == Modifier::Row;
    fragment.space = modifiers.take_space();
    const Modifier type = take_element(modifiers);
    if (!has_matrix(fragment.shape, matrix, type)) refuse(code);
    const auto element = element_of(type);
    fragment.bits = element ? element_bits(*element) : 32;
    fragment.is_half = type == Modifier::F16;
    fragment.is_float = type != Modifier::S32;
    if (fragment.bits < 8 && !fragment.follows_memory()) refuse(code);
    return fragment;
}

void load_fragment(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Load);
    const Modifier name = modifiers.take_any({Modifier::A, Modifier::B, Modifier::C});
    const Fragment fragment = take_fragment(code, modifiers,
                                            name == Modifier::A   ? 'a'
                                            : name == Modifier::B ? 'b'
                                                                  : 'c');
    emit_for_all(code, select_meet_warp());
    const bool in_float_registers = fragment.matrix == 'c' || fragment.bits == 64;
    const Type type = type_of_register(fragment.bits, fragment.is_float && in_float_registers);
    std::vector<Result> results;
    for (const ptx::Operand& each : registers_in(code, operands[0], fragment.registers()))
        results.push_back(code.result(each, type));
    const std::uint8_t slot = slot_of(type);
    std::vector<VReg> loaded;
    each_part(code, fragment, operands[1], operands.size() > 2 ? &operands[2] : nullptr,
              [&](unsigned, const AddressOperand& at) {
                  loaded.push_back(code.temporary(slot));
                  code.tell_tools(at, {.bytes = fragment.unit()});
                  code.emit(select_load(at.space, code.values[index(at.base)].slot, fragment.unit(), 1), Field::D,
                            Field::A, {index(loaded.back()), index(at.base), 0, 0, std::uint32_t(at.offset)})
                      .apart = true;
              });
    const auto join = [&](VReg low, VReg high, unsigned bits) {
        const VReg shifted = code.temporary(4), all = code.temporary(4);
        code.apply(select_integer(Op::Shl, Type::U32), shifted, {high, code.constant(bits, 4)});
        code.apply(select_integer(Op::Or, Type::U32), all, {low, shifted});
        return all;
    };
    std::vector<VReg> cells;
    for (std::size_t i = 0; i < loaded.size(); i += fragment.parts()) {
        const VReg* const parts = loaded.data() + i;
        if (fragment.parts() == 1) cells.push_back(parts[0]);
        if (fragment.parts() == 2) cells.push_back(join(parts[0], parts[1], 16));
        if (fragment.parts() == 4) cells.push_back(join(join(parts[0], parts[1], 8), join(parts[2], parts[3], 8), 16));
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
        code.apply(select_move(slot, slot), results[r].at, {cells[r % cells.size()]});
        code.finish(results[r]);
    }
}

void store_fragment(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Store);
    modifiers.take(Modifier::D);
    const Fragment fragment = take_fragment(code, modifiers, 'c');
    emit_for_all(code, select_meet_warp());
    const Type type = type_of_register(fragment.bits, fragment.is_float);
    std::vector<VReg> sources;
    for (const ptx::Operand& each : registers_in(code, operands[1], fragment.registers()))
        sources.push_back(code.source(each, type));
    each_part(code, fragment, operands[0], operands.size() > 2 ? &operands[2] : nullptr,
              [&](unsigned i, const AddressOperand& at) {
                  VReg from = sources[i / fragment.parts()];
                  if (i % fragment.parts()) {
                      const VReg upper = code.temporary(4);
                      code.apply(select_integer(Op::Shr, Type::U32), upper, {from, code.constant(16, 4)});
                      from = upper;
                  }
                  code.tell_tools(at, {.bytes = fragment.unit(), .direction = Direction::Write});
                  code.emit(select_store(at.space, code.values[index(at.base)].slot, fragment.unit(), 1), 0,
                            std::uint8_t(Field::A | Field::D),
                            {index(from), index(at.base), 0, 0, std::uint32_t(at.offset)});
              });
}

void multiply_fragments(Lowering& code, Modifiers& modifiers, Operands operands) {
    for (const Modifier each : {Modifier::Mma, Modifier::Sync, Modifier::Aligned, Modifier::Popc, Modifier::Xor})
        modifiers.take(each);
    FragmentProduct product{.shape_number = take_shape(modifiers)};
    product.is_and = modifiers.take(Modifier::And);
    product.saturates = modifiers.take(Modifier::Satfinite);
    for (int i = 0; i < 2; ++i) modifiers.take_any({Modifier::Row, Modifier::Col});  // a matter of loading
    if (modifiers.take_rounding() != Rounding::Nearest) code.unsupported("only .rn is supported");
    std::vector<Modifier> types;
    for (Modifier type; (type = take_element(modifiers)) != Modifier::Unknown;) types.push_back(type);
    if (types.size() == 2) types = {types[0], Modifier::F16, Modifier::F16, types[1]};
    if (types.size() != 4) refuse(code);
    for (int i = 0; i < 4; ++i)
        if (!has_matrix(product.shape_number, i == 1 || i == 2 ? 'a' : 'c', types[std::size_t(i)])) refuse(code);
    const auto a = element_of(types[1]), b = element_of(types[2]);
    const auto d = sum_of(types[0]), c = sum_of(types[3]);
    const bool is_integer = types[1] == Modifier::U8 || types[1] == Modifier::S8 || element_bits(*a) < 8;
    if (element_bits(*a) != element_bits(*b) || (*d == Sum::S32) != is_integer || (*c == Sum::S32) != is_integer)
        refuse(code);
    product.a = *a, product.b = *b, product.c = *c, product.d = *d;
    if (product.saturates && *d != Sum::S32) code.unsupported("floats with .satfinite");
    const Type of_factors = *a == Element::F64 ? Type::F64 : Type::U32;
    const auto of_sums = [](Sum sum) { return sum == Sum::F64 ? Type::F64 : sum == Sum::F32 ? Type::F32 : Type::U32; };
    std::vector<Result> results;
    std::vector<VReg> to, sources;
    for (const ptx::Operand& each : registers_in(code, operands[0], product.registers_of(*d))) {
        results.push_back(code.result(each, of_sums(*d)));
        to.push_back(results.back().at);
    }
    const auto add = [&](std::size_t i, unsigned count, Type type) {
        for (const ptx::Operand& each : registers_in(code, operands[i], count))
            sources.push_back(code.source(each, type));
    };
    add(1, product.a_registers(), of_factors);
    add(2, product.b_registers(), of_factors);
    add(3, product.registers_of(*c), of_sums(*c));
    Behaviour multiply = select_fragment_product();
    multiply.info.arithmetic = arithmetic_of(product);
    emit_for_all(code, multiply, code.list(to, sources)).fields[5] = product.bits();
    for (const Result& each : results) code.finish(each);
}

constexpr RuleRow fragments_rows[] = {
    {"wmma", "load", load_fragment},
    {"wmma", "store", store_fragment},
    {"wmma", "mma", multiply_fragments},
};

}  // namespace

constinit const Family fragments_family{fragments_rows};

}  // namespace ikat::emulator
