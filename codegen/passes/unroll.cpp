// SPDX-License-Identifier: Apache-2.0
// Loops a trip of which makes several rounds: where the language asks for it, by `.unroll(n)`, which lowering hands on
// at the branch back, and in small loops of which it says nothing.
//
//     ^1: …                                   ^1: …
//       jump ^2(%0)                             jump ^4(%0)
//     ^2(%i: u32):                            ^4(%a: u32):                     are there n rounds?
//       body of %i                              branch %a < %limit - (n - 2) * %step, ^5, ^8(%a)
//       %m = lt.u32 %i, %limit         ==>    ^5:                              does no index wrap? (strides.hpp)
//       %j = add.u32 %i, %step                  branch …, ^6(%a), ^8(%a)
//       branch %m, ^2(%j), ^3 unroll n        ^6(%b: u32):
//                                               bodies of %b, %b + %step … %b + (n - 1) * %step
//                                               %c = %b + n * %step
//                                               branch %b < %limit - (2n - 2) * %step, ^6(%c), ^7
//                                             ^7:                              is there another?
//                                               branch %c <= %limit + (%step - 1), ^8(%c), ^3
//                                             ^8(%d: u32):
//                                               jump ^2(%d)
//                                             ^2(%i: u32): …                   the loop as it was
//
// No difference falls below the lowest number of the type: nothing is below that. No counter of ^6 passes the highest:
// for that, the limit is lowered where it is near it, and what is left is for the loop as it was. So a trip makes the
// rounds that the loop would, be it one that wraps. After the trips all is asked of %c, so that no other counter has
// to be kept in a register. Convergent operations are repeated as the rounds are. Threads that make equally many rounds
// stay together.
//
// A small loop is one path of few operations, loads and stores. It gains the tests and branches of its rounds, and the
// assembler can begin the loads of all rounds before it waits for one. Four make a trip, and eight where they are tiny
// and the kernel need not do with few registers; four of what is left then make one, too. What communicates, orders
// memory, or is about copies in flight was placed by hand, and is left alone; so are kernels of very many loops. Values
// are computed in their order, so that sums keep their bits.
//
// Needs: loops as lowering leaves them, of one branch back, with a constant step, and a way past them, so that what
// follows is no part of them. Leaves alone: others. Leaves: blocks that only jump on, for clean_up_control_flow, and
// tests that nothing asks any more, for dead_code.
#include <algorithm>

#include "codegen/ir/builder.hpp"
#include "codegen/ir/edit/clone.hpp"
#include "codegen/ir/edit/split.hpp"
#include "codegen/ir/edit/uses.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/strides.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

/// A loop that can be unrolled.
struct Counted {
    Block header{}, latch{};
    std::vector<Block> region;  // all that the header dominates: the loop and what leaves the kernel from within it
    std::size_t counter = 0;    // which of the header's parameters
    Value limit{};              // below which another round follows
    Word step = 0, rounds = 0;  // rounds: of a trip
};

constexpr std::uint32_t small_rounds = 4;     // of a trip, in loops that do not ask
constexpr std::size_t small_operations = 20;  // fewer: a small loop
constexpr std::size_t lean_operations = 40;   // fewer: a small one, too, if it carries no more than the values of
constexpr std::size_t lean_values = 2;        // a counter and a sum
constexpr std::size_t tiny_operations = 12;   // fewer: a tiny one
constexpr std::size_t many_operations = 1000;
constexpr std::size_t many_loops = 64;  // more small ones: all are left alone

bool asks(const Function& fn, Block block) { return fn[block].terminator.unroll > 1; }

/// The operations of a loop that may be unrolled unasked, one path of few; many of others.
std::size_t operations_of(const Function& fn, const analysis::Loop& loop) {
    std::size_t operations = 0;
    for (Block block : loop.blocks) {
        const Terminator& end = fn[block].terminator;
        if (block == loop.latches[0] ? end.unroll != 0 : end.kind != Terminator::Kind::Jump) return many_operations;
        for (Inst inst : fn[block].instructions) {
            const Effects does = effects(fn[inst]);
            const bool accesses = fn[inst].op == Op::Load || fn[inst].op == Op::Store;
            if (!does.none() && !(accesses && !does.orders && is_weak(fn[inst].memory))) return many_operations;
            operations += fn[inst].op != Op::Const;
        }
    }
    return operations;
}

/// The steps of two trips must be a number of the type.
bool fits(Type type, Word step, Word rounds) {
    const Word highest = (Word{1} << (bits(type) - 1)) - 1;
    return step > 0 && rounds <= highest && step <= highest / (2 * rounds);
}

