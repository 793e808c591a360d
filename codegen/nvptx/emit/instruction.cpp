// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/emit/instruction.hpp"

#include <algorithm>

#include "codegen/ir/op/forms/all.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/nvptx/emit/inline.hpp"
#include "codegen/nvptx/spelling/mnemonic.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Op, ir::Type, ir::Value, ir::Word;

std::int64_t sign_extend(Word bits, int width) { return std::int64_t(bits << (64 - width)) >> (64 - width); }

}  // namespace

Names unique_names(const ir::Function& fn, const ptx::Module& module) {
    Names names;
    std::vector<std::string> taken{fn.name, "WARP_SZ", "vprintf"};  // PTX reserves WARP_SZ; prints call vprintf:
    for (const ptx::Function& function : module.functions) taken.emplace_back(module.text(function.name));
    const auto give = [&](std::string name) {
        while (std::ranges::find(taken, name) != taken.end()) name += '_';
        return taken.emplace_back(std::move(name));
    };
    for (const ir::Parameter& parameter : fn.parameters) names.parameters.push_back(give(parameter.name));
    for (const ir::Symbol& symbol : fn.symbols) names.symbols.push_back(give(symbol.name));
    return names;
}

InstructionEmitter::InstructionEmitter(const ir::Module& module, const ir::Function& fn, const Names& names,
                                       const Registers& registers, Writer& writer)
    : module_(module), fn_(fn), names_(names), registers_(registers), writer_(writer), read_(fn.value_count()) {
    const auto read = [&](Value value) { read_[index(value)] = true; };
    for (ir::Block block : fn.blocks()) {
        for (Inst inst : fn[block].instructions) fn.each_use(inst, read);
        ir::Function::each_use(fn[block].terminator, read);
    }
}

void InstructionEmitter::emit(Inst inst) {
    writer_.set_location(fn_[inst].where);
    switch (fn_[inst].op) {
        case Op::Const:
        case Op::Symbol: return;  // written in their users
        case Op::Opaque:
        case Op::OpaqueValue: return emit_text(inst);
        case Op::Call:
        case Op::PureCall: return emit_call(inst);
        case Op::CarryChain: return emit_chain(inst);
        case Op::Param: return emit_parameter(inst);
        case Op::ParamAddress:
            return put(inst, std::array{operand(fn_.result(inst)),
                                        writer_.name(names_.parameters[ir::parameter_of(fn_[inst].attribute)])});
        case Op::Print: return emit_print(inst);
        case Op::Pack: return put(inst, std::array{operand(fn_.result(inst)), data(fn_.operands(inst))});
        case Op::Unpack: return put(inst, std::array{data(fn_.results(inst)), operand(fn_.operands(inst)[0])});
        case Op::Sample:
        case Op::Special:
            return put(inst, std::array{operand(fn_.result(inst)), special_register(fn_[inst].attribute)});
        case Op::AllMatch:
        case Op::Elect: return emit_truth(inst);
        case Op::Barrier: return emit_barrier(inst);
        case Op::ClusterBarrier: return emit_cluster_barrier(inst);
        case Op::CopyAsync: return emit_copy(inst);
        case Op::Mma: return emit_product(inst);
        case Op::Wgmma: return emit_wgmma(inst);
        case Op::WgmmaFence: return put(inst, {});
        case Op::CopyWait:
        case Op::BulkWait:
        case Op::BulkWaitRead:
        case Op::WgmmaWait: return emit_wait(inst);
        case Op::SetRegisters:
            return put(inst, std::array{Writer::integer(ir::unpack<ir::RegistersForm>(fn_[inst].attribute).count)});
        case Op::LoadMatrix:
        case Op::StoreMatrix: return emit_matrices(inst);
        case Op::Mbarrier:
        case Op::CopyArrive: return emit_mbarrier(inst);
        case Op::BulkCopy: return emit_bulk(inst);
        case Op::PrefetchMap: return put(inst, std::array{writer_.address(operand(fn_.operands(inst)[0]), 0)});
        default: return ir::is_address(fn_[inst].op, 0) ? emit_memory(inst) : emit_plain(inst);
    }
}

/// `%tid.x`
ptx::Operand InstructionEmitter::special_register(Word which) {
    const std::string_view name = ir::special_register_names[which];
    const std::size_t dot = name.find('.');
    ptx::Operand out = writer_.name("%" + std::string(name.substr(0, dot)));
    if (dot != name.npos) out.suffix = writer_.module().intern(name.substr(dot));
    return out;
}

