// SPDX-License-Identifier: Apache-2.0
// Decoding, second half: from micro-ops over values to ops over the frame.
// Blocks are laid out in reverse postorder, with the textually later successor last, so that the split of a warp with
// the lowest op index is the one that the others can still meet. A block with both a fall-through and other
// predecessors gets a `join` before it.
// Called functions are placed before the kernel, for the same reason: lanes in a call go first and return to the
// others. A call ends a block; it saves what is live after it, so that its callee may use the same slots.
// Values get slots by linear scan over intervals in that order. Reusing slots is also right for diverged warps: each
// lane has its own part of a slot and executes the code like a single thread.
#include <algorithm>
#include <queue>

#include "codegen/support/bitset.hpp"
#include "runtime/emulator/decode/blocks.hpp"

namespace ikat::emulator {

namespace {

struct Interval {
    std::uint32_t begin = nowhere, end = 0;
    void include(std::uint32_t at) { begin = std::min(begin, at), end = std::max(end, at); }
};

class Layout {
public:
    Layout(Lowering& lowering, DecodedKernel& kernel)
        : micros_(lowering.micros), lowering_(lowering), kernel_(kernel) {}

    void run() {
        find_blocks();
        for (const BasicBlock& block : blocks_) lowering_.tell_tools_of_block(block.begin, block.end);
        order_blocks();
        find_unassigned_reads();
        const std::vector<Interval> live = intervals();
        assign_slots(live);
        op_of_.assign(micros_.size(), 0);
        reserve_ops(micros_.size() + blocks_.size());
        for (std::size_t i = 0; i < order_.size(); ++i)
            emit_block(order_[i], i + 1 < order_.size() ? order_[i + 1] : nowhere);
        list_groups();
        resolve_targets();
        if (!kernel_.is_checked()) join_runs(), join_products_and_sums();
    }

private:
    // ---- blocks

    void find_blocks() {
        std::vector<char> leads(micros_.size() + 1, 0);
        leads[0] = 1;
        for (const Lowering::Root& root : lowering_.roots) leads[lowering_.labels[root.label]] = 1;
        for (const std::uint32_t at : lowering_.labels)
            if (at != nowhere) leads[at] = 1;
        for (std::size_t i = 0; i < micros_.size(); ++i)
            if (micros_[i].flow != Flow::Next) leads[i + 1] = 1;
        block_of_.assign(micros_.size(), 0);
        for (std::uint32_t i = 0; i < micros_.size(); ++i) {
            if (leads[i]) blocks_.emplace_back().begin = i;
            block_of_[i] = std::uint32_t(blocks_.size() - 1);
            blocks_.back().end = i + 1;
        }
        for (std::uint32_t b = 0; b < blocks_.size(); ++b) connect(b);
    }

    std::uint32_t block_at(std::uint32_t label) const {
        const std::uint32_t at = lowering_.labels[label];
        IKAT_ASSERT(at != nowhere, "a label is in reach and was not placed");
        return block_of_[at];
    }

    void connect(std::uint32_t b) {
        BasicBlock& block = blocks_[b];
        const Micro& last = micros_[block.end - 1];
        if (last.flow == Flow::Next || last.flow == Flow::Branch || last.flow == Flow::Call) {
            block.falls = true;
            block.successors.push_back(b + 1);
        }
        if (last.flow == Flow::Jump || last.flow == Flow::Branch) block.successors.push_back(block_at(last.label));
        if (last.flow == Flow::Table)
            for (std::uint32_t i = 0; i < last.targets; ++i)
                block.successors.push_back(block_at(lowering_.table_labels[last.label + i]));
        for (const std::uint32_t successor : block.successors) ++blocks_[successor].predecessors;
    }

    void order_blocks() {
        std::vector<char> seen(blocks_.size(), 0);
        std::vector<std::uint32_t> order;
        for (const Lowering::Root& root : lowering_.roots) {
            order_from(block_at(root.label), seen);
            order.insert(order.end(), order_.begin(), order_.end());
        }
        order_from(0, seen);
        order.insert(order.end(), order_.begin(), order_.end());
        order_ = std::move(order);
        for (std::uint32_t b = 0; b < blocks_.size(); ++b)  // edges from dead code do not count
            if (!seen[b])
                for (const std::uint32_t successor : blocks_[b].successors) --blocks_[successor].predecessors;
    }

