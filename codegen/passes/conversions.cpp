// SPDX-License-Identifier: Apache-2.0
#include "codegen/passes/conversions.hpp"

#include "codegen/passes/fold.hpp"

namespace ikat::passes {
namespace {

using namespace ir;

constexpr bool is_integer(Type type) { return contains(AnyInt, type); }

/// Whether `to` can represent every value of `from`.
constexpr bool preserves(Type from, Type to) {
    if (from == to) return true;
    return is_integer(from) && is_integer(to) && bits(to) > bits(from) && (is_signed(to) || !is_signed(from));
}

/// Whether to ← middle ← from, all integers, equals to ← from.
constexpr bool skips_middle(Type to, Type middle, Type from) {
    if (!is_integer(from) || !is_integer(middle)) return false;
    if (is_integer(to) && bits(to) <= bits(middle)) return true;  // the low bits are those of x
    return preserves(from, middle);
}

/// Whether the value, if it is a NaN, is the canonical one, as a conversion would make it.
bool is_computed(const Function& fn, Value value) {
    const Inst inst = fn[value].instruction;
    return inst != no_inst && !info(fn[inst].op).effect && !has(fn[inst].op, Copies);
}

bool is_exact(FloatInfo fp) { return !fp.ftz && !fp.sat; }

}  // namespace

std::optional<Value> simplify_conversion(Function& fn, Inst inst, std::vector<Inst>& made) {
    const Instruction outer = fn[inst];
    const Value operand = fn.operands(inst)[0];
    const bool cast = outer.op == Op::Bitcast;
    if (outer.type == outer.from && (cast || (is_integer(outer.type) && !outer.fp.sat))) return operand;

    const Inst before = fn[operand].instruction;
    if (before == no_inst || fn[before].op != outer.op || !is_plain(fn, before)) return {};
    const Instruction inner = fn[before];
    const Value x = fn.operands(before)[0];
    if (!cast && !(is_exact(outer.fp) && is_exact(inner.fp))) return {};
    const bool widened = is_float(inner.from) && is_float(inner.type) && bits(inner.type) > bits(inner.from);
    if (!cast && widened && outer.type == inner.from && is_computed(fn, x)) return x;
    if (!cast && !skips_middle(outer.type, inner.type, inner.from)) return {};
    if (outer.type == inner.from) return x;
    Instruction direct = outer;
    direct.from = inner.from;
    made.push_back(fn.create(direct, {&x, 1}, {&outer.type, 1}));
    return fn.result(made.back());
}

}  // namespace ikat::passes
