// SPDX-License-Identifier: Apache-2.0
// Mutated PTX, the same for the same seed: pieces of text are removed, duplicated or exchanged, tokens are inserted.
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fuzz/seeds.hpp"

namespace ikat::tests {

/// The PTX files of folders of the repository, sorted by name; for golden files, their input.
inline std::vector<std::string> corpus(std::initializer_list<const char*> areas) {
    std::vector<std::filesystem::path> paths;
    for (const char* area : areas)
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
    std::mt19937_64 random_{test::first_seed(20240607)};
};

/// Mutations that mostly keep the syntax: a word becomes another of its kind; a statement is removed, duplicated or
/// moved.
class WordMutator {
public:
    explicit WordMutator(std::vector<std::string> texts) {
        for (const std::string& text : texts) {
            texts_.push_back(split(text));
            for (const std::string& piece : texts_.back())
                if (const std::size_t kind = kind_of(piece); kind != other) words_[kind].push_back(piece);
        }
        for (const char* number :
             {"0", "1", "-1", "31", "32", "64", "255", "0x7fffffff", "0x80000000", "4294967296", "0xffffffffffffffff",
              "-9223372036854775808", "1000000000", "0f7FFFFFFF", "0f80000000"})
            words_[digit].push_back(number);
    }

    std::string next() {
        std::vector<std::string> text = texts_[below(texts_.size())];
        for (std::size_t n = 1 + below(3); n > 0; --n) mutate(text);
        std::string joined;
        for (const std::string& piece : text) joined += piece;
        return joined;
    }

private:
    enum Kind : std::size_t { percent, dot, digit, letter, other };

    static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }
    static std::size_t kind_of(const std::string& piece) {
        if (piece[0] == '%') return percent;
        if (piece[0] == '.') return dot;
        if (std::isdigit(static_cast<unsigned char>(piece[0]))) return digit;
        return is_word(piece[0]) ? letter : other;
    }

    /// Words, with their prefixes, and single characters between them.
    static std::vector<std::string> split(const std::string& text) {
        std::vector<std::string> pieces;
        for (std::size_t at = 0; at < text.size();) {
            std::size_t end = at + 1;
            if (is_word(text[at]) || text[at] == '%' || text[at] == '.')
                while (end < text.size() && is_word(text[end])) ++end;
            pieces.push_back(text.substr(at, end - at));
            at = end;
        }
        return pieces;
    }

    std::size_t below(std::size_t limit) { return limit ? random_() % limit : 0; }

    /// The pieces of the statement that starts after the ';' at or before `at`, including its own ';'.
    static std::pair<std::size_t, std::size_t> statement(const std::vector<std::string>& text, std::size_t at) {
        std::size_t first = at, last = at;
        while (first > 0 && text[first - 1] != ";" && text[first - 1] != "{" && text[first - 1] != "}") --first;
        while (last < text.size() && text[last] != ";" && text[last] != "{" && text[last] != "}") ++last;
        return {first, std::min(last + 1, text.size())};
    }

    void mutate(std::vector<std::string>& text) {
        const std::size_t at = below(text.size());
        const auto [first, last] = statement(text, at);
        const std::vector<std::string> copy(text.begin() + std::ptrdiff_t(first), text.begin() + std::ptrdiff_t(last));
        switch (below(8)) {
            case 0: text.erase(text.begin() + std::ptrdiff_t(first), text.begin() + std::ptrdiff_t(last)); break;
            case 1: text.insert(text.begin() + std::ptrdiff_t(first), copy.begin(), copy.end()); break;
            case 2: {
                const std::size_t end = statement(text, below(text.size())).second;
                text.insert(text.begin() + std::ptrdiff_t(end), copy.begin(), copy.end());
                break;
            }
            default: replace(text, at);
        }
    }

    void replace(std::vector<std::string>& text, std::size_t from) {
        for (std::size_t i = from; i < text.size(); ++i) {
            const std::size_t kind = kind_of(text[i]);
            if (kind == other) continue;
            text[i] = words_[kind][below(words_[kind].size())];
            return;
        }
    }

    std::vector<std::vector<std::string>> texts_;
    std::vector<std::string> words_[4];
    std::mt19937_64 random_{test::first_seed(20240608)};
};

}  // namespace ikat::tests
