// SPDX-License-Identifier: Apache-2.0
// What a function does with the memory of its operands, and that they may lie where they do: what it writes is nobody
// else's. Checked before kernels are chosen, whose parameters need not tell it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "codegen/support/diagnostic.hpp"
#include "runtime/view.hpp"

namespace ikat::stdlib {

enum class Role : std::uint8_t { Read, Written };

struct OperandRole {
    std::string_view name;
    runtime::BufferPart part;  // or an empty one
    Role role = Role::Read;
};

/// Throws Error, at the call of `function`, if two of them share a byte and one is written, or one has been freed. Gaps
/// between rows count.
void check_roles(std::string_view function, const Location& where, std::span<const OperandRole> operands);

}  // namespace ikat::stdlib
