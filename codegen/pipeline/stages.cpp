// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipeline/stages.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>

#include "codegen/ir/text/print.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::pipeline {
namespace {

using Kind = Stage::Kind;
using analysis::Changed;

template <auto f>
constexpr Stage pass(std::string_view name, std::string_view does) {
    return {.name = name, .kind = Kind::Pass, .run = run_stage<f>, .does = does};
}
constexpr Stage whole(std::string_view name, bool (*run)(Work&), std::string (*text)(const Work&),
                      ir::Level leaves = ir::Level::Typed) {
    return {.name = name, .kind = Kind::Whole, .run_whole = run, .leaves = leaves, .text = text};
}
/// Names the result of the stages before it.
constexpr Stage mark(std::string_view name, ir::Level leaves) {
    return whole(name, keep_called, functions_text, leaves);
}

constexpr auto typed = ir::Level::Typed, selected = ir::Level::Selected;

constexpr Stage table[] = {
    whole("ast", check_tree, tree_text),
    whole("ssa", lower_tree, functions_text),
    whole("grids", settle_grids, functions_text),
#define PASS(function, name, does) pass<passes::function>(name, does),
#include "codegen/passes/passes.def"
    mark("opt", typed),
    mark("select", selected),
    {.name = "registers",
     .kind = Kind::Whole,
     .run_whole = allocate,
     .leaves = selected,
     .text = registers_text,
     .complaint = registers_complaint},
    whole("ptx", emit, target_text, selected),
};

constexpr std::string_view default_order[] = {
    "ast",       "ssa",     "grids", "unroll", "cfg", "fold",    "simplify", "ranges",
    "cse",       "forward", "licm",  "dce",    "cfg", "uniform", "opt",      /* the target's selection */ "select",
    "registers", "ptx"};

constexpr Order order[] = {
    {"ast", "ssa", "lowering takes kernels without mistakes"},
    {"ssa", "grids", "what a kernel says of other grids is an operation there"},
    {"grids", "unroll", "passes keep what is read behind a wait for other grids, and know nothing of targets"},
    {"select", "registers", "a register has the width that selection gives a value"},
    {"registers", "ptx", "an instruction is written with its registers"},
    {"unroll", "cfg", "unroll looks for loops as lowering leaves them, and leaves blocks that only jump on"},
    {"unroll", "fold", "a loop that is certain to be entered has no way past it any more"},
    {"fold", "simplify", "simplify need not look for constants that come through blocks"},
    {"simplify", "cse", "cse compares what simplify has brought into one form"},
    {"fold", "cfg", "fold leaves branches on constants for cfg to decide"},
    {"simplify", "dce", "simplify leaves the operands of what it replaced"},
    {"simplify", "ranges", "ranges looks for constants on the right"},
    {"ranges", "cse", "constants moved out of indices leave equal addresses"},
    {"cse", "forward", "forward compares addresses by their values"},
    {"forward", "dce", "forward leaves addresses that only its loads used"},
    {"licm", "cfg", "licm may leave a block empty"},
    {"cfg", "uniform", "what cfg leaves is what the mark is about"},
    {"cse", "dce", "cse leaves what only its duplicates used"},
    {"dce", "cfg", "dce empties blocks that cfg can then jump across"},
};

static_assert(are_in_order(default_order, order));

constexpr const Stage* find(std::string_view name) {
    const auto found = std::ranges::find(table, name, &Stage::name);
    return found == std::end(table) ? nullptr : found;
}
static_assert(std::ranges::all_of(default_order, [](std::string_view name) { return find(name) != nullptr; }));

/// A stage of this table, or of the target's.
const Stage* find(std::string_view name, const Target& target) {
    if (const Stage* const found = find(name)) return found;
    const auto found = std::ranges::find(target.steps, name, &Stage::name);
    return found == target.steps.end() ? nullptr : &*found;
}

constexpr auto in_order = [] {
    std::array<const Stage*, std::size(default_order)> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = find(default_order[i]);
    return out;
}();
constexpr std::size_t place(std::string_view name) {
    return std::size_t(std::ranges::find(default_order, name) - default_order);
}
constexpr std::span before_passes = std::span(in_order).first(place("grids") + 1),
                    passes_in_order =
                        std::span(in_order).subspan(before_passes.size(), place("opt") - before_passes.size()),
                    after_selection = std::span(in_order).subspan(place("select"));

Changed run_one(const Stage& stage, ir::Function& fn, analysis::Context& context, const Target* target) {
    const Changed changed = stage.run(fn, context, target);
    context.changed(changed);
    return changed;
}

/// An operation to which only some of those threads come that have to come together; "" if there is none.
std::string divergent_operation(const ir::Function& fn, ir::Doubt doubt) {
    const auto findings = analysis::divergent_operations(fn, analysis::Dominators(fn), doubt);
    return findings.empty() ? "" : to_string(findings[0]);
}

/// The same with all analyses computed beforehand; those that the stage did not invalidate must still be correct.
/// What was convergent still is.
Changed run_verified(const Stage& stage, ir::Function& fn, analysis::Context& context, const Target* target) {
    context.fill();
    const ir::Function before = fn;
    const Changed changed = run_one(stage, fn, context, target);
    const bool silent = changed == Changed::Nothing && fn != before;
    const std::string_view stale = silent ? "the function" : context.stale();
    IKAT_ASSERT(stale.empty(), std::string(stage.name) + " has not said that it changed " + std::string(stale) + ":\n" +
                                   ir::print(fn));
    // Proved right before, and proved wrong now: what is in doubt before may turn out to be wrong by a right stage.
    const bool was_right = changed != Changed::Nothing && divergent_operation(before, ir::Doubt::Differs).empty();
    const std::string parted = was_right ? divergent_operation(fn, ir::Doubt::Agrees) : "";
    IKAT_ASSERT(parted.empty(), "after " + std::string(stage.name) + ": " + parted + '\n' + ir::print(fn));
    return changed;
}

const Stage& pass_named(std::string_view name) {
    const Stage* found = find(name);
    if (found && found->kind == Kind::Pass) return *found;
    std::string known;
    for (const Stage* pass : all_passes()) (known += known.empty() ? "" : ", ") += pass->name;
    throw Error("there is no pass '" + std::string(name) + "'", "passes are " + known);
}

}  // namespace

