// SPDX-License-Identifier: Apache-2.0
#include "tools/testing/ptx.hpp"

#include "codegen/pipeline/compile.hpp"

namespace ikat::golden {

std::string ptx(const trace::KernelHandle& kernel, std::string_view target) {
    return compile(kernel.ast(), {.target = std::string(target), .allocation = regalloc::Method::Simplest}).ptx;
}

}  // namespace ikat::golden
