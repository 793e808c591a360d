// SPDX-License-Identifier: Apache-2.0
// Numbers longer than a register. PTX keeps the carry in a condition code, which is not a register: the steps of a sum
// within a block become one chain, which nothing can interrupt, not even the register allocator.
//
//     %4, %5 = add_carry.u32 %0, %2, false
//     %6, %7 = add_carry.u32 %1, %3, %5         ==>  %4, %6 = carry_chain add.u32 %0, %2, %1, %3
//
// A step joins the chain if it is the only use of the previous step's carry, and if all operands of the chain are
// available before any of its results is needed. Between chains a carry is a predicate: selp turns a carry-in into a
// number, setp turns a carry-out into a predicate. A single sum needs no chain: it overflowed if it is less than an
// addend.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "codegen/ir/edit/rewriter.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using ir::Block, ir::Inst, ir::Instruction, ir::Op, ir::Type, ir::Value;

bool is_step(Op op) { return op == Op::AddCarry || op == Op::SubBorrow; }

bool has_steps(const ir::Function& fn, Block block) {
    return std::ranges::any_of(fn[block].instructions, [&](Inst inst) { return is_step(fn[inst].op); });
}

using Chain = std::vector<Inst>;

/// Which steps of a block form a chain, and the chain's position. Instructions have even positions, chains odd ones.
class Plan {
public:
    explicit Plan(const ir::Function& fn) : fn_(fn), places_(fn.inst_count()), uses_(count_uses(fn)) {}

    void add(Block block) {
        const auto& list = fn_[block].instructions;
        if (!has_steps(fn_, block)) return;
        list_ = &list;
        find_users();
        for (std::uint32_t i = 0; i < list.size(); ++i) places_[index(list[i])] = 2 * (i + 1);
        for (Inst inst : list)
            if (is_step(fn_[inst].op) && !taken_.contains(inst)) take(inst);
        for (Inst inst : list) places_[index(inst)] = 0;
    }

    /// The chains before an instruction, in order.
    auto before(Inst inst) const {
        const auto [first, last] = chains_.equal_range(inst);
        return std::ranges::subrange(first, last);
    }

private:
    struct Use {
        Value value;
        Inst user;
        auto operator<=>(const Use&) const = default;
    };

    /// Finds the uses of the steps' results within the block.
    void find_users() {
        users_.clear();
        for (Inst inst : *list_)
            fn_.each_use(inst, [&](Value value) {
                const Inst from = fn_[value].instruction;
                if (from != ir::no_inst && is_step(fn_[from].op)) users_.push_back({value, inst});
            });
        std::ranges::sort(users_);
    }
    auto users(Value value) const { return std::ranges::equal_range(users_, value, {}, &Use::value); }

    /// 0 for values from other blocks.
    std::uint32_t place_of(Value value) const {
        const Inst inst = fn_[value].instruction;
        return inst == ir::no_inst ? 0 : places_[index(inst)];
    }

    /// The step that is the only user of this step's carry; no_inst if there is none.
    Inst next(Inst step) const {
        const Value carry = fn_.results(step)[1];
        const auto found = users(carry);
        if (uses_[index(carry)] != 1 || found.empty()) return ir::no_inst;
        const Inst user = found.begin()->user;
        const bool fits = fn_[user].op == fn_[step].op && fn_[user].type == fn_[step].type &&
                          fn_[user].guard == ir::no_value && fn_.operands(user)[2] == carry;
        return fits && fn_[step].guard == ir::no_value ? user : ir::no_inst;
    }

    /// Makes a chain of as many steps from `first` on as possible.
    void take(Inst first) {
        Chain chain{first};
        std::uint32_t place = places_[index(first)] - 1;
        std::uint32_t ready = 0, wanted = ~0u;  // where the last operand is made, where the first result is used
        for (Value operand : fn_.operands(first)) ready = std::max(ready, place_of(operand));
        for (Inst step = next(first); step != ir::no_inst; step = next(step)) {
            const auto inputs = fn_.operands(step).first(2);
            for (Value operand : inputs) ready = std::max(ready, place_of(operand));
            for (const Use& use : users(fn_.result(chain.back()))) wanted = std::min(wanted, places_[index(use.user)]);
            const std::uint32_t last = std::min(places_[index(step)], wanted);
            const std::uint32_t before = last % 2 ? last - 2 : last - 1;
            const auto of_chain = [&](Value operand) {
                return std::ranges::count(chain, fn_[operand].instruction) != 0;
            };
            if (ready > before || std::ranges::any_of(inputs, of_chain)) break;
            chain.push_back(step);
            place = before;
        }
        for (Inst step : chain) places_[index(step)] = place, taken_.insert(step);
        chains_.emplace((*list_)[place / 2], std::move(chain));
    }

