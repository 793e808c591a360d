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

Block make_preheader(Function& fn, Block header, const std::vector<bool>& inside) {
    const Block before = fn.add_block();
    Jump on{header};
    for (std::size_t i = 0; i < fn[header].parameters.size(); ++i)
        on.arguments.push_back(fn.add_parameter(before, fn.type(fn[header].parameters[i])));
    Location where{};
    for (std::uint32_t block = 0; block < index(before); ++block) {
        if (inside[block]) continue;
        Terminator& terminator = fn[Block(block)].terminator;
        for (Jump& jump : terminator.targets)
            if (jump.to == header) jump.to = before, where = terminator.where;
    }
    fn[before].terminator = {.kind = Terminator::Kind::Jump, .targets = {std::move(on)}, .where = where};
    return before;
}

}  // namespace ikat::ir
