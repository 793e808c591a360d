// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/pipeline.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

constexpr Pass table[] = {
    {"cfg", clean_up_control_flow, "removes branches that decide nothing, unreachable and empty blocks"},
    {"fold", fold_constants, "computes constants, also through loops and branches"},
    {"simplify", simplify, "rewrites instructions by algebra"},
    {"ranges", use_ranges, "decides what the sizes of integers decide"},
    {"cse", common_subexpressions, "computes equal expressions once"},
    {"forward", forward_stores, "takes values where memory would only give them back"},
    {"licm", loop_invariants, "computes before a loop what it computes the same each time"},
    {"dce", dead_code, "removes what nothing uses"},
    {"uniform", uniform_branches, "marks branches that all threads take together"},
};

constexpr std::string_view default_order[] = {"cfg",     "fold", "simplify", "ranges", "cse",
                                              "forward", "licm", "dce",      "cfg",    "uniform"};

// Why they stand in this order. The build checks it; nothing else reads it.
struct Order {
    std::string_view first, then, because;
};
constexpr Order order[] = {
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

/// The last place of a pass in the default order; -1 if it is not there.
constexpr int last_place(std::string_view name) {
    int place = -1;
    for (int i = 0; i < int(std::size(default_order)); ++i)
        if (default_order[i] == name) place = i;
    return place;
}
constexpr bool is_pass(std::string_view name) { return std::ranges::find(table, name, &Pass::name) != std::end(table); }
static_assert(std::ranges::all_of(default_order, is_pass));
static_assert(std::ranges::all_of(order, [](const Order& o) { return last_place(o.first) >= 0; }));
static_assert(std::ranges::all_of(order, [](const Order& o) { return last_place(o.first) < last_place(o.then); }));

const Pass& pass_named(std::string_view name) {
    const auto found = std::ranges::find(table, name, &Pass::name);
    if (found != std::end(table)) return *found;
    std::string known;
    for (const Pass& pass : table) (known += known.empty() ? "" : ", ") += pass.name;
    throw Error("there is no pass '" + std::string(name) + "'", "passes are " + known);
}

std::vector<const Pass*> selected(const PipelineOptions& options) {
    std::vector<const Pass*> out;
    if (options.passes.empty()) {
        if (options.level == OptLevel::Default)
            for (std::string_view name : default_order) out.push_back(&pass_named(name));
        return out;
    }
    for (std::string_view rest = options.passes;;) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        out.push_back(&pass_named(rest.substr(0, comma)));
        if (comma == rest.size()) return out;
        rest.remove_prefix(comma + 1);
    }
}

void watch(const Pass& pass, const ir::Function& fn, bool changed, const PipelineOptions& options) {
    if (dump_wanted(pass.name, fn.name) || (changed && dump_wanted("all", fn.name)))
        std::fprintf(stderr, "// after %s\n%s\n", std::string(pass.name).c_str(), print(fn).c_str());
    if (options.verify_each) {
        const std::string findings = report(fn);
        IKAT_ASSERT(findings.empty(), "after pass " + std::string(pass.name) + ":\n" + findings);
    }
    if (options.after) options.after(pass, fn, changed);
}

}  // namespace

std::span<const Pass> all_passes() { return table; }

bool dump_wanted(std::string_view stage, std::string_view kernel) {
    const char* wish = std::getenv("IKAT_DUMP");
    if (!wish) return false;
    const std::string_view text = wish;
    const std::size_t colon = std::min(text.find(':'), text.size());
    return text.substr(0, colon) == stage && (colon == text.size() || text.substr(colon + 1) == kernel);
}

std::vector<PassReport> run_pipeline(std::span<ir::Function> functions, const PipelineOptions& options) {
    std::vector<PassReport> reports;
    for (const Pass* pass : selected(options)) {
        PassReport& report = reports.emplace_back(PassReport{pass->name});
        for (ir::Function& fn : functions) {
            const auto start = std::chrono::steady_clock::now();
            const bool changed = pass->run(fn);
            report.time += std::chrono::steady_clock::now() - start;
            report.changed |= changed;
            watch(*pass, fn, changed, options);
        }
    }
    return reports;
}

}  // namespace ikat::passes
