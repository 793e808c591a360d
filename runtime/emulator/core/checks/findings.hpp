// SPDX-License-Identifier: Apache-2.0
// Findings that a launch outlives: of each code the first at each instruction, in the block with the lowest number.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "codegen/support/diagnostic.hpp"

namespace ikat::emulator {

class Findings {
public:
    /// Whether this block or an earlier one has found the code at a line.
    bool has(std::string_view code, std::uint32_t line, std::uint64_t block) const;
    void add(std::uint64_t block, Diagnostic diagnostic);
    /// Calls f for each of these blocks and those before, in the order of lines.
    void each(std::uint64_t last, const std::function<void(const Diagnostic&)>& f) const;

private:
    struct Found {
        std::uint64_t block;
        Diagnostic diagnostic;
    };
    mutable std::mutex mutex_;
    std::map<std::pair<std::uint32_t, std::string_view>, Found> found_;  // by line and code
};

}  // namespace ikat::emulator
