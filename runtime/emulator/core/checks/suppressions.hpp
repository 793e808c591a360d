// SPDX-License-Identifier: Apache-2.0
// Findings that are known and stay: a file with a line for each.
//
//     # class   file:line       why
//     races     scan.ptx:41     the flag is read again after the fence
// A file's name matches paths that end in it.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/core/checks/checks.hpp"

namespace ikat::emulator {

class Suppressions {
public:
    /// Throws Error, with the file's name and the line, for what is none.
    Suppressions(std::string_view text, std::string_view name);

    /// Whether a finding of a class at a place is suppressed; then its line has been used.
    bool has(Check check, const Location& where);
    /// Errors about lines that have suppressed nothing.
    std::vector<Diagnostic> unused() const;

private:
    struct Line {
        Check check = Check::Always;
        std::string file;
        std::uint32_t line = 0, own = 0;  // own: in the file of suppressions
        std::string text{};
        std::atomic<bool> is_used = false;
    };
    const char* name_;
    std::deque<Line> lines_;
};

/// Those of a device, for what outlives it.
struct SharedSuppressions {
    std::shared_ptr<Suppressions> file{};
};

}  // namespace ikat::emulator