/// `ld d, [a]`, `st [a], v`, `atom d, [a], v…`: vectors in braces.
void InstructionEmitter::emit_memory(Inst inst) {
    const ir::Instruction& access = fn_[inst];
    const auto operands = fn_.operands(inst).first(ir::operand_count(access));
    scratch_.clear();
    const bool gives = info(access.op).shape.result != ir::Slot::None;
    if (access.op == Op::Load)
        scratch_.push_back(data(fn_.results(inst)));
    else if (gives && result_is_read(inst))
        scratch_.push_back(operand(fn_.result(inst)));
    scratch_.push_back(address(inst, ir::accesses(access)[0]));
    if (!gives)
        scratch_.push_back(data(operands.subspan(1)));
    else
        for (Value value : operands.subspan(1)) scratch_.push_back(operand(value));
    put(inst, scratch_);
}

/// `cp.async.ca.shared.global [to], [from], 16`, and how many bytes are read, if not all.
void InstructionEmitter::emit_copy(Inst inst) {
    const ir::MemoryAccesses at = ir::accesses(fn_[inst]);
    scratch_.clear();
    for (const ir::MemoryAccess& access : at) scratch_.push_back(address(inst, access));
    scratch_.push_back(Writer::integer(at[0].bytes));
    const Value read = fn_.operands(inst)[2];
    if (ir::constant(fn_, read) != Word{at[0].bytes}) scratch_.push_back(operand(read));
    put(inst, scratch_);
}

/// `mma d, a, b, c`: each in braces, even if it is one register.
void InstructionEmitter::emit_product(Inst inst) {
    const auto form = ir::unpack<ir::MatrixForm>(fn_[inst].attribute);
    auto operands = fn_.operands(inst);
    std::vector<ptx::Operand> matrix;
    const auto put_matrix = [&](std::span<const Value> registers) {
        matrix.clear();
        for (Value value : registers) matrix.push_back(operand(value));
        scratch_.push_back(writer_.group(ptx::Operand::Kind::Vector, matrix));
    };
    scratch_.clear();
    put_matrix(fn_.results(inst));
    for (const std::uint32_t count : {form.registers_of_a(), form.registers_of_b(), form.registers_of_sum()}) {
        put_matrix(operands.first(count));
        operands = operands.subspan(count);
    }
    put(inst, scratch_);
}

/// `wgmma.mma_async {d, …}, a, b, p, 1, 1, 0, 0`: a is a descriptor or registers in braces; then whether it adds, and
/// where PTX has them, the signs of a and b, and whether they are transposed.
void InstructionEmitter::emit_wgmma(Inst inst) {
    using Form = ir::WgmmaForm;
    const auto form = ir::unpack<Form>(fn_[inst].attribute);
    const auto operands = fn_.operands(inst);
    const auto matrix = [&](std::span<const Value> registers) {
        std::vector<ptx::Operand> out;
        for (Value value : registers) out.push_back(operand(value));
        return writer_.group(ptx::Operand::Kind::Vector, out);
    };
    const std::uint32_t of_a = form.operands_of_a();
    scratch_.assign({matrix(fn_.results(inst)),
                     form.has(Form::ARegisters) ? matrix(operands.first(of_a)) : operand(operands[0]),
                     operand(operands[of_a])});
    const bool by_predicate = form.adds == Form::Sum::ByPredicate;
    scratch_.push_back(by_predicate ? operand(operands[of_a + 1]) : Writer::integer(form.adds == Form::Sum::Adds));
    if (form.sum != ir::MatrixElement::S32)
        for (const Form::Flag negates : {Form::NegatesA, Form::NegatesB})
            scratch_.push_back(Writer::integer(form.has(negates) ? ~Word{0} : 1));
    if (ir::matrix_bits(form.a) == 16) {
        if (!form.has(Form::ARegisters)) scratch_.push_back(Writer::integer(form.has(Form::TransposesA)));
        scratch_.push_back(Writer::integer(form.has(Form::TransposesB)));
    }
    put(inst, scratch_);
}

/// `cp.async.wait_group 2`, `cp.async.wait_all`
void InstructionEmitter::emit_wait(Inst inst) {
    const auto form = ir::unpack<ir::GroupsForm>(fn_[inst].attribute);
    scratch_.clear();
    if (form.count != ir::all_copies) scratch_.push_back(Writer::integer(form.count));
    put(inst, scratch_);
}

