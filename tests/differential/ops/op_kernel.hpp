// SPDX-License-Identifier: Apache-2.0
// Kernels that compute one instruction: once on operands from memory, a thread for each, once on constants.
#pragma once
#include <string>
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::test {

/// An instruction to be tested: all but its operands. Of one with two results, `result` is the one to look at.
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

/// How a value is held in memory: predicates as u32.
ir::Type stored_type(ir::Type type);

/// Thread i computes result[i] from argument0[i], argument1[i] …; parameters: the arguments' buffers, the result's, n.
ir::Function memory_kernel(const OpCase& test);

/// One thread computes result[i] from the constants arguments[i].
ir::Function constant_kernel(const OpCase& test, const Arguments& arguments);

/// Whether the target can do it at all: not so fma of bf16 before sm_80, and 8-bit floats before sm_89.
bool has_way(const OpCase& test, const nvptx::Target& target);

/// Every OP row of the table at every type of its domain, with each rounding, .ftz, .sat and .approx that it has.
std::vector<OpCase> arithmetic_cases();

/// Convert between all pairs of types, with each rounding that matters and .sat; Bitcast between types of one width.
std::vector<OpCase> conversion_cases();

}  // namespace ikat::test