    const ir::Function& fn_;
    std::vector<std::uint32_t> places_;  // by instruction, for the current block
    std::vector<std::uint32_t> uses_;
    const std::vector<Inst>* list_ = nullptr;
    std::vector<Use> users_;
    std::set<Inst> taken_;
    std::multimap<Inst, Chain> chains_;
};

class Selection {
public:
    explicit Selection(ir::Function& fn) : fn_(fn), walk_(fn), plan_(fn), uses_(count_uses(fn)) {
        for (Block block : fn.blocks()) plan_.add(block);
    }

    void run() {
        walk_.run([this](Inst inst) {
            for (const auto& [where, chain] : plan_.before(inst)) select(chain);
            fn_.each_use(inst, [&](Value& value) { value = walk_.current(value); });
            if (!is_step(fn_[inst].op)) walk_.keep(inst);
        });
    }

private:
    void select(const Chain& chain) {
        const Inst first = chain.front();
        where_ = fn_[first].where;
        adds_ = fn_[first].op == Op::AddCarry;
        type_ = bits(fn_[first].type) == 32 ? Type::U32 : Type::U64;
        const Value carry = operand(first, 2);
        const auto none = ir::constant(fn_, carry);
        const bool comes_in = !none || *none, goes_out = uses_[index(fn_.results(chain.back())[1])] != 0;
        if (chain.size() == 1 && !comes_in)
            select_sum(first, goes_out);
        else
            select_chain(chain, comes_in ? carry : ir::no_value, goes_out);
    }

    void select_sum(Inst step, bool goes_out) {
        const Value a = operand(step, 0), b = operand(step, 1);
        const Value sum = make(adds_ ? Op::Add : Op::Sub, type_, {a, b}, fn_.type(fn_.result(step)));
        stand_for(step, 0, sum);
        if (goes_out) stand_for(step, 1, make(Op::Lt, type_, {adds_ ? sum : a, adds_ ? a : b}, Type::Pred));
    }

    void select_chain(const Chain& chain, Value carry, bool goes_out) {
        std::vector<Value> operands;
        std::vector<Type> types;
        for (Inst step : chain) {
            operands.insert(operands.end(), {operand(step, 0), operand(step, 1)});
            types.push_back(fn_.type(fn_.result(step)));
        }
        if (carry != ir::no_value)
            operands.push_back(make(Op::Select, type_, {constant(type_, 1), constant(type_, 0), carry}, type_));
        if (goes_out) types.push_back(Type::U32);
        const Instruction together{.op = Op::CarryChain, .type = type_, .attribute = adds_ ? 0u : 1u, .where = where_};
        const Inst made = fn_.append(walk_.block(), together, operands, types);
        for (std::size_t i = 0; i < chain.size(); ++i) stand_for(chain[i], 0, std::as_const(fn_).results(made)[i]);
        if (!goes_out) return;
        const Value out = std::as_const(fn_).results(made)[chain.size()];
        stand_for(chain.back(), 1, make(Op::Ne, Type::U32, {out, constant(Type::U32, 0)}, Type::Pred));
    }

    /// For a guarded step, as a guarded copy with the same tied operands.
    void stand_for(Inst step, std::uint32_t result, Value value) {
        const Instruction it = fn_[step];
        const Value old = std::as_const(fn_).results(step)[result];
        if (it.guard != ir::no_value) {
            const Type type = fn_.type(old);
            const Instruction copy{.op = Op::Bitcast,
                                   .type = type,
                                   .from = type,
                                   .guard = walk_.current(it.guard),
                                   .guard_negated = it.guard_negated,
                                   .tie = {0, 1, 1},
                                   .where = where_};
            value = walk_.make(copy, {value, operand(step, it.tie.operand + result)}, type);
        }
        walk_.replace(old, value);
    }

    Value operand(Inst step, std::uint32_t position) const {
        return walk_.current(std::as_const(fn_).operands(step)[position]);
    }
    Value constant(Type type, ir::Word word) { return walk_.constant(type, word, where_); }
    Value make(Op op, Type type, std::initializer_list<Value> operands, Type result) {
        return walk_.make({.op = op, .type = type, .where = where_}, operands, result);
    }

    ir::Function& fn_;
    ir::Rewriter walk_;
    Plan plan_;
    std::vector<std::uint32_t> uses_;
    // Of the steps at hand.
    Location where_{};
    Type type_{};
    bool adds_ = false;
};

}  // namespace

Changed chain_carries(ir::Function& fn) {
    const bool any = std::ranges::any_of(fn.blocks(), [&](Block block) { return has_steps(fn, block); });
    if (any) Selection(fn).run();
    return analysis::instructions_if(any);
}

}  // namespace ikat::nvptx
