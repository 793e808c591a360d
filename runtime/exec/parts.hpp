// SPDX-License-Identifier: Apache-2.0
// The memory that work uses.
#pragma once
#include "runtime/exec/node.hpp"

namespace ikat::runtime {

/// Calls f with each buffer's part that work reads or writes.
template <class F>
void each_part(const Node& work, F f) {
    if (const auto* const launch = std::get_if<node::Launch>(&work.work)) {
        for (const Argument& argument : launch->arguments)
            if (const BufferPart* const part = argument.memory()) f(*part);
    } else if (const auto* const copy = std::get_if<node::Copy>(&work.work)) {
        if (copy->to.part.memory) f(copy->to.part);
        if (copy->from.part.memory) f(copy->from.part);
    } else if (const auto* const fill = std::get_if<node::Fill>(&work.work)) {
        if (fill->to.memory) f(fill->to);
    }
}

}  // namespace ikat::runtime