    /// The blocks of the kernel or of one function.
    void order_from(std::uint32_t first, std::vector<char>& seen) {
        order_.clear();
        struct Visit {
            std::uint32_t block;
            std::vector<std::uint32_t> rest;  // the last, the latest in the text, is visited next
        };
        std::vector<Visit> stack;
        const auto visit = [&](std::uint32_t b) {
            seen[b] = 1;
            stack.push_back({b, blocks_[b].successors});
            std::sort(stack.back().rest.begin(), stack.back().rest.end());
        };
        visit(first);
        while (!stack.empty()) {
            if (stack.back().rest.empty()) {
                order_.push_back(stack.back().block);
                stack.pop_back();
                continue;
            }
            const std::uint32_t next = stack.back().rest.back();
            stack.back().rest.pop_back();
            if (!seen[next]) visit(next);
        }
        std::reverse(order_.begin(), order_.end());
    }

    void find_unassigned_reads() {
        if (kernel_.is_checked()) return;  // where warps begin, the plain code says
        std::vector<std::uint32_t> entries{0};
        for (const Lowering::Root& root : lowering_.roots) entries.push_back(block_at(root.label));
        kernel_.unassigned_reads = count_unassigned_reads(lowering_, blocks_, order_, entries);
    }

    // ---- slots

    std::vector<Interval> intervals() {
        const std::size_t count = lowering_.values.size();
        std::vector<Bitset> use(blocks_.size(), Bitset(count)), def = use, live_in = use, live_out = use;
        for (const std::uint32_t b : order_)
            for (std::uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
                const Micro& micro = micros_[i];
                if (micro.checks) continue;
                const auto read = [&](std::uint32_t v) {
                    if (!def[b].test(v)) use[b].set(v);
                };
                each_source(lowering_, micro, read);
                if (micro.partial)
                    each_result(lowering_, micro, read);
                else
                    each_result(lowering_, micro, [&](std::uint32_t v) { def[b].set(v); });
            }
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t i = order_.size(); i-- > 0;) {
                const std::uint32_t b = order_[i];
                for (const std::uint32_t successor : blocks_[b].successors) live_out[b].merge(live_in[successor]);
                Bitset before = live_out[b];
                def[b].each([&](std::size_t v) { before.reset(v); });
                before.merge(use[b]);
                changed |= live_in[b].merge(before);
            }
        }
        std::vector<Interval> result(count);
        std::uint32_t position = 0;
        for (const std::uint32_t b : order_) {
            live_in[b].each([&](std::size_t v) { result[v].include(2 * position); });
            for (std::uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
                const Micro& micro = micros_[i];
                if (micro.checks) continue;  // ignored, so that the plain code has the same frame
                each_source(lowering_, micro, [&](std::uint32_t v) { result[v].include(2 * position + micro.apart); });
                each_result(lowering_, micro, [&](std::uint32_t v) { result[v].include(2 * position + 1); });
                ++position;
            }
            live_out[b].each([&](std::size_t v) { result[v].include(2 * position); });
            if (micros_[blocks_[b].end - 1].flow == Flow::Call) keep(b, live_out[b]);
        }
        for (std::size_t v = 0; v < count; ++v)
            if (lowering_.values[v].keeps_slot && result[v].begin != nowhere) result[v] = {0, 2 * position};
        return result;
    }

    /// Records what the call at the end of a block must save.
    void keep(std::uint32_t b, const Bitset& live_out) {
        std::vector<std::uint32_t> kept;
        live_out.each([&](std::size_t v) {
            const VRegInfo& info = lowering_.values[v];
            if (info.kind == VRegInfo::Kind::Register && !info.keeps_slot) kept.push_back(std::uint32_t(v));
        });
        kept_.emplace(blocks_[b].end - 1, std::move(kept));
    }

    void assign_slots(const std::vector<Interval>& live) {
        offsets_.assign(lowering_.values.size(), 0);
        std::vector<std::uint32_t> by_begin;
        for (std::uint32_t v = 0; v < live.size(); ++v)
            if (live[v].begin != nowhere && lowering_.values[v].kind == VRegInfo::Kind::Register) by_begin.push_back(v);
        std::sort(by_begin.begin(), by_begin.end(), [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(live[a].begin, a) < std::pair(live[b].begin, b);
        });
        using Ending = std::pair<std::uint32_t, std::uint32_t>;  // end, value
        std::priority_queue<Ending, std::vector<Ending>, std::greater<>> active;
        std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free[3];
        std::uint32_t used[3] = {};
        std::vector<std::uint32_t> slot(live.size(), 0);
        for (const std::uint32_t v : by_begin) {
            while (!active.empty() && active.top().first < live[v].begin) {
                const std::uint32_t ended = active.top().second;
                free[lowering_.values[ended].slot / 4].push(slot[ended]);
                active.pop();
            }
            auto& pool = free[lowering_.values[v].slot / 4];
            if (pool.empty()) pool.push(used[lowering_.values[v].slot / 4]++);
            slot[v] = pool.top();
            pool.pop();
            active.push({live[v].end, v});
        }
        place_slots(live, slot, used);
    }

