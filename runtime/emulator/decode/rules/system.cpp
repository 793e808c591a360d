// SPDX-License-Identifier: Apache-2.0
// System functions, which a module declares but does not define: vprintf, __assertfail, malloc, free,
// cudaGraphSetConditional.
#include "runtime/emulator/decode/rules/calls.hpp"

namespace ikat::emulator {

namespace {

/// Writes a result of a system function into the caller's variable or register.
void give_back(Lowering& code, VReg value, Type type, Operands results) {
    if (results.empty()) return;
    if (const Binding* const binding = variable_of(code, results[0]))
        return store_local(code, value, ir::info(type).bytes, place_of(code, *binding));
    const Result d = code.result(results[0], type);
    code.apply(select_move(slot_of(type), slot_of(type)), d.at, {value});
    code.finish(d);
}

void call_print(Lowering& code, Operands results, Operands arguments) {
    if (arguments.size() != 2) code.unsupported("vprintf takes a format and a buffer");
    const VReg format = argument(code, arguments[0]), buffer = argument(code, arguments[1]),
               printed = code.temporary(4);
    const MicroInfo info{.operation = Op::Print, .effects = Changes, .use = DefinedUse::Print};
    code.emit({print_formatted, info}, D, A | B, {index(printed), index(format), index(buffer)}).apart = true;
    give_back(code, printed, Type::U32, results);
}

/// An argument of 4 bytes.
VReg word_argument(Lowering& code, const ptx::Operand& operand) {
    const Binding* const binding = variable_of(code, operand);
    if (!binding) return code.source(operand, Type::U32);
    const VReg to = code.temporary(4);
    load_local(code, to, 4, place_of(code, *binding));
    return to;
}

/// __assertfail(text, file, line, function, size of a character): what assert() calls.
void call_assert_failure(Lowering& code, Operands arguments) {
    const auto word = [&](std::size_t i) { return index(argument(code, arguments[i])); };
    const std::uint32_t text = word(0), file = word(1), function = word(3);
    const VReg line = word_argument(code, arguments[2]);
    const MicroInfo info{.operation = Op::Check, .effects = Changes, .use = DefinedUse::Print};
    code.emit({print_assertion, info}, 0, A | B | C | X, {0, text, file, function, index(line)});
}

void call_malloc(Lowering& code, Operands results, Operands arguments) {
    const VReg bytes = argument(code, arguments[0]), address = code.temporary(8);
    const MicroInfo info{.operation = OwnOp::Malloc, .effects = Changes, .use = DefinedUse::Call};
    code.emit({heap_allocate, info}, D, A, {index(address), index(bytes)}).apart = true;
    give_back(code, address, Type::U64, results);
}

void call_free(Lowering& code, Operands arguments) {
    const MicroInfo info{.operation = OwnOp::Free, .effects = Changes, .use = DefinedUse::Call};
    code.emit({heap_free, info}, 0, A, {0, index(argument(code, arguments[0]))}).apart = true;
}

/// cudaGraphSetConditional(handle, value): a handle is where the condition is.
void call_set_conditional(Lowering& code, Operands arguments) {
    if (arguments.size() != 2) code.unsupported("cudaGraphSetConditional takes a handle and a value");
    const VReg handle = argument(code, arguments[0]), value = word_argument(code, arguments[1]);
    code.tell_tools({handle, 0, Space::Global}, {.bytes = 4, .direction = Direction::Write});
    code.emit(select_store(Space::Global, 8, 4, 1), 0, A | D, {index(value), index(handle)});
}

}  // namespace

bool call_system(Lowering& code, std::string_view name, Operands results, Operands arguments) {
    if (name == "vprintf")
        call_print(code, results, arguments);
    else if (name == "__assertfail")
        call_assert_failure(code, arguments);
    else if (name == "malloc")
        call_malloc(code, results, arguments);
    else if (name == "free")
        call_free(code, arguments);
    else if (name == "cudaGraphSetConditional")
        call_set_conditional(code, arguments);
    else
        return false;
    return true;
}

}  // namespace ikat::emulator
