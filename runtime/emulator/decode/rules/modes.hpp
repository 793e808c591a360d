// SPDX-License-Identifier: Apache-2.0
// Modifiers that are modes of an operation of the IR (op/ops.def).
#pragma once
#include "codegen/ir/op/op.hpp"
#include "runtime/emulator/decode/modifiers.hpp"

namespace ikat::emulator {

/// A modifier and the number of the mode of that name.
template <ir::Op O>
consteval std::pair<Modifier, std::uint64_t> mode_of(Modifier modifier) {
    return {modifier, ir::mode_named(O, name(modifier)).value()};
}

}  // namespace ikat::emulator
