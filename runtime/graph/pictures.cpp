// SPDX-License-Identifier: Apache-2.0
// A graph as text and as a picture.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "codegen/kernel/kernel_info.hpp"
#include "runtime/graph/graph.hpp"
#include "runtime/graph/recording.hpp"

namespace ikat::runtime {
namespace {

struct Names {
    std::string_view kind;
    std::string name;  // of a kernel or a buffer
    std::string detail;
};

std::string extents(const Dim3& of) {
    if (of.z != 1) return fmt::format("{}x{}x{}", of.x, of.y, of.z);
    return of.y != 1 ? fmt::format("{}x{}", of.x, of.y) : fmt::format("{}", of.x);
}

std::string memory(const node::Copy::Place& place) {
    if (!place.part.memory) return "host";
    return place.part.memory->name().empty() ? "device" : place.part.memory->name();
}

Names names_of(const Node& work) {
    struct All {
        Names operator()(const node::Launch& launch) const {
            return {"kernel", launch.kernel ? launch.info()->name : launch.entry,
                    fmt::format("{} blocks of {}", extents(launch.grid.blocks), extents(launch.grid.threads))};
        }
        Names operator()(const node::Copy& copy) const {
            return {"copy", fmt::format("{} to {}", memory(copy.from), memory(copy.to)),
                    fmt::format("{} bytes", copy.bytes * copy.rows * copy.planes)};
        }
        Names operator()(const node::Fill& fill) const {
            return {"fill", fill.to.memory->name(), fmt::format("{} bytes", fill.to.bytes)};
        }
        Names operator()(const node::Allocate& allocation) const {
            return {"allocate", allocation.memory->name(), fmt::format("{} bytes", allocation.memory->bytes())};
        }
        Names operator()(const node::Free& end) const {
            return {"free", end.memory->name(), fmt::format("{} bytes", end.memory->bytes())};
        }
        Names operator()(const node::HostCall&) const { return {"host", "call of the program", {}}; }
        // No nodes of a graph:
        Names operator()(const node::Record&) const { return {"record", {}, {}}; }
        Names operator()(const node::Wait&) const { return {"wait", {}, {}}; }
        Names operator()(const node::Graph&) const { return {"graph", {}, {}}; }
    };
    return std::visit(All{}, work.work);
}

Names names_of(const GraphContents::Entry& entry) {
    const GraphContents* const body = entry.body();
    if (!body) return names_of(entry.work);
    const std::size_t count = body->entries.size();
    return {entry.control->is_loop ? "while" : "if", entry.control->condition.memory->name(),
            fmt::format("a body of {} node{}", count, count == 1 ? "" : "s")};
}

/// For a string in quotes, of JSON or of Graphviz.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20)
            out += fmt::format("\\u{:04x}", unsigned(static_cast<unsigned char>(c)));
        else
            out += c;
    }
    return out;
}

std::string for_xml(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            default: out += c;
        }
    }
    return out;
}

constexpr std::string_view color(std::string_view kind) {
    return kind == "kernel"                  ? "#cfe3f7"
           : kind == "copy"                  ? "#d9efd2"
           : kind == "fill"                  ? "#f4ecc8"
           : kind == "host"                  ? "#f3d6d6"
           : kind == "if" || kind == "while" ? "#e6dcf2"
                                             : "#e4e4e4";
}

/// Where the nodes of a graph or a body are in a picture: each in a layer of its own depth, from above to below, in the
/// order of the recording. A node with a body is as large as that.
struct Layout {
    static constexpr int least_width = 200, head = 44, gap = 24;
    struct Box {
        int x = 0, y = 0, width = least_width, height = head;
        std::vector<Layout> body{};  // at most one
    };
    std::vector<Box> boxes;
    int width = gap, height = 0;

    explicit Layout(const GraphContents& graph) {
        std::vector<int> layer, ends, heights;  // of each node; of each layer: where it ends, how high it is
        for (const GraphContents::Entry& entry : graph.entries) {
            int its = 0;
            for (const std::uint32_t before : entry.after) its = std::max(its, layer[before] + 1);
            const std::size_t layers = std::max(ends.size(), std::size_t(its) + 1);
            ends.resize(layers, gap);
            heights.resize(layers);
            Box& box = boxes.emplace_back();
            if (const GraphContents* const body = entry.body()) {
                const Layout& inner = box.body.emplace_back(*body);
                box.width = std::max(box.width, inner.width);
                box.height += inner.height;
            }
            box.x = ends[std::size_t(its)];
            ends[std::size_t(its)] += box.width + gap;
            width = std::max(width, ends[std::size_t(its)]);
            heights[std::size_t(its)] = std::max(heights[std::size_t(its)], box.height);
            layer.push_back(its);
        }
        std::vector<int> tops;
        for (const int each : heights) {
            tops.push_back(height + gap);
            height += each + 2 * gap;
        }
        for (std::size_t i = 0; i < boxes.size(); ++i) boxes[i].y = tops[std::size_t(layer[i])];
    }
};

}  // namespace

