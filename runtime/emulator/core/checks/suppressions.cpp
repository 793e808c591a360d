// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/checks/suppressions.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ikat::emulator {

namespace {

/// The next word, without the spaces around it.
std::string_view take_word(std::string_view& text) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r")));
    const std::string_view word = text.substr(0, text.find_first_of(" \t\r"));
    text.remove_prefix(word.size());
    return word;
}

}  // namespace

Suppressions::Suppressions(std::string_view text, std::string_view name) : name_(intern(name)) {
    for (std::uint32_t own = 1; !text.empty(); ++own) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const std::string_view whole = line;
        const std::string_view word = take_word(line);
        if (word.empty() || word.starts_with('#')) continue;
        const auto wrong = [&](std::string message) {
            return Error(Diagnostic{.where = {name_, own, 1},
                                    .message = std::move(message),
                                    .hint = "a line is CLASS FILE:LINE REASON, such as `races scan.ptx:41 the flag is "
                                            "read again`; `ikat run --list-checks` has the classes"});
        };
        const Check check = check_named(word);
        if (check == Check::Always) throw wrong(fmt::format("there is no class '{}'", word));
        const std::string_view place = take_word(line);
        const std::size_t colon = place.rfind(':');
        std::uint32_t number = 0;
        const std::string_view digits = colon == place.npos ? std::string_view() : place.substr(colon + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (colon == 0 || digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || !number)
            throw wrong(fmt::format("'{}' is not FILE:LINE", place));
        if (take_word(line).empty()) throw wrong("there is no reason");
        Line& added = lines_.emplace_back();
        added.check = check;
        added.file = place.substr(0, colon);
        added.line = number;
        added.own = own;
        added.text = whole;
    }
}

bool Suppressions::has(Check check, const Location& where) {
    const std::string_view path = where.file;
    bool is_found = false;
    for (Line& each : lines_) {
        if (each.check != check || each.line != where.line || !path.ends_with(each.file)) continue;
        const std::size_t before = path.size() - each.file.size();
        if (before > 0 && path[before - 1] != '/') continue;
        each.is_used = is_found = true;
    }
    return is_found;
}

std::vector<Diagnostic> Suppressions::unused() const {
    std::vector<Diagnostic> out;
    for (const Line& each : lines_)
        if (!each.is_used)
            out.push_back({.severity = Severity::Warning,
                           .where = {name_, each.own, 1},
                           .message = fmt::format("nothing was found that this suppresses: {}", each.text),
                           .hint = "remove the line, or mend its class and place"});
    return out;
}

}  // namespace ikat::emulator
