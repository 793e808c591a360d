// SPDX-License-Identifier: Apache-2.0
// Loads, stores, atomics and fences.
#include <fmt/format.h>

#include "runtime/emulator/lowering.hpp"

namespace ikat::emulator {

/// The state space, .generic when none is written. `.param` stands for itself; variables know better (see address).
Space Lowering::take_space(Form& form) {
    if (form.take(".global")) return Space::Global;
    if (form.take_any({".shared", ".shared::cta"}).size()) return Space::Shared;
    if (form.take(".local")) return Space::Local;
    if (form.take_any({".param", ".param::entry", ".param::func"}).size()) return Space::Param;
    if (form.take(".const")) return Space::Const;
    return Space::Generic;
}

/// Orders stronger than relaxed become fences: on the host, around an access that is otherwise plain.
void Lowering::take_order(Form& form, bool& before, bool& after) {
    form.take_any({".cta", ".cluster", ".gpu", ".sys"});
    before = after = false;
    if (form.take(".volatile") || form.take(".weak") || form.take(".relaxed") || form.take(".mmio")) return;
    if (form.take(".acquire")) after = true;
    if (form.take(".release")) before = true;
    if (form.take(".acq_rel")) before = after = true;
}

Value Lowering::with_offset(Value base, std::int64_t offset) {
    const std::uint8_t slot = values[index(base)].slot;
    const Value to = temporary(slot);
    apply(select_integer(Operation::Add, slot == 8 ? Type::U64 : Type::U32), to,
          {base, constant(std::uint64_t(offset), slot)});
    return to;
}

Lowering::AddressOperand Lowering::address(const ptx::Operand& operand, Space space) {
    using Kind = ptx::Operand::Kind;
    if (operand.kind != Kind::Address) unsupported("an address is needed here");
    const Operands parts = module_.operands(operand.children);
    if (parts.size() != 1) unsupported("an address of several parts is not known here");
    const std::uint8_t slot = space == Space::Shared ? 4 : 8;
    if (parts[0].kind == Kind::Integer) return {constant(parts[0].value, slot), 0, space};
    if (parts[0].kind != Kind::Symbol) unsupported("an address of this kind is not known here");
    const Symbol* const symbol = find(parts[0].name);
    if (!symbol) unsupported(fmt::format("'{}' is not declared", module_.text(parts[0].name)));
    const auto offset = std::int64_t(parts[0].value);
    if (symbol->kind == Symbol::Kind::Memory) {
        const std::uint64_t at = symbol->address + std::uint64_t(offset);
        if (space == Space::Param && symbol->space == Space::Local) space = Space::Local;  // a parameter of a .func
        if (symbol->on_stack) {
            if (space == Space::Local) return {stack_pointer_, std::int32_t(at), space};
            return {with_offset(stack_pointer_, std::int64_t(at + window_address(Space::Local))), 0, space};
        }
        if (space == Space::Generic) {
            const std::uint64_t window = symbol->space == Space::Global ? 0 : window_address(symbol->space);
            return {constant(at + window, 8), 0, space};
        }
        const bool fixed = space == Space::Param && symbol->space == Space::Param;
        return {constant(at, space == Space::Shared ? 4 : 8), fixed ? std::int32_t(at) : 0, space, fixed};
    }
    if (symbol->kind != Symbol::Kind::Register) unsupported("an address of this kind is not known here");
    Value base = symbol->value;
    if (values[index(base)].slot == 0 || (values[index(base)].slot == 4 && space == Space::Global))
        unsupported("a 64-bit register is needed for this address");
    if (space != Space::Shared) base = resized(base, 8);
    if (offset == std::int32_t(offset)) return {base, std::int32_t(offset), space};
    return {with_offset(base, offset), 0, space};
}

void Lowering::ld(Form& form, Operands operands) {
    bool before = false, after = false;
    take_order(form, before, after);
    const AddressOperand from = address(operands[1], take_space(form));
    form.take_cache_hints();
    form.take(".nc");
    const std::string_view vector = form.take_any({".v2", ".v4"});
    form.take(".unified");
    const auto type = form.take_type();
    if (!type || *type == Type::Pred) unsupported("it has no type the emulator knows");
    const unsigned bytes = ir::info(*type).bytes;
    const bool is_vector = operands[0].kind == ptx::Operand::Kind::Vector;
    const Operands targets = is_vector ? Operands(module_.operands(operands[0].children)) : operands.one(0);
    if (targets.size() != (vector.empty() ? 1 : unsigned(vector[2] - '0')))
        unsupported("the vector has another length");
    if (before) emit(fence, 0, 0, {});

    std::vector<Result> results;
    for (const ptx::Operand& target : targets) results.push_back(result(target, *type));
    if (from.fixed) {
        const auto space_end = std::uint64_t(from.offset) + bytes * results.size();
        if (from.offset < 0 || space_end > kernel_.parameter_bytes)
            unsupported("it reads outside of the kernel's parameters", "check the offset against the .param list");
        for (std::size_t i = 0; i < results.size(); ++i)
            emit(select_load_parameter(bytes), D, 0,
                 {index(results[i].at), 0, 0, 0, std::uint32_t(from.offset) + std::uint32_t(i) * bytes});
    } else {
        constexpr unsigned element_fields[4] = {0, 2, 3, 5};
        std::array<std::uint32_t, 6> fields{};
        std::uint8_t writes = 0;
        for (std::size_t i = 0; i < results.size(); ++i) {
            fields[element_fields[i]] = index(results[i].at);
            writes |= std::uint8_t(1 << element_fields[i]);
        }
        fields[1] = index(from.base);
        fields[4] = std::uint32_t(from.offset);
        emit(select_load(from.space, values[index(from.base)].slot, bytes, unsigned(results.size())), writes, A, fields)
            .apart = true;
    }
    for (const Result& result : results) finish(result);
    if (after) emit(fence, 0, 0, {});
}

void Lowering::st(Form& form, Operands operands) {
    bool before = false, after = false;
    take_order(form, before, after);
    const AddressOperand to = address(operands[0], take_space(form));
    form.take_cache_hints();
    const std::string_view vector = form.take_any({".v2", ".v4"});
    const auto type = form.take_type();
    if (!type || *type == Type::Pred) unsupported("it has no type the emulator knows");
    const bool is_vector = operands[1].kind == ptx::Operand::Kind::Vector;
    const Operands sources = is_vector ? Operands(module_.operands(operands[1].children)) : operands.one(1);
    if (sources.size() != (vector.empty() ? 1 : unsigned(vector[2] - '0')))
        unsupported("the vector has another length");
    if (before) emit(fence, 0, 0, {});
    constexpr unsigned element_fields[4] = {0, 2, 3, 5};
    std::array<std::uint32_t, 6> fields{};
    std::uint8_t reads = A;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        fields[element_fields[i]] = index(source(sources[i], *type));
        reads |= std::uint8_t(1 << element_fields[i]);
    }
    fields[1] = index(to.base);
    fields[4] = std::uint32_t(to.offset);
    emit(select_store(to.space, values[index(to.base)].slot, ir::info(*type).bytes, unsigned(sources.size())), 0, reads,
         fields);
    if (after) emit(fence, 0, 0, {});
}

