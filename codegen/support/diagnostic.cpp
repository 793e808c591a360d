// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/diagnostic.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

namespace ikat {
namespace {

std::string_view severity_text(Severity severity) {
    switch (severity) {
        case Severity::Error: return "error";
        case Severity::Warning: return "warning";
        case Severity::Note: return "note";
    }
    return "";
}

/// User text may contain anything; control characters are shown as \x1b.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if ((code >= 0x20 && code != 0x7f) || c == '\n' || c == '\t') {
            out += c;
        } else {
            constexpr std::string_view digits = "0123456789abcdef";
            out += {'\\', 'x', digits[code >> 4], digits[code & 15]};
        }
    }
    return out;
}

/// Shortens a long part of a message by leaving out its middle.
std::string shortened(const std::string& text) {
    constexpr std::size_t max_chars = 4000;
    if (text.size() <= max_chars) return text;
    return text.substr(0, max_chars / 2) + " ... " + text.substr(text.size() - max_chars / 2);
}

std::string prefixed(const Location& where, std::string_view kind, const std::string& message) {
    std::string place = to_string(where);
    if (!place.empty()) place += ": ";
    return place + std::string(kind) + ": " + shortened(message);
}

std::string render(const std::vector<Diagnostic>& diagnostics) {
    constexpr std::size_t max_shown = 20;
    std::string out;
    for (std::size_t i = 0; i < std::min(diagnostics.size(), max_shown); ++i) {
        if (!out.empty()) out += '\n';
        out += to_string(diagnostics[i]);
    }
    if (diagnostics.size() > max_shown) out += "\n... and " + std::to_string(diagnostics.size() - max_shown) + " more";
    return out;
}

}  // namespace

const char* intern(std::string_view text) {
    static std::mutex mutex;
    static std::set<std::string, std::less<>> texts;  // nodes never move
    const std::lock_guard lock(mutex);
    if (auto found = texts.find(text); found != texts.end()) return found->c_str();
    return texts.emplace(text).first->c_str();
}

std::string to_string(const Location& where) {
    std::string out = where.file;
    if (where.line) out += ':' + std::to_string(where.line);
    if (where.line && where.column) out += ':' + std::to_string(where.column);
    return out;
}

std::string to_string(const Diagnostic& diagnostic) {
    std::string out = prefixed(diagnostic.where, severity_text(diagnostic.severity), diagnostic.message);
    if (!diagnostic.excerpt.empty()) out += '\n' + shortened(diagnostic.excerpt);
    for (const Diagnostic::Note& note : diagnostic.notes) out += '\n' + prefixed(note.where, "note", note.message);
    if (!diagnostic.hint.empty()) out += "\n  hint: " + shortened(diagnostic.hint);
    return escaped(out);
}

std::string excerpt(std::string_view text, const Location& where) {
    for (std::uint32_t line = 1; line < where.line; ++line) {
        const auto end = text.find('\n');
        if (end == std::string_view::npos) return {};
        text.remove_prefix(end + 1);
    }
    constexpr std::size_t widest = 160;  // real PTX has lines of half a million characters
    const std::string_view full = text.substr(0, text.find('\n'));
    const std::size_t column = where.column ? std::min<std::size_t>(where.column - 1, full.size()) : 0;
    const std::size_t first = column > widest / 2 ? column - widest / 2 : 0;
    const std::string_view shown = full.substr(first, widest);
    std::string caret;
    for (std::size_t i = first; i < column; ++i) caret += full[i] == '\t' ? '\t' : ' ';
    return "    " + std::string(shown) + "\n    " + caret + '^';
}

Error::Error(Diagnostic diagnostic) : Error(std::vector{std::move(diagnostic)}) {}
Error::Error(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(render(diagnostics)), diagnostics_(std::move(diagnostics)) {}
Error::Error(std::string message, std::string hint)
    : Error(Diagnostic{.message = std::move(message), .hint = std::move(hint)}) {}
Error Error::located(const Location& where) const {
    std::vector<Diagnostic> out = diagnostics_;
    for (Diagnostic& diagnostic : out)
        if (diagnostic.where == Location{}) diagnostic.where = where;
    return Error(std::move(out));
}

void assertion_failed(const char* condition, const char* file, int line, const std::string& detail) {
    std::fprintf(stderr, "%s:%d: ikat internal error: %s does not hold\n%s\n", file, line, condition, detail.c_str());
    std::abort();
}

}  // namespace ikat
