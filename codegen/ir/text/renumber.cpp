// SPDX-License-Identifier: Apache-2.0
// Rebuilds a function in the order of its text.
#include "codegen/ir/edit/clone.hpp"
#include "codegen/ir/text/parse.hpp"

namespace ikat::ir {

Function renumbered(const Function& fn) {
    Function out;
    out.name = fn.name;
    out.is_entry = fn.is_entry;
    out.parameters = fn.parameters;
    out.gives = fn.gives;
    out.symbols = fn.symbols;
    out.bounds = fn.bounds;
    clone_blocks(out, fn, 0, [](Inst) { return no_value; });
    return out;
}

}  // namespace ikat::ir
