// SPDX-License-Identifier: Apache-2.0
// Products of matrices in flight (op Wgmma): the variables that a product adds to, and those that hold its A, belong to
// it until a wait covers it.
//
//     wgmma sums, a, b          sums may not be touched from here on,
//     wgmma_commit
//     wgmma_wait 0              to here: the wait passes on its variables
//     sums = sums * 2
//     wgmma_fence               passes on what has been touched since the last one
//     wgmma sums, a, b
#pragma once
#include <span>
#include <vector>

#include "codegen/ast/ast.hpp"

namespace ikat::ast {

/// Consecutive variables.
struct VariableRange {
    Variable first{};
    std::uint32_t count = 0;
};
/// Those that a Wgmma adds to, and those that hold its A; none if that is in shared memory.
VariableRange sums_of(const NodeInfo& product);
VariableRange factors_of(const NodeInfo& product);

struct Products {
    /// Of a fence or a wait: the variables that it is about, each once. Of control flow: those with which a product
    /// begins in it, and that have been touched before. A fence before it has them in registers, where they stay also
    /// on the way past the product: ptxas serialises products if something is assigned there on some way to the wait
    /// (C7515).
    std::span<const VariableRange> passed(Node id) const {
        return passed_on.empty() ? std::span<const VariableRange>() : passed_on[index(id)];
    }
    /// The variables that get new values from a product, a fence or a wait, or before control flow.
    std::vector<VariableRange> assigned_by(Node id, const NodeInfo& node) const;

    std::vector<std::vector<VariableRange>> passed_on;  // by node
    /// Variables touched in flight, products without a fence before them, products that nobody waits for.
    std::vector<Diagnostic> diagnostics;
};
/// Empty if the kernel has no such products.
Products follow_products(const KernelTree& kernel);

}  // namespace ikat::ast
