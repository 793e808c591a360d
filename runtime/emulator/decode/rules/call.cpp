// SPDX-License-Identifier: Apache-2.0
// Calls. A direct call is inlined, and the callee's .param variables are then local memory of the caller. Recursion,
// calls through a register and calls that would make the kernel too large are made at run time: the function is lowered
// once, its results, parameters and variables are in a frame on the thread's stack:
//
//     stack pointer → | results, parameters | its variables | alloca ... | the frame of the function it calls
// and the registers that the caller needs afterwards are saved separately (ops/call.cpp), because both use the same
// slots.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/ptx/text/layout.hpp"
#include "codegen/ptx/text/words.hpp"
#include "runtime/emulator/decode/rules/calls.hpp"

namespace ikat::emulator {

namespace {

constexpr std::size_t largest_inlined = 50'000;  // micro-ops of a kernel above which nothing more is inlined
constexpr std::size_t deepest_inlined = 32;
constexpr std::uint32_t slot_alignment = 16;

constexpr MicroInfo of_frame{.operation = OwnOp::Frame, .effects = Changes};

}  // namespace

/// Each at its own alignment, so that caller and callee agree on offsets even if only sizes are known.
Signature signature_of(const ptx::Module& module, const ptx::Function& function) {
    Signature signature;
    const auto place = [&](const ptx::Variable& variable, std::vector<Signature::Slot>& slots) {
        constexpr std::uint64_t max_bytes = 1 << 16;
        const std::uint64_t bytes = ptx::variable_bytes(module, variable, variable.declarators.front());
        if (bytes > max_bytes)
            throw Error(fmt::format("a parameter of over {} bytes", max_bytes), "pass large data by pointer");
        slots.push_back({signature.bytes, std::max(1u, std::uint32_t(bytes))});
        signature.bytes += std::uint32_t(rounded_up(slots.back().bytes, slot_alignment));
    };
    for (const ptx::Variable& variable : function.results) place(variable, signature.results);
    for (const ptx::Variable& variable : function.parameters) place(variable, signature.parameters);
    return signature;
}

// ---- places

const Binding* variable_of(Lowering& code, const ptx::Operand& operand) {
    const Binding* const binding = operand.kind == ptx::Operand::Kind::Symbol ? code.find(operand.name) : nullptr;
    const bool in_memory = binding && binding->kind == Binding::Kind::Memory && binding->space == Space::Local;
    return in_memory ? binding : nullptr;
}

Place place_of(Lowering& code, const Binding& binding) {
    return {binding.on_stack ? code.stack_pointer : code.constant(0, 8), binding.address};
}

void load_local(Lowering& code, VReg d, unsigned bytes, Place from) {
    code.emit(select_load(Space::Local, 8, bytes, 1), D, A,
              {index(d), index(from.base), 0, 0, std::uint32_t(from.offset)})
        .apart = true;
}

void store_local(Lowering& code, VReg from, unsigned bytes, Place to) {
    code.emit(select_store(Space::Local, 8, bytes, 1), 0, A | D,
              {index(from), index(to.base), 0, 0, std::uint32_t(to.offset)});
}

VReg argument(Lowering& code, const ptx::Operand& operand) {
    const Binding* const binding = variable_of(code, operand);
    if (!binding) return code.source(operand, Type::U64);
    const VReg to = code.temporary(8);
    load_local(code, to, 8, place_of(code, *binding));
    return to;
}

namespace {

void copy_local(Lowering& code, Place from, Place to, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes;) {
        unsigned size = 8;
        while (size > bytes - at || (from.offset + at) % size || (to.offset + at) % size) size /= 2;
        const VReg word = code.temporary(size == 8 ? 8 : 4);
        load_local(code, word, size, {from.base, from.offset + at});
        store_local(code, word, size, {to.base, to.offset + at});
        at += size;
    }
}

// ---- inlined

/// A formal parameter or result inside the callee: .param aliases the caller's variable, or is a new variable; .reg is
/// a new register.
Binding formal(Lowering& code, const ptx::Variable& variable, const ptx::Operand& actual) {
    const auto& declarator = variable.declarators.front();
    if (space_of(code.module, variable) == ptx::StateSpace::Register) {
        const auto width = std::uint8_t(ptx::element_bytes(code.module.text(variable.type)));
        return {.value = code.new_value(is_predicate(code.module, variable) ? 0 : width == 8 ? 8 : 4, width)};
    }
    if (const Binding* const binding = variable_of(code, actual)) return *binding;
    return code.declare_memory(variable, declarator);
}

Behaviour move_of(Type type) {
    return slot_of(type) ? select_move(slot_of(type), slot_of(type)) : select_predicate(Op::Bitcast);
}

/// Copies between an actual register or literal and its formal.
void copy_argument(Lowering& code, const ptx::Variable& variable, const ptx::Operand& actual, const Binding& formal,
                   bool back) {
    const Binding* const binding = variable_of(code, actual);
    const bool formal_in_memory = formal.kind == Binding::Kind::Memory;
    if (binding && formal_in_memory) return;
    const Type type = type_of(ptx::spelled_modifier(code.module.text(variable.type))).value_or(Type::U64);
    const unsigned bytes = std::max(1u, unsigned(ir::info(type).bytes));
    if (back) {  // formal → actual
        if (binding) return store_local(code, formal.value, bytes, place_of(code, *binding));
        const Result d = code.result(actual, type);
        if (formal_in_memory)
            load_local(code, d.at, bytes, place_of(code, formal));
        else
            code.apply(move_of(type), d.at, {formal.value});
        return code.finish(d);
    }
    if (binding) return load_local(code, formal.value, bytes, place_of(code, *binding));
    const VReg from = code.source(actual, type);
    if (formal_in_memory)
        store_local(code, from, bytes, place_of(code, formal));
    else
        code.apply(move_of(type), formal.value, {from});
}

/// The callee's body in place of the call.
void inline_function(Lowering& code, const ptx::Function& callee, Operands results, Operands arguments) {
    const ptx::Instruction* const call_instruction = code.current;
    Lowering::Scope formals;
    std::vector<Binding> bound_results;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const Binding binding = formal(code, callee.parameters[i], arguments[i]);
        copy_argument(code, callee.parameters[i], arguments[i], binding, false);
        formals[callee.parameters[i].declarators.front().name] = binding;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        bound_results.push_back(formal(code, callee.results[i], results[i]));
        formals[callee.results[i].declarators.front().name] = bound_results.back();
    }
    const std::size_t base = std::exchange(code.function_base, code.scopes.size());
    const std::uint32_t after = code.new_label(), outer_return = std::exchange(code.return_label, after);
    code.scopes.push_back(std::move(formals));
    code.callers.push_back(&callee);
    code.body(callee);
    code.callers.pop_back();
    code.scopes.pop_back();
    code.return_label = outer_return;
    code.function_base = base;
    code.place_label(after);
    code.current = call_instruction;
    for (std::size_t i = 0; i < results.size(); ++i)
        copy_argument(code, callee.results[i], results[i], bound_results[i], true);
}