    /// Registers first (predicates, 32-bit slots, 64-bit slots), then constants.
    void place_slots(const std::vector<Interval>& live, const std::vector<std::uint32_t>& slot,
                     const std::uint32_t (&used)[3]) {
        const std::uint32_t words = (4 * used[0] + 63) / 64 * 64;
        const std::uint32_t double_words = words + used[1] * 128;
        kernel_.predicate_bytes = words;
        std::uint32_t end = kernel_.register_bytes = double_words + used[2] * 256;
        for (std::uint32_t v = 0; v < live.size(); ++v) {
            const VRegInfo& info = lowering_.values[v];
            if (info.kind == VRegInfo::Kind::Register) {
                const std::uint32_t starts[3] = {0, words, double_words}, sizes[3] = {4, 128, 256};
                offsets_[v] = starts[info.slot / 4] + sizes[info.slot / 4] * slot[v];
                continue;
            }
            if (live[v].begin == nowhere) continue;
            offsets_[v] = std::exchange(end, end + (info.slot ? 32u * info.slot : 64));
            if (info.kind == VRegInfo::Kind::Constant)
                kernel_.constants.push_back({offsets_[v], info.slot, info.bits});
            else
                kernel_.specials.push_back({offsets_[v], info.special});
        }
        kernel_.frame_bytes = end;
    }

    // ---- ops

    void reserve_ops(std::size_t max_ops) {
        kernel_.code.reserve(max_ops);
        kernel_.effects.reserve(max_ops);
        kernel_.instructions.reserve(max_ops);
        if (!kernel_.is_checked()) return;
        kernel_.checked_of.reserve(max_ops);
        kernel_.plain_of.reserve(max_ops);
    }

    void append(const MicroOp& op, std::uint8_t effects, const ptx::Instruction* instruction, bool checks = false) {
        if (kernel_.is_checked()) {
            // an op of the plain code maps to the start of its checks
            const auto at = std::uint32_t(kernel_.code.size());
            const bool checked = !kernel_.plain_of.empty() && last_checks_;
            if (!checked) kernel_.checked_of.push_back(at);
            kernel_.plain_of.push_back(std::uint32_t(kernel_.checked_of.size() - 1));
            last_checks_ = checks;
        }
        kernel_.code.push_back(op);
        kernel_.effects.push_back(effects);
        kernel_.instructions.push_back(instruction);
    }

    void emit_block(std::uint32_t b, std::uint32_t next) {
        BasicBlock& block = blocks_[b];
        block.op = std::uint32_t(kernel_.code.size());
        for (std::uint32_t i = block.begin; i < block.end; ++i) {
            const Micro& micro = micros_[i];
            op_of_[i] = std::uint32_t(kernel_.code.size());
            if (micro.dropped) continue;
            std::array<std::uint32_t, 6> f = micro.fields;
            each_field(std::uint8_t(micro.reads | micro.writes), [&](unsigned k) { f[k] = offsets_[f[k]]; });
            if (micro.list.count) f[0] = list_operands(micro.list);
            run_length_ += micro.first;
            if (micro.counts) f[5] = std::exchange(run_length_, 0);
            if (micro.flow == Flow::Jump || micro.flow == Flow::Branch)
                targets_.push_back({std::uint32_t(kernel_.code.size()), block_at(micro.label)});
            if (micro.flow == Flow::Table) tables_.push_back({std::uint32_t(kernel_.code.size()), i});
            if (micro.grouped.count) groups_.push_back(i);
            if (micro.flow == Flow::Call) f[4] = list_kept(i);
            if (i > 0 && micros_[i - 1].flow == Flow::Call) f[4] = list_kept(i - 1);
            const std::uint8_t effects = effects_of(micro.info) | (micro.flow == Flow::Next ? NoEffect : Branches);
            append({micro.run, f[0], f[1], f[2], f[3], f[4], f[5]}, effects, micro.instruction, micro.checks);
        }
        if (!block.falls) return;
        const std::uint32_t into = block.successors[0];
        const bool branches = micros_[block.end - 1].flow == Flow::Branch;
        if (into != next) {
            targets_.push_back({std::uint32_t(kernel_.code.size()), into});
            append({.run = jump, .y = std::exchange(run_length_, 0)}, Branches, nullptr);
        } else if (!branches && blocks_[into].predecessors > 1) {
            append({.run = join, .y = std::exchange(run_length_, 0)}, NoEffect, nullptr);
        }
    }

