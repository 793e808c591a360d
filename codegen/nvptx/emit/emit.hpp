// SPDX-License-Identifier: Apache-2.0
// From a selected function and its registers to a PTX module.
#pragma once
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/text/module.hpp"

namespace ikat::nvptx {

struct Emitted {
    Module module;
    std::vector<Location> places;  // by instruction of the module's last function, the kernel: its source
};

/// A function and its registers.
struct Part {
    const ir::Function& fn;
    const Registers& registers;
};

/// A kernel, and before it the functions that it calls. With `line_info`, .file and .loc. The version is the lowest
/// that has what they need.
Emitted emit(std::span<const Part> functions, const Part& kernel, const Target& target, bool line_info = false);

}  // namespace ikat::nvptx
