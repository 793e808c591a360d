// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report.hpp"

#include <CLI/CLI.hpp>

namespace ikat::cli {

void add_report_option(CLI::App& command, std::string& format, const std::string& description) {
    command.add_flag("--report{text}", format, description)->type_name("[=text|json]");
}

std::string render(const KernelReport& report, const std::string& format) {
    if (format == "text") return to_text(report);
    if (format == "json") return to_json(report);
    throw Error("there is no report as '" + format + "'", "--report, --report=text or --report=json");
}

ReportOptions report_options() { return {.ptxas = ptxas::find()}; }

}  // namespace ikat::cli
