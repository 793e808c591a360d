// SPDX-License-Identifier: Apache-2.0
// The parser's input: character classes, positions, and error messages. Independent of PTX's structure and of X3.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/ptx/text/module.hpp"

namespace ikat::ptx {

namespace characters {

enum : std::uint8_t { Start = 1, Follow = 2, Blank = 4, Digit = 8, HexDigit = 16 };

/// The class of each character. Identifiers: a letter or one of _ $ %, then letters, digits, _ and $.
inline constexpr std::array<std::uint8_t, 256> classes = [] {
    std::array<std::uint8_t, 256> table{};
    for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 32] = Start | Follow;
    for (int c = '0'; c <= '9'; ++c) table[c] = Follow | Digit | HexDigit;
    for (int c = 'a'; c <= 'f'; ++c) table[c] |= HexDigit, table[c - 32] |= HexDigit;
    table['_'] = table['$'] = Start | Follow;
    table['%'] = Start;
    for (char c : {' ', '\t', '\r', '\n', '\f', '\v'}) table[std::uint8_t(c)] = Blank;
    return table;
}();

inline bool is(char c, std::uint8_t wanted) { return classes[std::uint8_t(c)] & wanted; }

}  // namespace characters

class Source {
public:
    Source(std::string_view text, std::string_view file);

    const char* begin() const { return text_.data(); }
    const char* end() const { return text_.data() + text_.size(); }
    /// The end of the last token.
    const char* last_end() const { return last_end_; }
    const char* file() const { return file_; }
    bool at(const char* place, char c) const { return place != end() && *place == c; }

    /// Ends a token at `place` and returns where the next one starts, past blanks and comments.
    const char* finish(const char* place) {
        last_end_ = place;
        if (place != end() && !characters::is(*place, characters::Blank) && *place != '/') return place;
        return skip_blanks(place);
    }

    /// The comment of the form `// text` after the last token and its semicolon, without leading blanks; or nothing.
    std::string_view comment_after() const;

    /// Whether a line ended between the last token and `place`, where the next one starts.
    bool on_new_line(const char* place) const;

    /// Cheap for ascending places.
    Position position(const char* place);

    /// "expected `expected`, found 'token'". A quoted mark such as "';'" that is missing at the end of a line is
    /// reported there, not before the first token of the next line.
    [[noreturn]] void fail_expected(const char* place, std::string expected, std::string hint);
    [[noreturn]] void fail(const char* place, std::string message, std::string hint);

private:
    const char* skip_blanks(const char* place);
    std::string found(const char* place) const;

    std::string_view text_;
    const char* file_;
    const char* last_end_;  // of the last token
    const char* counted_;   // the line and column of this place are known
    const char* line_start_;
    std::uint32_t line_ = 1;
};

}  // namespace ikat::ptx
