// SPDX-License-Identifier: Apache-2.0
#include "tools/testing/ptx.hpp"

#include "codegen/pipeline/compile.hpp"

namespace ikat::golden {

std::string ptx(const ast::KernelTree& kernel, std::string_view target) {
    return compile(kernel, {.target = std::string(target), .allocation = regalloc::Method::Simplest}).ptx;
}

}  // namespace ikat::golden
