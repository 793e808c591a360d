// SPDX-License-Identifier: Apache-2.0
// Finds the line with the error in the log of the driver's compiler:
//     ptxas application ptx input, line 7; error   : Unknown symbol 'x'
#include <algorithm>
#include <charconv>

#include "runtime/cuda/device.hpp"

namespace ikat::runtime::cuda {
namespace {

/// The line of the PTX that a line of the log names, or 0.
std::uint32_t named_line(std::string_view text) {
    constexpr std::string_view mark = "line ";
    std::uint32_t line = 0;
    if (const auto at = text.find(mark); at != std::string_view::npos)
        std::from_chars(text.data() + at + mark.size(), text.data() + text.size(), line);
    return line;
}

/// The first line of the log that names a line of the PTX and mentions an error.
std::uint32_t first_bad_line(std::string_view log) {
    while (!log.empty()) {
        const auto end = std::min(log.find('\n'), log.size());
        const std::string_view text = log.substr(0, end);
        const bool is_error =
            text.find("error") != std::string_view::npos || text.find("fatal") != std::string_view::npos;
        if (const std::uint32_t line = named_line(text); is_error && line) return line;
        log.remove_prefix(std::min(end + 1, log.size()));
    }
    return 0;
}

std::string_view without_end(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.remove_suffix(1);
    return text;
}

}  // namespace

Error jit_error(const PtxText& ptx, const std::string& failure, const std::string& log) {
    Diagnostic diagnostic{.where = {.file = intern(ptx.name), .line = first_bad_line(log)},
                          .message = "the CUDA driver rejects this PTX: " + failure};
    if (diagnostic.where.known()) diagnostic.excerpt = excerpt(ptx.text, diagnostic.where);
    const std::uint32_t line = diagnostic.where.line;
    if (line && line < ptx.source_lines.size() && ptx.source_lines[line].known())
        diagnostic.notes.push_back({ptx.source_lines[line], "the PTX comes from this line of the kernel"});
    if (const std::string_view text = without_end(log); !text.empty())
        diagnostic.notes.push_back({{}, "the driver's log:\n" + std::string(text)});
    if (failure.find("UNSUPPORTED_PTX_VERSION") != std::string::npos)
        diagnostic.hint = "the driver is older than the PTX's .version: update it, or compile for an older target";
    return Error(std::move(diagnostic));
}

}  // namespace ikat::runtime::cuda
