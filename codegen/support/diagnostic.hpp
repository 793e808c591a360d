// SPDX-License-Identifier: Apache-2.0
// Errors, and the distinction between the user's and ours.
//
// - The user's mistake (a kernel, an argument, a PTX or IR file): a Diagnostic with a location and a hint, thrown as
//   Error.
// - Our mistake: IKAT_ASSERT, which prints the condition and details (usually the IR) and aborts.
#pragma once
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ikat {

/// A location in the user's text: C++ source, IR or PTX. Lines and columns count from 1; 0 means unknown.
/// `file` is interned (see intern) or a literal: it is never freed, so a Location is a plain value.
struct Location {
    const char* file = "";
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    constexpr bool known() const { return line != 0; }
    bool operator==(const Location& other) const {
        return line == other.line && column == other.column && std::string_view(file) == other.file;
    }
    /// Where the compiler says that a call is.
    static constexpr Location of(const std::source_location& where) {
        return {where.file_name(), where.line(), where.column()};
    }
};

/// A copy of text that lives as long as the program; equal texts share one copy. Thread-safe.
const char* intern(std::string_view text);

/// An error ends what is being done; a warning and a note do not.
enum class Severity : std::uint8_t { Error, Warning, Note };

/// One finding. `message` is a sentence without a full stop; `hint` says what to do about it; `notes` point at other
/// locations involved ("the barrier is here"); `excerpt` is the offending source line with a caret, if known.
struct Diagnostic {
    struct Note {
        Location where{};
        std::string message{};
    };

    Severity severity = Severity::Error;
    Location where{};
    std::string message{};
    std::string hint{};
    std::vector<Note> notes{};
    std::string excerpt{};
    const char* code = "";  // of a finding of the emulator: for programs, not part of the text (docs/emulator.md)
};

/// "saxpy.cpp:12:5: error: message" then excerpt, notes and hint, each on its own line, without a trailing newline.
std::string to_string(const Diagnostic& diagnostic);
std::string to_string(const Location& where);

/// The excerpt of a Diagnostic: line `where.line` of text and below it a caret under `where.column`.
std::string excerpt(std::string_view text, const Location& where);

/// Thrown for all user mistakes. what() is all diagnostics, rendered.
class Error : public std::runtime_error {
public:
    explicit Error(Diagnostic diagnostic);
    explicit Error(std::vector<Diagnostic> diagnostics);
    /// An error without a location in a file: a wrong argument, a missing file.
    Error(std::string message, std::string hint);
    /// The same with a location for what has none.
    Error located(const Location& where) const;

    const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

private:
    std::vector<Diagnostic> diagnostics_;
};

/// Ends the program; for mistakes of ikat itself. Call it by IKAT_ASSERT.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, const std::string& detail);

}  // namespace ikat

/// Checked in every build. The second argument (a std::string, usually the IR) is evaluated only on failure.
#define IKAT_ASSERT(condition, detail) \
    ((condition) ? void() : ::ikat::assertion_failed(#condition, __FILE__, __LINE__, (detail)))