/// `ldmatrix {d, …}, [a]`, `stmatrix [a], {s, …}`
void InstructionEmitter::emit_matrices(Inst inst) {
    const bool loads = fn_[inst].op == Op::LoadMatrix;
    std::vector<ptx::Operand> registers;
    for (Value value : loads ? fn_.results(inst) : fn_.operands(inst).subspan(1)) registers.push_back(operand(value));
    std::array operands{writer_.group(ptx::Operand::Kind::Vector, registers),
                        address(inst, ir::accesses(fn_[inst])[0])};
    if (!loads) std::swap(operands[0], operands[1]);
    put(inst, operands);
}

/// `mbarrier.init [b], n`, `mbarrier.arrive t, [b]`, of a peer `_, [b]`, `mbarrier.try_wait.parity p, [b], n`
void InstructionEmitter::emit_mbarrier(Inst inst) {
    scratch_.clear();
    const auto form = ir::unpack<ir::MbarrierForm>(fn_[inst].attribute);
    const bool is_peer = fn_[inst].op == Op::Mbarrier && form.reach == ir::MbarrierForm::Reach::Peer;
    if (is_peer && form.arrives()) scratch_.push_back({.kind = ptx::Operand::Kind::Sink});
    for (Value value : fn_.results(inst)) scratch_.push_back(operand(value));
    scratch_.push_back(address(inst, ir::accesses(fn_[inst])[0]));
    for (Value value : fn_.operands(inst).subspan(1)) scratch_.push_back(operand(value));
    put(inst, scratch_);
}

/// `cp.async.bulk [to], [from], bytes, [barrier]`, `cp.async.bulk.tensor.2d [to], [map, {x, y}], [barrier]`
void InstructionEmitter::emit_bulk(Inst inst) {
    const auto form = ir::unpack<ir::BulkForm>(fn_[inst].attribute);
    auto operands = fn_.operands(inst);
    const auto take = [&] {
        const ptx::Operand next = operand(operands[0]);
        operands = operands.subspan(1);
        return next;
    };
    const auto take_address = [&] { return writer_.address(take(), 0); };
    const auto take_global = [&] {
        if (form.rank == 0) return take_address();
        const ptx::Operand map = take();
        std::vector<ptx::Operand> place;
        for (int i = 0; i < form.rank; ++i) place.push_back(take());
        return writer_.group(ptx::Operand::Kind::Address,
                             std::array{map, writer_.group(ptx::Operand::Kind::Vector, place)});
    };
    const bool sends = form.kind == ir::BulkForm::Kind::Send;
    const bool arrives = sends || form.kind == ir::BulkForm::Kind::Load;
    scratch_.clear();
    if (arrives) scratch_.push_back(take_address());
    scratch_.push_back(sends ? take_address() : take_global());
    if (form.kind == ir::BulkForm::Kind::Store) scratch_.push_back(take_address());
    if (form.rank == 0) scratch_.push_back(take());
    if (arrives) scratch_.push_back(take_address());
    if (form.multicast) scratch_.push_back(take());
    put(inst, scratch_);
}

/// Pointers are passed as generic addresses of global memory.
void InstructionEmitter::emit_parameter(Inst inst) {
    const std::uint32_t number = ir::parameter_of(fn_[inst].attribute);
    const ir::Parameter& parameter = fn_.parameters[number];
    const ptx::Operand to = operand(fn_.result(inst));
    put(inst, std::array{to, writer_.address(writer_.name(names_.parameters[number]),
                                             std::int32_t(ir::offset_in_parameter(fn_[inst].attribute)))});
    if (parameter.access != ir::Access::Value) writer_.instruction("cvta.to.global.u64", {to, to});
}

/// `bar.sync 0`, `bar.arrive a, n`, `bar.red.and.pred p, 0, q`.
void InstructionEmitter::emit_barrier(Inst inst) {
    const auto form = ir::unpack<ir::BarrierForm>(fn_[inst].attribute);
    scratch_.clear();
    for (Value value : fn_.results(inst)) scratch_.push_back(operand(value));
    if (form.gathers_block()) scratch_.push_back(Writer::integer(form.id));
    for (Value value : fn_.operands(inst)) scratch_.push_back(operand(value));
    put(inst, scratch_);
}

