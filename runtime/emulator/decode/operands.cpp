// SPDX-License-Identifier: Apache-2.0
// Values and operands of the current instruction; see lowering.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

VReg Lowering::new_value(std::uint8_t slot, std::uint8_t width) {
    values.push_back({.slot = slot, .width = width});
    return VReg(values.size() - 1);
}

VReg Lowering::constant(std::uint64_t bits, std::uint8_t slot) {
    if (slot == 4) bits = std::uint32_t(bits);
    auto [found, fresh] = constants_[slot / 4].try_emplace(bits);
    if (fresh) {
        found->second = new_value(slot, slot);
        values.back().kind = VRegInfo::Kind::Constant;
        values.back().bits = bits;
    }
    return found->second;
}

VReg Lowering::special(Special wanted) {
    for (const VReg value : specials_)
        if (values[index(value)].special == wanted) return value;
    const VReg value = new_value(4, 4);
    values.back().kind = VRegInfo::Kind::Special;
    values.back().special = wanted;
    specials_.push_back(value);
    return value;
}

std::uint32_t Lowering::new_label() {
    labels.push_back(~0u);
    return std::uint32_t(labels.size() - 1);
}

Micro& Lowering::emit(const Behaviour& behaviour, std::uint8_t writes, std::uint8_t reads,
                      std::array<std::uint32_t, 6> fields) {
    return emit({.run = behaviour.run, .fields = fields, .reads = reads, .writes = writes, .info = behaviour.info});
}

Micro& Lowering::emit(Micro micro, const Neighbours& neighbours) {
    if (!micro.run) unsupported("this combination of operation and type is not supported");
    if (micro.info.access.bytes && !(micro.reads & X)) micro.info.access.offset = std::int32_t(micro.fields[4]);
    if (kernel.has_products) touch_products(*this, micro);
    for (asked = 0; asked < tools_.size(); ++asked)
        if (tools_[asked]) tools_[asked]->before_op(*this, micro);
    if (neighbours.before) append_neighbour(*neighbours.before);
    if (check_) append(*std::exchange(check_, {}));
    micro.first = std::exchange(first, false);
    append(micro);
    const std::size_t at = micros.size() - 1;
    if (neighbours.after) append_neighbour(*neighbours.after);
    for (asked = 0; asked < tools_.size(); ++asked)
        if (tools_[asked] && micros.back().flow == Flow::Next) tools_[asked]->after_op(*this, micro);
    return micros[at];
}

void Lowering::tell_tools_of_block(std::uint32_t begin, std::uint32_t end) {
    for (asked = 0; asked < tools_.size(); ++asked)
        if (tools_[asked]) tools_[asked]->after_block(*this, begin, end);
}

OperandList Lowering::list(std::span<const VReg> results, std::span<const VReg> sources) {
    const OperandList list{std::uint32_t(listed.size()), std::uint32_t(results.size()),
                           std::uint32_t(results.size() + sources.size())};
    listed.insert(listed.end(), results.begin(), results.end());
    listed.insert(listed.end(), sources.begin(), sources.end());
    return list;
}

void Lowering::put(Micro micro) {
    if (micro.info.operation == OwnOp::Unknown) micro.info.operation = OwnOp::Watch;
    if (!micro.checks) return append(micro);
    IKAT_ASSERT(!check_, "two tools check the same op");
    check_ = micro;
}

void Lowering::append_neighbour(Micro micro) {
    if (kernel.is_checked() && micro.info.checked) micro.run = micro.info.checked;
    micro.first = std::exchange(first, false);
    append(micro);
}

void Lowering::append(const Micro& micro) {
    Micro& last = micros.emplace_back(micro);
    last.partial = guarded_;
    last.instruction = current;
}

