// SPDX-License-Identifier: Apache-2.0
// Finds which part of the compiler makes a program wrong, by comparing with the simplest compilation.
#pragma once
#include <functional>
#include <string>

#include "codegen/pipeline/compile.hpp"
#include "codegen/pipeline/stages.hpp"

namespace ikat::test {

inline const CompileOptions plain{
    .target = "sm_90", .allocation = regalloc::Method::Simplest, .optimise = false, .verify_each = true};
inline const CompileOptions full{
    .target = "sm_90", .allocation = regalloc::Method::Colouring, .optimise = true, .verify_each = true};

/// The part of the full compilation that makes the program wrong: the allocation, or the first pass with which it is
/// wrong. `right` tells whether the program is right when compiled with certain options.
inline std::string guilty(ir::Function fn, const std::function<bool(const CompileOptions&)>& right) {
    if (!right(plain)) return "the compilation without passes";
    CompileOptions options = full;
    options.optimise = false;
    if (!right(options)) return "the allocation";
    options.optimise = true;
    std::vector<std::string> names;
    pipeline::run_passes(
        fn, {.after = [&](const pipeline::Stage& pass, const ir::Function&) { names.emplace_back(pass.name); }});
    options.passes.clear();
    for (const std::string& name : names) {
        options.passes += (options.passes.empty() ? "" : ",") + name;
        if (!right(options)) return "pass " + name + " (of " + options.passes + ")";
    }
    return "a stage after the passes";
}

}  // namespace ikat::test
