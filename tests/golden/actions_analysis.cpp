// SPDX-License-Identifier: Apache-2.0
// What an analysis says about each line, as comments: `analyse uniformity|extents|divergence|loops|ranges|memory`.
#include <functional>
#include <map>

#include "codegen/analysis/loops.hpp"
#include "codegen/analysis/memory.hpp"
#include "codegen/analysis/ranges.hpp"
#include "codegen/analysis/uniformity.hpp"
#include "codegen/ir/op/shape.hpp"
#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "tools/testing/golden.hpp"

namespace ikat::analysis {
namespace {

using namespace ir;

std::string uniformity(const Function& fn) {
    const Uniformity facts(fn, Dominators(fn));
    const auto varying = [&](auto values) {
        std::string out;
        for (Value value : values)
            if (!facts.is_uniform(value)) out += (out.empty() ? "varies: " : " ") + print(fn, value);
        return out;
    };
    return print(fn, {.note = [&](Inst inst) { return varying(fn.results(inst)); },
                      .remark =
                          [&](Block block) {
                              std::string out = varying(fn[block].parameters);
                              if (!facts.is_divergent(block)) return out;
                              const Block cause = facts.cause(block);
                              const bool known = cause != no_id<Block>;
                              return (known ? "divergent by ^" + std::to_string(index(cause)) : "divergent") +
                                     (out.empty() ? "" : ", ") + out;
                          }});
}

/// Of each value that is not the same in a whole cluster, and of control.
std::string extents(const Function& fn, Doubt doubt) {
    const Uniformity facts(fn, Dominators(fn), doubt);
    const auto named = [&](auto values) {
        std::string out;
        for (Value value : values)
            if (facts.extent(value) != Extent::Cluster)
                (out += out.empty() ? "" : " ") += extent_names[std::size_t(facts.extent(value))];
        return out;
    };
    return print(fn, {.note = [&](Inst inst) { return named(fn.results(inst)); },
                      .remark =
                          [&](Block block) {
                              const std::string parameters = named(fn[block].parameters);
                              if (facts.extent(block) == Extent::Cluster) return parameters;
                              return "parted by " + std::string(extent_names[std::size_t(facts.extent(block))]) +
                                     (parameters.empty() ? "" : "; " + parameters);
                          }});
}

/// The findings, one after the other, as an error.
std::string divergence(const Function& fn) {
    verify_convergence({&fn, 1});
    return "none\n";
}

std::string loops(const Function& fn) {
    const Dominators dominators(fn);
    const Loops facts(fn, dominators);
    return print(fn, {.note = {}, .remark = [&](Block block) -> std::string {
                          const std::uint32_t loop = facts.innermost(block);
                          if (loop == Loops::none) return {};
                          const Loop& in = facts.all()[loop];
                          std::string out = "depth " + std::to_string(facts.depth(block)) + ", loop of ^" +
                                            std::to_string(index(in.header));
                          return std::ranges::find(in.latches, block) != in.latches.end() ? out + ", latch" : out;
                      }});
}

std::string decimal(Int128 x) {
    if (x < 0) return '-' + decimal(-x);
    std::string out;
    do out.insert(out.begin(), char('0' + int(x % 10)));
    while ((x /= 10) != 0);
    return out;
}

std::string ranges(const Function& fn) {
    const Dominators dominators(fn);
    Ranges facts(fn, dominators);
    std::map<Inst, Block> block_of;
    for (Block block : fn.blocks())
        for (Inst inst : fn[block].instructions) block_of[inst] = block;
    const auto text = [&](Value value, Block block) -> std::string {
        if (!contains(AnyInt, fn.type(value))) return {};
        const Interval x = facts.at(value, block);
        if (x == full(fn.type(value))) return {};
        return decimal(x.low) + " … " + decimal(x.high) +
               (x.multiple > 1 ? ", times " + std::to_string(x.multiple) : "");
    };
    return print(fn, {.note = [&](Inst inst) -> std::string {
                          if (fn.results(inst).empty()) return {};
                          std::string out = text(fn.result(inst), block_of[inst]);
                          const Op op = fn[inst].op;
                          if ((op == Op::Add || op == Op::Mul || op == Op::Fma || op == Op::Sub) &&
                              facts.is_exact(inst, block_of[inst]))
                              out += out.empty() ? "exact" : ", exact";
                          return out;
                      },
                      .remark =
                          [&](Block block) {
                              std::string out;
                              for (Value parameter : fn[block].parameters)
                                  if (const std::string known = text(parameter, block); !known.empty())
                                      out += (out.empty() ? "" : "; ") + print(fn, parameter) + ": " + known;
                              return out;
                          }});
}

/// Each pair of accesses, in text order; one of an instruction with several is named by its space.
std::string memory(const Function& fn) {
    std::vector<std::pair<Address, std::string>> all;
    for (Block block : fn.blocks())
        for (Inst inst : fn[block].instructions)
            for (const MemoryAccess& access : accesses(fn[inst])) {
                const std::string space{space_names[std::size_t(access.space)]};
                all.emplace_back(address_of(fn, inst, access),
                                 print(fn, inst) + (accesses(fn[inst]).size() > 1 ? " (" + space + ")" : ""));
            }
    std::string out;
    constexpr std::string_view names[] = {"no", "may", "must"};
    for (std::size_t a = 0; a < all.size(); ++a)
        for (std::size_t b = a + 1; b < all.size(); ++b)
            out += std::string(names[int(alias(fn, all[a].first, all[b].first))]) + "\t" + all[a].second + "\t" +
                   all[b].second + '\n';
    return out;
}

std::string analyse(const golden::Case& test) {
    static const std::map<std::string, std::function<std::string(const Function&)>, std::less<>> all{
        {"uniformity", uniformity},
        {"loops", loops},
        {"ranges", ranges},
        {"memory", memory},
        {"divergence", divergence},
        {"extents", [](const Function& fn) { return extents(fn, Doubt::Differs); }},
        {"extents suspected", [](const Function& fn) { return extents(fn, Doubt::Agrees); }}};
    const auto found = all.find(test.args);
    if (found == all.end()) throw Error("there is no analysis " + test.args, "see actions_analysis.cpp");
    const Function fn = renumbered(parse_function(test.input, test.file));
    verify(fn);
    return found->second(fn);
}

const golden::Registration analysis_actions({{"analyse", analyse}});

}  // namespace
}  // namespace ikat::analysis
