// SPDX-License-Identifier: Apache-2.0
// The option --report[=text|json] of commands.
#pragma once
#include <string>

#include "codegen/report/report.hpp"

namespace CLI {
class App;
}

namespace ikat::cli {

/// `format` stays empty without the option.
void add_report_option(CLI::App& command, std::string& format, const std::string& description);

/// As text or JSON. Throws Error for another format.
std::string render(const KernelReport& report, const std::string& format);

/// With ptxas, where it is found.
ReportOptions report_options();

}  // namespace ikat::cli
