// SPDX-License-Identifier: Apache-2.0
// The compiler's stages, from the captured kernel to text, in one list: lowering, passes, legalisation, selection,
// registers, emission. All of them are run, dumped, timed, verified and kept by one driver, whoever asks for them.
// Those between "opt" and "select" are the target's (codegen/target.hpp), with passes between them.
//
// IKAT_DUMP=cse prints the functions after cse to standard error, IKAT_DUMP=cse:saxpy those of kernel saxpy alone,
// IKAT_DUMP=all after each stage that changed something.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/pipeline/stage.hpp"
#include "codegen/pipeline/work.hpp"

namespace ikat::pipeline {

/// The rows that users can choose: those of passes.
std::vector<const Stage*> all_passes();

enum class OptLevel : std::uint8_t { None, Default };

/// All stages for a target, of which those between "ssa" and "opt" are those of the level, or the ones given in
/// `passes`
/// ("simplify,cse"), in that order. Throws Error for an unknown name, naming the known ones.
std::vector<const Stage*> all_stages(const Target& target, OptLevel level, std::string_view passes);
/// What each is called in a list: the second "cfg" is "cfg.2".
std::vector<std::string> names_of(std::span<const Stage* const> stages);
/// The place of the one that is called so. Throws Error if there is none, naming the others.
std::size_t place_of(std::span<const Stage* const> stages, std::string_view name);

/// Runs stages. After each, `after` is called with whether it changed anything. `verify` checks that each stage has
/// reported all its changes: no kept analysis may be stale.
using AfterStage = std::function<void(const Stage&, bool changed)>;
void run(std::span<const Stage* const> stages, Work& work, const AfterStage& after, bool verify = false);

/// Whether `wish` ("cse", "cse:saxpy", "all") asks for the kernel after a stage.
bool dump_wanted(std::string_view wish, std::string_view stage, std::string_view kernel, bool changed = false);
/// Throws Error for a wish for a stage that the target does not have; `from` is the variable it was read from, if any.
void check_dump(std::string_view wish, std::string_view from, const Target& target);

// ---- passes and steps of functions that are no module, for tests and tools

/// Runs passes and steps, each on all functions before the next; analyses are kept from one to the next while they are
/// valid.
using After = std::function<void(const Stage&, std::span<const ir::Function>, bool changed)>;
void run(std::span<const Stage* const> list, std::span<ir::Function> functions, const Target* target,
         const After& after, bool verify = false);
/// The stages between "opt" and "select".
std::span<const Stage* const> selection(const Target& target);

struct PassOptions {
    std::string passes{};  // "simplify,cse": these in this order; empty: all, in theirs
    bool verify_each = false;
    /// Called after each pass and function.
    std::function<void(const Stage&, const ir::Function&)> after{};
};
void run_passes(std::span<ir::Function> functions, const PassOptions& options = {});
inline void run_passes(ir::Function& fn, const PassOptions& options = {}) { run_passes({&fn, 1}, options); }
void select(ir::Function& fn, const Target& target);

}  // namespace ikat::pipeline
