// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/roles.hpp"

#include <fmt/format.h>

#include "runtime/view.hpp"

namespace ikat::runtime {

/// Whether the rows of both lie in the gaps of the other.
static bool are_beside(const OperandRole& a, const OperandRole& b) {
    const std::uint64_t pitch = a.pitch_bytes;
    if (pitch == 0 || pitch != b.pitch_bytes || a.row_bytes > pitch || b.row_bytes > pitch) return false;
    const std::uint64_t from_a_to_b = (b.part->address() % pitch + pitch - a.part->address() % pitch) % pitch;
    return from_a_to_b >= a.row_bytes && from_a_to_b + b.row_bytes <= pitch;
}

std::vector<std::pair<std::size_t, std::size_t>> forbidden_overlaps(std::span<const OperandRole> operands,
                                                                    Overlaps by) {
    std::vector<std::pair<std::size_t, std::size_t>> out;
    const auto writes = [&](std::size_t i) { return operands[i].role == Role::Written; };
    for (std::size_t i = 0; i < operands.size(); ++i)
        for (std::size_t j = i + 1; j < operands.size(); ++j) {
            const bool forbidden = by == Overlaps::OfAKernel ? writes(i) != writes(j) : writes(i) || writes(j);
            if (!forbidden || !overlap(*operands[i].part, *operands[j].part)) continue;
            if (are_beside(operands[i], operands[j])) continue;
            out.push_back(by == Overlaps::OfAKernel && writes(i) ? std::pair(j, i) : std::pair(i, j));
        }
    return out;
}

void check_roles(std::string_view function, const Location& where, std::span<const OperandRole> operands) {
    for (const OperandRole& each : operands)
        if (each.part->memory && each.part->memory->is_over())
            throw Error(Diagnostic{.where = where,
                                   .message = fmt::format("{}: '{}': {}", function, each.name, freed),
                                   .hint = freed_hint});
    const auto word = [](const OperandRole& operand) { return operand.role == Role::Written ? "written" : "read"; };
    for (const auto& [i, j] : forbidden_overlaps(operands, Overlaps::OfAFunction))
        throw Error(Diagnostic{
            .where = where,
            .message = fmt::format("{}: '{}' ({}) and '{}' ({}) are the same memory", function, operands[i].name,
                                   word(operands[i]), operands[j].name, word(operands[j])),
            .hint = "an output must not overlap another operand, nor the gaps between its rows: give it a buffer, or "
                    "a slice, of its own"});
}

}  // namespace ikat::runtime
