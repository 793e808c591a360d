// SPDX-License-Identifier: Apache-2.0
// Mutated PTX: the parser either rejects a text with a location in it, or the result prints to a text that parses and
// prints to itself. It never crashes. IKAT_FUZZ_COUNT=n sets the number of rounds, IKAT_FUZZ_SEED=n the seed.
#include "codegen/ptx/check/check.hpp"
#include "codegen/ptx/text/module.hpp"
#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"
#include "tests/fuzz/mutate.hpp"

namespace {

/// "" if the text is handled correctly, else the fault.
std::string complaint(const std::string& text, int& parsed) {
    std::string printed;
    try {
        const ikat::ptx::Module module = ikat::ptx::parse(text, "mutated.ptx");
        printed = ikat::ptx::print(module);
        ikat::ptx::check(module);  // may find anything, but must not crash
    } catch (const ikat::Error& error) {
        const ikat::Location where = error.diagnostics().at(0).where;
        const auto lines = std::uint32_t(1 + std::ranges::count(text, '\n'));
        return where.known() && where.line <= lines ? "" : "an error without a location: " + std::string(error.what());
    }
    ++parsed;
    try {
        const std::string again = ikat::ptx::print(ikat::ptx::parse(printed, "printed.ptx"));
        return again == printed ? "" : "prints differently:\n" + printed + "---- then\n" + again;
    } catch (const ikat::Error& error) { return "the printed text does not parse: " + std::string(error.what()); }
}

}  // namespace

TEST_CASE("mutated PTX is rejected with a location, or prints to text that prints to itself") {
    const auto rounds = int(ikat::test::seed_count(200000));
    ikat::tests::Mutator mutator(
        ikat::tests::corpus({"/tests/golden/ptx", "/tests/golden/errors", "/tests/fuzz/corpus"}));
    int parsed = 0;
    for (int round = 0; round < rounds; ++round) {
        const std::string text = mutator.next();
        const std::string wrong = complaint(text, parsed);
        if (!wrong.empty()) {
            INFO("round " << round << ":\n" << text);
            FAIL(wrong);
        }
    }
    CHECK(parsed > rounds / 20);
    CHECK(parsed < rounds);
}
