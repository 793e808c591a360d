// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/strides.hpp"

#include <algorithm>

#include "codegen/ir/op/families.hpp"
#include "codegen/passes/fold.hpp"

namespace ikat::passes {

using namespace ir;

namespace {

constexpr std::size_t max_moving = 8;  // addresses from round to round: each takes two registers

}  // namespace

Strides::Strides(Function& fn, std::span<const Block> region, Value counter, Word step, Builder& build)
    : fn_(fn), build_(build), counter_(counter), step_(step), blocks_(region.begin(), region.end()) {
    if (fn.type(counter) != Type::U32) return;
    std::vector<Inst> addresses;
    for (Block block : region)
        for (Inst inst : fn[block].instructions) {
            if (effects(fn[inst]).convergent) return;
            instructions_.insert(inst);
            if (fn[inst].op == Op::At && fn[inst].type == Type::U64 && fn[inst].from == Type::U32)
                addresses.push_back(inst);
        }
    for (Inst inst : addresses) look_at(inst);
}

void Strides::look_at(Inst inst) {
    const auto form = unpack<AddressForm>(fn_[inst].attribute);
    const Value base = std::as_const(fn_).operands(inst)[0], with = std::as_const(fn_).operands(inst)[1];
    const auto index = index_of(with);
    if (!index || fn_[inst].guard != no_value || index->factor.is(0)) return;
    if (index->first.rest == no_value && index->factor.is(1)) return;
    const std::uint64_t constant = std::uint64_t(form.scale) * index->first.known + std::uint64_t(form.constant);
    if (index->first.known >> 31 || std::int64_t(constant) != std::int32_t(constant)) return;
    const auto from = invariant(base);
    if (!from) return;

    Place place{.address = fn_.result(inst), .base = *from, .constant = std::int32_t(constant)};
    const bool moves = index->factor.rest != no_value;
    const std::uint64_t scale = std::uint64_t(form.scale) * index->factor.known;
    if (moves ? (form.scale * step_) >> 32 : index->factor.known >> 30 || scale >> 32) return;
    if (index->first.rest != no_value) place.base = address(*from, index->first.rest, form.scale);
    if (moves) {
        const Moving moving{place.base, value_of(index->factor), form.scale};
        place.moving = std::size_t(std::ranges::find(moving_, moving) - moving_.begin());
        if (place.moving == max_moving) return;
        if (place.moving == moving_.size()) moving_.push_back(moving);
    } else {
        place.scale = std::uint32_t(scale);
    }
    places_.push_back(place);
    if (std::ranges::find(asked_, *index) == asked_.end()) asked_.push_back(*index);
}

std::optional<Strides::Index> Strides::index_of(Value value) {
    const auto known = indices_.find(value);
    if (known != indices_.end()) return known->second;
    return indices_[value] = computed(value);
}

std::optional<Strides::Index> Strides::computed(Value value) {
    if (value == counter_) return Index{{}, {no_value, 1}};
    if (fn_.type(value) != Type::U32) return {};
    if (const auto number = constant(fn_, value)) return Index{{no_value, std::uint32_t(*number)}, {}};
    if (const auto same = invariant(value)) return Index{{*same}, {}};
    const Inst inst = fn_[value].instruction;
    return inst != no_inst && is_plain(fn_, inst) ? operation(inst) : std::nullopt;
}

std::optional<Strides::Index> Strides::operation(Inst inst) {
    const Op op = fn_[inst].op;
    if (op != Op::Add && op != Op::Sub && op != Op::Mul && op != Op::Shl && op != Op::Fma) return {};
    std::vector<Index> x;
    for (std::size_t i = 0; i < fn_[inst].operands.count; ++i) {
        const auto operand = index_of(std::as_const(fn_).operands(inst)[i]);
        if (!operand) return {};
        x.push_back(*operand);
    }
    const auto plus = [&](const Index& a, const Index& b) {
        return Index{sum(a.first, b.first), sum(a.factor, b.factor)};
    };
    const auto times = [&](const Index& a, const Sum& b) { return Index{product(a.first, b), product(a.factor, b)}; };
    const bool left = x[0].factor.is(0), right = x[1].factor.is(0);
    if (!left && !right && op != Op::Add) return {};
    switch (op) {
        case Op::Add: return plus(x[0], x[1]);
        case Op::Sub:
            if (!right) return {};
            return Index{difference(x[0].first, x[1].first), x[0].factor};
        case Op::Shl:
            if (!right || x[1].first.rest != no_value || x[1].first.known > 31) return {};
            return times(x[0], {no_value, 1u << x[1].first.known});
        case Op::Mul:
        case Op::Fma: {
            const Index product = right ? times(x[0], x[1].first) : times(x[1], x[0].first);
            return op == Op::Mul ? product : plus(product, x[2]);
        }
        default: return {};
    }
}

std::optional<Value> Strides::invariant(Value value) {
    const auto known = invariants_.find(value);
    if (known != invariants_.end()) return known->second;
    return invariants_[value] = copied(value);
}

std::optional<Value> Strides::copied(Value value) {
    const Inst inst = fn_[value].instruction;
    if (inst == no_inst) return blocks_.contains(fn_[value].block) ? std::nullopt : std::optional(value);
    if (!instructions_.contains(inst)) return value;
    if (!is_plain(fn_, inst) || !effects(fn_[inst]).speculated()) return {};
    std::vector<Value> operands;
    for (std::size_t i = 0; i < fn_[inst].operands.count; ++i) {
        const auto operand = invariant(std::as_const(fn_).operands(inst)[i]);
        if (!operand) return {};
        operands.push_back(*operand);
    }
    const Instruction copy = fn_[inst];
    const Type type = fn_.type(value);
    return fn_.result(build_.append(copy, operands, {&type, 1}));
}

Value Strides::made(Op op, Value a, Value b) { return build_.make(op, fn_.type(a), {a, b}); }
Value Strides::number(std::uint32_t known) { return build_.constant(Type::U32, known); }

Value Strides::value_of(const Sum& sum) {
    if (sum.rest == no_value) return number(sum.known);
    return sum.known ? made(Op::Add, sum.rest, number(sum.known)) : sum.rest;
}

Strides::Sum Strides::sum(const Sum& a, const Sum& b) {
    const std::uint32_t known = a.known + b.known;
    if (a.rest == no_value || b.rest == no_value) return {a.rest == no_value ? b.rest : a.rest, known};
    return {made(Op::Add, a.rest, b.rest), known};
}

Strides::Sum Strides::difference(const Sum& a, const Sum& b) {
    const std::uint32_t known = a.known - b.known;
    if (b.rest == no_value) return {a.rest, known};
    return {made(Op::Sub, a.rest == no_value ? number(0) : a.rest, b.rest), known};
}

Strides::Sum Strides::product(const Sum& a, const Sum& b) {
    if (a.is(0) || b.is(0)) return {};
    if (a.is(1)) return b;
    if (b.is(1)) return a;
    if (a.rest == no_value && b.rest == no_value) return {no_value, a.known * b.known};
    if (a.rest == no_value) return product(b, a);
    if (b.rest == no_value) return {made(Op::Mul, a.rest, number(b.known)), a.known * b.known};
    return {made(Op::Mul, value_of(a), value_of(b))};
}

Value Strides::address(Value base, Value index, std::uint64_t scale) const {
    const Value operands[] = {base, index};
    return build_.make(
        {.op = Op::At, .type = Type::U64, .from = Type::U32, .attribute = pack(AddressForm{std::uint32_t(scale), 0})},
        operands);
}

Value Strides::exact(Value limit) {
    Value all = no_value;
    const auto also = [&](Value condition) {
        all = all == no_value ? condition : build_.make(Op::And, Type::Pred, {all, condition});
    };
    const Value last = step_ > 1 ? made(Op::Add, limit, number(std::uint32_t(step_ - 1))) : limit;
    const auto wide = [&](const Sum& sum) { return build_.convert(Type::U64, value_of(sum)); };
    for (const Index& index : asked_) {
        Value maximum = made(Op::Mul, wide(index.factor), build_.convert(Type::U64, last));
        if (index.first.rest != no_value) maximum = made(Op::Add, maximum, wide({index.first.rest}));
        if (index.first.known) maximum = made(Op::Add, maximum, wide({no_value, index.first.known}));
        also(made(Op::Lt, maximum, build_.constant(Type::U64, Word{1} << 32)));
    }
    return all;
}

std::vector<Value> Strides::begin(Value counter) {
    std::vector<Value> out;
    if (!moving_.empty()) zero_ = number(0);
    for (const Moving& it : moving_) out.push_back(address(it.base, made(Op::Mul, it.factor, counter), it.scale));
    return out;
}

void Strides::rewrite(const Copy& round, std::span<const Value> moving) {
    for (const Place& place : places_) {
        const Inst inst = fn_[round(place.address)].instruction;
        const bool moves = place.scale == 0;
        fn_[inst].attribute = pack(AddressForm{moves ? 1 : place.scale, place.constant});
        fn_.operands(inst)[0] = moves ? moving[place.moving] : place.base;
        fn_.operands(inst)[1] = moves ? zero_ : round(counter_);
    }
}

std::vector<Value> Strides::next(std::span<const Value> moving) const {
    std::vector<Value> out;
    for (std::size_t i = 0; i < moving.size(); ++i)
        out.push_back(address(moving[i], moving_[i].factor, moving_[i].scale * step_));
    return out;
}

}  // namespace ikat::passes
