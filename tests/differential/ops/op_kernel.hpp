// SPDX-License-Identifier: Apache-2.0
// Kernels that compute one instruction: on operands from memory, one thread each, and on constants.
#pragma once
#include <string>
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::test {

/// An instruction to be tested, without its operands. If it has two results, `result` selects the one to check.
struct OpCase {
    ir::Instruction instruction;
    std::uint32_t result = 0;

    std::vector<ir::Type> argument_types() const;
    ir::Type result_type() const;
    std::string name() const;  // "add.f32.rz"
};

/// One list of operands for each execution.
using Arguments = std::vector<std::vector<ir::Word>>;

/// All combinations of edge values of the operands' types.
Arguments edge_arguments(const OpCase& test);

/// The type of a value in memory: predicates are u32.
ir::Type stored_type(ir::Type type);

/// Thread i computes result[i] from argument0[i], argument1[i] …; parameters: the arguments' buffers, the result's, n.
ir::Function memory_kernel(const OpCase& test);

/// One thread computes result[i] from the constants arguments[i].
ir::Function constant_kernel(const OpCase& test, const Arguments& arguments);

/// Whether the target supports it at all: not fma of bf16 before sm_80, nor 8-bit floats before sm_89.
bool has_way(const OpCase& test, const ptx::Target& target);

/// Every OP row of the table at every type of its domain, with each rounding, .ftz, .sat and .approx that it has.
std::vector<OpCase> arithmetic_cases();

/// Convert between all pairs of types, with each rounding that matters and .sat; Bitcast between types of one width.
std::vector<OpCase> conversion_cases();

}  // namespace ikat::test
