// SPDX-License-Identifier: Apache-2.0
// Rewrite rules written as C++ expressions: rule(x + 0, x, Int). Patterns are empty types, so that a rule costs nothing
// but its own matching code; simplify_rules.hpp, a list of them, can be read without this file.
//
//     x y z p      any value                       c0 c1      any constant
//     0 1 -1       that number in the type at hand; -1 is all ones of an unsigned type and true of a pred
//     x + y …      an instruction of that op       ~x -x      not, neg
//     min(x, y), select(x, y, p) …                 the ops without an operator, by their names
//     fold(c0 + c1)                                computed now
//     rule(from, to, types).where(condition)       types: the allowed types of the outermost instruction
//
// The op's type decides: an add matches an add of any type in the rule's types. Floating-point instructions match only
// if they round to nearest and carry no .ftz, .sat or .approx. A commuting op matches in either order, with constants
// on the right, where simplify puts them.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <optional>
#include <tuple>

#include "codegen/ir/function.hpp"
#include "codegen/passes/fold.hpp"

namespace ikat::passes::rules {
using namespace ir;

/// The bindings of a rule's wildcards so far.
struct Match {
    Function& fn;
    std::vector<Inst>& made;  // instructions of the replacement, in order
    Type type = Type::Void;   // of the outermost instruction
    Location where{};
    bool contract = false;
    std::array<Value, 4> values{no_value, no_value, no_value, no_value};
    std::array<Value, 2> constants{no_value, no_value};

    Word word(int constant) const { return fn[fn[constants[std::size_t(constant)]].instruction].attribute; }
    Value make(Instruction inst, std::span<const Value> operands, Type result) {
        inst.where = where;
        made.push_back(fn.create(inst, operands, {&result, 1}));
        return fn.result(made.back());
    }
    Value make_constant(Type type, Word bits) {
        return make({.op = Op::Const, .type = type, .attribute = bits}, {}, type);
    }
};

/// Arithmetic without modifiers, which float rules require.
constexpr bool is_exact(FloatInfo fp) {
    fp.contract = false;
    return fp == FloatInfo{};
}

// A pattern can
//   match(m, value)   whether value matches, binding wildcards
//   build(m, type)    makes such a value of that type
//   word(m, type)     computes it, if it consists of constants
//   type(m)           its type if its wildcards determine it; else Void
struct Pattern {};
template <class P>
concept IsPattern = std::derived_from<P, Pattern>;

template <int I>
struct Wildcard : Pattern {
    bool match(Match& m, Value value) const {
        if (m.values[I] == no_value) m.values[I] = value;
        return m.values[I] == value;
    }
    Value build(Match& m, Type) const { return m.values[I]; }
    Type type(const Match& m) const { return m.fn.type(m.values[I]); }
};

template <int I>
struct Constant : Pattern {
    bool match(Match& m, Value value) const {
        if (!constant(m.fn, value)) return false;
        m.constants[I] = value;
        return true;
    }
    Value build(Match& m, Type) const { return m.constants[I]; }
    Word word(const Match& m, Type) const { return m.word(I); }
    Type type(const Match& m) const { return m.fn.type(m.constants[I]); }
};

struct Literal : Pattern {
    int number;
    constexpr Literal(int n) : number(n) {}
    Word word(const Match&, Type type) const {
        return with_type(type, [&]<class T>() {
            if constexpr (is_pair<T>)
                return to_word(T{typename T::lane_type(number), typename T::lane_type(number)});
            else
                return to_word(T(number));
        });
    }
    bool match(Match& m, Value value) const {
        const auto bits = constant(m.fn, value);
        return bits && *bits == word(m, m.fn.type(value));
    }
    Value build(Match& m, Type type) const { return m.make_constant(type, word(m, type)); }
    Type type(const Match&) const { return Type::Void; }
};

struct NegativeZero : Pattern {
    bool match(Match& m, Value value) const {
        const auto found = constant(m.fn, value);
        const Type type = m.fn.type(value);
        return found && *found == word(m, type);
    }
    Word word(const Match&, Type type) const { return Word{1} << (bits(type) - 1); }
    Value build(Match& m, Type type) const { return m.make_constant(type, word(m, type)); }
    Type type(const Match&) const { return Type::Void; }
};

template <class P>
inline constexpr bool is_constant = std::same_as<P, Literal> || std::same_as<P, NegativeZero>;
template <int I>
inline constexpr bool is_constant<Constant<I>> = true;

template <Op op, class... Args>
struct Node : Pattern {
    static constexpr Op root = op;
    static constexpr bool takes_constant = (is_constant<Args> || ...);
    std::tuple<Args...> arguments;
    constexpr Node(Args... args) : arguments(args...) {}

