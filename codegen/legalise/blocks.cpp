// SPDX-License-Identifier: Apache-2.0
// Block layout: checks become branches, critical edges are split, and reachable blocks are put in reverse postorder,
// with loops contiguous and traps at the end.
//
//     ^1: check %p, "text", %v      ==>  ^1: branch %p, ^2, ^3       ^3: print "check failed: text\n", %v
//         rest                           ^2: rest                        trap
#include <algorithm>

#include "codegen/ir/cfg.hpp"
#include "codegen/ir/edit/split.hpp"
#include "codegen/legalise/legalise.hpp"

namespace ikat::legalise {
namespace {

using ir::Block, ir::Function, ir::Inst, ir::Op, ir::Terminator;

/// Escapes the braces of a text without values for print.
std::string plain(std::string_view text) {
    std::string out;
    for (char c : text) out.append(c == '{' || c == '}' ? 2 : 1, c);
    return out;
}

void expand_check(Function& fn, Block block, std::size_t position) {
    const Inst check = fn[block].instructions[position];
    const Block rest = split_block(fn, block, position + 1), failed = fn.add_block();
    fn[block].instructions.pop_back();
    const std::vector<ir::Value> operands(fn.operands(check).begin(), fn.operands(check).end());
    const Location where = fn[check].where;
    const std::string& said = fn.texts[fn[check].attribute];
    const auto text = fn.add_text("check failed: " + (operands.size() == 1 ? plain(said) : said) + "\n");
    fn.append(failed, {.op = Op::Print, .attribute = text, .where = where}, std::span(operands).subspan(1), {});
    fn[failed].terminator = {.kind = Terminator::Kind::Trap, .where = where};
    fn[block].terminator = {
        .kind = Terminator::Kind::Branch, .condition = operands[0], .targets = {{rest}, {failed}}, .where = where};
}

bool expand_checks(Function& fn) {
    const std::size_t blocks = fn.block_count();
    for (std::uint32_t block = 0; block < fn.block_count(); ++block) {  // the count grows: new blocks are visited later
        const auto& list = fn[Block(block)].instructions;
        const auto check = std::ranges::find_if(list, [&](Inst inst) { return fn[inst].op == Op::Check; });
        if (check != list.end()) expand_check(fn, Block(block), std::size_t(check - list.begin()));
    }
    return fn.block_count() != blocks;
}

bool split_critical_edges(Function& fn) {
    const std::vector<std::uint32_t> predecessors = ir::predecessor_counts(fn);
    const std::size_t blocks = fn.block_count();
    for (std::uint32_t block = 0; block < blocks; ++block) {
        const std::size_t targets = fn[Block(block)].terminator.targets.size();
        for (std::size_t i = 0; targets > 1 && i < targets; ++i) {
            const ir::Jump& jump = fn[Block(block)].terminator.targets[i];
            if (!jump.arguments.empty() && predecessors[index(jump.to)] != 1) split_edge(fn, Block(block), i);
        }
    }
    return fn.block_count() != blocks;
}

/// The loop depth of each block; -1 for a block that traps.
std::vector<int> nesting(const Function& fn, const analysis::Loops& loops) {
    std::vector<int> depth;
    for (Block block : fn.blocks())
        depth.push_back(fn[block].terminator.kind == Terminator::Kind::Trap ? -1 : int(loops.depth(block)));
    return depth;
}

/// Reverse postorder with the deepest successor of each block next, so that a loop is complete before what follows it.
std::vector<Block> emission_order(const Function& fn, analysis::Context& context) {
    struct Visit {
        std::uint32_t block;
        std::vector<std::uint32_t> pending;  // successors, the last to be visited first
    };
    const Graph& graph = context.dominators().graph();
    const std::vector<int> depth = nesting(fn, context.loops());
    const auto visit = [&](std::uint32_t block) {
        // Deeper blocks come first. (std::stable_sort of this libstdc++ is deprecated inside, says clang.)
        const auto depth_of = [&](std::uint32_t to) { return depth[to]; };
        Visit out{block, {}};
        for (std::uint32_t to : graph.successors(block))
            out.pending.insert(std::ranges::upper_bound(out.pending, depth[to], std::ranges::greater{}, depth_of), to);
        return out;
    };
    std::vector<Block> order;
    std::vector<bool> seen(graph.size());
    std::vector<Visit> path{visit(0)};
    seen[0] = true;
    while (!path.empty()) {
        Visit& top = path.back();
        if (top.pending.empty()) {
            order.push_back(Block(top.block));
            path.pop_back();
            continue;
        }
        const std::uint32_t next = top.pending.back();
        top.pending.pop_back();
        if (!seen[next]) {
            seen[next] = true;
            path.push_back(visit(next));
        }
    }
    std::ranges::reverse(order);
    return order;
}

/// Whether that changed anything.
bool put_in_order(Function& fn, analysis::Context& context) {
    const std::vector<Block> order = emission_order(fn, context);
    if (std::ranges::equal(order, fn.blocks())) return false;
    fn.order_blocks(order);
    return true;
}

}  // namespace

analysis::Changed lay_out(ir::Function& fn, analysis::Context& context) {
    using analysis::Changed;
    bool changed = expand_checks(fn);
    if (changed) context.changed(Changed::ControlFlow);
    changed |= put_in_order(fn, context);  // first drops unreachable blocks, whose edges do not count
    if (!split_critical_edges(fn)) return analysis::control_flow_if(changed);
    context.changed(Changed::ControlFlow);
    put_in_order(fn, context);
    return Changed::ControlFlow;
}

}  // namespace ikat::legalise
