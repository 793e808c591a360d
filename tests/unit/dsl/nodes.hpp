// SPDX-License-Identifier: Apache-2.0
// The nodes of a captured kernel in the order of its text.
#pragma once
#include <vector>

#include "codegen/ast/ast.hpp"

namespace ikat::test {

inline std::vector<ast::NodeInfo> nodes_in_order(const ast::KernelTree& kernel, ast::Region region = {}) {
    std::vector<ast::NodeInfo> out;
    for (ast::Node node : kernel[region]) {
        out.push_back(kernel[node]);
        for (ast::Region inner : kernel[node].regions) {
            if (inner == ast::no_region) continue;
            const std::vector<ast::NodeInfo> more = nodes_in_order(kernel, inner);
            out.insert(out.end(), more.begin(), more.end());
        }
    }
    return out;
}

}  // namespace ikat::test
