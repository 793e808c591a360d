// SPDX-License-Identifier: Apache-2.0
// Modifiers, values and operands of the instruction that is being lowered; see lowering.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/ptx/table/special_registers.hpp"
#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

std::optional<Type> type_of(std::string_view modifier) {
    static const std::unordered_map<std::string_view, Type> types = {
        {".u8", Type::U8},        {".b8", Type::U8},       {".s8", Type::I8},         {".u16", Type::U16},
        {".b16", Type::U16},      {".s16", Type::I16},     {".u32", Type::U32},       {".b32", Type::U32},
        {".s32", Type::I32},      {".u64", Type::U64},     {".b64", Type::U64},       {".s64", Type::I64},
        {".f16", Type::F16},      {".f32", Type::F32},     {".f64", Type::F64},       {".pred", Type::Pred},
        {".bf16", Type::BF16},    {".f16x2", Type::F16x2}, {".bf16x2", Type::BF16x2}, {".e4m3x2", Type::E4M3x2},
        {".e5m2x2", Type::E5M2x2}};
    const auto found = types.find(modifier);
    if (found == types.end()) return {};
    return found->second;
}

Form::Form(const nvptx::Module& module, const nvptx::Instruction& instruction) {
    for (const nvptx::Name name : module.modifiers(instruction.modifiers)) rest_.push_back(module.text(name));
}

bool Form::take(std::string_view modifier) {
    const auto found = std::find(rest_.begin(), rest_.end(), modifier);
    if (found == rest_.end()) return false;
    rest_.erase(found);
    return true;
}

bool Form::has(std::string_view modifier) const {
    return std::find(rest_.begin(), rest_.end(), modifier) != rest_.end();
}

std::string_view Form::take_any(std::initializer_list<std::string_view> modifiers) {
    for (const std::string_view modifier : modifiers)
        if (take(modifier)) return modifier;
    return {};
}

std::optional<Type> Form::take_type() {
    for (const std::string_view modifier : rest_)
        if (const auto type = type_of(modifier)) {
            take(modifier);
            return type;
        }
    return {};
}

Rounding Form::take_rounding() {
    if (take(".rz")) return Rounding::Zero;
    if (take(".rm")) return Rounding::Down;
    if (take(".rp")) return Rounding::Up;
    take(".rn");
    return Rounding::Nearest;
}

void Form::take_cache_hints() {
    take_any({".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt"});
    std::erase_if(rest_, [](std::string_view modifier) {
        return modifier.starts_with(".L1::") || modifier.starts_with(".L2::") || modifier.starts_with(".level::");
    });
}

Value Lowering::new_value(std::uint8_t slot, std::uint8_t width) {
    values.push_back({.slot = slot, .width = width});
    return Value(values.size() - 1);
}

Value Lowering::constant(std::uint64_t bits, std::uint8_t slot) {
    if (slot == 4) bits = std::uint32_t(bits);
    auto [found, fresh] = constants_[slot / 4].try_emplace(bits);
    if (fresh) {
        found->second = new_value(slot, slot);
        values.back().kind = ValueInfo::Kind::Constant;
        values.back().bits = bits;
    }
    return found->second;
}

Value Lowering::special(Special wanted) {
    for (const Value value : specials_)
        if (values[index(value)].special == wanted) return value;
    const Value value = new_value(4, 4);
    values.back().kind = ValueInfo::Kind::Special;
    values.back().special = wanted;
    specials_.push_back(value);
    return value;
}

std::uint32_t Lowering::new_label() {
    labels.push_back(~0u);
    return std::uint32_t(labels.size() - 1);
}

Micro& Lowering::emit(Handler handler, std::uint8_t writes, std::uint8_t reads, std::array<std::uint32_t, 6> fields) {
    if (!handler) unsupported("this combination of operation and type is not known");
    Micro micro{.run = handler, .fields = fields, .reads = reads, .writes = writes};
    for (const Observer& observer : observers_)
        if (observer.op) observer.op(*this, micro);
    micro.first = std::exchange(first_, false);
    put(micro);
    return micros.back();
}

void Lowering::put(Micro micro) {
    micro.partial = guarded_;
    micro.instruction = current_;
    micros.push_back(micro);
}

void Lowering::apply(Handler handler, Value d, std::initializer_list<Value> sources, std::uint32_t x) {
    std::array<std::uint32_t, 6> fields{index(d), 0, 0, 0, x, 0};
    std::uint8_t reads = 0;
    unsigned field = 1;
    for (const Value value : sources) {
        fields[field] = index(value);
        reads |= std::uint8_t(1 << field++);
    }
    emit(handler, D, reads, fields);
}

void Lowering::count_here() {
    const bool first = std::exchange(first_, false);
    emit(count_run, 0, 0, {}).counts = true;
    first_ = first;
}

