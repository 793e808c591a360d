// SPDX-License-Identifier: Apache-2.0
// Calls. A function is inlined where it is called by its name, and its .param variables are then local memory of the
// caller. A recursion, a call through a register and what would make the kernel too large are calls at run time: the
// function is lowered once, its results, parameters and variables lie in a frame on the thread's stack:
//
//     stack pointer → | results, parameters | its variables | alloca ... | the frame of the function it calls
//
// and the registers that the caller needs afterwards are kept aside (ops/call.cpp), since both use the same slots.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

namespace {

constexpr std::size_t largest_inlined = 50'000;  // micro-ops of a kernel above which nothing more is inlined
constexpr std::size_t deepest_inlined = 32;
constexpr std::uint32_t slot_alignment = 16;

std::uint32_t rounded_up(std::uint32_t n, std::uint32_t to) { return (n + to - 1) / to * to; }

}  // namespace

/// Each in a slot of its own alignment, so that caller and callee agree on places even where only sizes are known.
Signature signature_of(const nvptx::Module& module, const nvptx::Function& function) {
    Signature signature;
    const auto place = [&](const nvptx::Variable& variable, std::vector<Signature::Slot>& slots) {
        constexpr std::uint64_t most = 1 << 16;
        const std::uint64_t bytes = variable_bytes(module, variable, variable.declarators.front());
        if (bytes > most) throw Error(fmt::format("a parameter of over {} bytes", most), "pass large data by pointer");
        slots.push_back({signature.bytes, std::max(1u, std::uint32_t(bytes))});
        signature.bytes += rounded_up(slots.back().bytes, slot_alignment);
    };
    for (const nvptx::Variable& variable : function.results) place(variable, signature.results);
    for (const nvptx::Variable& variable : function.parameters) place(variable, signature.parameters);
    return signature;
}

// ---- places

/// The variable in memory that an operand names, if it does.
const Symbol* Lowering::variable_of(const nvptx::Operand& operand) {
    const Symbol* const symbol = operand.kind == nvptx::Operand::Kind::Symbol ? find(operand.name) : nullptr;
    const bool in_memory = symbol && symbol->kind == Symbol::Kind::Memory && symbol->space == Space::Local;
    return in_memory ? symbol : nullptr;
}

Lowering::Place Lowering::place_of(const Symbol& symbol) {
    return {symbol.on_stack ? stack_pointer_ : constant(0, 8), symbol.address};
}

void Lowering::load_local(Value d, unsigned bytes, Place from) {
    emit(select_load(Space::Local, 8, bytes, 1), D, A, {index(d), index(from.base), 0, 0, std::uint32_t(from.offset)})
        .apart = true;
}

void Lowering::store_local(Value from, unsigned bytes, Place to) {
    emit(select_store(Space::Local, 8, bytes, 1), 0, A | D,
         {index(from), index(to.base), 0, 0, std::uint32_t(to.offset)});
}

void Lowering::copy_local(Place from, Place to, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes;) {
        unsigned size = 8;
        while (size > bytes - at || (from.offset + at) % size || (to.offset + at) % size) size /= 2;
        const Value word = temporary(size == 8 ? 8 : 4);
        load_local(word, size, {from.base, from.offset + at});
        store_local(word, size, {to.base, to.offset + at});
        at += size;
    }
}

/// The 64-bit value of an argument: a register, or the contents of a .param variable.
Value Lowering::argument(const nvptx::Operand& operand) {
    const Symbol* const symbol = variable_of(operand);
    if (!symbol) return source(operand, Type::U64);
    const Value to = temporary(8);
    load_local(to, 8, place_of(*symbol));
    return to;
}

// ---- inlined

/// What a formal parameter or result stands for while the callee runs: .param aliases the caller's variable, or is a
/// variable of its own; .reg is a register of its own.
Symbol Lowering::formal(const nvptx::Variable& variable, const nvptx::Operand& actual) {
    const auto& declarator = variable.declarators.front();
    if (module_.text(variable.space) == ".reg") {
        const auto width = std::uint8_t(element_bytes(module_.text(variable.type)));
        return {.value = new_value(module_.text(variable.type) == ".pred" ? 0 : width == 8 ? 8 : 4, width)};
    }
    if (const Symbol* const symbol = variable_of(actual)) return *symbol;
    return declare_memory(variable, declarator);
}

