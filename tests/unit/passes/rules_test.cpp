// SPDX-License-Identifier: Apache-2.0
// Every rule of simplify in isolation: an instance of its left side is built from the pattern itself, at each type,
// with values and constants at the edges of the types; the rule must match it, and the right side must give the same
// bits.
#include <functional>
#include <map>
#include <random>

#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/passes/conversions.hpp"
#include "codegen/passes/simplify_rules.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/patterns.hpp"
#include "tests/interpreter/interpreter.hpp"

namespace {

using namespace ikat;
using namespace ikat::passes::rules;

constexpr std::uint64_t in = 1 << 16, out = 1 << 20;
constexpr int tries = 200;

std::vector<Word> edges(Type type) {
    const int width = bits(type);
    const Word all = width == 64 ? ~Word{0} : (Word{1} << width) - 1, top = Word{1} << (width - 1);
    if (type == Type::Pred) return {0, 1};
    std::vector<Word> words{0, 1, 2, 3, 4, 7, 31, 32, 63, 64, 100, top, top - 1, top + 1, all, all - 1, all - 6};
    if (!is_float(type)) return words;
    if (is_packed(type)) {
        std::vector<Word> pairs;
        const std::vector<Word> lanes = edges(lane(type));
        for (std::size_t i = 0; i < lanes.size(); ++i)
            pairs.push_back((lanes[i] | lanes[(i * 5 + 2) % lanes.size()] << bits(lane(type))) & all);
        return pairs;
    }
    if (bits(type) < 32) std::erase_if(words, [&](Word word) { return word > all; });
    // bit patterns of small integers are subnormals; add numbers, infinities and NaNs with and without payload
    for (double x : {-0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-5, 65504.0, double(INFINITY), -double(INFINITY), double(NAN)})
        words.push_back(evaluate(Op::Convert, type, Type::F64, {}, std::array{to_word(x)}));
    if (type == Type::F32) words.insert(words.end(), {0x7fc00001u, 0xffc00000u, 0x00800000u, 0x7f7fffffu, 0x80000001u});
    if (type == Type::F64) words.insert(words.end(), {0x7ff8000000000001u, 0x0010000000000000u, 0x7fefffffffffffffu});
    return words;
}

using test::infer, test::Kinds;

class RuleTest {
public:
    explicit RuleTest(std::uint32_t seed) : random_(seed) {}

    /// How many instances the rule has matched.
    template <const auto& list, std::size_t i>
    int check() {
        constexpr auto& rule = std::get<i>(list);
        constexpr Op root = std::remove_cvref_t<decltype(rule.from)>::root;
        int matched = 0;
        for (int t = 1; t < type_count; ++t)
            if (contains(info(root).domain, Type(t)) && contains(rule.types, Type(t)))
                for (int n = 0; n < tries; ++n) matched += instance<list, i>(Type(t));
        return matched;
    }

    /// Whether to ← middle ← from, both with this op, is simplified.
    bool conversions(Op op, Type from, Type middle, Type to) {
        const auto possible = [&](Type a, Type b) {
            return contains(Storable, a) && contains(Storable, b) &&
                   (op == Op::Convert ? converts(b, a) : bits(a) == bits(b));
        };
        if (!possible(from, middle) || !possible(middle, to)) return false;
        bool matched = false;
        for (int n = 0; n < 30; ++n) {
            matched |= check(to, Kinds{.values = {from}},
                             [&](Match& m) {
                                 const Value inner =
                                     m.make({.op = op, .type = middle, .from = from}, std::array{m.values[0]}, middle);
                                 return m.make({.op = op, .type = to, .from = middle}, std::array{inner}, to);
                             },
                             {passes::simplify_conversion});
        }
        return matched;
    }

private:
    Word edge(Type type) {
        const auto words = edges(type);
        return words[random_() % words.size()];
    }

    template <const auto& list, std::size_t i>
    bool instance(Type type) {
        constexpr auto& rule = std::get<i>(list);
        constexpr Op root = std::remove_cvref_t<decltype(rule.from)>::root;
        constexpr TypeSet comparable = AnyNum;
        Type compared = type;
        while (!contains(comparable, compared)) compared = Type(random_() % type_count);
        Kinds kinds;
        const Type result = at(info(root).shape.result, type);
        infer(rule.from, result, compared, kinds);

        return check(type, kinds, [&](Match& m) { return rule.from.build(m, result); },
                     {apply<list, i>, rule.types, rule.from.takes_constant});
    }

