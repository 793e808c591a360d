// SPDX-License-Identifier: Apache-2.0
// `report KERNEL TARGET [json]`: the report of a kernel of the standard library, without ptxas. It omits source lines,
// on whose numbers g++ and clang do not always agree; `report-lines KERNEL TARGET` shows only those. `report-ptx
// ENTRY`: the report for the PTX in the file.
#include <sstream>

#include "codegen/report/report.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tools/testing/golden.hpp"

namespace ikat {
namespace {

KernelReport report_of(const std::string& name, const std::string& target) {
    const stdlib::Entry* entry = stdlib::find(name);
    if (!entry) throw Error("no kernel called " + name, "stdlib/catalogue/registry.cpp lists them");
    return report(compile(entry->handle().ast(), {.target = target, .pressure = true}));
}

std::string whole(const golden::Case& test) {
    std::istringstream words(test.args);
    std::string name, target, format;
    words >> name >> target >> format;
    KernelReport kernel = report_of(name, target);
    kernel.lines.clear();
    return format == "json" ? to_json(kernel) : to_text(kernel);
}

std::string lines(const golden::Case& test) {
    std::istringstream words(test.args);
    std::string name, target;
    words >> name >> target;
    const std::string text = to_text(report_of(name, target));
    return text.substr(text.find("live at once, by line"));
}

std::string of_ptx(const golden::Case& test) {
    return to_text(report(ptx::parse(test.input, test.file), test.args, {.threads_per_block = 128}));
}

const golden::Registration report_actions({{"report", whole}, {"report-lines", lines}, {"report-ptx", of_ptx}});

}  // namespace
}  // namespace ikat
