// SPDX-License-Identifier: Apache-2.0
// Loads, stores, atomics and fences.
#include <fmt/format.h>

#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

/// The state space, .generic when none is written. `.param` stands for itself; variables know better (see address).
Space Lowering::take_space(Form& form) {
    if (form.take(".global")) return Space::Global;
    if (form.take_any({".shared", ".shared::cta", ".shared::cluster"}).size()) return Space::Shared;
    if (form.take(".local")) return Space::Local;
    if (form.take_any({".param", ".param::entry", ".param::func"}).size()) return Space::Param;
    if (form.take(".const")) return Space::Const;
    return Space::Generic;
}

/// Orders stronger than relaxed become fences: on the host, around an access that is otherwise plain.
void Lowering::take_order(Form& form, bool& before, bool& after) {
    form.take_any({".cta", ".cluster", ".gpu", ".sys"});
    before = after = false;
    const bool plain = !form.take_any({".volatile", ".weak", ".mmio"}).empty();
    if (form.take(".relaxed") || plain) return;
    if (form.take(".acquire")) after = true;
    if (form.take(".release")) before = true;
    if (form.take(".acq_rel")) before = after = true;
}

Value Lowering::with_offset(Value base, std::int64_t offset) {
    const ValueInfo info = values[index(base)];
    const std::uint8_t slot = info.slot;
    if (info.kind == ValueInfo::Kind::Constant) return constant(info.bits + std::uint64_t(offset), slot);
    const Value to = new_value(slot, info.width);
    apply(select_integer(Operation::Add, slot == 8 ? Type::U64 : Type::U32), to,
          {base, constant(std::uint64_t(offset), slot)});
    return to;
}

