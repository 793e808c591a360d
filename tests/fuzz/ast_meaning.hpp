// SPDX-License-Identifier: Apache-2.0
// Interprets a kernel of RandomAst directly from its AST: slow, obvious, and independent of lowering, passes, PTX and
// the emulator.
#pragma once
#include <vector>

#include "codegen/ast/ast.hpp"

namespace ikat::test {

/// The final contents of its initially zero buffer after a launch with that many blocks and threads, one word per
/// element. Throws std::runtime_error if a thread does not end.
std::vector<ir::Word> meaning(const ast::KernelTree& kernel, std::uint32_t blocks, std::uint32_t threads);

}  // namespace ikat::test
