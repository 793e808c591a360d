// SPDX-License-Identifier: Apache-2.0
// What the compiler's stages work on, and those of them that are about all functions at once.
#pragma once
#include <string>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/target.hpp"

namespace ikat::pipeline {

/// What a compilation consists of: each stage finds what those before it have left.
struct Work {
    const Target* target = nullptr;
    regalloc::Method allocation = regalloc::Method::Colouring;
    bool line_info = false;

    const ast::KernelTree* kernel = nullptr;  // if it begins with one
    ir::Module module{};                      // from "ssa" on; its last function is the kernel
    std::vector<Registers> registers{};       // from "registers" on, by function
    TargetText text{};                        // from "ptx" on
};

// These return whether they changed anything.

/// Throws Error for mistakes in the captured kernel.
bool check_tree(Work& work);
bool lower_tree(Work& work);
/// Where grids do not overlap, kernels need not wait for others. Where they do, what a kernel reads that waits may
/// still be written while it runs, so it is not read as what never changes.
bool settle_grids(Work& work);
/// Drops functions that are no longer called.
bool keep_called(Work& work);
bool allocate(Work& work);
bool emit(Work& work);

// What they leave, as text.
std::string tree_text(const Work& work);
std::string registers_text(const Work& work);
std::string target_text(const Work& work);
/// What is wrong with the registers; empty: nothing.
std::string registers_complaint(const Work& work);

}  // namespace ikat::pipeline