void Lowering::apply(const Behaviour& behaviour, VReg d, std::initializer_list<VReg> sources, std::uint32_t x) {
    std::array<std::uint32_t, 6> fields{index(d), 0, 0, 0, x, 0};
    std::uint8_t reads = 0;
    unsigned field = 1;
    for (const VReg value : sources) {
        fields[field] = index(value);
        reads |= std::uint8_t(1 << field++);
    }
    emit(behaviour, D, reads, fields);
}

void Lowering::count_here() {
    const bool is_first = std::exchange(first, false);
    emit({count_run, {OwnOp::Count}}, 0, 0, {}).counts = true;
    first = is_first;
}

void Lowering::jump_to(std::uint32_t label) {
    Micro micro = micro_of({jump, {OwnOp::Branch}});
    micro.flow = Flow::Jump;
    micro.label = label;
    micro.counts = true;
    emit(micro);
}

void Lowering::branch_to(std::uint32_t label, VReg predicate, bool unless, bool uniform) {
    constexpr Handler handlers[2][2] = {{branch_if, branch_if_uniform}, {branch_unless, branch_unless_uniform}};
    Micro micro = micro_of({handlers[unless][uniform], {.operation = OwnOp::Branch, .use = DefinedUse::Branch}});
    micro.fields = {0, index(predicate)};
    micro.reads = A;
    micro.flow = Flow::Branch;
    micro.label = label;
    micro.counts = true;
    emit(micro);
}

// ---- operands

std::uint64_t Lowering::literal(const ptx::Operand& operand, Type type) const {
    using Kind = ptx::Operand::Kind;
    switch (operand.kind) {
        case Kind::Integer:
            if (type == Type::F32) return std::bit_cast<std::uint32_t>(float(std::int64_t(operand.value)));
            if (type == Type::F64) return std::bit_cast<std::uint64_t>(double(std::int64_t(operand.value)));
            return operand.value;
        case Kind::Float32:
            if (type == Type::F64)
                return std::bit_cast<std::uint64_t>(double(std::bit_cast<float>(std::uint32_t(operand.value))));
            return operand.value;
        case Kind::Float64: {
            const double value = std::bit_cast<double>(operand.value);
            if (type == Type::F16) return half(value).bits;
            if (type == Type::BF16) return bfloat16(value).bits;
            return slot_of(type) == 8 ? operand.value : std::bit_cast<std::uint32_t>(float(value));
        }
        default: unsupported("an operand of this kind is not supported here");
    }
}

VReg Lowering::resized(VReg value, std::uint8_t slot) {
    const std::uint8_t from = values[index(value)].slot;
    if (from == slot) return value;
    if (from == 0 || slot == 0) unsupported("a predicate is used as a number, or a number as a predicate");
    if (values[index(value)].kind == VRegInfo::Kind::Constant) return constant(values[index(value)].bits, slot);
    const VReg to = temporary(slot);
    // The bits above a register narrower than its slot are undefined: extend it from its own width.
    if (slot == 8 && values[index(value)].width < 4)
        apply(select_convert(Type::U64, values[index(value)].width == 2 ? Type::U16 : Type::U8, {}, false), to,
              {value});
    else
        apply(select_move(slot, from), to, {value});
    return to;
}

VReg Lowering::predicate(const ptx::Operand& operand) {
    if (operand.kind == ptx::Operand::Kind::Integer) return constant(operand.value ? ~0u : 0, 0);
    const bool is_name = operand.kind == ptx::Operand::Kind::Symbol;
    if (is_name && module.text(operand.name) == "%is_explicit_cluster")
        return constant(operand.negated != kernel.names_cluster ? ~0u : 0, 0);
    const Binding* const binding = is_name ? find(operand.name) : nullptr;
    if (!binding || binding->kind != Binding::Kind::Register || values[index(binding->value)].slot != 0)
        unsupported("a predicate register is needed here");
    if (!operand.negated) return binding->value;
    const VReg to = temporary(0);
    apply(select_predicate(Op::Not), to, {binding->value});
    return to;
}

