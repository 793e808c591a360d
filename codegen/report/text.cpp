// SPDX-License-Identifier: Apache-2.0
// The report as text.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/report/report.hpp"

namespace ikat {
namespace {

using Text = fmt::memory_buffer;

void add(Text& out, fmt::string_view format, const auto&... arguments) {
    fmt::vformat_to(std::back_inserter(out), format, fmt::make_format_args(arguments...));
}

std::string by_pool(const std::array<std::uint32_t, 4>& counts) {
    std::string out;
    for (std::size_t pool = 0; pool < counts.size(); ++pool)
        out += fmt::format("{}{} {}", pool ? "  " : "", nvptx::pools[pool].name, counts[pool]);
    return out;
}

/// The last part of the path: the folder of the source is irrelevant for the kernel.
std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

void add_head(Text& out, const KernelReport& report) {
    add(out, "{} for {}, PTX {}.{}, {} instructions\n", report.name, report.target, report.version.major,
        report.version.minor, report.instructions);
    add(out, "registers     {}\n", by_pool(report.registers));
    if (report.live)
        add(out, "live at once  {}  ({} 32-bit registers)\n", by_pool(*report.live), report.words.value_or(0));
    add(out, "memory        shared {}, local {}, constant {}, parameters {} bytes\n", report.shared_bytes,
        report.local_bytes, report.constant_bytes, report.parameter_bytes);
    if (report.max_threads) add(out, "promised      at most {} threads per block\n", report.max_threads);
    if (report.min_blocks) add(out, "promised      {} blocks per multiprocessor\n", report.min_blocks);
    if (report.max_registers) add(out, "promised      at most {} registers\n", report.max_registers);
}

void add_mix(Text& out, const KernelReport& report) {
    add(out, "\ninstructions\n");
    for (const KernelReport::Count& count : report.mix) add(out, "{:>7}  {}\n", count.instructions, count.kind);
}

std::string occupancy_text(const ptx::Target& target, const Occupancy& occupancy) {
    return fmt::format("{:>9} {:>6} {:>5} of {:<2} {:>3}%  {:<13}", occupancy.registers, occupancy.blocks,
                       occupancy.warps, target.warps_per_multiprocessor,
                       100 * occupancy.warps / target.warps_per_multiprocessor, occupancy.limited_by);
}

/// Ours first, from the values live at once. ptxas needs more for addresses and to overlap loads, or fewer by
/// recomputing.
void add_occupancy(Text& out, const KernelReport& report) {
    add(out, "\noccupancy of a multiprocessor with {} threads per block", report.threads_per_block);
    if (report.dynamic_shared_bytes) add(out, ", {} bytes of dynamic shared memory", report.dynamic_shared_bytes);
    const bool known =
        std::ranges::any_of(report.occupancy, [](const auto& row) { return row.predicted || row.figures; });
    if (!known) return add(out, "\n   not known: the register use of PTX from other sources needs ptxas\n");
    add(out, "\n                 registers blocks    warps        limited by\n");
    for (const KernelReport::Row& row : report.occupancy) {
        if (row.predicted)
            add(out, "{:<7} predicted{}\n", row.target->name, occupancy_text(*row.target, *row.predicted));
        if (!row.figures) continue;
        const ptxas::Figures& figures = *row.figures;
        add(out, "{:<7} ptxas    {} shared {}, constant {}, stack {}, spilled {} bytes\n", row.target->name,
            occupancy_text(*row.target, *row.assembled), figures.shared_bytes, figures.constant_bytes,
            figures.stack_bytes, figures.spill_store_bytes + figures.spill_load_bytes);
    }
}

void add_lines(Text& out, const KernelReport& report) {
    if (report.lines.empty()) return;
    add(out, "\nlive at once, by line of the source\n");
    std::size_t width = 0;
    const auto place = [](const LinePressure& line) {
        return fmt::format("{}:{}", file_name(line.where.file), line.where.line);
    };
    for (const LinePressure& line : report.lines) width = std::max(width, place(line).size());
    for (const LinePressure& line : report.lines)
        add(out, "{:<{}}  {:>4} 32-bit  {}\n", place(line), width, line.words, by_pool(line.live));
}

/// Lines do not end in blanks.
std::string trimmed(const Text& text) {
    std::string out;
    for (char c : text) {
        if (c == '\n') out.erase(out.find_last_not_of(' ') + 1);
        out += c;
    }
    return out;
}

}  // namespace

std::string to_text(const KernelReport& report) {
    Text out;
    add_head(out, report);
    add_mix(out, report);
    add_occupancy(out, report);
    add_lines(out, report);
    return trimmed(out);
}

}  // namespace ikat