void Lowering::jump_to(std::uint32_t label) {
    Micro& micro = emit(jump, 0, 0, {});
    micro.flow = Flow::Jump;
    micro.label = label;
    micro.counts = true;
}

void Lowering::branch_to(std::uint32_t label, Value predicate, bool unless, bool uniform) {
    constexpr Handler handlers[2][2] = {{branch_if, branch_if_uniform}, {branch_unless, branch_unless_uniform}};
    Micro& micro = emit(handlers[unless][uniform], 0, A, {0, index(predicate)});
    micro.flow = Flow::Branch;
    micro.label = label;
    micro.counts = true;
}

// ---- operands

std::optional<Special> Lowering::special_register(const nvptx::Operand& operand) const {
    using Kind = Special::Kind;
    static const std::unordered_map<std::string_view, Special> names = {
        {"%laneid", {Kind::LaneId}},
        {"%warpid", {Kind::WarpId}},
        {"%nwarpid", {Kind::NwarpId}},
        {"%lanemask_eq", {Kind::Lanemask, Special::Eq}},
        {"%lanemask_lt", {Kind::Lanemask, Special::Lt}},
        {"%lanemask_le", {Kind::Lanemask, Special::Le}},
        {"%lanemask_gt", {Kind::Lanemask, Special::Gt}},
        {"%lanemask_ge", {Kind::Lanemask, Special::Ge}},
        {"%smid", {Kind::SmId}},
        {"%nsmid", {Kind::NsmId}},
        {"%gridid", {Kind::GridId}},
        {"%dynamic_smem_size", {Kind::DynamicSharedBytes}},
        {"%total_smem_size", {Kind::TotalSharedBytes}},
        {"%aggr_smem_size", {Kind::AllSharedBytes}},
        {"%reserved_smem_offset_begin", {Kind::ReservedShared, Special::Begin}},
        {"%reserved_smem_offset_end", {Kind::ReservedShared, Special::End}},
        {"%reserved_smem_offset_cap", {Kind::ReservedShared, Special::Bytes}},
        {"%reserved_smem_offset_0", {Kind::ReservedShared, Special::Begin}},
        {"%reserved_smem_offset_1", {Kind::ReservedShared, Special::Second}},
        {"%envreg1", {Kind::GridWorkspace, 1}},
        {"%envreg2", {Kind::GridWorkspace, 0}},
        {"%current_graph_exec", {Kind::Zero}},  // the launch is in no graph
        {"%cluster_ctarank", {Kind::Zero}},
        {"%cluster_nctarank", {Kind::One}}};
    static const std::unordered_map<std::string_view, Kind> vectors = {{"%tid", Kind::Tid},
                                                                       {"%ntid", Kind::Ntid},
                                                                       {"%ctaid", Kind::Ctaid},
                                                                       {"%nctaid", Kind::Nctaid},
                                                                       {"%clusterid", Kind::Ctaid},
                                                                       {"%nclusterid", Kind::Nctaid},
                                                                       {"%cluster_ctaid", Kind::Zero},
                                                                       {"%cluster_nctaid", Kind::One}};
    if (operand.kind != nvptx::Operand::Kind::Symbol) return {};
    const std::string_view name = module_.text(operand.name);
    if (const auto found = names.find(name); found != names.end()) return found->second;
    const bool is_foreign = name.starts_with("%envreg") || name.starts_with("%pm");  // the driver's, a profiler's
    if (is_foreign && nvptx::find_special_register(name)) return Special{Kind::Zero};
    const auto found = vectors.find(name);
    if (found == vectors.end()) return {};
    const std::string_view axis = module_.text(operand.suffix);
    if (axis == ".w") return Special{Kind::Zero};
    if (axis.size() != 2 || axis[1] < 'x' || axis[1] > 'z') return {};
    const bool constant = found->second == Kind::Zero || found->second == Kind::One;
    return Special{found->second, constant ? std::uint8_t(0) : std::uint8_t(axis[1] - 'x')};
}

bool Lowering::is_clock(const nvptx::Operand& operand) const {
    const std::string_view name = module_.text(operand.name);
    return name == "%clock" || name == "%clock64" || name == "%clock_hi" || name == "%globaltimer" ||
           name == "%globaltimer_lo" || name == "%globaltimer_hi";
}

std::uint64_t Lowering::literal(const nvptx::Operand& operand, Type type) const {
    using Kind = nvptx::Operand::Kind;
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
        default: unsupported("an operand of this kind is not known here");
    }
}