/// Only a few operands may have offsets: code that uses one removes it from the list, and any left over is an error.
void Lowering::note_offsets(Operands operands) {
    for (const ptx::Operand& operand : operands) {
        if (operand.has_offset) unused_offsets_.push_back(&operand);
        if (operand.children.count) note_offsets(module.operands(operand.children));
    }
}

void Lowering::use_offset(const ptx::Operand& operand) { std::erase(unused_offsets_, &operand); }

/// A source of `type`, in a slot of the type's size. %r1+4 is a sum of the register's own width, as ptxas has it.
VReg Lowering::source(const ptx::Operand& operand, Type type) {
    if (type == Type::Pred) return predicate(operand);
    const std::uint8_t slot = slot_of(type);
    if (operand.kind != ptx::Operand::Kind::Symbol) return constant(literal(operand, type), slot);
    const Binding* const binding = find(operand.name);
    if (binding && binding->kind == Binding::Kind::Memory) {
        use_offset(operand);
        if (!binding->on_stack) return constant(binding->address + operand.value, slot);
        return resized(with_offset(stack_pointer, std::int64_t(binding->address + operand.value)), slot);
    }
    const VReg value = plain_source(operand, binding, type);
    if (!operand.has_offset || ir::is_float(type)) return resized(value, slot);
    use_offset(operand);
    return resized(with_offset(value, std::int64_t(operand.value)), slot);
}

/// Registers and register-like symbols, in a slot of their own size.
VReg Lowering::plain_source(const ptx::Operand& operand, const Binding* binding, Type type) {
    const std::uint8_t slot = slot_of(type);
    if (binding && binding->kind == Binding::Kind::Register && !binding->is_pair && operand.suffix == ptx::no_name &&
        !operand.minus && !operand.negated)
        return binding->value;
    if (const auto known = special_register(module, operand)) return special(*known);
    if (is_clock(module, operand)) {
        const VReg clock = temporary(8);
        apply({read_clock, {.operation = Op::Sample, .effects = Changes}}, clock, {});
        return module.text(operand.name).ends_with("_hi") ? constant(0, slot) : clock;
    }
    if (module.text(operand.name) == "WARP_SZ") return constant(warp_size, slot);
    if (!binding) unsupported(fmt::format("'{}' is not declared", module.text(operand.name)), "declare it with .reg");
    if (binding->kind != Binding::Kind::Function) unsupported("an operand of this kind is not supported here");
    if (operand.has_offset) unsupported("an address inside a function means nothing");
    return constant(function_address(number_of(*binding->function)), slot);
}

Result Lowering::result(const ptx::Operand& operand, Type type) {
    const std::uint8_t slot = slot_of(type);
    if (operand.kind == ptx::Operand::Kind::Sink) return {temporary(slot), {}, type, false};
    const Binding* const binding = operand.kind == ptx::Operand::Kind::Symbol ? find(operand.name) : nullptr;
    if (!binding || binding->kind != Binding::Kind::Register || binding->is_pair)
        unsupported("a register is needed for the result");
    const std::uint8_t to = values[index(binding->value)].slot;
    if ((to == 0) != (slot == 0)) unsupported("only one of the result and its register is a predicate");
    return {to == slot ? binding->value : temporary(slot), binding->value, type, true};
}

/// PTX ISA, operand size exceeding instruction-type size: a result is extended to the width of its register.
void Lowering::finish(const Result& result) {
    if (!result.is_register || result.type == Type::Pred) return;
    const VRegInfo& to = values[index(result.to)];
    const bool is_signed = ir::is_signed(result.type) && !ir::is_float(result.type);
    if (result.at == result.to && (!is_signed || to.width <= ir::info(result.type).bytes)) return;
    if (to.slot < slot_of(result.type)) {
        apply(select_move(4, 8), result.to, {result.at});
        return;
    }
    const Type wide = to.slot == 8 ? (is_signed ? Type::I64 : Type::U64) : Type::I32;
    const Type narrow = is_signed                          ? result.type
                        : ir::info(result.type).bytes == 1 ? Type::U8
                        : ir::info(result.type).bytes == 2 ? Type::U16
                                                           : Type::U32;
    apply(select_convert(wide, narrow, {}, false), result.to, {result.at});
}

