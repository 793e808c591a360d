// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report/report.hpp"

#include <CLI/CLI.hpp>

namespace ikat::cli {

void add_report_option(CLI::App& command, std::string& format, const std::string& description) {
    command.add_flag("--report{text}", format, description)->type_name("[=text|json]");
}

void check_report_format(const std::string& format) {
    if (!format.empty() && format != "text" && format != "json")
        throw Error("there is no report format '" + format + "'", "--report, --report=text or --report=json");
}

std::string render(const KernelReport& report, const std::string& format,
                   std::span<const emulator::LaunchTraffic> launch) {
    if (format == "text") {
        std::string out = to_text(report);
        for (const emulator::LaunchTraffic& traffic : launch) out += to_text(traffic);
        return out;
    }
    return to_json(report, [&](Json& json) {
        for (const emulator::LaunchTraffic& traffic : launch) add_traffic(json, traffic);
    });
}

ReportOptions report_options() { return {.ptxas = ptxas::find()}; }

}  // namespace ikat::cli