std::string words(const Node& work) {
    const Names names = names_of(work);
    if (names.kind == "graph") return "a body";
    if (names.kind == "kernel") return fmt::format("kernel '{}'", names.name);
    return names.kind == "host" ? names.name : fmt::format("{} '{}'", names.kind, names.name);
}

namespace {

/// The nodes of a graph or a body, which are counted from `next` on, and their edges.
void draw_dot(const GraphContents& graph, std::size_t& next, const std::string& indent, std::string& out) {
    std::vector<std::size_t> numbers;
    for (const GraphContents::Entry& entry : graph.entries) {
        const std::size_t number = next++;
        const Names names = names_of(entry);
        numbers.push_back(number);
        out += fmt::format("{}n{} [label=\"{} {}\\n{}\", fillcolor=\"{}\"];\n", indent, number, names.kind,
                           escaped(names.name), escaped(names.detail), color(names.kind));
        for (const std::uint32_t before : entry.after)
            out += fmt::format("{}n{} -> n{};\n", indent, numbers[before], number);
        const GraphContents* const body = entry.body();
        if (!body) continue;
        if (!body->entries.empty()) out += fmt::format("{}n{} -> n{} [style=dashed];\n", indent, number, next);
        out += fmt::format("{}subgraph cluster_{} {{\n{}    label=\"{} {}\";\n", indent, number, indent, names.kind,
                           escaped(names.name));
        draw_dot(*body, next, indent + "    ", out);
        out += indent + "}\n";
    }
}

void write_json(const GraphContents& graph, std::size_t& next, std::string& out) {
    std::vector<std::size_t> numbers;
    for (const GraphContents::Entry& entry : graph.entries) {
        const Names names = names_of(entry);
        const Location where = entry.work.where();
        std::vector<std::size_t> after;
        for (const std::uint32_t before : entry.after) after.push_back(numbers[before]);
        out += fmt::format("{}\n{{\"id\":{},\"kind\":\"{}\",\"name\":\"{}\",\"detail\":\"{}\",\"after\":[{}]",
                           numbers.empty() ? "" : ",", next, names.kind, escaped(names.name), escaped(names.detail),
                           fmt::join(after, ","));
        numbers.push_back(next++);
        if (where.known()) out += fmt::format(",\"recorded at\":\"{}\"", escaped(to_string(where)));
        if (const GraphContents* const body = entry.body()) {
            out += ",\"body\":[";
            write_json(*body, next, out);
            out += "\n]";
        }
        out += "}";
    }
}

void draw_svg(const GraphContents& graph, const Layout& layout, int left, int top, std::string& out) {
    const auto& boxes = layout.boxes;
    for (std::size_t i = 0; i < boxes.size(); ++i)
        for (const std::uint32_t before : graph.entries[i].after) {
            const Layout::Box &from = boxes[before], &to = boxes[i];
            out += fmt::format(
                "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#555\" marker-end=\"url(#end)\"/>\n",
                left + from.x + from.width / 2, top + from.y + from.height, left + to.x + to.width / 2, top + to.y);
        }
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const Layout::Box& box = boxes[i];
        const Names names = names_of(graph.entries[i]);
        const int x = left + box.x, y = top + box.y, middle = x + box.width / 2;
        out += fmt::format(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"#555\"/>\n"
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} {}</text>\n"
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{}</text>\n",
            x, y, box.width, box.height, color(names.kind), middle, y + 18, names.kind, for_xml(names.name), middle,
            y + 34, for_xml(names.detail));
        if (const GraphContents* const body = graph.entries[i].body())
            draw_svg(*body, box.body.front(), x, y + Layout::head, out);
    }
}

}  // namespace

std::string Graph::dot() const {
    std::string out = "digraph ikat {\n    node [shape=box, style=filled];\n";
    std::size_t next = 0;
    draw_dot(*contents_, next, "    ", out);
    return out + "}\n";
}

std::string Graph::json() const {
    std::string out = "{\"nodes\":[";
    std::size_t next = 0;
    write_json(*contents_, next, out);
    return out + "\n]}\n";
}

std::string Graph::svg() const {
    const Layout layout(*contents_);
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
        "orient=\"auto\"><path d=\"M0 0 8 4 0 8z\"/></marker></defs>\n",
        layout.width, layout.height);
    draw_svg(*contents_, layout, 0, 0, out);
    return out + "</svg>\n";
}

}  // namespace ikat::runtime
