// SPDX-License-Identifier: Apache-2.0
// Which ops write shared or global memory as ordinary instructions do (agents/generic_writes.hpp).
#include "runtime/emulator/agents/generic_writes.hpp"

#include <unordered_map>

#include "runtime/emulator/decode/lowering.hpp"
#include "runtime/emulator/ops/matrix.hpp"

namespace ikat::emulator {

namespace {

struct Written {
    std::optional<Space> space;  // none: op.y says it
    std::uint32_t bytes = 0;
};

std::unordered_map<Handler, Written> writing_handlers() {
    std::unordered_map<Handler, Written> found;
    const auto add = [&](Handler handler, const Written& written) {
        if (handler) found.try_emplace(handler, written);
    };
    for (const Space space : {Space::Shared, Space::Global, Space::Generic})
        for (const unsigned address : {4u, 8u})
            for (const unsigned bytes : {1u, 2u, 4u, 8u})
                for (const unsigned count : {1u, 2u, 4u})
                    add(select_store(space, address, bytes, count), {space, bytes * count});
    constexpr Type types[] = {Type::U8,  Type::I8,  Type::U16,  Type::I16, Type::U32, Type::I32,   Type::U64,
                              Type::I64, Type::F16, Type::BF16, Type::F32, Type::F64, Type::F16x2, Type::BF16x2};
    for (unsigned i = 0; i <= unsigned(Atomic::CompareSwap); ++i)
        for (const Type type : types) add(select_atomic(Atomic(i), type), {{}, ir::info(type).bytes});
    for (const bool compares : {false, true}) add(select_wide_atomic(compares), {{}, 16});
    return found;
}

}  // namespace

Observer observe_generic_writes() {
    const auto note = [](Lowering& code, const Micro& op, Space space, std::uint32_t bytes, std::uint32_t lanes,
                         std::uint32_t offset) {
        const bool is_global = space == Space::Global && code.kernel.has_bulk_copies;
        if (space != Space::Shared && space != Space::Generic && !is_global) return;
        code.put({.run = note_generic_write,
                  .fields = {bytes, op.fields[1], lanes, std::uint32_t(space), offset, code.values[op.fields[1]].slot},
                  .reads = A});
    };
    return {.op = [note, handlers = writing_handlers()](Lowering& code, Micro& op) {
        if (op.run == select_store_matrices(false)) {
            const MatrixAccess access = MatrixAccess::of(op.fields[5]);
            const std::uint32_t lanes = access.matrices == 4 ? all_lanes : (1u << 8 * access.matrices) - 1;
            note(code, op, access.is_generic ? Space::Generic : Space::Shared, 16, lanes, op.fields[2]);
        } else if (const auto found = handlers.find(op.run); found != handlers.end()) {
            const Space space = found->second.space.value_or(Space(op.fields[5]));
            note(code, op, space, found->second.bytes, all_lanes, op.fields[4]);
        }
    }};
}

}  // namespace ikat::emulator