/// `barrier.cluster.arrive.aligned`, `barrier.cluster.wait.aligned`, or both.
void InstructionEmitter::emit_cluster_barrier(Inst inst) {
    using Form = ir::ClusterBarrierForm;
    ir::Instruction step = fn_[inst];
    const auto kind = ir::unpack<Form>(step.attribute).kind;
    for (const Form::Kind each : {Form::Kind::Arrive, Form::Kind::Wait}) {
        if (kind != each && kind != Form::Kind::Sync) continue;
        step.attribute = ir::pack(Form{each});
        writer_.instruction(mnemonic(step), {});
    }
}

void InstructionEmitter::emit_text(Inst inst) {
    scratch_.clear();
    for (Value value : fn_.results(inst)) scratch_.push_back(operand(value));
    for (Value value : fn_.operands(inst)) scratch_.push_back(operand(value));
    append_inline(writer_, fn_.texts[fn_[inst].attribute], std::vector(scratch_));
}

ptx::Variable parameter_variable(ptx::Module& module, std::string_view type, std::string_view name) {
    ptx::Variable out{.space = module.intern(".param"), .type = module.intern('.' + std::string(type))};
    out.declarators.push_back({.name = module.intern(name)});
    return out;
}

/// Passes values through .param variables in a separate scope, so that they hide no other names. A returned byte is
/// extended according to its type.
void InstructionEmitter::emit_call(Inst inst) {
    const ir::Function& callee =
        *std::ranges::find(module_.functions, fn_.texts[fn_[inst].attribute], &ir::Function::name);
    const auto declare = [&](Type type, const std::string& name) {
        writer_.variable(parameter_variable(writer_.module(), info(type).bits, name));
        return writer_.name(name);
    };
    writer_.open_scope();
    std::vector<ptx::Operand> arguments;
    for (const ir::Parameter& parameter : callee.parameters)
        arguments.push_back(declare(parameter.type, "$a" + std::to_string(arguments.size())));
    const bool gives = callee.gives != Type::Void;
    const ptx::Operand result = gives ? declare(callee.gives, "$r") : ptx::Operand{};
    for (std::size_t i = 0; i < arguments.size(); ++i)
        writer_.instruction("st.param." + std::string(info(callee.parameters[i].type).bits),
                            {writer_.address(arguments[i], 0), operand(fn_.operands(inst)[i])});
    scratch_.clear();
    if (gives) scratch_.push_back(writer_.group(ptx::Operand::Kind::List, {&result, 1}));
    scratch_.push_back(writer_.name(callee.name));
    scratch_.push_back(writer_.group(ptx::Operand::Kind::List, arguments));
    writer_.instruction(writer_.spelling("call"), scratch_);
    for (Value value : fn_.results(inst)) {
        const ir::TypeInfo& type = info(callee.gives);
        writer_.instruction("ld.param." + std::string(type.bytes == 1 ? type.typed : type.bits),
                            {operand(value), writer_.address(result, 0)});
    }
    writer_.close_scope();
}

void InstructionEmitter::emit_return(Value given) {
    if (given != ir::no_value)
        writer_.instruction("st.param." + std::string(data_type(fn_.gives)),
                            {writer_.address(writer_.name(result_name), 0), operand(given)});
    writer_.instruction("ret", {});
}

/// `add.cc d, a, b`, then `addc.cc`, the last without .cc if there is no carry out. To set the carry, the carry-in (0
/// or 1) is added to all ones; that sum is not needed and goes to the first result's register. The carry out is `addc
/// c, 0, 0`; for a difference, 0 - 0 - 1 if there was a borrow.
void InstructionEmitter::emit_chain(Inst inst) {
    const auto results = fn_.results(inst), operands = fn_.operands(inst);
    const std::size_t steps = operands.size() / 2;
    const bool comes_in = operands.size() % 2, goes_out = results.size() > steps, adds = fn_[inst].attribute == 0;
    const std::string name = adds ? "add" : "sub", type = '.' + std::string(info(fn_[inst].type).typed);
    const ptx::Operand zero = Writer::integer(0);
    if (comes_in) {
        const ptx::Operand to = operand(results[0]), carry = operand(operands.back());
        writer_.instruction(name + ".cc" + type, {to, adds ? carry : zero, adds ? Writer::integer(~Word{0}) : carry});
    }
    for (std::size_t i = 0; i < steps; ++i) {
        const std::string carried = i || comes_in ? "c" : "", carries = i + 1 < steps || goes_out ? ".cc" : "";
        writer_.instruction(name + carried + carries + type,
                            {operand(results[i]), operand(operands[2 * i]), operand(operands[2 * i + 1])});
    }
    if (goes_out) writer_.instruction(name + "c.u32", {operand(results[steps]), zero, zero});
}