VReg Lowering::with_offset(VReg base, std::int64_t offset) {
    const VRegInfo info = values[index(base)];
    const std::uint8_t slot = info.slot;
    if (info.kind == VRegInfo::Kind::Constant) return constant(info.bits + std::uint64_t(offset), slot);
    const VReg to = new_value(slot, info.width);
    apply(select_integer(Op::Add, slot == 8 ? Type::U64 : Type::U32), to,
          {base, constant(std::uint64_t(offset), slot)});
    return to;
}

/// .shared::cluster, as a generic address. The sum is made before it is widened, because it wraps at 32 bits.
AddressOperand Lowering::address_in_cluster(const ptx::Operand& operand) {
    const AddressOperand own = address(operand, Space::Shared);
    if (kernel.blocks_in_cluster() == 1) return own;
    const VReg sum = own.offset ? with_offset(own.base, own.offset) : own.base;
    return {with_offset(resized(sum, 8), window_address(Space::Shared)), 0, Space::Generic};
}

AddressOperand Lowering::address(const ptx::Operand& operand, Space space) {
    if (space == Space::Cluster) return address_in_cluster(operand);
    using Kind = ptx::Operand::Kind;
    if (operand.kind != Kind::Address) unsupported("an address is needed here");
    const Operands parts = module.operands(operand.children);
    if (parts.size() != 1) unsupported("an address of several parts is not supported here");
    const std::uint8_t slot = space == Space::Shared ? 4 : 8;
    if (parts[0].kind == Kind::Integer) return {constant(parts[0].value, slot), 0, space};
    if (parts[0].kind == Kind::Element) unsupported("write the element's offset in bytes, as name+offset");
    if (parts[0].kind != Kind::Symbol) unsupported("an address of this kind is not supported here");
    const Binding* const binding = find(parts[0].name);
    if (!binding) unsupported(fmt::format("'{}' is not declared", module.text(parts[0].name)));
    const auto offset = std::int64_t(parts[0].value);
    use_offset(parts[0]);
    if (binding->kind == Binding::Kind::Memory) {
        const std::uint64_t at = binding->address + std::uint64_t(offset);
        if (space == Space::Param && binding->space == Space::Local) space = Space::Local;  // a parameter of a .func
        if (binding->on_stack) {
            if (space == Space::Local) return {stack_pointer, std::int32_t(at), space};
            return {with_offset(stack_pointer, std::int64_t(at + window_address(Space::Local))), 0, space};
        }
        if (space == Space::Generic) {
            const std::uint64_t window = binding->space == Space::Global ? 0 : window_address(binding->space);
            return {constant(at + window, 8), 0, space};
        }
        const bool fixed = space == Space::Param && binding->space == Space::Param;
        return {constant(at, space == Space::Shared ? 4 : 8), fixed ? std::int32_t(at) : 0, space, fixed};
    }
    if (binding->kind != Binding::Kind::Register) unsupported("an address of this kind is not supported here");
    VReg base = binding->value;
    if (values[index(base)].slot == 0 || (values[index(base)].slot == 4 && space == Space::Global))
        unsupported("a 64-bit register is needed for this address");
    if (space != Space::Shared) base = resized(base, 8);
    if (offset == std::int32_t(offset)) return {base, std::int32_t(offset), space};
    return {with_offset(base, offset), 0, space};
}

/// Called before the access itself.
void Lowering::tell_tools(const AddressOperand& at, MemoryAccess access) {
    if (at.space != Space::Global && at.space != Space::Shared && at.space != Space::Generic) return;
    access.base = at.base;
    access.offset = at.offset;
    access.space = at.space;
    for (asked = 0; asked < tools_.size(); ++asked)
        if (tools_[asked]) tools_[asked]->before_access(*this, access);
}

}  // namespace ikat::emulator