std::vector<const Stage*> all_passes() {
    std::vector<const Stage*> out;
    for (const Stage& stage : table)
        if (stage.kind == Kind::Pass) out.push_back(&stage);
    return out;
}

namespace {

std::vector<const Stage*> chosen_passes(OptLevel level, std::string_view passes) {
    std::vector<const Stage*> out;
    if (passes.empty() && level == OptLevel::Default) out.assign(passes_in_order.begin(), passes_in_order.end());
    for (std::string_view rest = passes; !passes.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        out.push_back(&pass_named(rest.substr(0, comma)));
        if (comma == rest.size()) break;
        rest.remove_prefix(comma + 1);
    }
    return out;
}

}  // namespace

std::vector<const Stage*> all_stages(const Target& target, OptLevel level, std::string_view passes) {
    std::vector<const Stage*> out(before_passes.begin(), before_passes.end());
    const auto add = [&](const auto& stages) { out.insert(out.end(), stages.begin(), stages.end()); };
    add(chosen_passes(level, passes));
    out.push_back(find("opt"));
    add(selection(target));
    add(after_selection);
    return out;
}

std::vector<std::string> names_of(std::span<const Stage* const> stages) {
    std::vector<std::string> out;
    out.reserve(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) {
        out.emplace_back(stages[i]->name);
        const auto before = std::count(stages.begin(), stages.begin() + std::ptrdiff_t(i), stages[i]);
        if (before) out.back() += '.' + std::to_string(before + 1);
    }
    return out;
}

std::size_t place_of(std::span<const Stage* const> stages, std::string_view name) {
    const std::vector<std::string> names = names_of(stages);
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return std::size_t(found - names.begin());
    std::string known;
    for (const std::string& each : names) (known += known.empty() ? "" : ", ") += each;
    throw Error("there is no stage '" + std::string(name) + "'", "stages are " + known);
}

