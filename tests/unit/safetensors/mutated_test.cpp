// SPDX-License-Identifier: Apache-2.0
// Files that were changed at random, the same for the same seed, are read or refused. Most changes are to the header's
// text, whose length is then that of the new text.
#include <random>

#include "tests/catch.hpp"
#include "tests/fuzz/safetensors.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/unit/safetensors/files.hpp"

namespace ikat::tests {
namespace safetensors_mutated {
namespace {

class Mutator {
public:
    explicit Mutator(std::uint32_t seed) : random_(seed) {}

    std::string next(std::string file) {
        if (below(4) == 0) {
            for (std::size_t n = 1 + below(3); n > 0; --n) change_bytes(file);
            return file;
        }
        std::uint64_t length = 0;
        std::memcpy(&length, file.data(), 8);
        std::string header = file.substr(8, length);
        for (std::size_t n = 1 + below(3); n > 0; --n) change_words(header);
        return tensor_file(header, 0) + file.substr(8 + length);
    }

private:
    std::size_t below(std::size_t limit) { return limit ? random_() % limit : 0; }

    void change_bytes(std::string& text) {
        const std::size_t at = below(text.size() + 1), length = std::min(below(12), text.size() - at);
        switch (below(4)) {
            case 0: text.erase(at, length); break;
            case 1: text.insert(at, 1, char(below(256))); break;
            case 2: text.resize(at); break;
            default:
                if (at < text.size()) text[at] = char(text[at] ^ (1 << below(8)));
        }
    }
    /// The word at or behind a place: a number, or what is between quotes or commas.
    std::pair<std::size_t, std::size_t> word(const std::string& text) {
        constexpr const char* between = "\"{}[]:,";
        const std::size_t first = std::min(text.find_first_not_of(between, below(text.size())), text.size());
        return {first, std::min(text.find_first_of(between, first), text.size()) - first};
    }
    void change_words(std::string& text) {
        static constexpr const char* words[] = {"0",
                                                "1",
                                                "2",
                                                "8",
                                                "32",
                                                "36",
                                                "-1",
                                                "1.5",
                                                "1e3",
                                                "18446744073709551615",
                                                "18446744073709551616",
                                                "4294967296",
                                                "F32",
                                                "F16",
                                                "U8",
                                                "I64",
                                                "BOOL",
                                                "F4",
                                                "dtype",
                                                "shape",
                                                "data_offsets",
                                                "__metadata__",
                                                "n",
                                                "a.weight",
                                                "null",
                                                "true",
                                                "\\u0000",
                                                "\\ud800",
                                                "{",
                                                "}",
                                                "[",
                                                "]",
                                                ",",
                                                ":",
                                                "\"",
                                                "[]",
                                                "{}",
                                                "\xff",
                                                " "};
        const auto [at, length] = word(text);
        const auto [other, size] = word(text);
        switch (below(6)) {
            case 0: text.erase(at, length); break;
            case 1: text.insert(at, words[below(std::size(words))]); break;
            case 2: text.replace(at, length, text.substr(other, size)); break;
            case 3: change_bytes(text); break;
            default: text.replace(at, length, words[below(std::size(words))]);
        }
    }

    std::mt19937 random_;
};

TEST_CASE("safetensors: files that were changed are read or refused") {
    const std::string file = file_of_python();
    const std::uint32_t first = test::first_seed(), count = test::seed_count(6000);
    std::uint32_t read = 0;
    for (std::uint32_t seed = first; seed < first + count; ++seed) {
        UNSCOPED_INFO("seed " << seed);
        const std::string changed = Mutator(seed).next(file);
        read += holds_tensors(std::as_bytes(std::span(changed)));
    }
    INFO(read);
    if (count >= 1000) CHECK((read > count / 100 && read < count / 2));  // both are tested
}

}  // namespace
}  // namespace safetensors_mutated
}  // namespace ikat::tests
