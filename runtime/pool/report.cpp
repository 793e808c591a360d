// SPDX-License-Identifier: Apache-2.0
#include "runtime/pool/report.hpp"

#include <fmt/format.h>

#include "codegen/report/json.hpp"

namespace ikat::runtime {
namespace {

using State = PoolReport::State;

const char* name_of(State state) {
    return state == State::Used ? "used" : state == State::Waiting ? "waiting" : "free";
}

std::string size_of(const PoolReport::Segment& segment) {
    return fmt::format("segment {}, {} bytes", segment.number, segment.bytes);
}

void add_segments(Json& json, const PoolReport& report) {
    json.key("segments"), json.open('[');
    for (const PoolReport::Segment& segment : report.segments) {
        json.open('{');
        json.number("number", segment.number);
        json.number("bytes", segment.bytes);
        json.key("blocks"), json.open('[');
        for (const PoolReport::Block& block : segment.blocks) {
            json.open('{');
            json.number("offset", block.offset);
            json.number("bytes", block.bytes);
            json.text("state", name_of(block.state));
            json.close('}');
        }
        json.close(']');
        json.close('}');
    }
    json.close(']');
}

constexpr std::uint64_t cells = 64;  // of a line of the map

}  // namespace

std::string to_text(const PoolReport& report) {
    std::string out = fmt::format(
        "pool '{}', in bytes\n"
        "   used          {:>14}   at most {} so far\n"
        "   reserved      {:>14}   in {} segment{}, {}\n"
        "   free          {:>14}   the largest block has {}\n"
        "   fragmentation {:>13.1f}%\n",
        report.kind, report.used, report.peak_used, report.reserved, report.segments.size(),
        report.segments.size() == 1 ? "" : "s",
        report.limit == no_limit ? "no limit" : fmt::format("limit {}", report.limit), report.free(),
        report.largest_free, 100 * report.fragmentation());
    if (report.classes.empty()) return out;
    out += "   blocks from           used      free\n";
    for (const PoolReport::SizeClass& each : report.classes)
        out += fmt::format("   {:>14}   {:>7}   {:>7}\n", each.bytes, each.used, each.free);
    return out;
}

std::string to_json(const PoolReport& report) {
    Json json;
    json.open('{');
    json.text("kind", report.kind);
    json.number("used", report.used);
    json.number("reserved", report.reserved);
    json.number("peak_used", report.peak_used);
    json.number("free", report.free());
    json.number("largest_free", report.largest_free);
    json.key("fragmentation"), json.real(report.fragmentation());
    if (report.limit != no_limit) json.number("limit", report.limit);
    json.key("classes"), json.open('[');
    for (const PoolReport::SizeClass& each : report.classes) {
        json.open('{');
        json.number("bytes", each.bytes);
        json.number("used", each.used);
        json.number("free", each.free);
        json.close('}');
    }
    json.close(']');
    add_segments(json, report);
    json.close('}');
    return json.take();
}

std::string map_as_text(const PoolReport& report) {
    std::string out;
    for (const PoolReport::Segment& segment : report.segments) {
        std::string line(cells, '.');
        const std::uint64_t cell = (segment.bytes + cells - 1) / cells;
        for (const PoolReport::Block& block : segment.blocks) {
            if (block.state == State::Free) continue;
            for (std::uint64_t i = block.offset / cell; i <= (block.offset + block.bytes - 1) / cell; ++i)
                if (line[i] != '#') line[i] = block.state == State::Used ? '#' : '+';
        }
        out += fmt::format("{}\n|{}|\n", size_of(segment), line);
    }
    return out;
}

std::string map_as_svg(const PoolReport& report) {
    constexpr std::uint64_t width = 1024, row = 44;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n",
        width + 20, row * report.segments.size() + 40);
    out += fmt::format(
        "<text x=\"10\" y=\"20\">{} of {} bytes used: blue; waiting for a stream: grey; free: "
        "white</text>\n",
        report.used, report.reserved);
    std::uint64_t y = 50;
    for (const PoolReport::Segment& segment : report.segments) {
        out += fmt::format("<text x=\"10\" y=\"{}\">{}</text>\n", y, size_of(segment));
        const double scale = double(width) / double(segment.bytes);
        for (const PoolReport::Block& block : segment.blocks)
            out += fmt::format(
                "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"20\" fill=\"{}\" stroke=\"black\" "
                "stroke-width=\"0.25\"><title>{}: {} bytes from {} on</title></rect>\n",
                10 + double(block.offset) * scale, y + 4, double(block.bytes) * scale,
                block.state == State::Used      ? "#4a90d9"
                : block.state == State::Waiting ? "#c0c0c0"
                                                : "white",
                name_of(block.state), block.bytes, block.offset);
        y += row;
    }
    return out + "</svg>\n";
}

}  // namespace ikat::runtime