std::optional<Counted> counted(const Function& fn, const analysis::Loop& loop, std::uint32_t rounds,
                               const analysis::Dominators& dominators) {
    Counted out;
    out.header = loop.header, out.latch = loop.latches[0];
    const Terminator& back = fn[out.latch].terminator;
    const auto inside = [&](Block block) {
        return dominators.reachable(block) && dominators.dominates(out.header, block);
    };
    if (back.kind != Terminator::Kind::Branch || back.targets[0].to != out.header || inside(back.targets[1].to))
        return {};
    const Inst test = fn[back.condition].instruction;
    if (test == no_inst || fn[test].op != Op::Lt || fn[test].guard != no_value || !contains(AnyInt, fn[test].type))
        return {};
    const auto found = std::ranges::find(fn[out.header].parameters, fn.operands(test)[0]);
    if (found == fn[out.header].parameters.end()) return {};
    out.counter = std::size_t(found - fn[out.header].parameters.begin());
    out.limit = fn.operands(test)[1];

    const Inst next = fn[back.targets[0].arguments[out.counter]].instruction;
    if (next == no_inst || fn[next].op != Op::Add || fn.operands(next)[0] != *found) return {};
    const auto step = constant(fn, fn.operands(next)[1]);
    if (!step || !fits(fn[test].type, *step, rounds)) return {};
    out.step = *step, out.rounds = rounds;

    for (Block block : fn.blocks()) {
        if (!inside(block)) continue;
        out.region.push_back(block);
        const auto& list = fn[block].instructions;
        const Definition& limit = fn[out.limit];
        const bool defines_limit = limit.instruction != no_inst
                                       ? std::ranges::find(list, limit.instruction) != list.end()
                                       : limit.block == block;
        if (defines_limit) return {};
    }
    return out;
}

class Unrolling {
public:
    Unrolling(Function& fn, const Counted& loop)
        : fn_(fn), loop_(loop), type_(fn.type(loop.limit)), build_(fn, loop.header) {}

    void run() {
        std::vector<bool> inside(fn_.block_count());
        for (Block block : loop_.region) inside[index(block)] = true;
        const Terminator back = fn_[loop_.latch].terminator;
        fn_[loop_.latch].terminator.unroll = 0;
        build_.set_location(back.where);
        const Block choice = make_preheader(fn_, loop_.header, inside);
        inside.resize(fn_.block_count());
        rest_ = make_preheader(fn_, loop_.header, inside);

        const bool asked_once = count_uses(fn_)[index(back.condition)] == 1;
        std::vector<Copy> rounds;
        for (Word round = 0; round < loop_.rounds; ++round) {
            rounds.push_back(clone_region(fn_, loop_.region));
            // After the last round it is asked again, and not in the trip.
            if (asked_once)
                std::erase(fn_[rounds.back()(loop_.latch)].instructions,
                           fn_[rounds.back()(back.condition)].instruction);
        }
        const Block head = rounds[0](loop_.header);
        counter_ = fn_[head].parameters[loop_.counter];
        const Block before = fn_.add_block();
        build_.set_block(before);
        Strides strides(fn_, loop_.region, fn_[loop_.header].parameters[loop_.counter], loop_.step, build_);
        std::vector<Value> moving = enter(choice, before, head, strides);
        for (Word round = 0; round < loop_.rounds; ++round) {
            strides.rewrite(rounds[round], moving);
            const Block end = rounds[round](loop_.latch);
            build_.set_block(end);
            moving = strides.next(moving);
            if (round + 1 == loop_.rounds) break;
            Jump on = rounds[round](back.targets[0]);
            on.to = rounds[round + 1](loop_.header);
            on.arguments[loop_.counter] = advanced(round + 1);
            fn_[end].terminator = {.kind = Terminator::Kind::Jump, .targets = {std::move(on)}, .where = back.where};
        }
        leave(rounds.back(), back, moving);
    }

private:
    /// As many rounds as one trip makes, or one by one, as where an index would wrap. Gives the addresses that go from
    /// round to round, as they are in the first one.
    std::vector<Value> enter(Block choice, Block before, Block head, Strides& strides) {
        const std::vector<Value> first = fn_[choice].parameters;
        bound_ = below(2 * loop_.rounds - 2);
        Jump in{head, first};
        const Value exact = strides.asks() ? strides.exact(below(0)) : no_value;
        std::ranges::copy(strides.begin(first[loop_.counter]), std::back_inserter(in.arguments));
        std::vector<Value> moving;
        while (fn_[head].parameters.size() < in.arguments.size()) moving.push_back(fn_.add_parameter(head, Type::U64));
        if (exact == no_value)
            build_.jump(in.to, in.arguments);
        else
            end_with(exact, std::move(in), {rest_, first});
        build_.set_block(choice);
        branch(first[loop_.counter], loop_.rounds - 2, {before}, {rest_, first});
        return moving;
    }
    /// Another trip; or what is left of the rounds, if there is any.
    void leave(const Copy& last, const Terminator& back, std::span<const Value> moving) {
        const Block end = last(loop_.latch), done = fn_.add_block();
        build_.set_block(end);
        // The test comes first, as in the loop that lowering makes.
        const Value more = build_.make(Op::Lt, type_, {counter_, bound_}), next = advanced(loop_.rounds);
        Jump again = last(back.targets[0]);
        again.arguments[loop_.counter] = next;
        Jump onward = again;
        again.to = fn_[counter_].block, onward.to = rest_;
        again.arguments.insert(again.arguments.end(), moving.begin(), moving.end());
        end_with(more, std::move(again), {done});
        build_.set_block(done);
        // Asked of the next counter, so that the loop need not keep the last one.
        end_with(build_.make(Op::Le, type_, {next, last_counter()}), std::move(onward), last(back.targets[1]));
    }