    bool match(Match& m, Value value) const {
        const Inst inst = m.fn[value].instruction;
        return inst != no_inst && match(m, inst);
    }
    bool match(Match& m, Inst id) const {
        const Instruction& inst = m.fn[id];
        if (inst.op != op || !is_exact(inst.fp) || inst.guard != no_value) return false;
        const auto operands = m.fn.operands(id);
        const auto values = m.values;
        const auto constants = m.constants;
        if (match_all(m, operands[0], operands.subspan(1))) return true;
        if constexpr (has(op, Commutes)) {
            m.values = values;
            m.constants = constants;
            std::array<Value, sizeof...(Args) - 1> rest;
            std::ranges::copy(operands.subspan(1), rest.begin());
            rest[0] = operands[0];
            return match_all(m, operands[1], rest);
        }
        return false;
    }

    Value build(Match& m, Type wanted) const {
        const Type type = at_type(m, wanted);
        std::array<Value, sizeof...(Args)> operands;
        std::apply(
            [&](const auto&... args) {
                std::size_t i = 0;
                ((operands[i] = args.build(m, slot_type(i, type)), ++i), ...);
            },
            arguments);
        const bool contract = m.contract && is_float(type) && (info(op).modifiers & Rounds);
        return m.make({.op = op, .type = type, .fp = {.contract = contract}}, operands,
                      at(info(op).shape.result, type));
    }
    Word word(const Match& m, Type wanted) const {
        const Type type = at_type(m, wanted);
        std::array<Word, sizeof...(Args)> words;
        std::apply(
            [&](const auto&... args) {
                std::size_t i = 0;
                ((words[i] = args.word(m, slot_type(i, type)), ++i), ...);
            },
            arguments);
        return evaluate(op, type, Type::Void, {}, words);
    }
    Type type(const Match& m) const { return at(info(op).shape.result, at_type(m, Type::Void)); }

private:
    bool match_all(Match& m, Value first, std::span<const Value> rest) const {
        return std::apply(
            [&](const auto& head, const auto&... tail) {
                std::size_t i = 0;
                return head.match(m, first) && (tail.match(m, rest[i++]) && ...);
            },
            arguments);
    }
    static Type slot_type(std::size_t i, Type type) { return at(info(op).shape.arguments[i], type); }
    /// The type of the instruction: that of its result, or for a comparison or widening product that of the operands,
    /// if wildcards determine it; else that of the outermost instruction.
    Type at_type(const Match& m, Type wanted) const {
        if (info(op).shape.result == Slot::T && wanted != Type::Void) return wanted;
        Type found = Type::Void;
        std::apply(
            [&](const auto&... args) {
                std::size_t i = 0;
                ((found = info(op).shape.arguments[i++] == Slot::T && found == Type::Void ? args.type(m) : found), ...);
            },
            arguments);
        return found == Type::Void ? m.type : found;
    }
};

template <class P>
struct Fold : Pattern {
    P pattern;
    constexpr explicit Fold(P p) : pattern(p) {}
    Word word(const Match& m, Type type) const { return pattern.word(m, type); }
    Value build(Match& m, Type type) const { return m.make_constant(type, pattern.word(m, type)); }
    Type type(const Match&) const { return Type::Void; }
};
template <class P>
constexpr auto fold(P p) {
    return Fold<P>(p);
}

/// The exponent of a power of two, as a constant of any type.
template <class P>
struct Log2 : Pattern {
    P pattern;
    constexpr explicit Log2(P p) : pattern(p) {}
    Word word(const Match& m, Type type) const { return Word(std::countr_zero(pattern.word(m, type))); }
};
template <class P>
constexpr auto log2(P p) {
    return Log2<P>(p);
}

template <class T>
constexpr auto pattern(T t) {
    if constexpr (IsPattern<T>)
        return t;
    else
        return Literal(t);
}

#define IKAT_PATTERN_OPERATOR(symbol, op)                                                        \
    template <class A, class B>                                                                  \
    requires(IsPattern<A> || IsPattern<B>) constexpr auto operator symbol(A a, B b) {            \
        return Node<Op::op, decltype(pattern(a)), decltype(pattern(b))>(pattern(a), pattern(b)); \
    }
#define IKAT_PATTERN_PREFIX(symbol, op)   \
    template <IsPattern A>                \
    constexpr auto operator symbol(A a) { \
        return Node<Op::op, A>(a);        \
    }
#define IKAT_PATTERN_FUNCTION(name, op)                                    \
    template <class... A>                                                  \
    constexpr auto name(A... args) {                                       \
        return Node<Op::op, decltype(pattern(args))...>(pattern(args)...); \
    }
IKAT_PATTERN_OPERATOR(+, Add)
IKAT_PATTERN_OPERATOR(-, Sub)
IKAT_PATTERN_OPERATOR(*, Mul)
IKAT_PATTERN_OPERATOR(/, Div)
IKAT_PATTERN_OPERATOR(%, Rem)
IKAT_PATTERN_OPERATOR(&, And)
IKAT_PATTERN_OPERATOR(|, Or)
IKAT_PATTERN_OPERATOR(^, Xor)
IKAT_PATTERN_OPERATOR(<<, Shl)
IKAT_PATTERN_OPERATOR(>>, Shr)
IKAT_PATTERN_OPERATOR(==, Eq)
IKAT_PATTERN_OPERATOR(!=, Ne)
IKAT_PATTERN_OPERATOR(<, Lt)
IKAT_PATTERN_OPERATOR(<=, Le)
IKAT_PATTERN_OPERATOR(>, Gt)
IKAT_PATTERN_OPERATOR(>=, Ge)
IKAT_PATTERN_PREFIX(-, Neg)
IKAT_PATTERN_PREFIX(~, Not)
IKAT_PATTERN_FUNCTION(abs, Abs)
IKAT_PATTERN_FUNCTION(min, Min)
IKAT_PATTERN_FUNCTION(max, Max)
IKAT_PATTERN_FUNCTION(fma, Fma)
IKAT_PATTERN_FUNCTION(mul_hi, MulHi)
IKAT_PATTERN_FUNCTION(mul_wide, MulWide)
IKAT_PATTERN_FUNCTION(mad_wide, MadWide)
IKAT_PATTERN_FUNCTION(select, Select)
#undef IKAT_PATTERN_OPERATOR
#undef IKAT_PATTERN_PREFIX
#undef IKAT_PATTERN_FUNCTION

inline constexpr Wildcard<0> x;
inline constexpr Wildcard<1> y;
inline constexpr Wildcard<2> z;
inline constexpr Wildcard<3> p;
inline constexpr Constant<0> c0;
inline constexpr Constant<1> c1;
inline constexpr NegativeZero negative_zero;

struct Always {
    bool operator()(const Match&) const { return true; }
};

template <class From, class To, class Condition = Always>
struct Rule {
    From from;
    To to;
    TypeSet types;
    Condition condition{};

