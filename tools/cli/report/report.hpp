// SPDX-License-Identifier: Apache-2.0
// The option --report[=text|json] of commands.
#pragma once
#include <span>
#include <string>

#include "codegen/report/report.hpp"
#include "tools/cli/report/traffic.hpp"

namespace CLI {
class App;
}

namespace ikat::cli {

/// `format` stays empty without the option.
void add_report_option(CLI::App& command, std::string& format, const std::string& description);

/// Throws Error for a format that is neither absent, text nor json.
void check_report_format(const std::string& format);

/// The report as text or JSON, with the launch's traffic if it was counted.
std::string render(const KernelReport& report, const std::string& format,
                   std::span<const emulator::LaunchTraffic> launch = {});

/// With ptxas, if it is found.
ReportOptions report_options();

}  // namespace ikat::cli