Lowering::AddressOperand Lowering::address(const nvptx::Operand& operand, Space space) {
    using Kind = nvptx::Operand::Kind;
    if (operand.kind != Kind::Address) unsupported("an address is needed here");
    const Operands parts = module_.operands(operand.children);
    if (parts.size() != 1) unsupported("an address of several parts is not known here");
    const std::uint8_t slot = space == Space::Shared ? 4 : 8;
    if (parts[0].kind == Kind::Integer) return {constant(parts[0].value, slot), 0, space};
    if (parts[0].kind == Kind::Element) unsupported("write the element's offset in bytes, as symbol+offset");
    if (parts[0].kind != Kind::Symbol) unsupported("an address of this kind is not known here");
    const Symbol* const symbol = find(parts[0].name);
    if (!symbol) unsupported(fmt::format("'{}' is not declared", module_.text(parts[0].name)));
    const auto offset = std::int64_t(parts[0].value);
    use_offset(parts[0]);
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

/// Before the access itself.
void Lowering::tell_observers(const AddressOperand& at, MemoryAccess access) {
    if (at.space != Space::Global && at.space != Space::Generic) return;
    access.base = at.base;
    access.offset = at.offset;
    for (const Observer& observer : observers_)
        if (observer.access) observer.access(*this, access);
}

Lowering::Access Lowering::take_access(Form& form, const nvptx::Operand& operand) {
    Access access;
    for (const char* past :
         {".volatile", ".relaxed", ".acquire", ".release", ".mmio", ".cg", ".cv", ".wt", ".L1::no_allocate"})
        if (form.has(past)) access.cached = false;
    take_order(form, access.before, access.after);
    access.at = address(operand, take_space(form));
    form.take_cache_hints();
    form.take(".nc");
    form.take(".unified");
    const std::string_view vector = form.take_any({".v2", ".v4", ".v8"});
    if (!vector.empty()) access.count = unsigned(vector[2] - '0');
    if (form.take(".b128")) {
        if (access.count > 1) unsupported("vectors of .b128 are not known");
        access.type = Type::U64;
        access.count = 2;
        return access;
    }
    const auto type = form.take_type();
    if (!type || *type == Type::Pred) unsupported("it has no type the emulator knows");
    access.type = *type;
    return access;
}

/// The two halves of a register of 128 bits.
std::vector<Value> Lowering::double_words(const nvptx::Operand& operand) {
    const Symbol* const symbol = operand.kind == nvptx::Operand::Kind::Symbol ? find(operand.name) : nullptr;
    if (!symbol || !symbol->is_pair) unsupported("a register of 128 bits is needed here");
    return {symbol->value, symbol->high};
}

/// Accesses of more than four elements or 16 bytes are made in parts of 16 bytes, their alignment checked before.
template <class F>
void Lowering::in_parts(const Access& access, std::span<const Value> elements, F f) {
    const unsigned bytes = ir::info(access.type).bytes, at_once = std::min(4u, 16 / bytes);
    Access part = access;
    if (elements.size() > at_once) {
        const std::uint8_t slot = values[index(access.at.base)].slot;
        part.at.base = temporary(slot);  // a load may overwrite its own address
        apply(select_move(slot, slot), part.at.base, {access.at.base});
        emit(check_alignment, 0, A,
             {0, index(part.at.base), unsigned(elements.size()) * bytes, slot, std::uint32_t(part.at.offset),
              std::uint32_t(part.at.space)});
    }
    for (std::size_t i = 0; i < elements.size(); i += at_once) {
        const std::span<const Value> now = elements.subspan(i, std::min<std::size_t>(at_once, elements.size() - i));
        std::array<std::uint32_t, 6> fields{};
        constexpr unsigned element_fields[4] = {0, 2, 3, 5};
        std::uint8_t used = 0;
        for (std::size_t k = 0; k < now.size(); ++k) {
            fields[element_fields[k]] = index(now[k]);
            used |= std::uint8_t(1 << element_fields[k]);
        }
        fields[1] = index(part.at.base);
        fields[4] = std::uint32_t(part.at.offset + std::int32_t(i * bytes));
        f(part.at, bytes, unsigned(now.size()), fields, used);
    }
}

void Lowering::load_elements(const Access& access, std::span<const Value> elements) {
    const unsigned bytes = ir::info(access.type).bytes;
    if (access.at.fixed) {
        const auto end = std::uint64_t(access.at.offset) + bytes * elements.size();
        if (access.at.offset < 0 || end > kernel_.parameter_bytes)
            unsupported("it reads outside of the kernel's parameters", "check the offset against the .param list");
        for (std::size_t i = 0; i < elements.size(); ++i)
            emit(select_load_parameter(bytes), D, 0,
                 {index(elements[i]), 0, 0, 0, std::uint32_t(access.at.offset) + std::uint32_t(i) * bytes});
        return;
    }
    tell_observers(access.at, {.bytes = bytes * std::uint32_t(elements.size()), .cached = access.cached});
    in_parts(access, elements,
             [&](const AddressOperand& at, unsigned size, unsigned count, const auto& fields, std::uint8_t used) {
                 emit(select_load(at.space, values[index(at.base)].slot, size, count), used, A, fields).apart = true;
             });
}

void Lowering::store_elements(const Access& access, std::span<const Value> elements) {
    const unsigned bytes = ir::info(access.type).bytes;
    tell_observers(access.at, {.bytes = bytes * std::uint32_t(elements.size()),
                               .direction = Direction::Write,
                               .cached = access.cached,
                               .of_numbers = ir::is_float(access.type)});
    in_parts(access, elements,
             [&](const AddressOperand& at, unsigned size, unsigned count, const auto& fields, std::uint8_t used) {
                 emit(select_store(at.space, values[index(at.base)].slot, size, count), 0, std::uint8_t(A | used),
                      fields);
             });
}

void Lowering::ld(Form& form, Operands operands) {
    const bool is_wide = form.has(".b128");
    const Access from = take_access(form, operands[1]);
    if (from.before) emit(fence, 0, 0, {});
    if (is_wide) {
        load_elements(from, double_words(operands[0]));
    } else {
        const bool is_vector = operands[0].kind == nvptx::Operand::Kind::Vector;
        const Operands targets = is_vector ? Operands(module_.operands(operands[0].children)) : operands.one(0);
        if (targets.size() != from.count) unsupported("the vector has another length");
        std::vector<Result> results;
        std::vector<Value> elements;
        for (const nvptx::Operand& target : targets) results.push_back(result(target, from.type));
        for (const Result& each : results) elements.push_back(each.at);
        load_elements(from, elements);
        for (const Result& each : results) finish(each);
    }
    if (from.after) emit(fence, 0, 0, {});
}

void Lowering::st(Form& form, Operands operands) {
    const bool is_wide = form.has(".b128");
    const Access to = take_access(form, operands[0]);
    std::vector<Value> elements;
    if (is_wide) {
        elements = double_words(operands[1]);
    } else {
        const bool is_vector = operands[1].kind == nvptx::Operand::Kind::Vector;
        const Operands sources = is_vector ? Operands(module_.operands(operands[1].children)) : operands.one(1);
        if (sources.size() != to.count) unsupported("the vector has another length");
        for (const nvptx::Operand& each : sources) elements.push_back(source(each, to.type));
    }
    if (to.before) emit(fence, 0, 0, {});
    store_elements(to, elements);
    if (to.after) emit(fence, 0, 0, {});
}

void Lowering::update(Form& form, const nvptx::Operand* to, Operands operands) {
    static const std::unordered_map<std::string_view, Atomic> names = {
        {".add", Atomic::Add},       {".min", Atomic::Min},        {".max", Atomic::Max}, {".inc", Atomic::Inc},
        {".dec", Atomic::Dec},       {".and", Atomic::And},        {".or", Atomic::Or},   {".xor", Atomic::Xor},
        {".exch", Atomic::Exchange}, {".cas", Atomic::CompareSwap}};
    bool before = false, after = false;
    take_order(form, before, after);
    const AddressOperand at = address(operands[0], take_space(form));
    form.take_cache_hints();
    form.take(".noftz");
    const std::string_view vector = form.take_any({".v2", ".v4", ".v8"});
    const std::string_view name =
        form.take_any({".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor", ".exch", ".cas"});
    if (form.take(".b128")) {
        if (before) emit(fence, 0, 0, {});
        update_wide(name, at, to, operands);
        if (after) emit(fence, 0, 0, {});
        return;
    }
    const auto type = form.take_type();
    if (name.empty() || !type) unsupported("it has no operation and type the emulator knows");
    if (!vector.empty()) {
        if (before) emit(fence, 0, 0, {});
        update_vector(names.at(name), *type, unsigned(vector[2] - '0'), at, to, operands);
        if (after) emit(fence, 0, 0, {});
        return;
    }
    const Result d = to ? result(*to, *type) : Result{temporary(slot_of(*type)), {}, *type, false};
    const Value base = resized(at.base, 8), b = source(operands[1], *type);
    const Value c = operands.size() > 2 ? source(operands[2], *type) : b;
    if (before) emit(fence, 0, 0, {});
    tell_observers({base, at.offset, at.space},
                   {.bytes = ir::info(*type).bytes, .direction = Direction::Atomic, .cached = false});
    emit(select_atomic(names.at(name), *type), D, A | B | C,
         {index(d.at), index(base), index(b), index(c), std::uint32_t(at.offset), std::uint32_t(at.space)})
        .apart = true;
    finish(d);
    if (after) emit(fence, 0, 0, {});
}

/// Each element by itself, as the ISA has it; the vector is aligned as a whole.
void Lowering::update_vector(Atomic atomic, Type type, unsigned count, const AddressOperand& at,
                             const nvptx::Operand* to, Operands operands) {
    const Operands sources = module_.operands(operands[1].children);
    const Operands targets = to ? Operands(module_.operands(to->children)) : Operands();
    if (sources.size() != count || (to && targets.size() != count)) unsupported("the vector has another length");
    const unsigned bytes = ir::info(type).bytes;
    const Value base = resized(at.base, 8);
    emit(check_alignment, 0, A, {0, index(base), count * bytes, 8, std::uint32_t(at.offset), std::uint32_t(at.space)});
    tell_observers({base, at.offset, at.space},
                   {.bytes = count * bytes, .direction = Direction::Atomic, .cached = false});
    std::vector<Value> old;
    for (unsigned i = 0; i < count; ++i) {
        old.push_back(temporary(slot_of(type)));
        const Value b = source(sources[i], type);
        emit(select_atomic(atomic, type), D, A | B | C,
             {index(old[i]), index(base), index(b), index(b), std::uint32_t(at.offset) + i * bytes,
              std::uint32_t(at.space)})
            .apart = true;
    }
    for (unsigned i = 0; to && i < count; ++i) {
        const Result d = result(targets[i], type);
        apply(select_move(slot_of(type), slot_of(type)), d.at, {old[i]});
        finish(d);
    }
}

/// atom.exch.b128 and atom.cas.b128
void Lowering::update_wide(std::string_view name, const AddressOperand& at, const nvptx::Operand* to,
                           Operands operands) {
    const bool compares = name == ".cas";
    if (!to || (name != ".exch" && !compares)) unsupported("128 bits are exchanged or compared and swapped");
    const Value base = resized(at.base, 8);
    const std::vector<Value> written = double_words(operands[compares ? 2 : 1]), expected = double_words(operands[1]);
    const Value low = temporary(8), high = temporary(8);
    tell_observers({base, at.offset, at.space}, {.bytes = 16, .direction = Direction::Atomic, .cached = false});
    emit(put_aside_wide_atomic(), 0, B | C, {0, 0, index(written[0]), index(written[1])});
    emit(select_wide_atomic(compares), 0, A | B | C,
         {0, index(base), index(expected[0]), index(expected[1]), std::uint32_t(at.offset), std::uint32_t(at.space)});
    emit(take_wide_atomic(), D | B, 0, {index(low), 0, index(high)});
    if (to->kind == nvptx::Operand::Kind::Sink) return;
    const std::vector<Value> d = double_words(*to);
    apply(select_move(8, 8), d[0], {low});
    apply(select_move(8, 8), d[1], {high});
}

/// A policy means nothing here: its bits are all zero, and its operands need only be there.
void Lowering::createpolicy(Form& form, Operands operands) {
    form.take_any({".fractional", ".range", ".cvt"});
    form.take(".global");
    form.take(".L2");
    form.take_cache_hints();
    form.take_type();
    const Result d = result(operands[0], Type::U64);
    emit(select_literal(8), D, 0, {index(d.at), 0, 0, 0, 0, 0});
    finish(d);
}

/// Whether an address is that of a .texref, .samplerref or .surfref of the module.
void Lowering::istypep(Form& form, Operands operands) {
    const std::string_view type = form.take_any({".texref", ".samplerref", ".surfref"});
    const Result p = result(operands[0], Type::Pred);
    const Value address = source(operands[1], Type::U64);
    emit(predicate_literal, D, 0, {index(p.at), 0, 0, 0, 0});
    for (const nvptx::Variable& variable : module_.variables) {
        if (module_.text(variable.type) != type) continue;
        for (const auto& declarator : variable.declarators) {
            const auto placed = variables_.variables.find(declarator.name);
            if (placed == variables_.variables.end()) continue;
            const Value same = temporary(0);
            apply(select_compare(Comparison::Eq, Type::U64, false), same,
                  {address, constant(placed->second.address, 8)});
            apply(predicate_or, p.at, {p.at, same});
        }
    }
}

void Lowering::atom(Form& form, Operands operands) { update(form, &operands[0], operands.from(1)); }
void Lowering::red(Form& form, Operands operands) {
    form.take(".async");
    update(form, nullptr, operands);
}

void Lowering::membar(Form& form, Operands) {
    while (!form.left().empty()) form.take(form.left());  // the strongest of them, whichever it is
    emit(fence, 0, 0, {});
}

/// Hints: prefetch, brkpt, pmevent ...
void Lowering::ignored(Form& form, Operands) {
    while (!form.left().empty()) form.take(form.left());
}

}  // namespace ikat::emulator
