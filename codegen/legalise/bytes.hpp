// SPDX-License-Identifier: Apache-2.0
// What integers fit into which: what bytes.cpp and the target's conversions ask.
#pragma once
#include "codegen/ir/type.hpp"

namespace ikat::legalise {

constexpr bool is_byte(ir::Type type) { return contains(ir::ByteInt | ir::Float8, type); }

/// Whether `to` holds every integer of type `from`; then an extended `from` is extended as `to` wants it.
constexpr bool holds_all(ir::Type to, ir::Type from) {
    if (from == to) return true;
    return bits(from) < bits(to) && (!ir::is_signed(from) || ir::is_signed(to));
}

}  // namespace ikat::legalise