/// Copies between an actual that is a register or literal and the formal it was given.
void Lowering::copy_argument(const nvptx::Variable& variable, const nvptx::Operand& actual, const Symbol& formal,
                             bool back) {
    const Symbol* const symbol = variable_of(actual);
    const bool formal_in_memory = formal.kind == Symbol::Kind::Memory;
    if (symbol && formal_in_memory) return;
    const Type type = type_of(module_.text(variable.type)).value_or(Type::U64);
    const unsigned bytes = std::max(1u, unsigned(ir::info(type).bytes));
    if (back) {  // formal → actual
        if (symbol) return store_local(formal.value, bytes, place_of(*symbol));
        const Result d = result(actual, type);
        if (formal_in_memory)
            load_local(d.at, bytes, place_of(formal));
        else
            apply(slot_of(type) ? select_move(slot_of(type), slot_of(type)) : predicate_move, d.at, {formal.value});
        return finish(d);
    }
    if (symbol) return load_local(formal.value, bytes, place_of(*symbol));
    const Value from = source(actual, type);
    if (formal_in_memory)
        store_local(from, bytes, place_of(formal));
    else
        apply(slot_of(type) ? select_move(slot_of(type), slot_of(type)) : predicate_move, formal.value, {from});
}

/// The callee's body in place of the call.
void Lowering::inline_function(const nvptx::Function& callee, Operands results, Operands arguments) {
    const nvptx::Instruction* const call_instruction = current_;
    Scope formals;
    std::vector<Symbol> bound_results;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const Symbol symbol = formal(callee.parameters[i], arguments[i]);
        copy_argument(callee.parameters[i], arguments[i], symbol, false);
        formals[callee.parameters[i].declarators.front().name] = symbol;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        bound_results.push_back(formal(callee.results[i], results[i]));
        formals[callee.results[i].declarators.front().name] = bound_results.back();
    }
    const std::size_t base = std::exchange(function_base_, scopes_.size());
    const std::uint32_t behind = new_label(), outer_return = std::exchange(return_label_, behind);
    scopes_.push_back(std::move(formals));
    callers_.push_back(&callee);
    body(callee);
    callers_.pop_back();
    scopes_.pop_back();
    return_label_ = outer_return;
    function_base_ = base;
    place_label(behind);
    current_ = call_instruction;
    for (std::size_t i = 0; i < results.size(); ++i)
        copy_argument(callee.results[i], results[i], bound_results[i], true);
}

// ---- called

std::uint32_t Lowering::number_of(const nvptx::Function& function) const {
    return std::uint32_t(&function - module_.functions.data());
}

/// Its code is lowered behind the kernel.
void Lowering::need(const nvptx::Function& function) {
    const std::uint32_t number = number_of(function);
    for (const Root& root : roots)
        if (root.function == number) return;
    roots.push_back({number, new_label()});
}

/// Every function whose address is taken somewhere may be what a register holds.
void Lowering::need_functions_with_addresses() {
    for (const nvptx::Variable& variable : module_.variables)
        for (const auto& declarator : variable.declarators) need_functions_in(declarator.initialiser);
    for (const nvptx::Function& function : module_.functions) {
        for (const nvptx::Instruction& each : function.instructions)
            if (each.opcode == nvptx::Opcode::Mov) need_functions_in(each.operands);
        for (const nvptx::Directive& each : function.body_directives)
            if (module_.text(each.name) == ".calltargets") need_functions_in(each.operands);
    }
}

void Lowering::need_functions_in(nvptx::Span operands) {
    for (const nvptx::Operand& operand : module_.operands(operands)) {
        if (operand.children.count) need_functions_in(operand.children);
        if (operand.kind != nvptx::Operand::Kind::Symbol) continue;
        const nvptx::Function* const function = module_.find_function(module_.text(operand.name));
        if (function && function->has_body && !function->is_entry) need(*function);
    }
}

