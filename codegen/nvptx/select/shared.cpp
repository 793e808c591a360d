// SPDX-License-Identifier: Apache-2.0
// Shared memory beyond what a block has without asking: parts of dynamic shared memory (codegen/legalise/shared.cpp),
// of at most what the target has.
#include "codegen/legalise/legalise.hpp"
#include "codegen/nvptx/select/steps.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::nvptx {

Changed merge_shared(ir::Function& fn, const ptx::Target& target) {
    const std::uint64_t bytes = ir::symbol_bytes(fn.symbols, ir::Space::Shared);
    if (bytes > target.shared_opt_in)
        throw Error("the Shared arrays of '" + fn.name + "' take up " + std::to_string(bytes) + " bytes, and " +
                        std::string(target.name) + " gives a block at most " + std::to_string(target.shared_opt_in),
                    "make them smaller, or compile for a target that has more");
    return legalise::merge_shared(fn, target.shared_static);
}

}  // namespace ikat::nvptx
