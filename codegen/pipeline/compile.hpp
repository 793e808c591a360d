// SPDX-License-Identifier: Apache-2.0
// The whole compiler as one function.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "codegen/ir/function.hpp"
#include "codegen/kernel/kernel_info.hpp"
#include "codegen/kernel/pressure.hpp"
#include "codegen/support/allocation_method.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat {

/// What is compiled for, and what is to be kept of the way.
struct CompileOptions {
    std::string target = "sm_80";  // a name of the target table
    regalloc::Method allocation = regalloc::Method::Colouring;
    bool optimise = true;
    std::string passes{};      // "simplify,cse": only these, in this order; empty = the pipeline
    bool verify_each = false;  // verify the IR after each stage, and prove the registers; see docs/compiler.md
    bool line_info = false;    // .loc and .file in the PTX
    bool keep_stages = false;  // fill Compiled::stages
    bool pressure = false;     // fill Compiled::pressure
    std::string dump{};        // "cse", "cse:saxpy", "all": stages that are noted, as IR; empty: IKAT_DUMP
    std::string stop_after{};  // "ssa", "cfg.2", "select": the last stage that is run; see Compiled::snapshot
};

/// Registers of a class that the PTX declares, and the most that are live at once.
struct RegisterUse {
    std::string register_class;  // "b32"
    std::uint32_t registers = 0, max_live = 0;
};

/// What a stage has left: "ssa", "cfg.2".
struct Snapshot {
    ir::Module module{};
    std::string stage{};
    KernelInfo info{};  // of the kernel; without a name it is made of the module, which knows no views and contracts
};

/// A compiled kernel.
struct Compiled {
    std::string ptx;  // without the section that holds `info` in files
    KernelInfo info;
    std::vector<ir::Symbol> symbols;
    std::vector<RegisterUse> registers;
    SourcePressure pressure;  // with CompileOptions::pressure

    struct Stage {
        std::string name;  // "ast", "ssa", those of stages.hpp up to "opt" and "select", "registers", "ptx"
        std::string text;  // with keep_stages
        std::chrono::nanoseconds time{};
    };
    std::vector<Stage> stages;
    Snapshot snapshot;  // with CompileOptions::stop_after; there is no PTX then
};

/// Captured kernel in, PTX out. Throws Error for mistakes of the user (ast::check, an unknown target or pass).
Compiled compile(const ast::KernelTree& kernel, const CompileOptions& options = {});

/// The same from the IR on, for a kernel read from text, after the functions that it calls. The IR is verified;
/// findings are the user's mistakes.
Compiled compile(ir::Module module, const CompileOptions& options = {});
Compiled compile(ir::Function kernel, const CompileOptions& options = {});
/// The stages after that of the snapshot, which `options` must have.
Compiled compile(Snapshot snapshot, const CompileOptions& options = {});

/// The PTX as it is written to a file: before the section .ikat (codegen/kernel/section.hpp).
std::string file_text(const Compiled& compiled);

}  // namespace ikat