Signature Lowering::signature_of_call(const nvptx::Operand& prototype) {
    const Symbol* const symbol = find(prototype.name);
    if (!symbol || symbol->kind != Symbol::Kind::Prototype)
        unsupported("its .callprototype or .calltargets is not in reach");
    if (module_.text(symbol->directive->name) == ".calltargets") {
        const nvptx::Operand& first = Operands(module_.operands(symbol->directive->operands))[0];
        const nvptx::Function* const function = module_.find_function(module_.text(first.name));
        if (!function) unsupported("a call target is no function of this module");
        return signature_of(module_, *function);
    }
    try {  // "(.param .b32 _) _ (.param .b64 _);" is the head of a function
        const nvptx::Module head =
            nvptx::parse(".version 8.0\n.target sm_80\n.address_size 64\n.func " + symbol->directive->raw, "prototype");
        if (!head.functions.empty()) return signature_of(head, head.functions.front());
    } catch (const Error&) {}
    unsupported("its .callprototype cannot be read");
}

void Lowering::call_through(const nvptx::Operand& target, Operands results, Operands arguments,
                            const nvptx::Operand& prototype) {
    const Signature signature = signature_of_call(prototype);
    need_functions_with_addresses();
    call_lanes(source(target, Type::U64), ~0u, signature, results, arguments);
}

void Lowering::call_out_of_line(const nvptx::Function& callee, Operands results, Operands arguments) {
    need(callee);
    call_lanes(constant(0, 8), number_of(callee), signature_of(module_, callee), results, arguments);
}

void Lowering::call_lanes(Value target, std::uint32_t function, const Signature& signature, Operands results,
                          Operands arguments) {
    if (results.size() != signature.results.size() || arguments.size() != signature.parameters.size())
        unsupported("the function has another number of parameters");
    const auto type_for = [](std::uint32_t bytes) {
        return bytes >= 8 ? Type::U64 : bytes == 4 ? Type::U32 : bytes == 2 ? Type::U16 : Type::U8;
    };
    const Value frame = temporary(8);
    emit(push_frame, D, 0, {index(frame), 0, 0, 0, signature.bytes});
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto [offset, bytes] = signature.parameters[i];
        if (const Symbol* const symbol = variable_of(arguments[i]))
            copy_local(place_of(*symbol), {frame, offset}, std::min<std::uint64_t>(bytes, symbol->bytes));
        else
            store_local(source(arguments[i], type_for(bytes)), ir::info(type_for(bytes)).bytes, {frame, offset});
    }
    Micro& call = emit(emulator::call_lanes, 0, A, {0, index(target), signature.bytes, function});
    call.flow = Flow::Call;
    call.counts = true;
    emit(restore_lanes, 0, 0, {});
    const Value returned = temporary(8);
    emit(read_frame, D, 0, {index(returned)});
    for (std::size_t i = 0; i < results.size(); ++i) {
        const auto [offset, bytes] = signature.results[i];
        if (const Symbol* const symbol = variable_of(results[i])) {
            copy_local({returned, offset}, place_of(*symbol), std::min<std::uint64_t>(bytes, symbol->bytes));
            continue;
        }
        const Result d = result(results[i], type_for(bytes));
        load_local(d.at, ir::info(type_for(bytes)).bytes, {returned, offset});
        finish(d);
    }
    emit(pop_frame, 0, 0, {});
}

void Lowering::lower_functions() {
    for (std::size_t i = 0; i < roots.size(); ++i) {  // lowering one may need others
        const Root root = roots[i];
        lower_function(module_.functions[root.function], root.label);
    }
}

