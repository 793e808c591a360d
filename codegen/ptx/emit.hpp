// SPDX-License-Identifier: Apache-2.0
// From a selected function and its registers to a PTX module.
#pragma once
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/ptx/allocation.hpp"
#include "codegen/ptx/module.hpp"
#include "codegen/ptx/target.hpp"

namespace ikat::ptx {

struct Emitted {
    Module module;
    std::vector<Location> places;  // by instruction of the module's only function: the kernel's source
};

/// With `line_info`, .file and .loc. The version is the lowest that has what the function needs.
Emitted emit(const ir::Function& fn, const Registers& registers, const Target& target, bool line_info = false);

}  // namespace ikat::ptx
