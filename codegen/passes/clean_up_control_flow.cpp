// SPDX-License-Identifier: Apache-2.0
// Control flow clean-up: fewer blocks, fewer branches, fewer parameters.
//
//     branch on a constant                         ==>  jump
//     branch %p, ^1(%a), ^1(%b)                    ==>  %c = select %a, %b, %p; jump ^1(%c)
//     block that nothing reaches                   ==>  gone
//     jump to an empty block that only jumps on    ==>  jump to where it leads
//     block and its only successor, if that has no other predecessor   ==>  one block
//     parameter that every jump gives one value    ==>  that value
//
// An empty block on an edge of a branch stays if it passes arguments: the copies for them will be placed there. The
// common latch of a loop stays, too: there the threads of a warp reconverge before the next iteration. No instruction
// is duplicated or moved across another, so that convergent operations keep their places.
//
// Needs: nothing. Keeps: SSA; the entry without predecessors. Leaves unused instructions: run dead_code after.
#include <algorithm>

#include "codegen/ir/cfg.hpp"
#include "codegen/ir/edit/parameters.hpp"
#include "codegen/ir/edit/replacement.hpp"
#include "codegen/ir/edit/uses.hpp"
#include "codegen/passes/passes.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

class CleanUp {
public:
    explicit CleanUp(Function& fn) : fn_(fn) {}

    bool run() {
        bool changed = false;
        for (bool again = true; again; changed |= again) {
            again = false;
            for (Block block : fn_.blocks()) again |= decide(block);
            again |= drop_unreachable();
            again |= thread_jumps();
            again |= merge_chains();
            again |= drop_constant_parameters();
        }
        return changed;
    }

private:
    using Kind = Terminator::Kind;

    void become_jump(Block block, Jump jump) {
        Terminator& terminator = fn_[block].terminator;
        std::vector<Jump> targets;
        targets.push_back(std::move(jump));
        terminator = {.kind = Kind::Jump, .targets = std::move(targets), .where = terminator.where};
    }

    /// A branch whose direction is known, or whose targets are the same.
    bool decide(Block block) {
        const Terminator& terminator = fn_[block].terminator;
        if (terminator.condition == no_value) return false;
        const std::vector<Jump>& targets = terminator.targets;
        if (const auto bits = constant(fn_, terminator.condition)) {
            const bool branch = terminator.kind == Kind::Branch;
            const std::size_t way = branch ? (*bits ? 0 : 1) : std::min<std::size_t>(*bits, targets.size() - 1);
            become_jump(block, targets[way]);
            return true;
        }
        if (std::ranges::adjacent_find(targets, std::ranges::not_equal_to{}) == targets.end()) {
            become_jump(block, targets[0]);
            return true;
        }
        if (terminator.kind != Kind::Branch || targets[0].to != targets[1].to) return false;
        return choose_arguments(block);
    }

    /// branch %p, ^1(%a), ^1(%b): only the arguments differ.
    bool choose_arguments(Block block) {
        const Terminator old = fn_[block].terminator;
        Jump jump = old.targets[0];
        const std::vector<Value>& others = old.targets[1].arguments;
        for (std::size_t i = 0; i < others.size(); ++i)
            if (jump.arguments[i] != others[i] && !contains(info(Op::Select).domain, fn_.type(others[i]))) return false;
        for (std::size_t i = 0; i < others.size(); ++i) {
            if (jump.arguments[i] == others[i]) continue;
            const Type type = fn_.type(others[i]);
            const Value operands[] = {jump.arguments[i], others[i], old.condition};
            const Inst select =
                fn_.append(block, {.op = Op::Select, .type = type, .where = old.where}, operands, {&type, 1});
            jump.arguments[i] = fn_.result(select);
        }
        become_jump(block, std::move(jump));
        return true;
    }

    bool drop_unreachable() {
        std::vector<bool> reached(fn_.block_count());
        std::vector<Block> work{fn_.entry()};
        reached[0] = true;
        while (!work.empty()) {
            const Block block = work.back();
            work.pop_back();
            for (const Jump& jump : fn_[block].terminator.targets)
                if (!reached[index(jump.to)]) {
                    reached[index(jump.to)] = true;
                    work.push_back(jump.to);
                }
        }
        if (std::ranges::find(reached, false) == reached.end()) return false;
        fn_.keep_blocks(reached);
        return true;
    }

