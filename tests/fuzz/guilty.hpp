// SPDX-License-Identifier: Apache-2.0
// A program compiled in the plainest way and in full, and which part of the latter makes a difference.
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

/// What of `full` makes the program wrong: the allocation, or the first pass with which it shows. `right` says whether
/// the program is right when it is compiled in a certain way.
inline std::string guilty(ir::Function fn, const std::function<bool(const CompileOptions&)>& right) {
    if (!right(plain)) return "what is done without passes";
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
    return "what stands behind the passes";
}

}  // namespace ikat::test