/// Of two results, only the predicate: `_|p`.
void InstructionEmitter::emit_truth(Inst inst) {
    const ptx::Operand pair[] = {{.kind = ptx::Operand::Kind::Sink}, operand(fn_.result(inst))};
    scratch_.assign({writer_.group(ptx::Operand::Kind::Pair, pair)});
    for (Value value : fn_.operands(inst)) scratch_.push_back(operand(value));
    put(inst, scratch_);
}

/// Results, then operands, then a table; operands tied for a false guard are not written.
void InstructionEmitter::emit_plain(Inst inst) {
    scratch_.clear();
    const auto results = fn_.results(inst);
    if (!results.empty()) scratch_.push_back(destination(results));
    for (Value value : fn_.operands(inst).first(ir::operand_count(fn_[inst]))) scratch_.push_back(operand(value));
    if (info(fn_[inst].op).attribute == ir::Attribute::Table)
        scratch_.push_back(writer_.hexadecimal(fn_[inst].attribute));
    put(inst, scratch_);
}

void InstructionEmitter::put(Inst inst, std::span<const ptx::Operand> operands) {
    const ir::Instruction& from = fn_[inst];
    const ptx::Name guard = from.guard == ir::no_value ? ptx::no_name : register_name(from.guard);
    writer_.instruction(spelling(inst), operands, guard, from.guard_negated);
}

Spelling InstructionEmitter::spelling(Inst inst) {
    const bool read = result_is_read(inst);
    const auto [found, added] = spellings_.try_emplace(SpellingKey(fn_[inst], read));
    if (added) found->second = writer_.spelling(mnemonic(fn_[inst], read));
    return found->second;
}

/// Atomics with unused results are reductions.
bool InstructionEmitter::result_is_read(Inst inst) const {
    return !has_reduction(fn_[inst]) || read_[index(fn_.result(inst))];
}

/// One register, or for a shuffle the value and the predicate: `d|p`.
ptx::Operand InstructionEmitter::destination(std::span<const Value> results) {
    if (results.size() == 1) return operand(results[0]);
    return writer_.group(ptx::Operand::Kind::Pair, std::array{operand(results[0]), operand(results[1])});
}

ptx::Operand InstructionEmitter::data(std::span<const Value> values) {
    if (values.size() == 1) return operand(values[0]);
    std::vector<ptx::Operand> elements;
    for (Value value : values) elements.push_back(operand(value));
    return writer_.group(ptx::Operand::Kind::Vector, elements);
}

ptx::Operand InstructionEmitter::address(Inst inst, const ir::MemoryAccess& access) {
    return writer_.address(operand(fn_.operands(inst)[access.operand]), access.offset);
}

ptx::Operand InstructionEmitter::operand(Value value) {
    if (registers_.ranges[index(value)] != no_id<regalloc::LiveRange>)
        return writer_.register_operand(pool_of(fn_.type(value)), registers_.of(value));
    const ir::Instruction& definition = fn_[fn_[value].instruction];
    if (definition.op == Op::Symbol) {
        ptx::Operand name = writer_.name(names_.symbols[definition.attribute]);
        name.value = fn_.symbols[definition.attribute].offset;
        name.has_offset = name.value != 0;
        return name;
    }
    IKAT_ASSERT(definition.op == Op::Const, "a value that is in no register: " + ir::print(fn_, value));
    return literal(writer_, definition.type, definition.attribute);
}

ptx::Operand literal(Writer& writer, Type type, Word bits) {
    if (type == Type::F32) return {.kind = ptx::Operand::Kind::Float32, .value = bits};
    if (type == Type::F64) return {.kind = ptx::Operand::Kind::Float64, .value = bits};
    if (ir::is_float(type) || (!ir::is_signed(type) && bits >> 31)) return writer.hexadecimal(bits);
    return Writer::integer(ir::is_signed(type) ? Word(sign_extend(bits, ir::bits(type))) : bits);
}

}  // namespace ikat::nvptx