    void branch(Value counter, Word rounds, Jump then, Jump otherwise) {
        end_with(build_.make(Op::Lt, type_, {counter, below(rounds)}), std::move(then), std::move(otherwise));
    }
    void end_with(Value condition, Jump then, Jump otherwise) {
        build_.branch(condition, then.to, otherwise.to);
        fn_[build_.block()].terminator.targets = {std::move(then), std::move(otherwise)};
    }

    /// What the counter must be below for that many steps more to stay below the limit, and for the next round's
    /// counter to be a number of the type.
    Value below(Word rounds) {
        const Value limit = at_most(2 * loop_.step);
        if (rounds == 0) return limit;
        const Word lowest = is_signed(type_) ? Word{1} << (bits(type_) - 1) : 0;
        const Value distance = build_.constant(type_, rounds * loop_.step);
        const Value minimum =
            lowest ? build_.make(Op::Add, type_, {build_.constant(type_, lowest), distance}) : distance;
        return build_.make(Op::Sub, type_, {build_.make(Op::Max, type_, {limit, minimum}), distance});
    }
    /// Up to here, the counter of a next round follows one below the limit.
    Value last_counter() {
        if (loop_.step == 1) return loop_.limit;
        return build_.make(Op::Add, type_, {at_most(loop_.step - 1), build_.constant(type_, loop_.step - 1)});
    }
    /// The limit, but so far below the highest number of the type.
    Value at_most(Word below_highest) {
        const Word highest = (~Word{0} >> (64 - bits(type_))) >> is_signed(type_);
        return build_.make(Op::Min, type_, {loop_.limit, build_.constant(type_, highest - below_highest)});
    }
    Value advanced(Word rounds) {
        return build_.make(Op::Add, type_, {counter_, build_.constant(type_, rounds * loop_.step)});
    }

    Function& fn_;
    const Counted& loop_;
    const Type type_;
    Builder build_;
    Block rest_{};     // before the loop as it was
    Value counter_{};  // where a trip begins
    Value bound_{};    // below which another trip follows
};

/// The innermost first, so that a trip of an outer loop repeats what has become of it.
std::optional<Counted> next(const Function& fn, Context& context) {
    const auto& loops = context.loops().all();
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
        if (loop->latches.size() != 1 || !asks(fn, loop->latches[0])) continue;
        const std::uint32_t rounds = fn[loop->latches[0]].terminator.unroll;
        if (auto found = counted(fn, *loop, rounds, context.dominators())) return found;
    }
    return {};
}

/// Whether the kernel is to make do with few registers, so that many blocks fit a multiprocessor.
bool has_few_registers(const LaunchBounds& bounds) {
    constexpr std::uint32_t of_multiprocessor = 65536, few = 64;  // of every target
    if (bounds.max_registers) return bounds.max_registers < few;
    return bounds.max_threads * bounds.min_blocks > of_multiprocessor / few;
}

/// The small loops of which nothing is said, tiny ones twice. None of their values is used elsewhere, so that one after
/// another can be unrolled.
std::vector<Counted> small_loops(const Function& fn, Context& context) {
    std::vector<Counted> out;
    std::size_t count = 0;
    const bool may_load_many = !has_few_registers(fn.bounds);
    for (const analysis::Loop& loop : context.loops().all()) {
        const std::size_t operations = operations_of(fn, loop);
        const bool is_lean = fn[loop.header].parameters.size() <= lean_values;
        if (operations >= (is_lean ? lean_operations : small_operations)) continue;
        if (++count > many_loops) return {};
        for (std::uint32_t rounds = operations < tiny_operations && may_load_many ? 2 * small_rounds : small_rounds;
             rounds >= small_rounds; rounds /= 2)
            if (auto found = counted(fn, loop, rounds, context.dominators())) out.push_back(std::move(*found));
    }
    return out;
}

}  // namespace

Changed unroll(Function& fn, Context& context) {
    const std::vector<Counted> small = small_loops(fn, context);
    for (const Counted& loop : small) Unrolling(fn, loop).run();
    if (!small.empty()) context.changed(Changed::ControlFlow);
    bool any = !small.empty();
    while (const auto loop = next(fn, context)) {
        Unrolling(fn, *loop).run();
        context.changed(Changed::ControlFlow);
        any = true;
    }
    if (!any) return Changed::Nothing;
    const auto order = context.dominators().reverse_postorder();
    fn.order_blocks(std::vector<Block>(order.begin(), order.end()));
    return Changed::ControlFlow;
}

}  // namespace ikat::passes
