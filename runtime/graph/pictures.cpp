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
    return kind == "kernel" ? "#cfe3f7"
           : kind == "copy" ? "#d9efd2"
           : kind == "fill" ? "#f4ecc8"
           : kind == "host" ? "#f3d6d6"
                            : "#e4e4e4";
}

/// Each node in a layer of its own depth, from above to below, in the order of the recording.
struct Layout {
    static constexpr int width = 200, height = 44, gap = 24;
    std::vector<int> layer, column;
    int layers = 0, columns = 0;

    explicit Layout(const GraphContents& graph) {
        std::vector<int> used;
        for (const GraphContents::Entry& entry : graph.entries) {
            int its = 0;
            for (const std::uint32_t before : entry.after) its = std::max(its, layer[before] + 1);
            layers = std::max(layers, its + 1);
            used.resize(std::size_t(layers));
            layer.push_back(its);
            column.push_back(used[std::size_t(its)]++);
            columns = std::max(columns, column.back() + 1);
        }
    }
    int x(std::size_t node) const { return gap + column[node] * (width + gap); }
    int y(std::size_t node) const { return gap + layer[node] * (height + 2 * gap); }
};

}  // namespace

std::string words(const Node& work) {
    const Names names = names_of(work);
    if (names.kind == "kernel") return fmt::format("kernel '{}'", names.name);
    return names.kind == "host" ? names.name : fmt::format("{} '{}'", names.kind, names.name);
}

std::string Graph::dot() const {
    std::string out = "digraph ikat {\n    node [shape=box, style=filled];\n";
    for (std::size_t i = 0; i < contents_->entries.size(); ++i) {
        const GraphContents::Entry& entry = contents_->entries[i];
        const Names names = names_of(entry.work);
        out += fmt::format("    n{} [label=\"{} {}\\n{}\", fillcolor=\"{}\"];\n", i, names.kind, escaped(names.name),
                           escaped(names.detail), color(names.kind));
        for (const std::uint32_t before : entry.after) out += fmt::format("    n{} -> n{};\n", before, i);
    }
    return out + "}\n";
}

std::string Graph::json() const {
    std::string out = "{\"nodes\":[";
    for (std::size_t i = 0; i < contents_->entries.size(); ++i) {
        const GraphContents::Entry& entry = contents_->entries[i];
        const Names names = names_of(entry.work);
        const Location where = entry.work.where();
        out += fmt::format("{}\n{{\"id\":{},\"kind\":\"{}\",\"name\":\"{}\",\"detail\":\"{}\",\"after\":[{}]",
                           i ? "," : "", i, names.kind, escaped(names.name), escaped(names.detail),
                           fmt::join(entry.after, ","));
        if (where.known()) out += fmt::format(",\"recorded at\":\"{}\"", escaped(to_string(where)));
        out += "}";
    }
    return out + "\n]}\n";
}

std::string Graph::svg() const {
    const Layout layout(*contents_);
    constexpr int width = Layout::width, height = Layout::height, gap = Layout::gap;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
        "orient=\"auto\"><path d=\"M0 0 8 4 0 8z\"/></marker></defs>\n",
        gap + layout.columns * (width + gap), layout.layers * (height + 2 * gap));
    for (std::size_t i = 0; i < contents_->entries.size(); ++i)
        for (const std::uint32_t before : contents_->entries[i].after)
            out += fmt::format(
                "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#555\" marker-end=\"url(#end)\"/>\n",
                layout.x(before) + width / 2, layout.y(before) + height, layout.x(i) + width / 2, layout.y(i));
    for (std::size_t i = 0; i < contents_->entries.size(); ++i) {
        const Names names = names_of(contents_->entries[i].work);
        out += fmt::format(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"#555\"/>\n"
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} {}</text>\n"
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{}</text>\n",
            layout.x(i), layout.y(i), width, height, color(names.kind), layout.x(i) + width / 2, layout.y(i) + 18,
            names.kind, for_xml(names.name), layout.x(i) + width / 2, layout.y(i) + 34, for_xml(names.detail));
    }
    return out + "</svg>\n";
}

}  // namespace ikat::runtime
