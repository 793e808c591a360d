// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/text/parse/source.hpp"

#include <algorithm>
#include <cstring>

#include "codegen/support/diagnostic.hpp"

namespace ikat::ptx {

Source::Source(std::string_view text, std::string_view file)
    : text_(text), file_(intern(file)), last_end_(text.data()), counted_(text.data()), line_start_(text.data()) {}

const char* Source::skip_blanks(const char* place) {
    for (;;) {
        while (place != end() && characters::is(*place, characters::Blank)) ++place;
        if (end() - place < 2 || *place != '/') return place;
        const std::string_view rest(place, end());
        if (rest[1] == '/') {
            place += std::min(rest.find('\n'), rest.size());
        } else if (rest[1] == '*') {
            const std::size_t close = rest.find("*/", 2);
            if (close == rest.npos) fail(place, "this comment does not end", "close it with */");
            place += close + 2;
        } else {
            return place;
        }
    }
}

std::string_view Source::comment_after() const {
    std::string_view line(last_end_, end());
    line = line.substr(0, line.find('\n'));
    const auto skip = [&](std::string_view characters) {
        line.remove_prefix(std::min(line.find_first_not_of(characters), line.size()));
    };
    skip("; \t");
    if (!line.starts_with("//")) return {};
    skip("/ \t");
    return line;
}

bool Source::on_new_line(const char* place) const {
    return place > last_end_ && std::memchr(last_end_, '\n', std::size_t(place - last_end_)) != nullptr;
}

Position Source::position(const char* place) {
    if (place < counted_) {
        counted_ = line_start_ = begin();
        line_ = 1;
    }
    while (const void* found = std::memchr(counted_, '\n', std::size_t(place - counted_))) {
        counted_ = line_start_ = static_cast<const char*>(found) + 1;
        ++line_;
    }
    counted_ = place;
    return {line_, std::uint32_t(place - line_start_) + 1};
}

/// The token at place, shortened for a message.
std::string Source::found(const char* place) const {
    if (place == end()) return "the end of the text";
    const char* stop = place + 1;
    const bool is_word = *place == '.' || characters::is(*place, characters::Start | characters::Follow);
    while (is_word && stop != end() && stop - place < 32 && characters::is(*stop, characters::Follow)) ++stop;
    const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (!is_printable(*place)) return "an unprintable character";
    return "'" + std::string(place, stop) + "'";
}

void Source::fail_expected(const char* place, std::string expected, std::string hint) {
    const bool is_mark = expected.starts_with('\'');
    std::string message = "expected " + std::move(expected);
    if (is_mark && on_new_line(place) && place != end()) fail(last_end_, std::move(message), std::move(hint));
    message += ", found " + found(place);
    fail(place == end() ? last_end_ : place, std::move(message), std::move(hint));
}

void Source::fail(const char* place, std::string message, std::string hint) {
    const auto [line, column] = position(place);
    const Location where{file_, line, column};
    throw Error(Diagnostic{
        .where = where, .message = std::move(message), .hint = std::move(hint), .excerpt = excerpt(text_, where)});
}

}  // namespace ikat::ptx
