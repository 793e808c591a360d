// SPDX-License-Identifier: Apache-2.0
// Random IR through printer and parser, through each pass and through the pipeline: the text means the same function,
// every pass leaves it well formed, and no pass changes what a thread stores. IKAT_FUZZ=5000 tries that many seeds.
#include <cstdlib>

#include "codegen/ir/parse.hpp"
#include "codegen/ir/print.hpp"
#include "codegen/ir/verify.hpp"
#include "codegen/passes/pipeline.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/random_ir.hpp"
#include "tests/interpreter/interpreter.hpp"

namespace {

using namespace ikat;

constexpr std::uint64_t in = 1 << 16, out = 1 << 20;

std::uint32_t seeds() {
    const char* wish = std::getenv("IKAT_FUZZ");
    return wish ? std::uint32_t(std::atoi(wish)) : 150;
}

/// What the thread leaves in memory. The buffers begin with bytes of a fixed pattern, NaNs with payloads among them.
std::map<std::uint64_t, std::uint8_t> stored(const ir::Function& fn, std::uint32_t seed) {
    test::Thread thread;
    std::mt19937 random(seed ^ 0x5bd1e995u);
    thread.scalars = {in, out, random() % 100, ir::to_word(1.5f), ir::to_word(std::int64_t(random()) - (1 << 30))};
    thread.special.assign(std::size(ir::special_register_names), 0);
    thread.special[0] = 1;
    for (std::uint32_t i = 0; i < test::RandomIr::in_bytes; ++i)
        thread.memory[in + i] = random() % 4 ? std::uint8_t(random()) : 0xff;
    for (std::uint32_t i = 0; i < 2 * test::RandomIr::slice_bytes; ++i)
        thread.memory[out + i] = random() % 4 ? std::uint8_t(random()) : 0x7f;
    REQUIRE(test::interpret(fn, thread) == test::End::Returned);
    return thread.memory;
}

void check_same_results(std::uint32_t seed, const std::string& passes) {
    const ir::Function before = test::RandomIr(seed)();
    const auto expected = stored(before, seed);
    ir::Function fn = before;
    std::string previous = "nothing";
    passes::run_pipeline(fn, {.passes = passes, .after = [&](const passes::Pass& pass, const ir::Function& now, bool) {
                                  const std::string findings = report(now);
                                  if (!findings.empty())
                                      FAIL("seed " << seed << " after " << pass.name << ":\n" << findings);
                                  if (stored(now, seed) != expected)
                                      FAIL("seed " << seed << ": " << pass.name << " changed the result (after "
                                                   << previous << ") of\n"
                                                   << print(before) << "to\n"
                                                   << print(now));
                                  previous = pass.name;
                              }});
}

}  // namespace

TEST_CASE("random IR is well formed, and its text parses back to it") {
    for (std::uint32_t seed = 0; seed < seeds(); ++seed) {
        const ir::Function fn = test::RandomIr(seed)();
        const std::string findings = report(fn), text = print(fn);
        if (!findings.empty()) FAIL("seed " << seed << ":\n" << findings);
        const ir::Function again = ir::parse_function(text);
        if (print(again) != text) FAIL("seed " << seed << ": printed differently:\n" << text << print(again));
        if (again != ir::renumbered(fn)) FAIL("seed " << seed << ": parsed to another function:\n" << text);
    }
}

TEST_CASE("the pipeline changes no result") {
    for (std::uint32_t seed = 0; seed < seeds(); ++seed) check_same_results(seed, "");
}

TEST_CASE("no pass changes a result, in any order") {
    std::mt19937 random(7);
    for (std::uint32_t seed = 0; seed < seeds(); ++seed) {
        std::string passes;
        for (int i = 0; i < 6; ++i)
            passes += (i ? "," : "") + std::string(passes::all_passes()[random() % passes::all_passes().size()].name);
        check_same_results(seed + 1'000'000, passes);
    }
}

TEST_CASE("a second run of the pipeline finds nothing that the first left to a third") {
    for (std::uint32_t seed = 0; seed < seeds() / 4; ++seed) {
        ir::Function fn = test::RandomIr(seed)();
        for (int round = 0; round < 8; ++round) passes::run_pipeline(fn);
        const std::string settled = print(fn);
        passes::run_pipeline(fn);
        if (print(fn) != settled) FAIL("seed " << seed << " does not settle:\n" << settled << print(fn));
    }
}