// ---- called

/// Schedules the function for lowering after the kernel.
void need(Lowering& code, const ptx::Function& function) {
    const std::uint32_t number = code.number_of(function);
    for (const Lowering::Root& root : code.roots)
        if (root.function == number) return;
    code.roots.push_back({number, code.new_label()});
}

void need_functions_in(Lowering& code, ptx::Span operands) {
    for (const ptx::Operand& operand : code.module.operands(operands)) {
        if (operand.children.count) need_functions_in(code, operand.children);
        if (operand.kind != ptx::Operand::Kind::Symbol) continue;
        const ptx::Function* const function = code.module.find_function(code.module.text(operand.name));
        if (function && function->has_body && !function->is_entry) need(code, *function);
    }
}

/// A register may hold any function whose address is taken somewhere.
void need_functions_with_addresses(Lowering& code) {
    for (const ptx::Variable& variable : code.module.variables)
        for (const auto& declarator : variable.declarators) need_functions_in(code, declarator.initialiser);
    for (const ptx::Function& function : code.module.functions) {
        for (const ptx::Instruction& each : function.instructions)
            if (each.opcode == ptx::Opcode::Mov) need_functions_in(code, each.operands);
        for (const ptx::Directive& each : function.body_directives)
            if (kind_of(code.module, each) == ptx::DirectiveKind::CallTargets) need_functions_in(code, each.operands);
    }
}

Signature signature_of_call(Lowering& code, const ptx::Operand& prototype) {
    const Binding* const binding = code.find(prototype.name);
    if (!binding || binding->kind != Binding::Kind::Prototype)
        code.unsupported("its .callprototype or .calltargets is not visible here");
    if (kind_of(code.module, *binding->directive) == ptx::DirectiveKind::CallTargets) {
        const ptx::Operand& first = Operands(code.module.operands(binding->directive->operands))[0];
        const ptx::Function* const function = code.module.find_function(code.module.text(first.name));
        if (!function) code.unsupported("a call target is not a function of this module");
        return signature_of(code.module, *function);
    }
    try {  // "(.param .b32 _) _ (.param .b64 _);" is the head of a function
        const ptx::Module head =
            ptx::parse(".version 8.0\n.target sm_80\n.address_size 64\n.func " + binding->directive->raw, "prototype");
        if (!head.functions.empty()) return signature_of(head, head.functions.front());
    } catch (const Error&) {}
    code.unsupported("its .callprototype cannot be read");
}

