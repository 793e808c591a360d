// SPDX-License-Identifier: Apache-2.0
// The part of the verifier that checks one instruction against its row: domain, modifiers, attribute, memory.
#pragma once
#include <string>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::ir {

/// How many elements a load, store or reduction of a vector touches; in the text .v2 and so on.
inline constexpr int vector_counts[] = {2, 4, 8, 16};

/// What the instruction has that its row does not allow, each as a sentence without a full stop.
std::vector<std::string> row_problems(const Function& fn, const Instruction& inst);

}  // namespace ikat::ir
