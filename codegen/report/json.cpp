// SPDX-License-Identifier: Apache-2.0
// The report as JSON, for programs.
#include "codegen/report/json.hpp"

#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/report/report.hpp"

namespace ikat {
namespace {

void by_pool(Json& json, std::string_view key, const std::array<std::uint32_t, 4>& counts) {
    json.key(key), json.open('{');
    for (std::size_t pool = 0; pool < counts.size(); ++pool) json.number(nvptx::pools[pool].name, counts[pool]);
    json.close('}');
}

void occupancy(Json& json, std::string_view key, const Occupancy& value, const ptx::Target& target) {
    json.key(key), json.open('{');
    json.number("registers", value.registers);
    json.number("blocks", value.blocks);
    json.number("warps", value.warps);
    json.key("occupancy"), json.real(double(value.warps) / target.warps_per_multiprocessor);
    json.text("limited_by", value.limited_by);
    json.close('}');
}

void figures(Json& json, const ptxas::Figures& figures) {
    json.key("ptxas"), json.open('{');
    json.number("registers", figures.registers);
    json.number("barriers", figures.barriers);
    json.number("shared_bytes", figures.shared_bytes);
    json.number("constant_bytes", figures.constant_bytes);
    json.number("stack_bytes", figures.stack_bytes);
    json.number("spill_store_bytes", figures.spill_store_bytes);
    json.number("spill_load_bytes", figures.spill_load_bytes);
    json.close('}');
}

void row(Json& json, const KernelReport::Row& row) {
    json.open('{');
    json.text("target", row.target->name);
    if (row.predicted) occupancy(json, "predicted", *row.predicted, *row.target);
    if (row.assembled) occupancy(json, "assembled", *row.assembled, *row.target);
    if (row.figures) figures(json, *row.figures);
    json.close('}');
}

void line(Json& json, const LinePressure& line) {
    json.open('{');
    json.text("file", line.where.file);
    json.number("line", line.where.line);
    json.number("words", line.words);
    by_pool(json, "live", line.live);
    json.close('}');
}

void head(Json& json, const KernelReport& report) {
    json.text("name", report.name);
    json.text("target", report.target);
    json.text("version", fmt::format("{}.{}", report.version.major, report.version.minor));
    by_pool(json, "registers", report.registers);
    if (report.live) by_pool(json, "live", *report.live);
    if (report.words) json.number("words", *report.words);
    json.number("shared_bytes", report.shared_bytes);
    json.number("local_bytes", report.local_bytes);
    json.number("constant_bytes", report.constant_bytes);
    json.number("parameter_bytes", report.parameter_bytes);
    json.number("max_threads", report.max_threads);
    json.number("min_blocks", report.min_blocks);
    json.number("max_registers", report.max_registers);
    json.number("instructions", report.instructions);
}

}  // namespace

std::string to_json(const KernelReport& report, const std::function<void(Json&)>& more) {
    Json json;
    json.open('{');
    head(json, report);
    json.key("mix"), json.open('{');
    for (const KernelReport::Count& count : report.mix) json.number(count.kind, count.instructions);
    json.close('}');
    json.number("threads_per_block", report.threads_per_block);
    json.number("dynamic_shared_bytes", report.dynamic_shared_bytes);
    json.key("occupancy"), json.open('[');
    for (const KernelReport::Row& each : report.occupancy) row(json, each);
    json.close(']');
    json.key("lines"), json.open('[');
    for (const LinePressure& each : report.lines) line(json, each);
    json.close(']');
    if (more) more(json);
    json.close('}');
    return json.take();
}

}  // namespace ikat
