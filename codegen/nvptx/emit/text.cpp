// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codegen/nvptx/emit/emit.hpp"

namespace ikat::nvptx {
namespace {

/// Converts source locations by instruction to source locations by PTX line.
std::vector<Location> by_line(const std::vector<Location>& places, const std::vector<std::uint32_t>& lines) {
    std::vector<Location> out(lines.empty() ? 1 : lines.back() + 1);
    for (std::size_t i = 0; i < lines.size(); ++i) out[lines[i]] = places[i];
    return out;
}

/// ... and of the kernel's arrays, at the lines of their declarations.
void add_declarations(std::string_view ptx, const std::vector<ir::Symbol>& symbols, std::vector<Location>& lines) {
    std::size_t line = 1;
    auto left = std::ranges::count_if(
        symbols, [](const ir::Symbol& it) { return it.space == ir::Space::Shared || it.space == ir::Space::Local; });
    for (std::size_t end; left > 0 && line < lines.size() && (end = ptx.find('\n')) != ptx.npos;
         ++line, ptx.remove_prefix(end + 1)) {
        std::string_view text = ptx.substr(0, end);
        text = text.substr(0, text.find('['));
        if (!text.contains(".shared ") && !text.contains(".local ")) continue;
        const auto found = std::ranges::find(symbols, text.substr(text.rfind(' ') + 1), &ir::Symbol::name);
        if (found != symbols.end()) lines[line] = found->where, --left;
    }
}

}  // namespace

TargetText emit_text(const ir::Module& module, std::span<const Registers> registers, const ptx::Target& target,
                     bool line_info) {
    const Emitted emitted = emit(module, registers, target, line_info);
    std::vector<std::vector<std::uint32_t>> lines;
    TargetText out{.text = ptx::print(emitted.module, lines), .source_lines = by_line(emitted.places, lines.back())};
    add_declarations(out.text, module.functions.back().symbols, out.source_lines);
    return out;
}

}  // namespace ikat::nvptx
