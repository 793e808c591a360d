// SPDX-License-Identifier: Apache-2.0
// Functions of the system, which a module declares and does not define: vprintf, __assertfail, malloc, free.
#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

/// Whether the name is one of them.
bool Lowering::call_system(std::string_view name, Operands results, Operands arguments) {
    if (name == "vprintf")
        call_print(results, arguments);
    else if (name == "__assertfail")
        call_assert_failure(arguments);
    else if (name == "malloc")
        call_malloc(results, arguments);
    else if (name == "free")
        emit(heap_free, 0, A, {0, index(argument(arguments[0]))}).apart = true;
    else
        return false;
    return true;
}

/// A result of a function of the system into the caller's variable or register.
void Lowering::give_back(Value value, Type type, Operands results) {
    if (results.empty()) return;
    if (const Symbol* const symbol = variable_of(results[0]))
        return store_local(value, ir::info(type).bytes, place_of(*symbol));
    const Result d = result(results[0], type);
    apply(select_move(slot_of(type), slot_of(type)), d.at, {value});
    finish(d);
}

void Lowering::call_print(Operands results, Operands arguments) {
    if (arguments.size() != 2) unsupported("vprintf takes a format and a buffer");
    const Value format = argument(arguments[0]), buffer = argument(arguments[1]), printed = temporary(4);
    emit(print_formatted, D, A | B, {index(printed), index(format), index(buffer)}).apart = true;
    give_back(printed, Type::U32, results);
}

/// __assertfail(text, file, line, function, size of a character): what assert() calls.
void Lowering::call_assert_failure(Operands arguments) {
    const auto word = [&](std::size_t i) { return index(argument(arguments[i])); };
    const std::uint32_t text = word(0), file = word(1), function = word(3);
    Value line = temporary(4);
    if (const Symbol* const symbol = variable_of(arguments[2]))
        load_local(line, 4, place_of(*symbol));
    else
        line = source(arguments[2], Type::U32);
    emit(print_assertion, 0, A | B | C | X, {0, text, file, function, index(line)});
    emit(emulator::trap, 0, 0, {});
}

void Lowering::call_malloc(Operands results, Operands arguments) {
    const Value bytes = argument(arguments[0]), address = temporary(8);
    emit(heap_allocate, D, A, {index(address), index(bytes)}).apart = true;
    give_back(address, Type::U64, results);
}

}  // namespace ikat::emulator
