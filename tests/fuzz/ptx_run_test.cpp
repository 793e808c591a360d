// SPDX-License-Identifier: Apache-2.0
// Mutated kernels on the emulator: they run to the end, or an Error says why not. The emulator never crashes and never
// hangs. IKAT_FUZZ_COUNT=n sets the number of rounds, IKAT_FUZZ_SEED=n the seed; with them, a text that crashes is left
// in ptx_run_last.ptx in the temporary folder.
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/ptx_run.hpp"

using ikat::tests::Reached;

TEST_CASE("the corpus runs") {
    for (const std::string& text : ikat::tests::corpus({"/tests/fuzz/corpus"})) {
        for (const bool registers : {false, true}) {
            std::string why;
            CHECK(ikat::tests::run_anything(text, registers, &why) == Reached::Ran);
            CHECK(why == "");
        }
    }
}

TEST_CASE("mutated kernels run, or an error says why not") {
    const bool asked = std::getenv("IKAT_FUZZ_COUNT") || std::getenv("IKAT_FUZZ_SEED");
    const auto rounds = int(ikat::test::seed_count(10000));
    ikat::tests::WordMutator mutator(ikat::tests::corpus({"/tests/fuzz/corpus"}));
    const std::filesystem::path last = std::filesystem::temp_directory_path() / "ptx_run_last.ptx";
    int reached[4] = {};
    for (int round = 0; round < rounds; ++round) {
        const std::string text = mutator.next();
        if (asked) std::ofstream(last) << text;
        ++reached[int(ikat::tests::run_anything(text, round % 2))];
    }
    CHECK(reached[int(Reached::Ran)] > rounds / 20);  // or the test says little
    CHECK(reached[int(Reached::Decoded)] > rounds / 100);
}