    /// Sequences of the same op, such as the sums of a matrix product, are executed by the first of them. All keep
    /// their positions, because a jump may lead to any.
    void join_runs() {
        std::vector<MicroOp>& code = kernel_.code;
        for (std::size_t i = 0, end; i < code.size(); i = end) {
            const auto belongs = [&](const MicroOp& next) {
                return next.run == code[i].run &&
                       std::none_of(code.begin() + std::ptrdiff_t(i), code.begin() + std::ptrdiff_t(end),
                                    [&](const MicroOp& before) { return before.d == next.a; });
            };
            constexpr std::size_t max_run = 64;
            for (end = i + 1; end < code.size() && end - i < max_run && belongs(code[end]);) ++end;
            const Handler run = end - i > 1 ? select_run(code[i].run) : nullptr;
            if (run) code[i].run = run, code[i].y = std::uint32_t(end - i);
        }
    }

    /// The same of the two that make an address.
    void join_products_and_sums() {
        std::vector<MicroOp>& code = kernel_.code;
        for (std::size_t i = 0; i + 1 < code.size(); ++i)
            if (const Handler both = select_product_and_sum(code[i], code[i + 1])) code[i].run = both;
    }

    /// Lists the number of operands, then slot and size of each.
    std::uint32_t list_operands(const OperandList& list) {
        const auto at = std::uint32_t(kernel_.lists.size());
        kernel_.lists.push_back(list.count);
        for (std::uint32_t i = 0; i < list.count; ++i) add_to_lists(index(lowering_.listed[list.first + i]));
        return at;
    }
    void add_to_lists(std::uint32_t value) {
        kernel_.lists.push_back(offsets_[value]);
        kernel_.lists.push_back(lowering_.values[value].slot);
    }

    /// Lists what a call saves: the number of registers, then slot and size of each.
    std::uint32_t list_kept(std::uint32_t call) {
        const auto at = std::uint32_t(kernel_.lists.size());
        const auto [place, is_new] = lists_of_calls_.emplace(call, at);
        if (!is_new) return place->second;
        const std::vector<std::uint32_t>& kept = kept_.at(call);
        kernel_.lists.push_back(std::uint32_t(kept.size()));
        for (const std::uint32_t v : kept) add_to_lists(v);
        return at;
    }

    void list_groups() {
        const auto plain = [&](std::uint32_t op) { return kernel_.is_checked() ? kernel_.plain_of[op] : op; };
        for (const std::uint32_t group : groups_) {
            const std::uint32_t op = op_of_[group];
            kernel_.code[op].d = std::uint32_t(kernel_.lists.size());
            kernel_.lists.push_back(micros_[group].grouped.count);
            for (std::uint32_t i = 0; i < micros_[group].grouped.count; ++i) {
                const GroupedOp& each = lowering_.grouped[micros_[group].grouped.first + i];
                const std::uint32_t at = op_of_[each.micro];
                kernel_.lists.insert(kernel_.lists.end(), {std::uint32_t(each.offset), at - op, plain(at) - plain(op)});
            }
        }
    }

    void resolve_targets() {
        kernel_.entry = blocks_[0].op;
        for (const Lowering::Root& root : lowering_.roots)
            kernel_.functions[root.function].op = blocks_[block_at(root.label)].op;
        for (const auto& [op, block] : targets_) kernel_.code[op].x = blocks_[block].op - op;
        for (const auto& [op, micro] : tables_) {
            const Micro& table = micros_[micro];
            kernel_.code[op].x = std::uint32_t(kernel_.lists.size());
            kernel_.lists.push_back(table.targets);
            for (std::uint32_t i = 0; i < table.targets; ++i)
                kernel_.lists.push_back(blocks_[block_at(lowering_.table_labels[table.label + i])].op);
        }
    }

    const std::vector<Micro>& micros_;
    Lowering& lowering_;
    DecodedKernel& kernel_;
    std::vector<BasicBlock> blocks_;
    std::vector<std::uint32_t> block_of_, order_, offsets_, groups_;
    std::vector<std::uint32_t> op_of_;  // by micro
    std::vector<std::pair<std::uint32_t, std::uint32_t>> targets_, tables_;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> kept_;  // by micro of a call: values
    std::unordered_map<std::uint32_t, std::uint32_t> lists_of_calls_;
    std::uint32_t run_length_ = 0;
    bool last_checks_ = false;
};

}  // namespace

void lay_out(Lowering& lowering, DecodedKernel& kernel) { Layout(lowering, kernel).run(); }

}  // namespace ikat::emulator
