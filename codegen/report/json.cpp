// SPDX-License-Identifier: Apache-2.0
// The report as programs read it.
#include <fmt/format.h>

#include "codegen/ptx/allocation.hpp"
#include "codegen/report/report.hpp"

namespace ikat {
namespace {

/// Writes one value, indented; commas come by themselves.
class Json {
public:
    void open(char bracket) {
        begin();
        out_ += bracket;
        first_ = true;
        ++depth_;
    }
    void close(char bracket) {
        --depth_;
        if (!first_) new_line();
        out_ += bracket;
        first_ = false;
    }
    void key(std::string_view name) {
        begin();
        out_ += fmt::format("\"{}\": ", name);
        after_key_ = true;
    }
    void number(std::uint64_t value) { begin(), out_ += std::to_string(value); }
    void real(double value) { begin(), out_ += fmt::format("{:.4f}", value); }
    void text(std::string_view value) {
        begin();
        out_ += '"';
        for (char c : value) {
            if (c == '"' || c == '\\') out_ += '\\';
            if (static_cast<unsigned char>(c) < ' ')
                out_ += fmt::format("\\u{:04x}", unsigned(c));
            else
                out_ += c;
        }
        out_ += '"';
    }
    std::string take() { return std::move(out_) + "\n"; }

private:
    void begin() {
        if (after_key_) {
            after_key_ = false;
            return;
        }
        if (depth_ == 0) return;
        if (!first_) out_ += ',';
        first_ = false;
        new_line();
    }
    void new_line() { (out_ += '\n').append(2 * depth_, ' '); }

    std::string out_;
    std::size_t depth_ = 0;
    bool first_ = true, after_key_ = false;
};

void number(Json& json, std::string_view key, std::uint64_t value) { json.key(key), json.number(value); }
void text(Json& json, std::string_view key, std::string_view value) { json.key(key), json.text(value); }

void by_pool(Json& json, std::string_view key, const std::array<std::uint32_t, 4>& counts) {
    json.key(key), json.open('{');
    for (std::size_t pool = 0; pool < counts.size(); ++pool) number(json, nvptx::pools[pool].name, counts[pool]);
    json.close('}');
}

void occupancy(Json& json, std::string_view key, const Occupancy& value, const nvptx::Target& target) {
    json.key(key), json.open('{');
    number(json, "registers", value.registers);
    number(json, "blocks", value.blocks);
    number(json, "warps", value.warps);
    json.key("occupancy"), json.real(double(value.warps) / target.warps_per_multiprocessor);
    text(json, "limited_by", value.limited_by);
    json.close('}');
}

void figures(Json& json, const ptxas::Figures& figures) {
    json.key("ptxas"), json.open('{');
    number(json, "registers", figures.registers);
    number(json, "barriers", figures.barriers);
    number(json, "shared_bytes", figures.shared_bytes);
    number(json, "constant_bytes", figures.constant_bytes);
    number(json, "stack_bytes", figures.stack_bytes);
    number(json, "spill_store_bytes", figures.spill_store_bytes);
    number(json, "spill_load_bytes", figures.spill_load_bytes);
    json.close('}');
}

void row(Json& json, const KernelReport::Row& row) {
    json.open('{');
    text(json, "target", row.target->name);
    if (row.predicted) occupancy(json, "predicted", *row.predicted, *row.target);
    if (row.assembled) occupancy(json, "assembled", *row.assembled, *row.target);
    if (row.figures) figures(json, *row.figures);
    json.close('}');
}

void line(Json& json, const nvptx::LinePressure& line) {
    json.open('{');
    text(json, "file", line.where.file);
    number(json, "line", line.where.line);
    number(json, "words", line.words);
    by_pool(json, "live", line.live);
    json.close('}');
}

void head(Json& json, const KernelReport& report) {
    text(json, "name", report.name);
    text(json, "target", report.target);
    text(json, "version", fmt::format("{}.{}", report.version.major, report.version.minor));
    by_pool(json, "registers", report.registers);
    if (report.live) by_pool(json, "live", *report.live);
    if (report.words) number(json, "words", *report.words);
    number(json, "shared_bytes", report.shared_bytes);
    number(json, "local_bytes", report.local_bytes);
    number(json, "constant_bytes", report.constant_bytes);
    number(json, "parameter_bytes", report.parameter_bytes);
    number(json, "max_threads", report.max_threads);
    number(json, "min_blocks", report.min_blocks);
    number(json, "max_registers", report.max_registers);
    number(json, "instructions", report.instructions);
}

}  // namespace

std::string to_json(const KernelReport& report) {
    Json json;
    json.open('{');
    head(json, report);
    json.key("mix"), json.open('{');
    for (const KernelReport::Count& count : report.mix) number(json, count.kind, count.instructions);
    json.close('}');
    number(json, "threads_per_block", report.threads_per_block);
    number(json, "dynamic_shared_bytes", report.dynamic_shared_bytes);
    json.key("occupancy"), json.open('[');
    for (const KernelReport::Row& each : report.occupancy) row(json, each);
    json.close(']');
    json.key("lines"), json.open('[');
    for (const nvptx::LinePressure& each : report.lines) line(json, each);
    json.close(']');
    json.close('}');
    return json.take();
}

}  // namespace ikat
