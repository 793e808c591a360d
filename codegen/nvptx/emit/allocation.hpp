// SPDX-License-Identifier: Apache-2.0
// Turns a selected function into the allocator's problem, and its answer into registers of the function's values.
//
// PTX register pools differ only in width. Every value has a register, except constants and addresses of symbols, which
// are written in the instructions that use them (see steps.hpp).
#pragma once
#include <string_view>

#include "codegen/target.hpp"

namespace ikat::nvptx {

/// A register pool: how it is declared and what its registers are called.
struct Pool {
    std::string_view name, type, prefix;
};
inline constexpr Pool pools[] = {
    {"pred", ".pred", "%p"}, {"b16", ".b16", "%h"}, {"b32", ".b32", "%r"}, {"b64", ".b64", "%d"}};

/// The pool (an index into `pools`) of a value. PTX has no 8-bit arithmetic: 8-bit values live in 32-bit registers,
/// integers extended according to their type (legalise/bytes.cpp). ld, st and cvt accept registers wider than the type
/// in their name, and no other instruction has such a type.
constexpr regalloc::Class pool_of(ir::Type type) {
    switch (type) {
        case ir::Type::Pred: return 0;
        case ir::Type::I16:
        case ir::Type::U16:
        case ir::Type::F16:
        case ir::Type::BF16:
        case ir::Type::E4M3x2:
        case ir::Type::E5M2x2: return 1;
        case ir::Type::I64:
        case ir::Type::U64:
        case ir::Type::F64: return 3;
        default: return 2;
    }
}

/// Whether the instruction is written as an operand of its users: it has no register and is not emitted itself.
constexpr bool is_immediate(ir::Op op) { return op == ir::Op::Const || op == ir::Op::Symbol; }

Registers allocate(const ir::Function& fn, const regalloc::Options& options);

/// The function, with the registers of the results after each line: "%5 = add.u32 %1, %2   // %r3".
std::string print(const ir::Function& fn, const Registers& registers);

/// Empty if on all paths each use finds its value in its register (regalloc::check); else one sentence per violation,
/// then the allocator's problem with its answer, and the function.
std::string complaint(const ir::Function& fn, const Registers& registers);

}  // namespace ikat::nvptx
