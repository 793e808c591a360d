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

}  // namespace ikat::ir
