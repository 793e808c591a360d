// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/emit/pressure.hpp"

#include <algorithm>
#include <map>

#include "codegen/nvptx/emit/allocation.hpp"

namespace ikat::nvptx {
namespace {

/// Predicates have separate registers.
std::uint32_t words(std::span<const std::uint32_t> live) { return live[1] + live[2] + 2 * live[3]; }

void raise(LinePressure& line, std::span<const std::uint32_t> live) {
    for (std::size_t pool = 0; pool < line.live.size(); ++pool) line.live[pool] = std::max(line.live[pool], live[pool]);
    line.words = std::max(line.words, words(live));
}

}  // namespace

SourcePressure pressure_of(const ir::Function& fn, const Registers& registers) {
    const auto table = regalloc::pressure(registers.problem);
    std::map<std::pair<std::string_view, std::uint32_t>, LinePressure> lines;
    SourcePressure out;
    for (ir::Block block : fn.blocks()) {
        for (const auto& live : table[index(block)]) out.words = std::max(out.words, words(live));
        const auto& instructions = fn[block].instructions;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            const Location& where = fn[instructions[i]].where;
            if (!where.known() || is_immediate(fn[instructions[i]].op)) continue;
            LinePressure& line = lines[{where.file, where.line}];
            line.where = {where.file, where.line, 0};
            for (std::size_t place : {i, i + 1}) raise(line, table[index(block)][place]);
        }
    }
    for (const auto& [place, line] : lines) out.lines.push_back(line);
    return out;
}

}  // namespace ikat::nvptx
