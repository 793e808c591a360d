// SPDX-License-Identifier: Apache-2.0
// The claims of the analyses about random IR, compared with runs of it: every integer is in its range at that point,
// uniform values are the same in two threads, dead values are not used.
#include <map>

#include "codegen/analysis/ranges.hpp"
#include "codegen/analysis/uniformity.hpp"
#include "codegen/ir/text/print.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/random_ir.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/interpreter/interpreter.hpp"

namespace {

using namespace ikat;
using namespace ikat::ir;

constexpr std::uint64_t in = 1 << 16, out = 1 << 20;

/// A thread of the kernel with `thread` as tid.x; both threads of a seed get the same parameters and buffers.
test::Thread thread_of(std::uint32_t seed, Word thread) {
    test::Thread it;
    std::mt19937 random(seed ^ 0x9e3779b9u);
    it.scalars = {in, out, random() % 100, to_word(1.5f), to_word(std::int64_t(random()) - (1 << 30))};
    it.special.assign(std::size(special_register_names), 0);
    it.special[0] = thread;
    for (std::uint32_t i = 0; i < test::RandomIr::in_bytes; ++i) it.memory[in + i] = std::uint8_t(random());
    for (std::uint32_t i = 0; i < 8 * test::RandomIr::slice_bytes; ++i) it.memory[out + i] = 0;
    return it;
}

analysis::Int128 number(Type type, Word bits) {
    const int unused = 64 - ir::bits(type);
    return is_signed(type) ? analysis::Int128(std::int64_t(bits << unused) >> unused) : analysis::Int128(bits);
}

}  // namespace

TEST_CASE("every value lies in its range") {
    std::uint64_t checked = 0;
    for (std::uint32_t seed = test::first_seed(), end = seed + test::seed_count(120); seed < end; ++seed) {
        const Function fn = test::RandomIr(seed, {.statements = 120})();
        const analysis::Dominators dominators(fn);
        analysis::Ranges ranges(fn, dominators);
        test::Thread thread = thread_of(seed, seed % 7);
        thread.observe = [&](Block block, Value value, Word bits) {
            const Type type = fn.type(value);
            if (!contains(AnyInt, type)) return;
            const analysis::Interval range = ranges.at(value, block);
            const analysis::Int128 x = number(type, bits);
            const bool divides = range.multiple ? x % analysis::Int128(range.multiple) == 0 : x == 0;
            checked += range != analysis::full(type);
            if (!range.contains(x) || !divides)
                FAIL("seed " << seed << ": " << print(fn, value) << " is " << bits << " in ^" << index(block) << " of\n"
                             << print(fn));
        };
        REQUIRE(test::interpret(fn, thread) == test::End::Returned);
    }
    CHECK(checked > 1000);  // or the test says nothing
}

TEST_CASE("a sum, product or difference that is exact does not wrap") {
    std::uint64_t checked = 0;
    for (std::uint32_t seed = test::first_seed(), end = seed + test::seed_count(120); seed < end; ++seed) {
        const Function fn = test::RandomIr(seed, {.statements = 120})();
        const analysis::Dominators dominators(fn);
        analysis::Ranges ranges(fn, dominators);
        test::Thread thread = thread_of(seed, seed % 7);
        std::map<Value, Word> now;
        thread.observe = [&](Block block, Value value, Word bits) {
            now[value] = bits;
            const Inst inst = fn[value].instruction;
            if (inst == no_inst || !contains(Int, fn.type(value)) || fn[inst].guard != no_value) return;
            const Op op = fn[inst].op;
            if ((op != Op::Add && op != Op::Sub && op != Op::Mul) || !ranges.is_exact(inst, block)) return;
            const Type type = fn.type(value);
            const auto a = number(type, now[fn.operands(inst)[0]]), b = number(type, now[fn.operands(inst)[1]]);
            const auto exact = op == Op::Add ? a + b : op == Op::Sub ? a - b : a * b;
            ++checked;
            if (exact != number(type, bits)) FAIL("seed " << seed << ": " << print(fn, inst) << " of\n" << print(fn));
        };
        REQUIRE(test::interpret(fn, thread) == test::End::Returned);
    }
    CHECK(checked > 100);
}

/// Here, warp operations (votes, shuffles) give each thread a different result, as they may in a loop that some have
/// left. A barrier gives all of them the same.
TEST_CASE("two threads agree on what is uniform") {
    std::uint64_t checked = 0;
    for (std::uint32_t seed = test::first_seed(), end = seed + test::seed_count(120); seed < end; ++seed) {
        const Function fn = test::RandomIr(seed, {.statements = 120, .effects = seed % 2 == 1})();
        const analysis::Uniformity uniformity(fn, analysis::Dominators(fn));
        std::vector<std::pair<Value, Word>> seen[2];
        for (Word t : {0, 1}) {
            test::Thread thread = thread_of(seed, 2 + 3 * t);
            thread.others = [&, meetings = Word(0)](const Instruction& inst, std::span<const Word>) mutable {
                ++meetings;
                if (inst.op == Op::Barrier) return (inst.attribute + 3) * 0x9e3779b97f4a7c15u;
                return (meetings + t) * 0x9e3779b97f4a7c15u ^ t;
            };
            thread.observe = [&](Block block, Value value, Word bits) {
                if (!uniformity.is_divergent(block) && uniformity.is_uniform(value)) seen[t].emplace_back(value, bits);
            };
            REQUIRE(test::interpret(fn, thread) == test::End::Returned);
        }
        checked += seen[0].size();
        if (seen[0] != seen[1]) FAIL("seed " << seed << ":\n" << print(fn));
    }
    CHECK(checked > 1000);
}
