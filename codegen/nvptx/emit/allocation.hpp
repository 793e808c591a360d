// SPDX-License-Identifier: Apache-2.0
// From a selected function to the allocator's problem, and from its answer back to the function's values.
//
// PTX registers come in pools by width alone. A value has a register unless it is written into the instruction that
// uses it: constants and addresses of symbols (see select.hpp).
#pragma once
#include <string_view>

#include "codegen/ir/function.hpp"
#include "regalloc/regalloc.hpp"

namespace ikat::nvptx {

/// A register pool: how it is declared and what its registers are called.
struct Pool {
    std::string_view name, type, prefix;
};
inline constexpr Pool pools[] = {
    {"pred", ".pred", "%p"}, {"b16", ".b16", "%h"}, {"b32", ".b32", "%r"}, {"b64", ".b64", "%d"}};

/// The pool (an index into `pools`) of a value. PTX computes in no 8 bits: what has 8 lives in a 32-bit register, an
/// integer extended as its type says (select/legal.cpp). ld, st and cvt take registers wider than the type they are
/// written at, and no other instruction sees such a type.
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

/// Whether the instruction only stands for what its users write: it has no register and is not emitted itself.
constexpr bool is_immediate(ir::Op op) { return op == ir::Op::Const || op == ir::Op::Symbol; }

/// A function's registers. Its instructions and the problem's are numbered alike, block by block.
struct Registers {
    regalloc::Problem problem;
    std::vector<regalloc::Value> ranges;  // by ir::Value; no_id for a value without a register
    regalloc::Allocation allocation;

    regalloc::Register of(ir::Value value) const { return allocation.registers[index(ranges[index(value)])]; }
};

Registers allocate(const ir::Function& fn, const regalloc::Options& options);

/// The function, and behind each line the registers of what it defines: "%5 = add.u32 %1, %2   // %r3".
std::string print(const ir::Function& fn, const Registers& registers);

/// Empty if each use finds its value in its register on all paths (regalloc::check); else one sentence per violation,
/// then the allocator's problem with its answer, and the function.
std::string complaint(const ir::Function& fn, const Registers& registers);

}  // namespace ikat::nvptx
