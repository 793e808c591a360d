// SPDX-License-Identifier: Apache-2.0
// From selected functions and their registers to a PTX module.
#pragma once
#include <vector>

#include "codegen/ir/function.hpp"
#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/text/module.hpp"

namespace ikat::nvptx {

struct Emitted {
    ptx::Module module;
    std::vector<Location> places;  // by instruction of the module's last function, the kernel: source locations
};

/// A module of selected functions, with their registers in the same order. With `line_info`, .file and .loc in the
/// kernel. The PTX version is the lowest that has all that they need.
Emitted emit(const ir::Module& module, std::span<const Registers> registers, const ptx::Target& target,
             bool line_info = false);

/// Its text.
TargetText emit_text(const ir::Module& module, std::span<const Registers> registers, const ptx::Target& target,
                     bool line_info);

}  // namespace ikat::nvptx