void call_at(Lowering& code, VReg target, std::uint32_t function, const Signature& signature, Operands results,
             Operands arguments) {
    if (results.size() != signature.results.size() || arguments.size() != signature.parameters.size())
        code.unsupported("the function has a different number of parameters");
    const auto type_for = [](std::uint32_t bytes) {
        return bytes >= 8 ? Type::U64 : bytes == 4 ? Type::U32 : bytes == 2 ? Type::U16 : Type::U8;
    };
    const VReg frame = code.temporary(8);
    code.emit({push_frame, of_frame}, D, 0, {index(frame), 0, 0, 0, signature.bytes});
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto [offset, bytes] = signature.parameters[i];
        if (const Binding* const binding = variable_of(code, arguments[i]))
            copy_local(code, place_of(code, *binding), {frame, offset}, std::min<std::uint64_t>(bytes, binding->bytes));
        else
            store_local(code, code.source(arguments[i], type_for(bytes)), ir::info(type_for(bytes)).bytes,
                        {frame, offset});
    }
    const MicroInfo of_call{
        .operation = Op::Call, .effects = Changes, .use = DefinedUse::Call, .checked = call_lanes_checked};
    Micro call = micro_of({call_lanes, of_call});
    call.fields = {0, index(target), signature.bytes, function};
    call.reads = A;
    call.flow = Flow::Call;
    call.counts = true;
    const MicroInfo of_restore{.operation = OwnOp::Frame, .effects = Changes, .checked = restore_lanes_checked};
    code.emit(call, {.after = micro_of({restore_lanes, of_restore})});
    const VReg returned = code.temporary(8);
    code.emit({read_frame, {OwnOp::Frame}}, D, 0, {index(returned)});
    for (std::size_t i = 0; i < results.size(); ++i) {
        const auto [offset, bytes] = signature.results[i];
        if (const Binding* const binding = variable_of(code, results[i])) {
            copy_local(code, {returned, offset}, place_of(code, *binding),
                       std::min<std::uint64_t>(bytes, binding->bytes));
            continue;
        }
        const Result d = code.result(results[i], type_for(bytes));
        load_local(code, d.at, ir::info(type_for(bytes)).bytes, {returned, offset});
        code.finish(d);
    }
    code.emit({pop_frame, of_frame}, 0, 0, {});
}

void call_through(Lowering& code, const ptx::Operand& target, Operands results, Operands arguments,
                  const ptx::Operand& prototype) {
    const Signature signature = signature_of_call(code, prototype);
    need_functions_with_addresses(code);
    call_at(code, code.source(target, Type::U64), ~0u, signature, results, arguments);
}

void call_out_of_line(Lowering& code, const ptx::Function& callee, Operands results, Operands arguments) {
    need(code, callee);
    call_at(code, code.constant(0, 8), code.number_of(callee), signature_of(code.module, callee), results, arguments);
}

void lower_function(Lowering& code, const ptx::Function& function, std::uint32_t label) {
    const Signature signature = signature_of(code.module, function);
    code.frame_used = signature.bytes;
    code.on_stack = true;
    code.stack_pointer = code.new_value(8, 8);
    code.return_label = code.new_label();
    code.scopes.resize(1);
    code.function_base = code.scopes.size();
    code.callers.assign(1, &function);

    code.place_label(label);
    const Micro& enter = code.emit({enter_frame, of_frame}, D, 0, {index(code.stack_pointer)});
    const auto entered = std::size_t(&enter - code.micros.data());
    std::vector<std::pair<VReg, Signature::Slot>> results_in_registers;
    Lowering::Scope formals;
    const auto bind = [&](const ptx::Variable& variable, Signature::Slot slot, bool is_result) {
        const ptx::Name name = variable.declarators.front().name;
        Binding binding{
            .kind = Binding::Kind::Memory, .space = Space::Local, .address = slot.offset, .bytes = slot.bytes};
        binding.on_stack = true;
        if (space_of(code.module, variable) == ptx::StateSpace::Register) {
            if (is_predicate(code.module, variable)) code.unsupported("a predicate as a parameter is not supported");
            binding = formal(code, variable, {});
            if (is_result)
                results_in_registers.emplace_back(binding.value, slot);
            else
                load_local(code, binding.value, slot.bytes, {code.stack_pointer, slot.offset});
        }
        formals[name] = binding;
    };
    for (std::size_t i = 0; i < function.results.size(); ++i) bind(function.results[i], signature.results[i], true);
    for (std::size_t i = 0; i < function.parameters.size(); ++i)
        bind(function.parameters[i], signature.parameters[i], false);
    code.scopes.push_back(std::move(formals));
    code.body(function);
    code.current = nullptr;
    code.place_label(code.return_label);
    for (const auto& [value, slot] : results_in_registers)
        store_local(code, value, slot.bytes, {code.stack_pointer, slot.offset});
    Micro end =
        micro_of({return_lanes, {.operation = OwnOp::Return, .effects = Changes, .checked = return_lanes_checked}});
    end.flow = Flow::End;
    end.counts = true;
    code.emit(end);
    code.micros[entered].fields[4] = std::uint32_t(rounded_up(code.frame_used, slot_alignment));
}

