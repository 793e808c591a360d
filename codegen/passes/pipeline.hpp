// SPDX-License-Identifier: Apache-2.0
// Which passes run, in which order, and what is watched while they do: dumps, times, verification after each.
//
// IKAT_DUMP=cse prints the function after cse to standard error, IKAT_DUMP=cse:saxpy for kernel saxpy alone,
// IKAT_DUMP=all after every pass that changed something.
#pragma once
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ir/function.hpp"

namespace ikat::passes {

/// A row of the table of passes.
struct Pass {
    std::string_view name;  // in options, dumps and texts
    bool (*run)(ir::Function&);
    std::string_view does;  // for the user, a line
};
std::span<const Pass> all_passes();

enum class OptLevel : std::uint8_t { None, Default };

struct PipelineOptions {
    OptLevel level = OptLevel::Default;
    std::string passes{};  // "simplify,cse": these in this order, instead of the level's
    bool verify_each = false;
    /// Called after each pass.
    std::function<void(const Pass&, const ir::Function&, bool changed)> after{};
};

struct PassReport {
    std::string_view name;
    bool changed = false;
    std::chrono::nanoseconds time{};
};

/// Whether IKAT_DUMP asks for the kernel as it is after `stage`: a pass, or another stage of the compiler.
bool dump_wanted(std::string_view stage, std::string_view kernel);

/// Runs the passes, each on all functions before the next. Throws Error for an unknown name in options.passes, naming
/// the known ones.
std::vector<PassReport> run_pipeline(std::span<ir::Function> functions, const PipelineOptions& options = {});
inline std::vector<PassReport> run_pipeline(ir::Function& fn, const PipelineOptions& options = {}) {
    return run_pipeline({&fn, 1}, options);
}
inline std::vector<PassReport> run_pipeline(ir::Module& module, const PipelineOptions& options = {}) {
    return run_pipeline(std::span(module.functions), options);
}

}  // namespace ikat::passes