    /// Makes values and constants of the given kinds, builds the left side of them, rewrites it and compares.
    bool check(Type type, const Kinds& kinds, const std::function<Value(Match&)>& build, const Rewrite& rule) {
        Function fn;
        fn.name = "rule";
        fn.parameters = {{.name = "in", .access = Access::In, .element = Type::U32},
                         {.name = "out", .access = Access::Out, .element = Type::U32}};
        const Block block = fn.add_block();
        std::vector<Inst> made;
        Match m{.fn = fn, .made = made, .type = type};
        const Type pointer = Type::U64;
        const Value from_in = m.make({.op = Op::Param, .type = pointer, .attribute = 0}, {}, pointer);
        const Value to_out = m.make({.op = Op::Param, .type = pointer, .attribute = 1}, {}, pointer);
        for (std::size_t w = 0; w < 4; ++w)
            if (kinds.values[w] != Type::Void) m.values[w] = variable(m, kinds.values[w], from_in, int(w));
        for (std::size_t c = 0; c < 2; ++c)
            if (kinds.constants[c] != Type::Void)
                m.constants[c] = m.make_constant(kinds.constants[c], edge(kinds.constants[c]));
        const Value left = build(m);
        fn[block].instructions = made;
        made.clear();
        const Inst root = fn[left].instruction;
        const auto right = rule.apply(fn, root, made);
        if (!right) return false;
        const bool has_constant =
            std::ranges::any_of(fn.operands(root), [&](Value v) { return constant(fn, v).has_value(); });
        REQUIRE((has_constant || !rule.takes_constant));
        fn[block].instructions.insert(fn[block].instructions.end(), made.begin(), made.end());
        store(fn, block, to_out, left, 0);
        store(fn, block, to_out, *right, 8);
        fn[block].terminator.kind = Terminator::Kind::Return;
        if (const std::string findings = complaint(fn); !findings.empty()) FAIL(findings);
        compare(fn, kinds);
        return true;
    }

    /// A loaded value; a float is computed half of the time, for rules that require it.
    Value variable(Match& m, Type type, Value from, int slot) {
        if (type == Type::Pred) {
            const Value word = load(m, Type::U32, from, slot);
            return m.make({.op = Op::Ne, .type = Type::U32}, std::array{word, m.make_constant(Type::U32, 0)},
                          Type::Pred);
        }
        const Value loaded = load(m, type, from, slot);
        if (!is_float(type) || !contains(info(Op::Max).domain, type) || random_() % 2) return loaded;
        return m.make({.op = Op::Max, .type = type}, std::array{loaded, loaded}, type);
    }
    static Value load(Match& m, Type type, Value from, int slot) {
        return m.make({.op = Op::Load, .type = type, .memory = {.space = Space::Global, .offset = 8 * slot}},
                      std::array{from}, type);
    }
    static void store(Function& fn, Block block, Value to, Value value, int offset) {
        Type type = fn.type(value);
        if (type == Type::Pred) {
            type = Type::U32;
            const auto word = [&](Word bits) {
                return fn.result(fn.append(block, {.op = Op::Const, .type = type, .attribute = bits}, {}, {&type, 1}));
            };
            const Value operands[] = {word(1), word(0), value};
            value = fn.result(fn.append(block, {.op = Op::Select, .type = type}, operands, {&type, 1}));
        }
        fn.append(block, {.op = Op::Store, .type = type, .memory = {.space = Space::Global, .offset = offset}},
                  std::array{to, value}, {});
    }

    void compare(const Function& fn, const Kinds& kinds) {
        test::Thread thread{.scalars = {in, out}};
        for (std::size_t w = 0; w < 4; ++w) {
            const Word bits =
                edge(kinds.values[w] == Type::Pred || kinds.values[w] == Type::Void ? Type::U32 : kinds.values[w]);
            for (std::size_t b = 0; b < 8; ++b) thread.memory[in + 8 * w + b] = std::uint8_t(bits >> 8 * b);
        }
        const auto given = thread.memory;
        REQUIRE(test::interpret(fn, thread) == test::End::Returned);
        for (std::size_t b = 0; b < 8; ++b)
            if (thread.memory[out + b] != thread.memory[out + 8 + b]) {
                std::string bytes;
                for (auto [address, byte] : given) bytes += std::to_string(byte) + ' ';
                FAIL("the two stores of this differ, with in = " << bytes << '\n' << print(fn));
            }
    }

    std::mt19937 random_;
};

template <const auto& list>
void check_all() {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
        const int matched[] = {RuleTest(std::uint32_t(i)).template check<list, i>()...};
        for (std::size_t n = 0; n < std::size(matched); ++n) {
            INFO("rule " << n << " of this list");
            CHECK(matched[n] > 0);
        }
    }
    (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(list)>>>{});
}

}  // namespace

TEST_CASE("chains of conversions and casts are exact") {
    for (Op op : {Op::Convert, Op::Bitcast}) {
        int matched = 0;
        for (int a = 0; a < type_count * type_count * type_count; ++a) {
            const Type from = Type(a % type_count), middle = Type(a / type_count % type_count);
            const Type to = Type(a / type_count / type_count);
            matched += RuleTest(std::uint32_t(a)).conversions(op, from, middle, to);
        }
        CHECK(matched > 80);
    }
}
TEST_CASE("rules of sums are exact") { check_all<sums>(); }
TEST_CASE("rules of products are exact") { check_all<products>(); }
TEST_CASE("rules of quotients are exact") { check_all<quotients>(); }
TEST_CASE("rules of bit operations are exact") { check_all<bit_operations>(); }
TEST_CASE("rules of shifts are exact") { check_all<shifts>(); }
TEST_CASE("rules of comparisons are exact") { check_all<comparisons>(); }
TEST_CASE("rules of choices are exact") { check_all<choices>(); }