Value Lowering::resized(Value value, std::uint8_t slot) {
    const std::uint8_t from = values[index(value)].slot;
    if (from == slot) return value;
    if (from == 0 || slot == 0) unsupported("a predicate stands where a number is needed, or the reverse");
    if (values[index(value)].kind == ValueInfo::Kind::Constant) return constant(values[index(value)].bits, slot);
    const Value to = temporary(slot);
    // What stands above a register narrower than its slot is meaningless: extend it from its own width.
    if (slot == 8 && values[index(value)].width < 4)
        apply(select_convert(Type::U64, values[index(value)].width == 2 ? Type::U16 : Type::U8, {}, false), to,
              {value});
    else
        apply(select_move(slot, from), to, {value});
    return to;
}

Value Lowering::predicate(const nvptx::Operand& operand) {
    if (operand.kind == nvptx::Operand::Kind::Integer) return constant(operand.value ? ~0u : 0, 0);
    const bool is_name = operand.kind == nvptx::Operand::Kind::Symbol;
    if (is_name && module_.text(operand.name) == "%is_explicit_cluster") return constant(operand.negated ? ~0u : 0, 0);
    const Symbol* const symbol = is_name ? find(operand.name) : nullptr;
    if (!symbol || symbol->kind != Symbol::Kind::Register || values[index(symbol->value)].slot != 0)
        unsupported("a predicate register is needed here");
    if (!operand.negated) return symbol->value;
    const Value to = temporary(0);
    apply(predicate_not, to, {symbol->value});
    return to;
}

/// Offsets are written in few places: whoever lowers one says so, and what is left over is an error.
void Lowering::note_offsets(Operands operands) {
    for (const nvptx::Operand& operand : operands) {
        if (operand.has_offset) unused_offsets_.push_back(&operand);
        if (operand.children.count) note_offsets(module_.operands(operand.children));
    }
}

void Lowering::use_offset(const nvptx::Operand& operand) { std::erase(unused_offsets_, &operand); }

/// A source of `type`, in a slot of the type's size. %r1+4 is a sum of the register's own width, as ptxas has it.
Value Lowering::source(const nvptx::Operand& operand, Type type) {
    if (type == Type::Pred) return predicate(operand);
    const std::uint8_t slot = slot_of(type);
    if (operand.kind != nvptx::Operand::Kind::Symbol) return constant(literal(operand, type), slot);
    const Symbol* const symbol = find(operand.name);
    if (symbol && symbol->kind == Symbol::Kind::Memory) {
        use_offset(operand);
        if (!symbol->on_stack) return constant(symbol->address + operand.value, slot);
        return resized(with_offset(stack_pointer_, std::int64_t(symbol->address + operand.value)), slot);
    }
    const Value value = plain_source(operand, type);
    if (!operand.has_offset || ir::is_float(type)) return resized(value, slot);
    use_offset(operand);
    return resized(with_offset(value, std::int64_t(operand.value)), slot);
}

/// Registers and what stands for one, in a slot of its own size.
Value Lowering::plain_source(const nvptx::Operand& operand, Type type) {
    const std::uint8_t slot = slot_of(type);
    if (const auto known = special_register(operand)) return special(*known);
    if (is_clock(operand)) {
        const Value clock = temporary(8);
        apply(read_clock, clock, {});
        return module_.text(operand.name).ends_with("_hi") ? constant(0, slot) : clock;
    }
    if (module_.text(operand.name) == "WARP_SZ") return constant(warp_size, slot);
    const Symbol* const symbol = find(operand.name);
    if (!symbol) unsupported(fmt::format("'{}' is not declared", module_.text(operand.name)), "declare it with .reg");
    if (symbol->kind == Symbol::Kind::Function) {
        if (operand.has_offset) unsupported("an address inside a function means nothing");
        return constant(function_address(number_of(*symbol->function)), slot);
    }
    if (symbol->kind != Symbol::Kind::Register || symbol->is_pair || operand.suffix != nvptx::no_name ||
        operand.minus || operand.negated)
        unsupported("an operand of this kind is not known here");
    return symbol->value;
}

Lowering::Result Lowering::result(const nvptx::Operand& operand, Type type) {
    const std::uint8_t slot = slot_of(type);
    if (operand.kind == nvptx::Operand::Kind::Sink) return {temporary(slot), {}, type, false};
    const Symbol* const symbol = operand.kind == nvptx::Operand::Kind::Symbol ? find(operand.name) : nullptr;
    if (!symbol || symbol->kind != Symbol::Kind::Register || symbol->is_pair)
        unsupported("a register is needed for the result");
    const std::uint8_t to = values[index(symbol->value)].slot;
    if ((to == 0) != (slot == 0)) unsupported("the result is a predicate and the register is not, or the reverse");
    return {to == slot ? symbol->value : temporary(slot), symbol->value, type, true};
}

/// PTX ISA, operand size exceeding instruction-type size: a result is extended to the width of its register.
void Lowering::finish(const Result& result) {
    if (!result.is_register || result.type == Type::Pred) return;
    const ValueInfo& to = values[index(result.to)];
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

}  // namespace ikat::emulator
