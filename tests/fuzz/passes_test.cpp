// SPDX-License-Identifier: Apache-2.0
// Random IR through printer and parser, through each pass and through the pipeline: the text parses to the same
// function, every pass leaves it well formed, and no pass changes what a thread stores or how it interacts with other
// threads.
// At each fence, barrier, atomic, ordered or volatile access, the other threads write to memory, in a way that depends
// only on the number of such events so far. So a pass that moves a value across one, or drops, repeats or swaps them,
// changes what is read. IKAT_FUZZ_COUNT=5000 tries that many seeds, from IKAT_FUZZ_SEED on. Failures are shrunk, and
// the pass at fault is named.
#include <optional>

#include "codegen/ir/text/parse.hpp"
#include "codegen/ir/text/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/pipeline/stages.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/patterns.hpp"
#include "tests/fuzz/random_ir.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/fuzz/shrink.hpp"
#include "tests/interpreter/interpreter.hpp"

namespace {

using namespace ikat;
using test::first_seed, test::seed_count;

constexpr std::uint64_t in = 1 << 16, out = 1 << 20;

/// The observable behaviour of a thread.
struct Seen {
    std::map<std::uint64_t, std::uint8_t> memory;  // at the end
    std::vector<ir::Word> meetings;                // interactions with other threads: op, address or operands
    bool operator==(const Seen&) const = default;
};

ir::Word mixed(ir::Word x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/// Runs it; nothing if it does not end. The buffers initially hold a fixed pattern that includes NaNs with payloads.
std::optional<Seen> run(const ir::Function& fn, std::uint32_t seed) {
    Seen seen;
    test::Thread thread;
    std::mt19937 random(seed ^ 0x5bd1e995u);
    thread.scalars = {in, out, random() % 100, ir::to_word(1.5f), ir::to_word(std::int64_t(random()) - (1 << 30))};
    thread.special.assign(std::size(ir::special_register_names), 0);
    thread.special[0] = 1;
    for (std::uint32_t i = 0; i < test::RandomIr::in_bytes; ++i)
        thread.memory[in + i] = random() % 4 ? std::uint8_t(random()) : 0xff;
    for (std::uint32_t i = 0; i < 2 * test::RandomIr::slice_bytes; ++i)
        thread.memory[out + i] = random() % 4 ? std::uint8_t(random()) : 0x7f;
    thread.others = [&](const ir::Instruction& inst, std::span<const ir::Word> operands) {
        seen.meetings.push_back(ir::Word(inst.op));
        seen.meetings.insert(seen.meetings.end(), operands.begin(), operands.end());
        if (ir::has_memory_info(inst.op))
            seen.meetings[seen.meetings.size() - operands.size()] += ir::Word(inst.memory.offset);
        const ir::Word drawn = mixed(seed * 0x9e3779b97f4a7c15u + seen.meetings.size());
        const ir::Effects does = effects(inst);
        if (!does.orders && !does.convergent && !does.in_flight()) return drawn;  // a prefetch
        for (std::uint32_t i = 0; i < test::RandomIr::slots * test::RandomIr::slot_bytes; ++i)
            if (drawn >> (i % 61) & 1) thread.memory[out + test::RandomIr::slice_bytes + i] ^= std::uint8_t(drawn + i);
        return drawn;
    };
    if (test::interpret(fn, thread) != test::End::Returned) return {};
    seen.memory = std::move(thread.memory);
    return seen;
}

ir::Function random_function(std::uint32_t seed) {
    test::RandomIrOptions options{.effects = seed % 2 == 1};
    if (seed % 4 < 2)
        options.pattern = [](ir::Builder& build, std::uint32_t random, const auto& value, const auto& constant) {
            return test::patterns()[random % test::patterns().size()](build, random / 256, value, constant);
        };
    return test::RandomIr(seed, options)();
}

/// A message about the first pass of the list that breaks the function; "" if none does.
std::string fault(const ir::Function& before, std::uint32_t seed, const std::string& passes) {
    const auto expected = run(before, seed);
    if (!expected) return "";
    std::string said, previous = "nothing";
    ir::Function fn = before;
    pipeline::run_passes(
        fn, {.passes = passes, .after = [&](const pipeline::Stage& pass, const ir::Function& now) {
                 const std::string findings = said.empty() ? complaint(now) : "";
                 if (!findings.empty())
                     said = std::string(pass.name) + " leaves a function that is not well formed:\n" + findings;
                 else if (said.empty() && run(now, seed) != expected)
                     said = std::string(pass.name) + " changed the result (after " + previous + "), to\n" + print(now);
                 previous = pass.name;
             }});
    return said;
}

void check_same_results(std::uint32_t seed, const std::string& passes) {
    const ir::Function fn = random_function(seed);
    REQUIRE(run(fn, seed));
    if (fault(fn, seed, passes).empty()) return;
    const ir::Function small =
        test::shrunk(fn, [&](const ir::Function& candidate) { return !fault(candidate, seed, passes).empty(); });
    FAIL("seed " << seed << ", of\n" << print(small) << fault(small, seed, passes));
}

}  // namespace

TEST_CASE("random IR is well formed, and its text parses back to it") {
    for (std::uint32_t seed = first_seed(), end = seed + seed_count(150); seed < end; ++seed) {
        const ir::Function fn = random_function(seed);
        const std::string findings = complaint(fn), text = print(fn);
        if (!findings.empty()) FAIL("seed " << seed << ":\n" << findings);
        const ir::Function again = ir::parse_function(text);
        if (print(again) != text) FAIL("seed " << seed << ": printed differently:\n" << text << print(again));
        if (again != ir::renumbered(fn)) FAIL("seed " << seed << ": parsed to another function:\n" << text);
    }
}

TEST_CASE("the pipeline changes no result") {
    for (std::uint32_t seed = first_seed(), end = seed + seed_count(150); seed < end; ++seed)
        check_same_results(seed, "");
}

TEST_CASE("no pass changes a result, in any order") {
    std::mt19937 random(7);
    for (std::uint32_t seed = first_seed(), end = seed + seed_count(150); seed < end; ++seed) {
        std::string passes;
        const auto all = pipeline::all_passes();
        for (int i = 0; i < 6; ++i) passes += (i ? "," : "") + std::string(all[random() % all.size()]->name);
        check_same_results(seed + 1'000'000, passes);
    }
}

TEST_CASE("the pipeline settles after two runs") {
    for (std::uint32_t seed = first_seed(), end = seed + seed_count(150) / 4; seed < end; ++seed) {
        ir::Function fn = random_function(seed);
        for (int round = 0; round < 8; ++round) pipeline::run_passes(fn);
        const std::string settled = print(fn);
        pipeline::run_passes(fn);
        if (print(fn) != settled) FAIL("seed " << seed << " does not settle:\n" << settled << print(fn));
    }
}