void Lowering::update(Form& form, const ptx::Operand* to, Operands operands) {
    static const std::unordered_map<std::string_view, Atomic> names = {
        {".add", Atomic::Add},       {".min", Atomic::Min},        {".max", Atomic::Max}, {".inc", Atomic::Inc},
        {".dec", Atomic::Dec},       {".and", Atomic::And},        {".or", Atomic::Or},   {".xor", Atomic::Xor},
        {".exch", Atomic::Exchange}, {".cas", Atomic::CompareSwap}};
    bool before = false, after = false;
    take_order(form, before, after);
    const AddressOperand at = address(operands[0], take_space(form));
    form.take_cache_hints();
    form.take(".noftz");
    const std::string_view name =
        form.take_any({".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor", ".exch", ".cas"});
    const auto type = form.take_type();
    if (name.empty() || !type) unsupported("it has no operation and type the emulator knows");
    const Result d = to ? result(*to, *type) : Result{temporary(slot_of(*type)), {}, *type, false};
    const Value base = resized(at.base, 8), b = source(operands[1], *type);
    const Value c = operands.size() > 2 ? source(operands[2], *type) : b;
    if (before) emit(fence, 0, 0, {});
    emit(select_atomic(names.at(name), *type), D, A | B | C,
         {index(d.at), index(base), index(b), index(c), std::uint32_t(at.offset), std::uint32_t(at.space)})
        .apart = true;
    finish(d);
    if (after) emit(fence, 0, 0, {});
}

void Lowering::atom(Form& form, Operands operands) { update(form, &operands[0], operands.from(1)); }
void Lowering::red(Form& form, Operands operands) {
    form.take(".async");
    update(form, nullptr, operands);
}

void Lowering::membar(Form& form, Operands) {
    form.take_any({".cta", ".cluster", ".gl", ".gpu", ".sys"});
    form.take_any({".sc", ".acq_rel", ".acquire", ".release"});
    form.take_any({".cta", ".cluster", ".gl", ".gpu", ".sys"});
    emit(fence, 0, 0, {});
}

/// Hints: prefetch, brkpt, pmevent ...
void Lowering::ignored(Form& form, Operands) {
    while (!form.left().empty()) form.take(form.left());
}

}  // namespace ikat::emulator
