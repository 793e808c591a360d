// SPDX-License-Identifier: Apache-2.0
// Mutated PTX: the parser either refuses a text with a place in it, or what it made prints to a text that parses and
// prints to itself. It never crashes. The seed is fixed; IKAT_FUZZ_ROUNDS=n asks for more rounds than the default.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "codegen/ptx/check.hpp"
#include "codegen/ptx/module.hpp"
#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"

namespace {

/// The inputs of the golden files, in the order of their names.
std::vector<std::string> corpus() {
    std::vector<std::filesystem::path> paths;
    for (const char* area : {"/tests/golden/ptx", "/tests/golden/errors"})
        for (const auto& entry : std::filesystem::directory_iterator(IKAT_SOURCE_DIR + std::string(area)))
            if (entry.path().extension() == ".ptx") paths.push_back(entry.path());
    std::ranges::sort(paths);
    std::vector<std::string> texts;
    for (const auto& path : paths) {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        texts.push_back(text.str().substr(0, text.str().find("// ---- expect ----")));
    }
    return texts;
}

class Mutator {
public:
    explicit Mutator(std::vector<std::string> texts) : texts_(std::move(texts)) {}

    std::string next() {
        std::string text = texts_[below(texts_.size())];
        for (std::size_t n = 1 + below(3); n > 0; --n) mutate(text);
        return text;
    }

private:
    std::size_t below(std::size_t limit) { return limit ? random_() % limit : 0; }

    void mutate(std::string& text) {
        static constexpr const char* tokens[] = {"{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 "(",
                                                 ")",
                                                 ";",
                                                 ",",
                                                 "|",
                                                 "!",
                                                 "@",
                                                 ":",
                                                 "::",
                                                 ".",
                                                 "-",
                                                 "+",
                                                 "=",
                                                 "<",
                                                 ">",
                                                 "\"",
                                                 "\\",
                                                 "//",
                                                 "/*",
                                                 "*/",
                                                 "\n",
                                                 "0x",
                                                 "0f",
                                                 "0d3",
                                                 "1.",
                                                 "1e",
                                                 "_",
                                                 "%",
                                                 "%r<2>",
                                                 ".reg",
                                                 ".b32",
                                                 ".section x {",
                                                 ".loc",
                                                 "$",
                                                 "generic",
                                                 "a",
                                                 "9999999999999999999999",
                                                 ".param",
                                                 ".entry",
                                                 ".align 4"};
        const std::size_t at = below(text.size() + 1), length = std::min(below(12), text.size() - at);
        switch (below(7)) {
            case 0: text.erase(at, length); break;
            case 1: text.insert(at, tokens[below(std::size(tokens))]); break;
            case 2: text.insert(below(text.size() + 1), text.substr(at, length)); break;
            case 3: text.resize(at); break;
            case 4: text.insert(at, 1, char(below(256))); break;
            case 5:
                if (at < text.size()) text[at] = char(text[at] ^ (1 << below(8)));
                break;
            case 6: {
                const std::string& other = texts_[below(texts_.size())];
                text.insert(at, other, below(other.size()), below(200));
                break;
            }
        }
    }

    std::vector<std::string> texts_;
    std::mt19937_64 random_{20240607};
};

/// "" if the text is treated as promised, else what went wrong.
std::string complaint(const std::string& text, int& parsed) {
    std::string printed;
    try {
        const ikat::ptx::Module module = ikat::ptx::parse(text, "mutated.ptx");
        printed = ikat::ptx::print(module);
        ikat::ptx::check(module);  // finds what it may, and does not fall over
    } catch (const ikat::Error& error) {
        const ikat::Location where = error.diagnostics().at(0).where;
        const auto lines = std::uint32_t(1 + std::ranges::count(text, '\n'));
        return where.known() && where.line <= lines ? "" : "an error without a place: " + std::string(error.what());
    }
    ++parsed;
    try {
        const std::string again = ikat::ptx::print(ikat::ptx::parse(printed, "printed.ptx"));
        return again == printed ? "" : "prints differently:\n" + printed + "---- then\n" + again;
    } catch (const ikat::Error& error) { return "what was printed does not parse: " + std::string(error.what()); }
}

}  // namespace

TEST_CASE("mutated PTX is refused with a place, or prints to what prints to itself") {
    const char* asked = std::getenv("IKAT_FUZZ_ROUNDS");
    const int rounds = asked ? std::atoi(asked) : 200000;
    Mutator mutator(corpus());
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