    template <class C>
    constexpr auto where(C c) const {
        return Rule<From, To, C>{from, to, types, c};
    }
};
template <class From, class To>
constexpr auto rule(From from, To to, TypeSet types = Any) {
    return Rule<From, decltype(pattern(to)), Always>{from, pattern(to), types};
}

/// One rule, with data for quickly rejecting it.
struct Rewrite {
    /// The value that replaces an instruction's result, if the rule matches. Instructions needed to compute it are
    /// appended to `made`.
    std::optional<Value> (*apply)(Function& fn, Inst inst, std::vector<Inst>& made) = nullptr;
    TypeSet types{};              // allowed types of the instruction
    bool takes_constant = false;  // among its operands
};

/// Rule `i` of a list, as a function.
template <const auto& list, std::size_t i>
std::optional<Value> apply(Function& fn, Inst inst, std::vector<Inst>& made) {
    constexpr auto& rule = std::get<i>(list);
    const Instruction& root = fn[inst];
    Match m{.fn = fn, .made = made, .type = root.type, .where = root.where, .contract = root.fp.contract};
    if (!rule.from.match(m, inst) || !rule.condition(m)) return {};
    return rule.to.build(m, fn.type(fn.result(inst)));
}

/// All rules of some lists, grouped by their outermost op, in order: the rules of an op are a span.
template <std::size_t count>
class Table {
public:
    template <const auto&... lists>
    static constexpr Table of() {
        Table table;
        std::array<Op, count> roots;
        std::array<Rewrite, count> all;
        std::size_t n = 0;
        const auto add = [&]<const auto & list, std::size_t... i>(std::index_sequence<i...>) {
            ((roots[n] = std::get<i>(list).from.root,
              all[n++] = {apply<list, i>, std::get<i>(list).types, std::get<i>(list).from.takes_constant}),
             ...);
        };
        (add.template operator()<lists>(
             std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(lists)>>>{}),
         ...);
        n = 0;
        for (int op = 0; op < op_count; ++op) {
            for (std::size_t i = 0; i < count; ++i)
                if (roots[i] == Op(op)) table.rewrites_[n++] = all[i];
            table.end_[std::size_t(op) + 1] = n;
        }
        return table;
    }
    /// The replacement by the first rule that matches an instruction.
    std::optional<Value> rewrite(Function& fn, Inst id, std::vector<Inst>& made) const {
        const Instruction& inst = fn[id];
        const std::size_t begin = end_[std::size_t(inst.op)], end = end_[std::size_t(inst.op) + 1];
        if (begin == end || !is_exact(inst.fp) || inst.guard != no_value) return {};
        const Type type = inst.type;
        const bool has_constant =
            std::ranges::any_of(fn.operands(id), [&](Value v) { return constant(fn, v).has_value(); });
        for (const Rewrite& rule : std::span(rewrites_).subspan(begin, end - begin))
            if (contains(rule.types, type) && (has_constant || !rule.takes_constant))
                if (const auto found = rule.apply(fn, id, made)) return found;
        return {};
    }

private:
    std::array<Rewrite, count> rewrites_{};
    std::array<std::size_t, op_count + 1> end_{};  // of the op before
};
template <const auto&... lists>
constexpr auto table() {
    constexpr std::size_t count = (std::tuple_size_v<std::remove_cvref_t<decltype(lists)>> + ...);
    return Table<count>::template of<lists...>();
}

}  // namespace ikat::passes::rules