std::span<const Stage* const> selection(const Target& target) {
    // Found once for all targets that have the same.
    static std::mutex mutex;
    static std::map<const std::string_view*, std::vector<const Stage*>> known;
    const std::lock_guard lock(mutex);
    std::vector<const Stage*>& out = known[target.selection.data()];
    if (out.empty()) {
        for (const std::string_view name : target.selection) out.push_back(find(name, target));
        IKAT_ASSERT(std::ranges::all_of(out, std::identity{}),
                    "the selection of " + std::string(target.name) + " names a stage that does not exist");
    }
    return out;
}

namespace {

std::vector<analysis::Context> contexts_of(std::span<ir::Function> functions) {
    std::vector<analysis::Context> out;
    out.reserve(functions.size());
    for (const ir::Function& fn : functions) out.emplace_back(fn, functions);
    return out;
}

/// On each function. Whether it changed one.
bool run_on_each(const Stage& stage, std::span<ir::Function> functions, std::span<analysis::Context> contexts,
                 const Target* target, bool verify) {
    Changed changed = Changed::Nothing;
    for (std::size_t i = 0; i < functions.size(); ++i)
        changed |= (verify ? run_verified : run_one)(stage, functions[i], contexts[i], target);
    return changed != Changed::Nothing;
}

}  // namespace

void run(std::span<const Stage* const> stages, Work& work, const AfterStage& after, bool verify) {
    std::vector<analysis::Context> contexts;
    for (const Stage* stage : stages) {
        bool changed = true;
        if (stage->run) {
            if (contexts.empty()) contexts = contexts_of(work.module.functions);
            changed = run_on_each(*stage, work.module.functions, contexts, work.target, verify);
        } else {
            contexts.clear();  // functions may be gone
            changed = stage->run_whole(work);
        }
        after(*stage, changed);
    }
}

void run(std::span<const Stage* const> list, std::span<ir::Function> functions, const Target* target,
         const After& after, bool verify) {
    std::vector<analysis::Context> contexts = contexts_of(functions);
    for (const Stage* stage : list) after(*stage, functions, run_on_each(*stage, functions, contexts, target, verify));
}

void check_dump(std::string_view wish, std::string_view from, const Target& target) {
    const std::string_view name = wish.substr(0, wish.find(':'));
    if (wish.empty() || name == "all" || find(name, target)) return;
    std::string known = "all";
    const auto add = [&](const Stage& stage) { (known += ", ") += stage.name; };
    const auto select = std::ranges::find(table, "select", &Stage::name);
    std::for_each(std::begin(table), select, add);
    std::ranges::for_each(target.steps, add);
    std::for_each(select, std::end(table), add);
    std::string message = "there is no stage '" + std::string(name) + "'";
    if (!from.empty()) message += " (from " + std::string(from) + ")";
    throw Error(message, "stages are " + known + "; with a kernel's name, cse:saxpy");
}

bool dump_wanted(std::string_view wish, std::string_view stage, std::string_view kernel, bool changed) {
    const std::size_t colon = std::min(wish.find(':'), wish.size());
    const std::string_view name = wish.substr(0, colon);
    return (name == stage || (name == "all" && changed)) && (colon == wish.size() || wish.substr(colon + 1) == kernel);
}

void run_passes(std::span<ir::Function> functions, const PassOptions& options) {
    const auto after = [&](const Stage& stage, std::span<const ir::Function> now, bool) {
        for (const ir::Function& fn : now) {
            const std::string findings = options.verify_each ? complaint(fn) : "";
            IKAT_ASSERT(findings.empty(), "after pass " + std::string(stage.name) + ":\n" + findings);
            if (options.after) options.after(stage, fn);
        }
    };
    run(chosen_passes(OptLevel::Default, options.passes), functions, nullptr, after, true);
}

void select(ir::Function& fn, const Target& target) {
    run(selection(target), {&fn, 1}, &target, [](const Stage&, std::span<const ir::Function>, bool) {});
}

}  // namespace ikat::pipeline
