// SPDX-License-Identifier: Apache-2.0
// Removing block parameters, together with the arguments that jumps pass for them.
#pragma once
#include "codegen/ir/function.hpp"

namespace ikat::ir {

/// Drops every block parameter for which drop(value) holds; true if there was one.
bool drop_parameters(Function& fn, auto&& drop) {
    std::vector<bool> affected(fn.block_count());
    bool any = false;
    for (Block block : fn.blocks())
        for (Value parameter : fn[block].parameters)
            if (drop(parameter)) affected[index(block)] = any = true;
    if (!any) return false;
    for (Block block : fn.blocks())
        for (Jump& jump : fn[block].terminator.targets) {
            if (!affected[index(jump.to)]) continue;
            const auto& parameters = fn[jump.to].parameters;
            std::size_t to = 0;
            for (std::size_t from = 0; from < parameters.size(); ++from)
                if (!drop(parameters[from])) jump.arguments[to++] = jump.arguments[from];
            jump.arguments.resize(to);
        }
    for (Block block : fn.blocks()) {
        if (!affected[index(block)]) continue;
        std::vector<Value> kept = fn[block].parameters;
        std::erase_if(kept, drop);
        fn.set_parameters(block, std::move(kept));
    }
    return true;
}

}  // namespace ikat::ir