    /// Finds the empty blocks that only jump on, and redirects jumps to them to their destination.
    bool thread_jumps() {
        find_forwarders();
        bool changed = false;
        for (Block block : fn_.blocks()) {
            Terminator& terminator = fn_[block].terminator;
            if (terminator.targets.size() == 2 && terminator.kind == Kind::Branch) changed |= meet(terminator);
            for (Jump& jump : terminator.targets) changed |= forward(jump, terminator.kind == Kind::Jump);
        }
        return changed;
    }
    void find_forwarders() {
        forwards_.assign(fn_.block_count(), false);
        bool any = false;
        for (Block block : fn_.blocks()) {
            const BasicBlock& body = fn_[block];
            const bool empty = body.instructions.empty() && body.terminator.kind == Kind::Jump;
            forwards_[index(block)] = empty && body.terminator.targets[0].to != block && block != fn_.entry();
            any |= forwards_[index(block)];
        }
        if (!any) return;
        exclude_used_elsewhere();
        exclude_latches();
    }
    /// A parameter that is used outside its block (which then dominates that use) must stay.
    void exclude_used_elsewhere() {
        each_use(fn_, [&](Value value, const Use& use) {
            const Definition& definition = fn_[value];
            if (definition.instruction == no_inst && definition.block != use.block)
                forwards_[index(definition.block)] = false;
        });
    }
    void exclude_latches() {
        const std::vector<std::uint32_t> predecessors = predecessor_counts(fn_);
        const auto collects = [&](Block block) { return forwards_[index(block)] && predecessors[index(block)] > 1; };
        if (std::ranges::none_of(fn_.blocks(), collects)) return;
        std::vector<std::size_t> position(fn_.block_count());
        const std::vector<std::uint32_t> order = control_flow(fn_).reverse_postorder();
        for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
        for (Block block : fn_.blocks())
            if (collects(block) && position[index(fn_[block].terminator.targets[0].to)] < position[index(block)])
                forwards_[index(block)] = false;
    }
    bool forward(Jump& jump, bool with_arguments) {
        if (!forwards_[index(jump.to)]) return false;
        Jump final = jump;
        for (std::size_t hops = 0; forwards_[index(final.to)]; ++hops) {
            if (hops == fn_.block_count()) return false;  // a cycle of empty blocks: the kernel hangs, and may
            Jump next = beyond(final);
            if (!next.arguments.empty() && !with_arguments) break;
            final = std::move(next);
        }
        const bool changed = final != jump;
        jump = std::move(final);
        return changed;
    }
    /// The jump at the end of the empty block that a jump leads to, with its arguments substituted.
    Jump beyond(const Jump& jump) const {
        const BasicBlock& empty = fn_[jump.to];
        Jump next = empty.terminator.targets[0];
        for (Value& argument : next.arguments) {
            const auto place = std::ranges::find(empty.parameters, argument);
            if (place != empty.parameters.end())
                argument = jump.arguments[std::size_t(place - empty.parameters.begin())];
        }
        return next;
    }
    /// A branch whose paths join immediately, through empty blocks with arguments: then decide() can select the
    /// arguments.
    bool meet(Terminator& branch) {
        Jump &left = branch.targets[0], &right = branch.targets[1];
        if (left.to == right.to) return false;
        const auto try_ways = [&](Jump a, Jump b) {
            if (a.to != b.to) return false;
            for (std::size_t i = 0; i < a.arguments.size(); ++i)
                if (a.arguments[i] != b.arguments[i] && !contains(info(Op::Select).domain, fn_.type(a.arguments[i])))
                    return false;
            left = std::move(a);
            right = std::move(b);
            return true;
        };
        const bool left_forwards = forwards_[index(left.to)], right_forwards = forwards_[index(right.to)];
        return (left_forwards && try_ways(beyond(left), right)) || (right_forwards && try_ways(left, beyond(right))) ||
               (left_forwards && right_forwards && try_ways(beyond(left), beyond(right)));
    }

    bool merge_chains() {
        const std::vector<std::uint32_t> predecessors = predecessor_counts(fn_);
        std::vector<bool> keep(fn_.block_count(), true);
        Replacement replacement;
        bool changed = false;
        for (Block block : fn_.blocks())
            while (keep[index(block)] && fn_[block].terminator.kind == Kind::Jump) {
                const Block next = fn_[block].terminator.targets[0].to;
                if (next == block || predecessors[index(next)] != 1) break;
                absorb(block, next, replacement);
                keep[index(next)] = false;
                changed = true;
            }
        if (!changed) return false;
        replacement.apply(fn_);
        fn_.keep_blocks(keep);
        return true;
    }
    void absorb(Block block, Block next, Replacement& replacement) {
        const Jump jump = std::move(fn_[block].terminator.targets[0]);
        for (std::size_t i = 0; i < jump.arguments.size(); ++i)
            replacement.replace(fn_[next].parameters[i], jump.arguments[i]);
        auto& from = fn_[next].instructions;
        auto& to = fn_[block].instructions;
        to.insert(to.end(), from.begin(), from.end());
        fn_[block].terminator = std::move(fn_[next].terminator);
        fn_[next] = {};
    }

    /// Parameters that get the same value from every jump, or themselves.
    bool drop_constant_parameters() {
        std::vector<Value> given(fn_.value_count(), no_value);
        std::vector<bool> varies(fn_.value_count());
        for (Block block : fn_.blocks())
            for (const Jump& jump : fn_[block].terminator.targets)
                for (std::size_t i = 0; i < jump.arguments.size(); ++i) {
                    const Value parameter = fn_[jump.to].parameters[i], argument = jump.arguments[i];
                    if (argument == parameter) continue;
                    Value& one = given[index(parameter)];
                    varies[index(parameter)] = varies[index(parameter)] || (one != no_value && one != argument);
                    one = argument;
                }
        Replacement replacement;
        const auto is_one = [&](Value parameter) {
            return !varies[index(parameter)] && given[index(parameter)] != no_value;
        };
        for (Block block : fn_.blocks())
            for (Value parameter : fn_[block].parameters)
                if (is_one(parameter)) replacement.replace(parameter, given[index(parameter)]);
        if (!drop_parameters(fn_, is_one)) return false;
        replacement.apply(fn_);
        return true;
    }

    Function& fn_;
    std::vector<bool> forwards_;  // by block
};

}  // namespace

Changed clean_up_control_flow(Function& fn, Context&) { return analysis::control_flow_if(CleanUp(fn).run()); }

}  // namespace ikat::passes
