// SPDX-License-Identifier: Apache-2.0
// What a kernel of RandomAst does, straight from its AST: slow, obvious, and independent of lowering, passes, PTX and
// the emulator.
#pragma once
#include <vector>

#include "codegen/ast/ast.hpp"

namespace ikat::test {

/// What it leaves in its buffer, which begins with zeros, launched with that many blocks and threads, an
/// element a word. Throws std::runtime_error if a thread does not end.
std::vector<ir::Word> meaning(const ast::Kernel& kernel, std::uint32_t blocks, std::uint32_t threads);

}  // namespace ikat::test