void call(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take(Modifier::Uni);
    using Kind = ptx::Operand::Kind;
    Operands results, arguments;
    std::size_t at = 0;
    if (operands[at].kind == Kind::List) results = code.module.operands(operands[at++].children);
    const ptx::Operand& target = operands[at++];
    if (at < operands.size() && operands[at].kind == Kind::List)
        arguments = code.module.operands(operands[at++].children);
    const std::string_view name = code.module.text(target.name);
    const Binding* const binding = target.kind == Kind::Symbol ? code.find(target.name) : nullptr;
    if (binding && binding->kind == Binding::Kind::Register)
        return call_through(code, target, results, arguments, operands[at]);
    const bool is_defined = binding && binding->kind == Binding::Kind::Function && binding->function->has_body;
    if (!is_defined && call_system(code, name, results, arguments)) return;
    if (!binding || binding->kind != Binding::Kind::Function)
        code.unsupported(fmt::format("'{}' is not a function", name), "declare it before the call");
    if (!is_defined)
        code.unsupported(fmt::format("'{}' has no body in this module", name),
                         "give its definition in the same module");
    const ptx::Function& callee = *binding->function;
    if (results.size() != callee.results.size() || arguments.size() != callee.parameters.size())
        code.unsupported(fmt::format("'{}' has a different number of parameters", name));
    if (code.first) code.emit({nothing, {OwnOp::Nothing}}, 0, 0, {});
    const bool calls_itself = std::find(code.callers.begin(), code.callers.end(), &callee) != code.callers.end();
    if (calls_itself || code.callers.size() > deepest_inlined || code.micros.size() > largest_inlined)
        return call_out_of_line(code, callee, results, arguments);
    inline_function(code, callee, results, arguments);
}

// ---- alloca

void allocate(Lowering& code, Modifiers& modifiers, Operands operands) {
    const Type type = modifiers.take_type().value_or(Type::U64);
    std::uint32_t alignment = type == Type::U32 ? 4 : 8;
    if (operands.size() > 2) alignment = std::uint32_t(operands[2].value);
    if (alignment == 0 || alignment > 1024 || (alignment & (alignment - 1)))
        code.unsupported("the alignment of alloca is not a power of two");
    const Result d = code.result(operands[0], Type::U64);
    code.emit({allocate_on_stack, {.operation = OwnOp::Alloca, .effects = Changes, .use = DefinedUse::Call}}, D, A,
              {index(d.at), index(code.source(operands[1], Type::U64)), 0, 0, alignment})
        .apart = true;
    code.finish(d);
}

void stacksave(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_type();
    const Result d = code.result(operands[0], Type::U64);
    code.emit({save_stack, {OwnOp::StackTop}}, D, 0, {index(d.at)});
    code.finish(d);
}

void stackrestore(Lowering& code, Modifiers& modifiers, Operands operands) {
    modifiers.take_type();
    code.emit({restore_stack, {.operation = OwnOp::StackTop, .effects = Changes, .use = DefinedUse::Call}}, 0, A,
              {0, index(code.source(operands[0], Type::U64))});
}

constexpr RuleRow call_rows[] = {
    {"call", call},
    {"alloca", allocate},
    {"stacksave", stacksave},
    {"stackrestore", stackrestore},
};

}  // namespace

void lower_functions(Lowering& code) {
    for (std::size_t i = 0; i < code.roots.size(); ++i) {  // lowering one may add others
        const Lowering::Root root = code.roots[i];
        lower_function(code, code.module.functions[root.function], root.label);
    }
}

constinit const Family call_family{call_rows};

}  // namespace ikat::emulator
