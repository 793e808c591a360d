// SPDX-License-Identifier: Apache-2.0
#include "stdlib/roles.hpp"

#include <fmt/format.h>

#include "runtime/buffer.hpp"

namespace ikat::stdlib {
namespace {

std::uint64_t address_of(const runtime::BufferPart& part) { return part.memory->address() + part.offset; }

bool overlap(const runtime::BufferPart& a, const runtime::BufferPart& b) {
    return a.bytes > 0 && b.bytes > 0 && a.memory->device() == b.memory->device() &&
           address_of(a) < address_of(b) + b.bytes && address_of(b) < address_of(a) + a.bytes;
}

/// Arguments of a recipe have no life of their own to look at: their buffers are there.
bool is_over(const runtime::BufferPart& part) { return part.life && part.life->is_over; }

std::string_view word(Role role) { return role == Role::Written ? "written" : "read"; }

}  // namespace

void check_roles(std::string_view function, const Location& where, std::span<const OperandRole> operands) {
    for (const OperandRole& each : operands)
        if (is_over(each.part))
            throw Error(Diagnostic{.where = where,
                                   .message = fmt::format("{}: '{}': {}", function, each.name, runtime::freed),
                                   .hint = runtime::freed_hint});
    for (; !operands.empty(); operands = operands.subspan(1)) {
        const OperandRole& one = operands.front();
        for (const OperandRole& other : operands.subspan(1)) {
            if (one.role == Role::Read && other.role == Role::Read) continue;
            if (!overlap(one.part, other.part)) continue;
            throw Error(Diagnostic{
                .where = where,
                .message = fmt::format("{}: '{}' ({}) and '{}' ({}) are the same memory", function, one.name,
                                       word(one.role), other.name, word(other.role)),
                .hint = "what is written is no other operand's memory, not even between its rows: give it a buffer, or "
                        "a slice, of its own"});
        }
    }
}

}  // namespace ikat::stdlib
