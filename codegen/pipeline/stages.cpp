// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipeline/stages.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "codegen/ir/text/print.hpp"
#include "codegen/legalise/legalise.hpp"
#include "codegen/nvptx/select/steps.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::pipeline {
namespace {

using Kind = Stage::Kind;
using analysis::Changed;

/// A function of the stage's file, called with the arguments it takes.
template <auto f>
Changed run_stage(ir::Function& fn, analysis::Context& context, const ptx::Target* target) {
    if constexpr (std::is_invocable_v<decltype(f), ir::Function&, analysis::Context&, const ptx::Target&>)
        return f(fn, context, *target);
    else if constexpr (std::is_invocable_v<decltype(f), ir::Function&, analysis::Context&>)
        return f(fn, context);
    else if constexpr (std::is_invocable_v<decltype(f), ir::Function&, const ptx::Target&>)
        return f(fn, *target);
    else
        return f(fn);
}
Changed split_vectors(ir::Function& fn) { return legalise::split_vectors(fn, nvptx::most_elements); }

template <auto f>
constexpr Stage pass(std::string_view name, std::string_view does) {
    return {.name = name, .kind = Kind::Pass, .run = run_stage<f>, .does = does, .text = functions_text};
}
template <auto f>
constexpr Stage step(std::string_view name, ir::Level leaves) {
    return {.name = name, .kind = Kind::Step, .run = run_stage<f>, .leaves = leaves, .text = functions_text};
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
#define PASS(function, name, does) pass<passes::function>(name, does),
#include "codegen/passes/passes.def"
    mark("opt", typed),
    step<nvptx::merge_shared>("shared", typed),
    step<nvptx::expand_copies>("copies", typed),
    step<nvptx::expand_addresses>("indices", typed),
    step<nvptx::fold_addresses>("address", typed),
    step<nvptx::expand_atomics>("atomics", typed),
    step<legalise::lay_out>("blocks", typed),
    step<nvptx::expand_prints>("print", typed),
    step<split_vectors>("vectors", selected),
    step<legalise::widen_bytes>("bytes", selected),
    step<nvptx::legalise>("legal", selected),
    step<nvptx::sweep>("sweep", selected),
    step<nvptx::chain_carries>("carries", selected),
    step<nvptx::widen_accesses>("narrow", selected),
    step<nvptx::fuse_clamps>("clamps", selected),
    step<nvptx::fuse>("fuse", selected),
    step<nvptx::materialise_constants>("immediates", selected),
    mark("select", selected),
    {.name = "registers",
     .kind = Kind::Whole,
     .run_whole = allocate,
     .leaves = selected,
     .text = registers_text,
     .complaint = registers_complaint},
    whole("ptx", emit, ptx_text, selected),
};

constexpr std::string_view default_order[] = {
    "ast",   "ssa",     "unroll",  "cfg",   "fold",       "simplify", "ranges",    "cse",     "forward", "licm",
    "dce",   "cfg",     "uniform", "opt",   "shared",     "copies",   "indices",   "address", "cse",     "licm",
    "dce",   "atomics", "blocks",  "print", "vectors",    "bytes",    "legal",     "sweep",   "carries", "narrow",
    "sweep", "clamps",  "fuse",    "sweep", "immediates", "select",   "registers", "ptx"};

// The reasons for their order: `then` comes after `first`. Checked at compile time and not used otherwise.
struct Order {
    std::string_view first, then, because;
};
constexpr Order order[] = {
    {"ast", "ssa", "lowering takes kernels without mistakes"},
    {"ssa", "unroll", "passes are on SSA"},
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
    {"shared", "indices", "where an array lies in the dynamic one is part of its address"},
    {"copies", "address", "the loads that copies become may take the read-only path"},
    {"indices", "address", "what a sum of an address adds last is often a constant"},
    {"address", "cse", "sums without their constants are equal"},
    {"address", "dce", "the sums with their constants are used no more"},
    {"indices", "cse", "accesses by one index have a product in common"},
    {"indices", "licm", "a sum may change in a loop, and its product not"},
    {"indices", "dce", "some indices are used in addresses alone"},
    {"atomics", "blocks", "loops of compare and swap bring blocks"},
    {"print", "bytes", "a print's values are converted as others are"},
    {"vectors", "bytes", "taking a vector apart makes instructions at any type"},
    {"bytes", "legal", "a conversion is told by the widths of registers"},
    {"legal", "sweep", "legal leaves the operands of what it replaced"},
    {"legal", "narrow", "narrow looks for the conversions that legal makes"},
    {"carries", "fuse", "a chain that comes apart leaves sums"},
    {"address", "fuse", "what is part of an address is no sum to be fused"},
    {"clamps", "fuse", "a clamp is told by its comparisons"},
    {"fuse", "immediates", "a constant may stand in what is fused, and not in its parts"},
};

/// The last position of a stage in the default order; -1 if it is not in it.
constexpr int last_place(std::string_view name) {
    int place = -1;
    for (int i = 0; i < int(std::size(default_order)); ++i)
        if (default_order[i] == name) place = i;
    return place;
}
constexpr int first_place(std::string_view name) { return int(std::ranges::find(default_order, name) - default_order); }
constexpr const Stage* find(std::string_view name) {
    for (const Stage& stage : table)
        if (stage.name == name) return &stage;
    return nullptr;
}
static_assert(std::ranges::all_of(default_order, [](std::string_view name) { return find(name) != nullptr; }));
static_assert(std::ranges::all_of(order, [](const Order& o) { return last_place(o.first) >= 0; }));
static_assert(std::ranges::all_of(order, [](const Order& o) { return first_place(o.first) < last_place(o.then); }));

constexpr auto in_order = [] {
    std::array<const Stage*, std::size(default_order)> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = find(default_order[i]);
    return out;
}();
constexpr std::size_t first_pass = std::size_t(last_place("ssa")) + 1, behind_passes = std::size_t(last_place("opt")),
                      behind_selection = std::size_t(last_place("select")) + 1;

Changed run_one(const Stage& stage, ir::Function& fn, analysis::Context& context, const ptx::Target* target) {
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
Changed run_verified(const Stage& stage, ir::Function& fn, analysis::Context& context, const ptx::Target* target) {
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
    if (passes.empty() && level == OptLevel::Default)
        out.assign(in_order.begin() + first_pass, in_order.begin() + behind_passes);
    for (std::string_view rest = passes; !passes.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        out.push_back(&pass_named(rest.substr(0, comma)));
        if (comma == rest.size()) break;
        rest.remove_prefix(comma + 1);
    }
    return out;
}

}  // namespace

std::vector<const Stage*> all_stages(OptLevel level, std::string_view passes) {
    std::vector<const Stage*> out = chosen_passes(level, passes);
    out.insert(out.begin(), in_order.begin(), in_order.begin() + first_pass);
    out.insert(out.end(), in_order.begin() + behind_passes, in_order.end());
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

std::span<const Stage* const> selection() {
    return std::span(in_order).subspan(behind_passes + 1, behind_selection - behind_passes - 2);
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
                 const ptx::Target* target, bool verify) {
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

void run(std::span<const Stage* const> list, std::span<ir::Function> functions, const ptx::Target* target,
         const After& after, bool verify) {
    std::vector<analysis::Context> contexts = contexts_of(functions);
    for (const Stage* stage : list) after(*stage, functions, run_on_each(*stage, functions, contexts, target, verify));
}

void check_dump(std::string_view wish, std::string_view from) {
    const std::string_view name = wish.substr(0, wish.find(':'));
    if (wish.empty() || name == "all" || find(name)) return;
    std::string known = "all";
    for (const Stage& stage : table) (known += ", ") += stage.name;
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

void select(ir::Function& fn, const ptx::Target& target) {
    run(selection(), {&fn, 1}, &target, [](const Stage&, std::span<const ir::Function>, bool) {});
}

}  // namespace ikat::pipeline
