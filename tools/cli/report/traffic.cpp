// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/report/json.hpp"

namespace ikat::cli {
namespace {

void each_direction(const emulator::BufferTraffic& buffer, auto&& f) {
    f("read", buffer.read);
    f("written", buffer.written);
    f("atomic", buffer.atomic);
}

/// "saxpy.cpp:10"
std::string line_of(const Location& where) {
    const std::string_view file(where.file);
    return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where.line);
}

}  // namespace

std::string to_text(const emulator::LaunchTraffic& traffic) {
    std::size_t width = 6;
    for (const auto& buffer : traffic.buffers) width = std::max(width, buffer.name.size());
    std::string out = fmt::format("\nexecuted      {} warp instructions, {} by lanes\n", traffic.warp_instructions,
                                  traffic.lane_instructions);
    out += "\nglobal memory, in bytes\n";
    out += fmt::format("   {:{}}           {:>11} {:>12} {:>12} {:>12}  efficiency\n", "buffer", width, "accesses",
                       "requested", "moved", "touched");
    for (const auto& buffer : traffic.buffers)
        each_direction(buffer, [&](const char* direction, const emulator::Traffic& of) {
            if (of.accesses)
                out += fmt::format("   {:{}}  {:7}  {:>11} {:>12} {:>12} {:>12} {:>10.1f}%\n", buffer.name, width,
                                   direction, of.accesses, of.requested, of.moved, of.touched, 100 * of.efficiency());
        });
    if (traffic.buffers.empty()) out += "   none\n";
    if (traffic.shared.empty()) return out;
    std::vector<std::string> lines;
    for (const emulator::SharedTraffic& of : traffic.shared) lines.push_back(line_of(of.where));
    width = std::ranges::max(lines, {}, &std::string::size).size();
    out += "\nshared memory, in wavefronts\n";
    out += fmt::format("   {:{}}  {:11}  {:>11} {:>12} {:>12}  efficiency\n", "line", width, "instruction", "accesses",
                       "taken", "possible");
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const emulator::SharedTraffic& of = traffic.shared[i];
        out += fmt::format("   {:{}}  {:11}  {:>11} {:>12} {:>12} {:>10.1f}%\n", lines[i], width, of.instruction,
                           of.accesses, of.wavefronts, of.possible, 100 * of.efficiency());
    }
    return out;
}

void add_traffic(Json& json, const emulator::LaunchTraffic& traffic) {
    json.key("executed"), json.open('{');
    json.number("warp_instructions", traffic.warp_instructions);
    json.number("lane_instructions", traffic.lane_instructions);
    json.close('}');
    json.key("traffic"), json.open('[');
    for (const auto& buffer : traffic.buffers) {
        json.open('{');
        json.text("buffer", buffer.name);
        json.number("bytes", buffer.bytes);
        each_direction(buffer, [&](const char* direction, const emulator::Traffic& of) {
            json.key(direction), json.open('{');
            json.number("accesses", of.accesses);
            json.number("requested", of.requested);
            json.number("sectors", of.sectors);
            json.number("moved", of.moved);
            json.number("touched", of.touched);
            json.key("efficiency"), json.real(of.efficiency());
            json.close('}');
        });
        json.close('}');
    }
    json.close(']');
    json.key("shared"), json.open('[');
    for (const emulator::SharedTraffic& of : traffic.shared) {
        json.open('{');
        json.text("line", line_of(of.where));
        json.text("instruction", of.instruction);
        json.number("accesses", of.accesses);
        json.number("wavefronts", of.wavefronts);
        json.number("possible", of.possible);
        json.key("efficiency"), json.real(of.efficiency());
        json.close('}');
    }
    json.close(']');
}

}  // namespace ikat::cli
