// SPDX-License-Identifier: Apache-2.0
// What kernels and functions do with the memory of their operands, and which of these may lie on each other.
//
//     a kernel        what it only reads is written through no other parameter: it is read through a path that need not
//                     see stores. Arrays that are written may overlap; KernelInfo says which are.
//     a function      nothing that it writes is another operand's. Checked before its kernels are chosen, whose
//     parameters
//                     need not tell it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "runtime/memory_block.hpp"

namespace ikat::runtime {

/// What is done with an operand.
enum class Role : std::uint8_t { Read, Written };

/// It refers to the part, which may be an empty one. Of rows with gaps a caller may say how many bytes they have, and
/// are apart: several such operands with the same pitch may lie beside each other, as columns of one matrix.
struct OperandRole {
    OperandRole(std::string_view name, const BufferPart& part, Role role = Role::Read, std::uint64_t row_bytes = 0,
                std::uint64_t pitch_bytes = 0)
        : name(name), part(&part), role(role), row_bytes(row_bytes), pitch_bytes(pitch_bytes) {}
    std::string_view name;
    const BufferPart* part;
    Role role;
    std::uint64_t row_bytes, pitch_bytes;
};

/// Whose operands they are: see above.
enum class Overlaps : std::uint8_t { OfAKernel, OfAFunction };
/// The pairs of operands that share a byte, though they must not: one that is read before one that is written, else in
/// their order. Gaps between rows count, unless both operands say where theirs are.
std::vector<std::pair<std::size_t, std::size_t>> forbidden_overlaps(std::span<const OperandRole> operands, Overlaps by);

/// Throws Error, at the call of `function`, for the first such pair, or if an operand has been freed.
void check_roles(std::string_view function, const Location& where, std::span<const OperandRole> operands);

}  // namespace ikat::runtime
