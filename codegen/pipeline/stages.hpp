// SPDX-License-Identifier: Apache-2.0
// The compiler's stages from the IR to selected IR, in one table: passes, legalisation, selection. All of them are
// dumped, timed, verified and kept in the same way.
//
// IKAT_DUMP=cse prints the functions after cse to standard error, IKAT_DUMP=cse:saxpy those of kernel saxpy alone,
// IKAT_DUMP=all after each stage that changed something.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/analysis/context.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/ptx/table/target.hpp"

namespace ikat::pipeline {

/// A row of the table.
struct Stage {
    enum class Kind : std::uint8_t {
        Pass,  // from IR to IR, for any target: a user may choose it by name
        Step,  // of lowering to a target, in its order
        Mark,  // names the result of the stages before it
    };
    std::string_view name;  // in options, dumps and texts
    Kind kind = Kind::Pass;
    analysis::Changed (*run)(ir::Function&, analysis::Context&, const ptx::Target&) = nullptr;
    std::string_view does{};  // for the user, a line
    ir::Level leaves = ir::Level::Typed;
};
/// The rows that users can choose.
std::vector<const Stage*> all_passes();

enum class OptLevel : std::uint8_t { None, Default };

/// The stages from lowering to "opt": those of the level, or the ones given in `passes` ("simplify,cse"), in that
/// order. Throws Error for an unknown name, naming the known ones.
std::vector<const Stage*> optimisation(OptLevel level, std::string_view passes);
/// The stages from there to "select".
std::span<const Stage* const> selection();

/// Runs stages, each on all functions before the next; analyses are kept from one stage to the next while they are
/// valid. After each stage, `after` is called with whether it changed a function. `verify` checks that the stage has
/// reported all its changes: no kept analysis may be stale.
using After = std::function<void(const Stage&, std::span<const ir::Function>, bool changed)>;
void run(std::span<const Stage* const> list, std::span<ir::Function> functions, const ptx::Target& target,
         const After& after, bool verify = false);

/// Whether `wish` ("cse", "cse:saxpy", "all") asks for the kernel after a stage, which may also be one that is not in
/// the table.
bool dump_wanted(std::string_view wish, std::string_view stage, std::string_view kernel, bool changed = false);
/// Throws Error for a wish for a stage that there is not; `from` is the variable it was read from, if any.
void check_dump(std::string_view wish, std::string_view from);

// ---- for tests and tools

struct PassOptions {
    std::string passes{};  // "simplify,cse": these in this order; empty: all, in theirs
    bool verify_each = false;
    /// Called after each pass and function.
    std::function<void(const Stage&, const ir::Function&)> after{};
};
void run_passes(std::span<ir::Function> functions, const PassOptions& options = {});
inline void run_passes(ir::Function& fn, const PassOptions& options = {}) { run_passes({&fn, 1}, options); }
void select(ir::Function& fn, const ptx::Target& target);

}  // namespace ikat::pipeline
