// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/edit/split.hpp"

#include <utility>

namespace ikat::ir {

Block split_block(Function& fn, Block block, std::size_t from) {
    const Block rest = fn.add_block();
    auto& list = fn[block].instructions;
    fn[rest].instructions.assign(list.begin() + std::ptrdiff_t(from), list.end());
    list.resize(from);
    fn[rest].terminator = std::exchange(fn[block].terminator, {});
    return rest;
}

Block split_edge(Function& fn, Block from, std::size_t target) {
    const Block between = fn.add_block();
    Terminator& terminator = fn[from].terminator;
    fn[between].terminator = {.kind = Terminator::Kind::Jump,
                              .targets = {std::exchange(terminator.targets[target], {between})},
                              .where = terminator.where};
    return between;
}

}  // namespace ikat::ir