void Lowering::lower_function(const nvptx::Function& function, std::uint32_t label) {
    const Signature signature = signature_of(module_, function);
    frame_used_ = signature.bytes;
    on_stack_ = true;
    stack_pointer_ = new_value(8, 8);
    return_label_ = new_label();
    scopes_.resize(1);
    function_base_ = scopes_.size();
    callers_.assign(1, &function);

    place_label(label);
    emit(enter_frame, D, 0, {index(stack_pointer_)});
    const std::size_t entered = micros.size() - 1;
    std::vector<std::pair<Value, Signature::Slot>> results_in_registers;
    Scope formals;
    const auto bind = [&](const nvptx::Variable& variable, Signature::Slot slot, bool is_result) {
        const nvptx::Name name = variable.declarators.front().name;
        Symbol symbol{.kind = Symbol::Kind::Memory, .space = Space::Local, .address = slot.offset, .bytes = slot.bytes};
        symbol.on_stack = true;
        if (module_.text(variable.space) == ".reg") {
            if (module_.text(variable.type) == ".pred") unsupported("a predicate as a parameter is not known");
            symbol = formal(variable, {});
            if (is_result)
                results_in_registers.emplace_back(symbol.value, slot);
            else
                load_local(symbol.value, slot.bytes, {stack_pointer_, slot.offset});
        }
        formals[name] = symbol;
    };
    for (std::size_t i = 0; i < function.results.size(); ++i) bind(function.results[i], signature.results[i], true);
    for (std::size_t i = 0; i < function.parameters.size(); ++i)
        bind(function.parameters[i], signature.parameters[i], false);
    scopes_.push_back(std::move(formals));
    body(function);
    current_ = nullptr;
    place_label(return_label_);
    for (const auto& [value, slot] : results_in_registers)
        store_local(value, slot.bytes, {stack_pointer_, slot.offset});
    Micro& end = emit(return_lanes, 0, 0, {});
    end.flow = Flow::End;
    end.counts = true;
    micros[entered].fields[4] = rounded_up(frame_used_, slot_alignment);
}

void Lowering::call(Form& form, Operands operands) {
    form.take(".uni");
    using Kind = nvptx::Operand::Kind;
    Operands results, arguments;
    std::size_t at = 0;
    if (operands[at].kind == Kind::List) results = module_.operands(operands[at++].children);
    const nvptx::Operand& target = operands[at++];
    if (at < operands.size() && operands[at].kind == Kind::List) arguments = module_.operands(operands[at++].children);
    const std::string_view name = module_.text(target.name);
    const Symbol* const symbol = target.kind == Kind::Symbol ? find(target.name) : nullptr;
    if (symbol && symbol->kind == Symbol::Kind::Register) return call_through(target, results, arguments, operands[at]);
    const bool is_defined = symbol && symbol->kind == Symbol::Kind::Function && symbol->function->has_body;
    if (!is_defined && call_system(name, results, arguments)) return;
    if (!symbol || symbol->kind != Symbol::Kind::Function)
        unsupported(fmt::format("'{}' is no function", name), "declare it before the call");
    if (!is_defined)
        unsupported(fmt::format("'{}' has no body in this module", name), "give its definition in the same module");
    const nvptx::Function& callee = *symbol->function;
    if (results.size() != callee.results.size() || arguments.size() != callee.parameters.size())
        unsupported(fmt::format("'{}' has another number of parameters", name));
    if (first_) emit(nothing, 0, 0, {});
    const bool calls_itself = std::find(callers_.begin(), callers_.end(), &callee) != callers_.end();
    if (calls_itself || callers_.size() > deepest_inlined || micros.size() > largest_inlined)
        return call_out_of_line(callee, results, arguments);
    inline_function(callee, results, arguments);
}

// ---- alloca

void Lowering::alloca_(Form& form, Operands operands) {
    const Type type = form.take_type().value_or(Type::U64);
    std::uint32_t alignment = type == Type::U32 ? 4 : 8;
    if (operands.size() > 2) alignment = std::uint32_t(operands[2].value);
    if (alignment == 0 || alignment > 1024 || (alignment & (alignment - 1)))
        unsupported("the alignment of alloca is no power of two");
    const Result d = result(operands[0], Type::U64);
    emit(allocate_on_stack, D, A, {index(d.at), index(source(operands[1], Type::U64)), 0, 0, alignment}).apart = true;
    finish(d);
}

void Lowering::stacksave(Form& form, Operands operands) {
    form.take_type();
    const Result d = result(operands[0], Type::U64);
    emit(save_stack, D, 0, {index(d.at)});
    finish(d);
}

void Lowering::stackrestore(Form& form, Operands operands) {
    form.take_type();
    emit(restore_stack, 0, A, {0, index(source(operands[0], Type::U64))});
}

}  // namespace ikat::emulator
